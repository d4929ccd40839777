//! Tests the bit positions of descriptors against those that drivers use, in every format.

use super::rx::{Cast, Checksums, Form, SIZE, SUPPORTED, WriteBack, buffer, posted};
use super::tx::{self, Context, Data, Ip, L4, Transmit};
use super::word;
use proptest::prelude::{Strategy, any, proptest};

const FORMS: [Form; 4] = [Form::Short, Form::Legacy, Form::Flex(2), Form::FlexLate];

#[test]
fn a_data_descriptor_of_linux_for_tcp_is_parsed() {
    // 1514 bytes, EOP, RS, ICRC, IPv4 and TCP; headers of 14, 20 and 32 bytes.
    let command = 1 | 2 | 4 | 0x40 | 0x100_u64;
    let info = command << 4 | 7 << 16 | 5 << 23 | 8 << 30 | 1514 << 34;
    let mut raw = [0; tx::SIZE];
    raw[..8].copy_from_slice(&0x1234_5678_9000_u64.to_le_bytes());
    raw[8..].copy_from_slice(&info.to_le_bytes());
    let Transmit::Data(data) = tx::parse(&raw) else { panic!() };
    let wanted = Data {
        address: 0x1234_5678_9000,
        length: 1514,
        end_of_packet: true,
        report_status: true,
        ip: Ip::V4,
        l4: L4::Tcp,
        mac_length: 14,
        ip_length: 20,
        l4_length: 32,
        ..Data::default()
    };
    assert_eq!(data, wanted);
}

#[test]
fn a_context_descriptor_of_linux_for_segmentation_is_parsed() {
    // Linux's largest: 64,240 bytes in segments of 1,460.
    let info: u64 = 1 | 1 << 4 | 64_240 << 30 | 1_460 << 50;
    let mut raw = [0; tx::SIZE];
    raw[8..].copy_from_slice(&info.to_le_bytes());
    let wanted = Context { segment: true, payload: 64_240, mss: 1_460, ..Context::default() };
    assert_eq!(tx::parse(&raw), Transmit::Context(wanted));
    assert_eq!(wanted.emit(), raw);
}

#[test]
fn transmit_descriptor_is_done_once_the_card_returns_it() {
    let mut raw = Data { report_status: true, ..Data::default() }.emit();
    assert!(!tx::is_done(&raw) && !tx::is_done(&Context::default().emit()));
    raw[8..].copy_from_slice(&tx::done());
    assert!(tx::is_done(&raw));
    assert_eq!(tx::parse(&raw), Transmit::Other(0xf));
}

#[test]
fn negotiated_capability_selects_the_descriptor_format() {
    assert_eq!(Form::of(0, false), Some(Form::Legacy), "32 bytes unless flexible ones were negotiated");
    assert_eq!(Form::of(0, true), Some(Form::Short), "DPDK built for 16 bytes");
    assert_eq!(Form::of(1, true), Some(Form::Legacy));
    assert_eq!(Form::of(2, true), Some(Form::Flex(2)));
    assert_eq!(Form::of(22, true), Some(Form::FlexLate));
    assert_eq!((Form::of(3, true), Form::of(64, true)), (None, None));
    for rxdid in (0..64).filter(|rxdid| SUPPORTED >> rxdid & 1 == 1) {
        assert!(Form::of(rxdid, true).is_some());
    }
}

#[test]
fn a_posted_descriptor_is_not_done_in_any_format() {
    let raw = posted(0x1000);
    assert_eq!(buffer(&raw), 0x1000);
    assert!(FORMS.iter().all(|form| WriteBack::parse(&raw, *form).is_none()));
}

#[test]
fn a_legacy_write_back_has_its_bits_where_linux_reads_them() {
    let back = WriteBack {
        length: 1514,
        end_of_packet: true,
        packet_type: 26,
        checksums: Some(Checksums { ip_wrong: false, l4_wrong: true }),
        tag: Some(0x2064),
        hash: Some(0xdead_beef),
        cast: Cast::Broadcast,
        ..WriteBack::default()
    };
    let raw = back.emit(Form::Legacy);
    assert_eq!(word(&raw, 0), 0xdead_beef_2064_0000);
    let wanted = 1 | 1 << 1 | 1 << 2 | 1 << 3 | 2 << 9 | 3 << 12 | 1 << 23 | 26 << 30 | 1514 << 38;
    assert_eq!(word(&raw, 1), wanted);
}

#[test]
fn a_flexible_write_back_has_its_bits_where_drivers_read_them() {
    let back = WriteBack {
        length: 1514,
        end_of_packet: true,
        packet_type: 26,
        checksums: Some(Checksums { ip_wrong: true, l4_wrong: false }),
        tag: Some(0x2064),
        hash: Some(0xdead_beef),
        ..WriteBack::default()
    };
    let raw = back.emit(Form::Flex(2));
    assert_eq!(word(&raw, 0), 2 | 26 << 16 | 1514 << 32);
    assert_eq!(
        word(&raw, 1),
        1 | 1 << 1 | 1 << 3 | 1 << 4 | 1 << 12 | 1 << 13 | 0x2064 << 16 | 0xdead_beef << 32
    );
    let late = back.emit(Form::FlexLate);
    assert_eq!((late[0], word(&late, 1) >> 32, word(&late, 3)), (22, 0, 0xdead_beef));
}

fn write_back() -> impl Strategy<Value = WriteBack> {
    let numbers = (0..1_u16 << 14, any::<u8>(), any::<Option<u16>>(), any::<Option<u32>>());
    (numbers, any::<[bool; 7]>(), 0..3_u8).prop_map(|((length, packet_type, tag, hash), on, cast)| {
        WriteBack {
            length,
            packet_type,
            tag,
            hash,
            end_of_packet: on[0],
            checksums: on[1].then_some(Checksums { ip_wrong: on[2], l4_wrong: on[3] }),
            loopback: on[4],
            fcs: on[5],
            damaged: on[6],
            cast: [Cast::Unicast, Cast::Multicast, Cast::Broadcast][usize::from(cast)],
        }
    })
}

proptest! {
    #[test]
    fn receive_write_back_is_the_same_in_every_format(back in write_back()) {
        for form in FORMS {
            let raw = back.emit(form);
            let said = match form {
                Form::Short | Form::Legacy => back,
                _ => WriteBack { cast: Cast::Unicast, ..back },
            };
            assert_eq!(WriteBack::parse(&raw[..form.size()], form), Some(said), "{form:?}");
        }
    }

    #[test]
    fn any_transmit_descriptor_is_parsed_and_emitted_unchanged(raw in any::<[u8; tx::SIZE]>()) {
        match tx::parse(&raw) {
            Transmit::Data(data) => assert_eq!(tx::parse(&data.emit()), Transmit::Data(data)),
            Transmit::Context(context) => assert_eq!(tx::parse(&context.emit()), Transmit::Context(context)),
            Transmit::Other(kind) => assert!(kind > 1),
        }
    }

    #[test]
    fn any_bytes_can_be_parsed_as_a_receive_write_back(raw in any::<[u8; SIZE]>(), length in 0..=SIZE) {
        for form in FORMS {
            let _ = WriteBack::parse(&raw[..length], form);
        }
    }
}
