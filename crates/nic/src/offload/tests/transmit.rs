//! Tests checksum insertion with the seeds that drivers leave in checksum fields.

use super::frames::{ipv4_frame, ipv4_header, pseudo, tcp4, tcp6, udp4, udp6};
use super::parsed;
use crate::offload::receive::classify;
use crate::offload::transmit::insert;
use alloc::vec::Vec;
use i82576::descriptor::rx::status::{IPE, L4CS, L4E};
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor, L4PacketType};
use offload::crc::crc32c;
use offload::insert::ChecksumError;
use proptest::prelude::{any, proptest};

pub(super) const BOTH: AdvancedDataDescriptor = AdvancedDataDescriptor {
    insert_ip_checksum: true,
    insert_l4_checksum: true,
    address: 0,
    length: 0,
    end_of_packet: true,
    report_status: false,
    insert_vlan: false,
    segment: false,
    time_stamp: false,
    context: 0,
    check_context: false,
    payload_length: 0,
};

fn context(ip_length: u16, l4: L4PacketType) -> AdvancedContextDescriptor {
    AdvancedContextDescriptor {
        mac_length: 14,
        ip_length,
        ipv4: ip_length == 20,
        l4,
        ..AdvancedContextDescriptor::default()
    }
}

#[test]
fn inserted_checksums_equal_those_of_an_independent_stack() {
    for (frame, ip, l4, protocol) in [
        (tcp4(b"odd"), 20, L4PacketType::Tcp, 6),
        (udp4(b"even"), 20, L4PacketType::Udp, 17),
        (tcp6(b"odd"), 40, L4PacketType::Tcp, 6),
        (udp6(b"even"), 40, L4PacketType::Udp, 17),
    ] {
        let at = 14 + usize::from(ip);
        let field = at + if l4 == L4PacketType::Tcp { 16 } else { 6 };
        let mut seeded = frame.clone();
        let seed = pseudo(&frame, ip == 40, protocol, frame.len() - at);
        seeded[field..field + 2].copy_from_slice(&seed.to_be_bytes());
        if ip == 20 {
            seeded[24..26].fill(0xee);
        }
        assert!(insert(&mut seeded, &BOTH, &context(ip, l4)).is_ok());
        assert_eq!(seeded, frame, "{l4:?} behind {ip} bytes of IP");
    }
}

#[test]
fn descriptor_without_a_request_inserts_no_checksum() {
    let mut frame = tcp4(&[]);
    frame[24..26].fill(0);
    let before = frame.clone();
    assert!(insert(&mut frame, &AdvancedDataDescriptor::default(), &context(20, L4PacketType::Tcp)).is_ok());
    assert_eq!(frame, before);
}

#[test]
fn ip_and_l4_checksum_can_be_inserted_separately() {
    let right = tcp4(b"payload");
    let mut frame = right.clone();
    frame[24..26].fill(0xee);
    frame[50..52].fill(0xee);
    let ip = AdvancedDataDescriptor { insert_l4_checksum: false, ..BOTH };
    assert_eq!(insert(&mut frame, &ip, &context(20, L4PacketType::Tcp)), Ok(None));
    assert_eq!((&frame[24..26], &frame[50..52]), (&right[24..26], &[0xee; 2][..]));
    let mut frame = right.clone();
    frame[24..26].fill(0xee);
    let l4 = AdvancedDataDescriptor { insert_ip_checksum: false, ..BOTH };
    assert!(insert(&mut frame, &l4, &context(20, L4PacketType::Tcp)).unwrap().is_some());
    assert_eq!(frame[24..26], [0xee; 2]);
}

#[test]
fn packet_of_only_an_ip_header_gets_its_checksum() {
    let right = ipv4_frame(ipv4_header(17, 0), &[], 0, &[]);
    let mut frame = right.clone();
    frame[24..26].fill(0xee);
    let ip = AdvancedDataDescriptor { insert_l4_checksum: false, ..BOTH };
    assert_eq!(insert(&mut frame, &ip, &context(20, L4PacketType::Udp)), Ok(None));
    assert_eq!(frame, right);
}

#[test]
fn udp_checksum_of_zero_is_sent_as_all_ones() {
    // The payload's last word makes the sum come out as all ones, so its complement as zero.
    let mut frame = udp4(&[0, 0]);
    let sent = [frame[40], frame[41]];
    frame[42..44].copy_from_slice(&sent);
    let seed = pseudo(&frame, false, 17, 10).to_be_bytes();
    frame[40..42].copy_from_slice(&seed);
    assert!(insert(&mut frame, &BOTH, &context(20, L4PacketType::Udp)).is_ok());
    assert_eq!(frame[40..42], [0xff, 0xff]);
    assert_eq!(classify(&frame, &parsed(&frame), u32::MAX, None).status & (L4CS | L4E), L4CS);
}

#[test]
fn inserted_sctp_crc_ignores_the_old_field_value() {
    let frame = ipv4_frame(ipv4_header(132, 0), &[], 0, &[0, 1, 0, 2, 0, 0, 0, 3, 7, 7, 7, 7, 5]);
    let mut inserted = frame.clone();
    assert!(insert(&mut inserted, &BOTH, &context(20, L4PacketType::Sctp)).is_ok());
    let expected = crc32c(&[&frame[34..42], &[0; 4], &frame[46..]]);
    assert_eq!(inserted[42..46], expected.to_le_bytes());
}

#[test]
fn checksum_request_outside_the_frame_changes_no_byte() {
    let frame = tcp4(&[]);
    let outside = |change: fn(&mut AdvancedContextDescriptor)| {
        let mut context = context(20, L4PacketType::Tcp);
        change(&mut context);
        let mut spoiled = frame.clone();
        let result = insert(&mut spoiled, &BOTH, &context);
        assert_eq!(spoiled, frame);
        result
    };
    assert_eq!(outside(|c| c.ip_length = 19), Err(ChecksumError::IpHeader));
    assert_eq!(outside(|c| c.ip_length = 511), Err(ChecksumError::IpHeader));
    assert_eq!(outside(|c| c.mac_length = 35), Err(ChecksumError::IpHeader));
    assert_eq!(outside(|c| c.ip_length = 23), Err(ChecksumError::L4Header));
    assert_eq!(outside(|c| c.l4 = L4PacketType::Reserved), Err(ChecksumError::Transport));
    // A short fragment that claims SCTP (CVE-2024-3567).
    let mut short = frame[..40].to_vec();
    assert_eq!(insert(&mut short, &BOTH, &context(20, L4PacketType::Sctp)), Err(ChecksumError::L4Header));
}

proptest! {
    #[test]
    fn checksum_insertion_in_arbitrary_frames_does_not_panic(
        mut frame: Vec<u8>,
        raw_data: [u8; 16],
        raw_context in any::<[u8; 16]>(),
    ) {
        let (data, context) = super::descriptors(raw_data, raw_context);
        let before = frame.clone();
        if insert(&mut frame, &data, &context).is_err() {
            assert_eq!(frame, before);
        }
    }

    #[test]
    fn inserted_checksum_is_verified_on_reception(payload: Vec<u8>, six: bool, tcp: bool) {
        let (mut frame, l4, protocol) = match (six, tcp) {
            (false, false) => (udp4(&payload), L4PacketType::Udp, 17),
            (false, true) => (tcp4(&payload), L4PacketType::Tcp, 6),
            (true, false) => (udp6(&payload), L4PacketType::Udp, 17),
            (true, true) => (tcp6(&payload), L4PacketType::Tcp, 6),
        };
        let ip = if six { 40 } else { 20 };
        let field = 14 + ip + if tcp { 16 } else { 6 };
        let seed = pseudo(&frame, six, protocol, frame.len() - 14 - ip);
        frame[field..field + 2].copy_from_slice(&seed.to_be_bytes());
        insert(&mut frame, &BOTH, &context(ip as u16, l4)).unwrap();
        assert_eq!(classify(&frame, &parsed(&frame), u32::MAX, None).status & (L4CS | L4E | IPE), L4CS);
    }
}
