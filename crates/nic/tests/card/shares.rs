//! Tests the shares of VFs in the card's time (`units::work`) by the exact numbers of frames that polls send.

use crate::common::{BASE, CardFixture, SIZE, data, mac, packet, plain, tcp};
use crate::pacing::{WIRE, bench, fill};
use crate::pings::{FloodedCard, check_pings_beside_broadcasts};
use i82576::bits::{dctl, vmolr};
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor, L4PacketType};
use i82576::ids::MAX_FRAME;
use i82576::register::{self as r, rx, tx, vf};
use i82576::{MacAddress, PoolIndex};

const ALL: MacAddress = MacAddress([0xff; 6]);

/// Returns a context for packets over IPv4 without options.
fn context(l4: L4PacketType, l4_length: u8, mss: u16) -> [u8; 16] {
    let lengths = AdvancedContextDescriptor { mac_length: 14, ip_length: 20, ..Default::default() };
    AdvancedContextDescriptor { ipv4: true, l4, l4_length, mss, ..lengths }.emit()
}

/// Returns the descriptors of a TCP packet of `payload` bytes, which the card segments into frames of `mss` bytes of payload.
fn large(bench: &mut CardFixture, from: u8, to: MacAddress, payload: usize, mss: u16) -> [[u8; 16]; 3] {
    let address = bench.vf(from).place(&tcp(to, mac(from), &vec![7; payload]));
    let first = AdvancedDataDescriptor { segment: true, payload_length: payload as u32, ..data(address, 54) };
    [context(L4PacketType::Tcp, 20, mss), first.emit(), packet(address + 54, payload as u16).emit()]
}

/// Sends a TCP packet of `payload` bytes from a VF, which the card segments into frames of `mss` bytes of payload.
fn send_large(bench: &mut CardFixture, from: u8, to: MacAddress, payload: usize, mss: u16) {
    for raw in large(bench, from, to, payload, mss) {
        bench.vf(from).put(raw);
    }
    bench.vf(from).ring();
}

/// Sends a frame from a VF to another without a poll.
fn put_frame(bench: &mut CardFixture, from: u8, to: u8) {
    let frame = plain(mac(to), mac(from), 100);
    let address = bench.vf(from).place(&frame);
    bench.vf(from).put(packet(address, frame.len() as u16).emit());
    bench.vf(from).ring();
}

/// Takes a VF's received frames, posts their descriptors again, and returns the number of those from `source`.
fn take_from(bench: &mut CardFixture, vf: u8, source: u8) -> usize {
    let frames = bench.vf(vf).received();
    bench.vf(vf).post(frames.len() as u32);
    frames.iter().filter(|frame| frame.bytes[6..12] == mac(source).0).count()
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
    // 469 segments of 2 units each; 29 units for the packet's descriptors, and 58 to read it. A poll credits 128 units, and the
    // packet may overdraw them by 512.
    assert_eq!(sent_by_polls(&mut bench), [277, 0, 0, 0, 0, 192, 0]);
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
        assert!(frames.len() <= 1 + (128 + 512) / 2, "poll {poll}: {} frames", frames.len());
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
    assert_eq!(sent, [9, 9, 8, 9]);
}

#[test]
fn flood_of_broadcasts_leaves_descriptors_for_frames_to_one_vf() {
    let mut bench = bench();
    for _ in 0..4 {
        send_large(&mut bench, 0, ALL, 10_000, 128);
    }
    // Each of the 79 segments has two receivers beside the uplink, and costs 4 units.
    let sent: [usize; 3] = sent_by_polls(&mut bench);
    assert!(sent[0] <= 128 / 4 + 79, "{sent:?}");
    bench.poll();
    let received = bench.vf(1).received().len();
    // A ring of 64 descriptors leaves 7 of the 63 that the driver posts.
    assert_eq!(received, 63 - 7);
    assert_eq!(bench.vf(1).read(vf::RX_BLOCK + rx::RQDPC) as usize, 4 * 79 - received);
    (0..7).for_each(|_| bench.vf(2).send(&plain(mac(1), mac(2), 100)));
    bench.poll();
    assert_eq!(bench.vf(1).received().len(), 7);
}

/// Card whose VF 0 floods with a packet, given by its descriptors.
struct FloodedBench {
    bench: CardFixture,
    packet: [[u8; 16]; 3],
}

impl FloodedCard for FloodedBench {
    fn flood(&mut self) {
        fill(&mut self.bench, 0, &self.packet);
    }

    fn send(&mut self, from: u8, to: u8) {
        put_frame(&mut self.bench, from, to);
    }

    fn take_from(&mut self, vf: u8, source: u8) -> usize {
        take_from(&mut self.bench, vf, source)
    }

    fn poll(&mut self) -> usize {
        self.bench.poll_once();
        self.bench.wire_got().len()
    }

    fn lost(&mut self, vf: u8) -> u64 {
        self.bench.nic.counters()[usize::from(vf)].rx_no_descriptors
    }
}

#[test]
fn broadcast_segments_lose_less_than_1_percent_of_pings() {
    let mut bench = bench();
    let packet = large(&mut bench, 0, ALL, 10_000, 128);
    check_pings_beside_broadcasts(&mut FloodedBench { bench, packet });
}

/// Number of descriptors in the ring of the flooding VF.
const FLOOD_RING: u32 = 4096;

/// Fills a ring of VF 0 with copies of a packet, given by its descriptors, and has the card poll it eight times. VF 1 sends a frame
/// before each poll, which leaves in it. Returns the numbers of VF 0's frames, and of its descriptors that the card takes, by
/// polls.
fn flood(packet_of: impl Fn(&mut CardFixture) -> Vec<[u8; 16]>) -> [(usize, u32); 8] {
    let mut bench = bench();
    bench.pf().set(r::vmolr(PoolIndex::FIRST), vmolr::LPE | MAX_FRAME as u32);
    let ring = BASE + SIZE as u64 - 0x1_0000;
    let descriptors = packet_of(&mut bench);
    let whole = FLOOD_RING as usize / descriptors.len() - 1;
    for (raw, n) in descriptors.iter().cycle().take(whole * descriptors.len()).zip(0..) {
        bench.vf(0).poke(ring + 16 * n, raw);
    }
    for (register, value) in [
        (tx::TXDCTL, 0),
        (tx::TDBAL, ring as u32),
        (tx::TDLEN, 16 * FLOOD_RING),
        (tx::TDH, 0),
        (tx::TXDCTL, dctl::ENABLE),
        (tx::TDT, (whole * descriptors.len()) as u32),
    ] {
        bench.vf(0).write(vf::TX_BLOCK + register, value);
    }
    std::array::from_fn(|poll| {
        let address = bench.vf(1).place(&plain(WIRE, mac(1), 100));
        bench.vf(1).put(packet(address, 114).emit());
        bench.vf(1).ring();
        let head = bench.vf(0).read(vf::TX_BLOCK + tx::TDH);
        bench.poll_once();
        let taken = bench.vf(0).read(vf::TX_BLOCK + tx::TDH) - head;
        let frames = bench.wire_got();
        let [own, others] = [0, 1].map(|vf| frames.iter().filter(|frame| frame[6..12] == mac(vf).0).count());
        assert_eq!(others, 1, "poll {poll}");
        (own, taken)
    })
}

#[test]
fn segments_with_headers_of_893_bytes_keep_to_one_share() {
    let polls = flood(|bench| {
        let lengths = AdvancedContextDescriptor { mac_length: 127, ip_length: 511, ..Default::default() };
        let ip = AdvancedContextDescriptor { ipv4: true, ..lengths };
        let context = AdvancedContextDescriptor { l4: L4PacketType::Tcp, l4_length: 255, mss: 128, ..ip };
        let mut bytes = plain(WIRE, mac(0), 893 - 14 + 60_000);
        bytes[127] = 0x45;
        let address = bench.vf(0).place(&bytes);
        let first = AdvancedDataDescriptor { segment: true, payload_length: 60_000, ..data(address, 893) };
        vec![context.emit(), first.emit(), packet(address + 893, 60_000).emit()]
    });
    // A segment of 1,021 bytes costs 4 units. A poll credits 128, and a packet may overdraw them by 512.
    let sent = polls.map(|(frames, _)| frames);
    assert!(sent.iter().all(|frames| frames * 4 <= 128 + 512), "{sent:?}");
    let total = 4 * sent.iter().sum::<usize>();
    assert!((4 * 128..=8 * 128 + 512).contains(&total), "{sent:?}");
}

#[test]
fn sctp_of_9_700_bytes_keeps_to_one_share() {
    let polls = flood(|bench| {
        let mut frame = plain(WIRE, mac(0), 9_700);
        frame[12..14].copy_from_slice(&[8, 0]);
        (frame[14], frame[23]) = (0x45, 132);
        frame[16..18].copy_from_slice(&9_700_u16.to_be_bytes());
        let address = bench.vf(0).place(&frame);
        let summed =
            AdvancedDataDescriptor { insert_l4_checksum: true, ..packet(address, frame.len() as u16) };
        vec![context(L4PacketType::Sctp, 0, 0), summed.emit()]
    });
    // 75 units for the checksum, 20 for the frame and 9 to read it: one or two frames by the 128 units of a poll.
    assert_eq!(polls.map(|(frames, _)| frames), [2, 1, 1, 1, 1, 2, 1, 1]);
}

#[test]
fn context_descriptors_keep_to_one_share() {
    let polls = flood(|_| vec![context(L4PacketType::Tcp, 20, 128)]);
    // A unit pays for eight of them.
    assert_eq!(polls.map(|(_, taken)| taken), [1024, 1024, 1024, 1023, 0, 0, 0, 0]);
}
