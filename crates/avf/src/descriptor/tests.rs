//! Tests the bit positions of descriptors against those that drivers use, in every format.

use super::rx::{
    DestinationAddressKind, RxChecksumResult, RxDescriptorFormat, RxWriteBack, SIZE, SUPPORTED, buffer,
    posted,
};
use super::tx::{
    self, ParsedTxDescriptor, TxContextDescriptor, TxDataDescriptor, TxIpHeaderKind, TxL4Checksum,
};
use super::word;
use proptest::prelude::{Strategy, any, proptest};

const FORMS: [RxDescriptorFormat; 4] = [
    RxDescriptorFormat::Short,
    RxDescriptorFormat::Legacy,
    RxDescriptorFormat::Flex(2),
    RxDescriptorFormat::FlexLate,
];

#[test]
fn a_data_descriptor_of_linux_for_tcp_is_parsed() {
    // 1514 bytes, EOP, RS, ICRC, IPv4 and TCP; headers of 14, 20 and 32 bytes.
    let command = 1 | 2 | 4 | 0x40 | 0x100_u64;
    let info = command << 4 | 7 << 16 | 5 << 23 | 8 << 30 | 1514 << 34;
    let mut raw = [0; tx::SIZE];
    raw[..8].copy_from_slice(&0x1234_5678_9000_u64.to_le_bytes());
    raw[8..].copy_from_slice(&info.to_le_bytes());
    let ParsedTxDescriptor::Data(data) = tx::parse(&raw) else { panic!() };
    let wanted = TxDataDescriptor {
        address: 0x1234_5678_9000,
        length: 1514,
        end_of_packet: true,
        report_status: true,
        ip: TxIpHeaderKind::V4,
        l4: TxL4Checksum::Tcp,
        mac_length: 14,
        ip_length: 20,
        l4_length: 32,
        ..TxDataDescriptor::default()
    };
    assert_eq!(data, wanted);
}

#[test]
fn a_context_descriptor_of_linux_for_segmentation_is_parsed() {
    // Linux's largest: 64,240 bytes in segments of 1,460.
    let info: u64 = 1 | 1 << 4 | 64_240 << 30 | 1_460 << 50;
    let mut raw = [0; tx::SIZE];
    raw[8..].copy_from_slice(&info.to_le_bytes());
    let wanted =
        TxContextDescriptor { segment: true, payload: 64_240, mss: 1_460, ..TxContextDescriptor::default() };
    assert_eq!(tx::parse(&raw), ParsedTxDescriptor::Context(wanted));
    assert_eq!(wanted.emit(), raw);
}

#[test]
fn tx_descriptor_is_done_only_after_the_cards_write_back() {
    let mut raw = TxDataDescriptor { report_status: true, ..TxDataDescriptor::default() }.emit();
    assert!(!tx::is_done(&raw) && !tx::is_done(&TxContextDescriptor::default().emit()));
    raw[8..].copy_from_slice(&tx::done());
    assert!(tx::is_done(&raw));
    assert_eq!(tx::parse(&raw), ParsedTxDescriptor::Other(0xf));
}

#[test]
fn negotiated_capability_selects_the_descriptor_format() {
    assert_eq!(
        RxDescriptorFormat::of(0, false),
        Some(RxDescriptorFormat::Legacy),
        "32 bytes unless flexible ones were negotiated"
    );
    assert_eq!(RxDescriptorFormat::of(0, true), Some(RxDescriptorFormat::Short), "DPDK built for 16 bytes");
    assert_eq!(RxDescriptorFormat::of(1, true), Some(RxDescriptorFormat::Legacy));
    assert_eq!(RxDescriptorFormat::of(2, true), Some(RxDescriptorFormat::Flex(2)));
    assert_eq!(RxDescriptorFormat::of(22, true), Some(RxDescriptorFormat::FlexLate));
    assert_eq!((RxDescriptorFormat::of(3, true), RxDescriptorFormat::of(64, true)), (None, None));
    for rxdid in (0..64).filter(|rxdid| SUPPORTED >> rxdid & 1 == 1) {
        assert!(RxDescriptorFormat::of(rxdid, true).is_some());
    }
}

#[test]
fn posted_rx_descriptor_is_not_done_in_any_format() {
    let raw = posted(0x1000);
    assert_eq!(buffer(&raw), 0x1000);
    assert!(FORMS.iter().all(|form| RxWriteBack::parse(&raw, *form).is_none()));
}

#[test]
fn legacy_rx_write_back_has_its_fields_where_linux_reads_them() {
    let back = RxWriteBack {
        length: 1514,
        end_of_packet: true,
        packet_type: 26,
        checksums: Some(RxChecksumResult { ip_wrong: false, l4_wrong: true }),
        tag: Some(0x2064),
        hash: Some(0xdead_beef),
        cast: DestinationAddressKind::Broadcast,
        ..RxWriteBack::default()
    };
    let raw = back.emit(RxDescriptorFormat::Legacy);
    assert_eq!(word(&raw, 0), 0xdead_beef_2064_0000);
    let wanted = 1 | 1 << 1 | 1 << 2 | 1 << 3 | 2 << 9 | 3 << 12 | 1 << 23 | 26 << 30 | 1514 << 38;
    assert_eq!(word(&raw, 1), wanted);
}

#[test]
fn flexible_rx_write_back_has_fields_where_drivers_read_them() {
    let back = RxWriteBack {
        length: 1514,
        end_of_packet: true,
        packet_type: 26,
        checksums: Some(RxChecksumResult { ip_wrong: true, l4_wrong: false }),
        tag: Some(0x2064),
        hash: Some(0xdead_beef),
        ..RxWriteBack::default()
    };
    let raw = back.emit(RxDescriptorFormat::Flex(2));
    assert_eq!(word(&raw, 0), 2 | 26 << 16 | 1514 << 32);
    assert_eq!(
        word(&raw, 1),
        1 | 1 << 1 | 1 << 3 | 1 << 4 | 1 << 12 | 1 << 13 | 0x2064 << 16 | 0xdead_beef << 32
    );
    let late = back.emit(RxDescriptorFormat::FlexLate);
    assert_eq!((late[0], word(&late, 1) >> 32, word(&late, 3)), (22, 0, 0xdead_beef));
}

fn write_back() -> impl Strategy<Value = RxWriteBack> {
    let numbers = (0..1_u16 << 14, any::<u8>(), any::<Option<u16>>(), any::<Option<u32>>());
    (numbers, any::<[bool; 7]>(), 0..3_u8).prop_map(|((length, packet_type, tag, hash), on, cast)| {
        RxWriteBack {
            length,
            packet_type,
            tag,
            hash,
            end_of_packet: on[0],
            checksums: on[1].then_some(RxChecksumResult { ip_wrong: on[2], l4_wrong: on[3] }),
            loopback: on[4],
            fcs: on[5],
            damaged: on[6],
            cast: [
                DestinationAddressKind::Unicast,
                DestinationAddressKind::Multicast,
                DestinationAddressKind::Broadcast,
            ][usize::from(cast)],
        }
    })
}

proptest! {
    #[test]
    fn rx_write_back_reports_the_same_values_in_every_format(back in write_back()) {
        for form in FORMS {
            let raw = back.emit(form);
            let said = match form {
                RxDescriptorFormat::Short | RxDescriptorFormat::Legacy => back,
                _ => RxWriteBack { cast: DestinationAddressKind::Unicast, ..back },
            };
            assert_eq!(RxWriteBack::parse(&raw[..form.size()], form), Some(said), "{form:?}");
        }
    }

    #[test]
    fn any_transmit_descriptor_is_parsed_and_emitted_unchanged(raw in any::<[u8; tx::SIZE]>()) {
        match tx::parse(&raw) {
            ParsedTxDescriptor::Data(data) => assert_eq!(tx::parse(&data.emit()), ParsedTxDescriptor::Data(data)),
            ParsedTxDescriptor::Context(context) => assert_eq!(tx::parse(&context.emit()), ParsedTxDescriptor::Context(context)),
            ParsedTxDescriptor::Other(kind) => assert!(kind > 1),
        }
    }

    #[test]
    fn parsing_any_bytes_as_an_rx_write_back_does_not_panic(raw in any::<[u8; SIZE]>(), length in 0..=SIZE) {
        for form in FORMS {
            let _ = RxWriteBack::parse(&raw[..length], form);
        }
    }
}
