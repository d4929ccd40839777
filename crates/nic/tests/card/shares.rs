//! Tests the shares of VFs in the card's time (`units::work`) by the exact numbers of frames that polls send.

use crate::common::{CardFixture, data, mac, packet, plain, tcp};
use crate::pacing::{WIRE, bench};
use i82576::MacAddress;
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor, L4PacketType};
use i82576::register::{rx, vf};

const ALL: MacAddress = MacAddress([0xff; 6]);

/// Returns a context for packets over IPv4 without options.
fn context(l4: L4PacketType, l4_length: u8, mss: u16) -> [u8; 16] {
    let lengths = AdvancedContextDescriptor { mac_length: 14, ip_length: 20, ..Default::default() };
    AdvancedContextDescriptor { ipv4: true, l4, l4_length, mss, ..lengths }.emit()
}

/// Sends a TCP packet of `payload` bytes from a VF, which the card segments into frames of `mss` bytes of payload.
fn send_large(bench: &mut CardFixture, from: u8, to: MacAddress, payload: usize, mss: u16) {
    let address = bench.vf(from).place(&tcp(to, mac(from), &vec![7; payload]));
    let first = AdvancedDataDescriptor { segment: true, payload_length: payload as u32, ..data(address, 54) };
    for raw in
        [context(L4PacketType::Tcp, 20, mss), first.emit(), packet(address + 54, payload as u16).emit()]
    {
        bench.vf(from).put(raw);
    }
    bench.vf(from).ring();
}

/// Returns the numbers of frames that leave by the uplink in each of the next polls.
fn sent_by_polls<const N: usize>(bench: &mut CardFixture) -> [usize; N] {
    std::array::from_fn(|_| {
        bench.poll_once();
        bench.wire_got().len()
    })
}

#[test]
fn large_packet_pauses_once_its_vf_has_overdrawn_its_share() {
    let mut bench = bench();
    send_large(&mut bench, 0, WIRE, 60_000, 128);
    // 469 segments of 2 units each; 29 units for the packet's descriptors, and 58 to read it. A poll credits 256 units, and the
    // packet may overdraw them by 512.
    assert_eq!(sent_by_polls(&mut bench), [341, 0, 0, 128, 0]);
    assert!(!bench.poll_once().more);
}

#[test]
fn vf_sends_in_every_poll_beside_a_flood_of_segments() {
    let mut bench = bench();
    for _ in 0..8 {
        send_large(&mut bench, 0, WIRE, 20_000, 128);
    }
    for poll in 0..8 {
        let frame = plain(WIRE, mac(1), 100);
        let address = bench.vf(1).place(&frame);
        bench.vf(1).put(packet(address, frame.len() as u16).emit());
        bench.vf(1).ring();
        bench.poll_once();
        let frames = bench.wire_got();
        let own = frames.iter().filter(|frame| frame[6..12] == mac(1).0).count();
        assert_eq!(own, 1, "poll {poll}");
        assert!(frames.len() <= 1 + (256 + 512) / 2, "poll {poll}: {} frames", frames.len());
    }
}

#[test]
fn sctp_checksums_cost_by_their_bytes() {
    let mut bench = bench();
    let mut frame = plain(WIRE, mac(0), 1_500);
    frame[12..14].copy_from_slice(&[8, 0]);
    (frame[14], frame[23]) = (0x45, 132);
    frame[16..18].copy_from_slice(&1_500_u16.to_be_bytes());
    let address = bench.vf(0).place(&frame);
    bench.vf(0).put(context(L4PacketType::Sctp, 0, 0));
    for _ in 0..60 {
        let summed =
            AdvancedDataDescriptor { insert_l4_checksum: true, ..packet(address, frame.len() as u16) };
        bench.vf(0).put(summed.emit());
    }
    bench.vf(0).ring();
    // 11 units for the checksum, and 4 for the frame.
    let sent: [usize; 4] = sent_by_polls(&mut bench);
    assert_eq!(sent, [18, 17, 17, 8]);
}

#[test]
fn flood_of_broadcasts_leaves_descriptors_for_frames_to_one_vf() {
    let mut bench = bench();
    for _ in 0..4 {
        send_large(&mut bench, 0, ALL, 10_000, 128);
    }
    // Each of the 79 segments has two receivers beside the uplink, and costs 4 units.
    let sent: [usize; 3] = sent_by_polls(&mut bench);
    assert!(sent[0] <= 256 / 4 + 79, "{sent:?}");
    bench.poll();
    let received = bench.vf(1).received().len();
    // A ring of 64 descriptors leaves 7 of the 63 that the driver posts.
    assert_eq!(received, 63 - 7);
    assert_eq!(bench.vf(1).read(vf::RX_BLOCK + rx::RQDPC) as usize, 4 * 79 - received);
    (0..7).for_each(|_| bench.vf(2).send(&plain(mac(1), mac(2), 100)));
    bench.poll();
    assert_eq!(bench.vf(1).received().len(), 7);
}
