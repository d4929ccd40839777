//! Tests that the frame path does not allocate: once a kind of frame has passed the card, it takes no memory when it
//! passes again.

use crate::common::{CardFixture, RING, TestBus, data, mac, packet, plain, tagged, tcp};
use i82576::bits::{srrctl, vmrctl};
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor, L4PacketType};
use i82576::register::{self as r, rx, tx, vf};
use i82576::{MacAddress, PoolIndex};
use nic::UplinkWire;
use pcie::{Bus, DmaFault, Function, Iova};

/// Bus that forwards to the test's bus and bypasses that bus's log of requests, because logging allocates.
struct UnloggedBus<'a>(&'a mut TestBus);

impl Bus for UnloggedBus<'_> {
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        into.copy_from_slice(self.0.range(function, iova, into.len()).ok_or(DmaFault { function, iova })?);
        Ok(())
    }

    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault> {
        self.0.range(function, iova, from.len()).ok_or(DmaFault { function, iova })?.copy_from_slice(from);
        Ok(())
    }

    fn msix(&mut self, _function: Function, _vector: u16) {}
}

/// A wire that delivers one frame `left` times, and counts the frames that the card sends.
struct CountingWire {
    frame: Vec<u8>,
    left: usize,
    sent: u64,
}

impl UplinkWire for CountingWire {
    fn transmit(&mut self, _frame: &[u8]) -> bool {
        self.sent += 1;
        true
    }

    fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        into[..self.frame.len()].copy_from_slice(&self.frame);
        Some(self.frame.len())
    }
}

const WIRE: MacAddress = mac(9);
const BROADCAST: MacAddress = MacAddress::BROADCAST;

/// Returns a card whose VFs 0 and 1 have running rings.
fn bench() -> CardFixture {
    let mut bench = CardFixture::new(2);
    (0..2).for_each(|vf| bench.vf(vf).start());
    bench
}

/// Posts the used receive descriptors of both VFs again, so that every round of the test begins alike.
fn post(bench: &mut CardFixture) {
    for n in 0..2 {
        let (head, tail) = (bench.vf(n).read(vf::RX_BLOCK + rx::RDH), bench.vf(n).rings().rx_tail);
        let free = (head + RING - 1 - tail) % RING;
        bench.vf(n).post(free);
    }
}

/// Runs a case ten times: VF 0 sends `descriptors`, and `frame` comes from the wire. Asserts that no round after the second
/// allocates, and returns the frames that VF 1 and the wire got in those rounds.
#[track_caller]
fn allocates_nothing(bench: &mut CardFixture, descriptors: &[[u8; 16]], frame: &[u8]) -> (u64, u64) {
    let mut wire = CountingWire { frame: frame.to_vec(), left: 0, sent: 0 };
    let mut start = (0, 0);
    for round in 0..10 {
        post(bench);
        for raw in descriptors {
            bench.vf(0).put(*raw);
        }
        bench.vf(0).ring();
        wire.left = if frame.is_empty() { 0 } else { 3 };
        if round == 2 {
            start = (bench.nic.counters()[1].rx_packets, wire.sent);
        }
        let counted = allocation_counter::measure(|| poll(bench, &mut wire));
        assert!(round < 2 || counted.count_total == 0, "{} allocations", counted.count_total);
    }
    assert_eq!(
        bench.vf(0).read(vf::TX_BLOCK + tx::TDH),
        bench.vf(0).rings().tx_tail,
        "a descriptor was not sent"
    );
    (bench.nic.counters()[1].rx_packets - start.0, wire.sent - start.1)
}

/// Polls the card, at each of its deadlines, until it has neither pending work nor a deadline.
fn poll(bench: &mut CardFixture, wire: &mut CountingWire) {
    for _ in 0..1_000 {
        let poll = bench.nic.poll(bench.now, bench.budget, &mut UnloggedBus(&mut bench.world.bus), wire);
        match poll.deadline {
            _ if poll.more => {}
            Some(due) => bench.now = due,
            None => return,
        }
    }
}

/// Puts a frame into VF 0's memory, and returns its descriptor: one buffer.
fn whole(bench: &mut CardFixture, frame: &[u8]) -> [u8; 16] {
    let address = bench.vf(0).place(frame);
    packet(address, frame.len() as u16).emit()
}

/// Returns a context descriptor of TCP over IPv4, with segments of `mss` bytes and VLAN 5.
fn context(mss: u16) -> [u8; 16] {
    let lengths = AdvancedContextDescriptor {
        mac_length: 14,
        ip_length: 20,
        l4_length: 20,
        ..AdvancedContextDescriptor::default()
    };
    AdvancedContextDescriptor { ipv4: true, l4: L4PacketType::Tcp, mss, vlan_tag: 5, ..lengths }.emit()
}

/// Returns the descriptors of a TCP packet from VF 0. The card cuts the packet into twenty segments.
fn large(bench: &mut CardFixture, to: MacAddress) -> Vec<[u8; 16]> {
    let address = bench.vf(0).place(&tcp(to, mac(0), &[7; 20_000]));
    let sums =
        AdvancedDataDescriptor { insert_l4_checksum: true, insert_ip_checksum: true, ..data(address, 54) };
    let first = AdvancedDataDescriptor { segment: true, payload_length: 20_000, ..sums };
    vec![context(1_000), first.emit(), packet(address + 54, 20_000).emit()]
}

#[test]
fn delivering_a_wire_frame_to_a_vf_allocates_no_memory() {
    for frame in [plain(mac(1), WIRE, 46), tcp(mac(1), WIRE, &[1; 1_400]), plain(mac(1), WIRE, 9_000)] {
        assert_eq!(allocates_nothing(&mut bench(), &[], &frame), (24, 0));
    }
}

#[test]
fn delivering_a_broadcast_allocates_no_memory() {
    let mut bench = bench();
    assert_eq!(allocates_nothing(&mut bench, &[], &tagged(5, &plain(BROADCAST, WIRE, 100))), (24, 0));
    assert!(bench.nic.counters()[0].rx_packets > 0);
}

#[test]
fn sending_a_frame_of_a_vf_allocates_no_memory() {
    for (to, expected) in [(mac(1), (24, 0)), (WIRE, (0, 24)), (BROADCAST, (24, 24))] {
        let mut bench = bench();
        let one = whole(&mut bench, &tcp(to, mac(0), &[1; 600]));
        assert_eq!(allocates_nothing(&mut bench, &[one; 3], &[]), expected);
    }
}

#[test]
fn inserting_checksums_and_vlan_tags_allocates_no_memory() {
    let mut bench = bench();
    let frame = tcp(mac(1), mac(0), &[1; 600]);
    let address = bench.vf(0).place(&frame);
    let sums = AdvancedDataDescriptor {
        insert_l4_checksum: true,
        insert_ip_checksum: true,
        ..packet(address, frame.len() as u16)
    };
    let descriptors = [context(0), sums.emit(), AdvancedDataDescriptor { insert_vlan: true, ..sums }.emit()];
    assert_eq!(allocates_nothing(&mut bench, &descriptors, &[]), (16, 0));
}

#[test]
fn segmentation_of_a_large_packet_allocates_no_memory() {
    for (to, expected) in [(mac(1), (160, 0)), (WIRE, (0, 160))] {
        let mut bench = bench();
        let descriptors = large(&mut bench, to);
        assert_eq!(allocates_nothing(&mut bench, &descriptors, &[]), expected);
    }
}

#[test]
fn rate_limited_segmentation_allocates_no_memory() {
    let mut bench = bench();
    bench
        .pf()
        .write(r::RTTBCNRC, i82576::bits::rttbcnrc::RS_ENA | 10 << i82576::bits::rttbcnrc::INTEGER_SHIFT);
    let descriptors = large(&mut bench, mac(1));
    assert_eq!(allocates_nothing(&mut bench, &descriptors, &[]), (160, 0));
}

#[test]
fn mirroring_and_header_split_allocate_no_memory() {
    let mut bench = bench();
    bench.pf().write(r::vmrctl(0), vmrctl::DPME | vmrctl::UPME | 1 << vmrctl::POOL_SHIFT);
    bench.vf(1).write(vf::RX_BLOCK + rx::SRRCTL, 0x8a00_0402);
    bench.vf(1).write(vf::PSRTYPE, u32::MAX);
    let one = whole(&mut bench, &tcp(WIRE, mac(0), &[1; 600]));
    assert_eq!(allocates_nothing(&mut bench, &[one; 3], &tcp(mac(0), WIRE, &[1; 600])), (48, 24));
}

#[test]
fn frame_waiting_for_rx_descriptors_allocates_no_memory() {
    let mut bench = bench();
    bench.vf(1).clear(vf::RX_BLOCK + rx::SRRCTL, srrctl::DROP_EN);
    let mut wire = CountingWire { frame: plain(mac(1), WIRE, 300), left: 0, sent: 0 };
    for round in 0..6 {
        post(&mut bench);
        wire.left = 80;
        let arrival = allocation_counter::measure(|| poll(&mut bench, &mut wire));
        assert_eq!(bench.nic.waiting(PoolIndex::EVERY[1]).0, 17, "more frames wait than the ring holds");
        post(&mut bench);
        let delivery = allocation_counter::measure(|| poll(&mut bench, &mut wire));
        assert!(round < 2 || arrival.count_total + delivery.count_total == 0);
    }
    assert_eq!(bench.nic.counters()[1].rx_packets, 480);
}

#[test]
fn card_reset_allocates_memory_only_for_switch_tables() {
    let mut bench = bench();
    let mut wire = CountingWire { frame: Vec::new(), left: 0, sent: 0 };
    poll(&mut bench, &mut wire);
    // The first reset disables the pool: the tables of addresses and of VLAN members. The others change neither.
    for tables in [2, 0, 0] {
        let reset = allocation_counter::measure(|| bench.nic.reset_function(Function::Vf(1)));
        let round = allocation_counter::measure(|| poll(&mut bench, &mut wire));
        assert_eq!((reset.count_total, round.count_total), (0, tables));
    }
}
