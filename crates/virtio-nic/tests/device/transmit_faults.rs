//! Tests transmit rings of hostile drivers: packets that are malformed or too large, and rings that lose their memory.

use crate::driver::PARTS;
use crate::exchange::datagram;
use crate::machine::{GuestDriverConfig, MODERN, RING, TestMachine};
use crate::offloads::large_packet;
use plane::PortIndex;
use virtio::net::{NetHeader, flag, gso};
use virtio_nic::VfRules;

/// Returns a card with three guests of a ring format, the third of which has receive buffers.
fn machine(packed: bool) -> TestMachine {
    let mut machine = TestMachine::new(&[(packed, MODERN); 3]);
    machine.post(2, &[&[1500][..]; 100]);
    machine
}

#[test]
fn packet_of_four_gigabytes_is_dropped_without_being_read() {
    for packed in [false, true] {
        let mut machine = machine(packed);
        assert!(machine.make_available(0, 1, &[(0, 12, false), (0, u32::MAX - 20, false)]));
        assert!(machine.make_available(0, 1, &[(0, u32::MAX, false)]));
        assert!(machine.send(0, NetHeader::default(), &datagram(0, 2, &[1; 100]), &[]));
        let started = std::time::Instant::now();
        machine.poll(0);
        assert!(started.elapsed().as_millis() < 200, "{:?}", started.elapsed());
        assert_eq!((machine.received(2).len(), machine.finished(0)), (1, 3));
        assert_eq!(machine.nic.counters(0).unwrap().malformed, 2);
    }
}

#[test]
fn disabling_a_ring_keeps_the_paused_packet_of_another_ring() {
    let mut machine = TestMachine::with(&[2, 1].map(|pairs| GuestDriverConfig::of(false, MODERN, pairs)));
    machine.post(1, &[&[1600][..]; 60]);
    let rules = VfRules { max_tx_rate: 10, ..machine.nic.rules(0).unwrap().clone() };
    machine.nic.set_rules(0, rules);
    let packet = machine.place(0, tcp_header(), &large_packet(0, 1, &[7; 30_000]), &[]);
    assert!(machine.make_available(0, 3, &packet));
    machine.poll(0);
    // The first ring is visited before the second, which has the packet.
    machine.nic.enable_ring(0, 1, false);
    assert!(machine.send(0, NetHeader::default(), &datagram(0, 1, &[1; 100]), &[]));
    (1..1000).for_each(|step| machine.poll(step * 1_000_000));
    let payload: usize = machine.received(1).iter().map(|(_, bytes, _)| bytes.len() - 54).sum();
    assert_eq!(payload, 30_000, "the rest of the packet leaves when it is due");
}

#[test]
fn paused_packet_continues_after_rings_stop_and_restart() {
    let mut machine = TestMachine::with(&[1, 1].map(|pairs| GuestDriverConfig::of(false, MODERN, pairs)));
    machine.post(1, &[&[1600][..]; 60]);
    machine.nic.set_rules(0, VfRules { max_tx_rate: 10, ..VfRules::default() });
    let packet = machine.place(0, tcp_header(), &large_packet(0, 1, &[7; 30_000]), &[]);
    assert!(machine.make_available(0, 1, &packet));
    machine.poll(0);
    // A VMM that pauses its guest stops both rings, and starts them where they were.
    let positions = [0, 1].map(|ring| machine.nic.stop_ring(0, ring));
    assert_eq!(machine.nic.address(0), None);
    for (ring, position) in (0..).zip(positions) {
        machine.start(0, ring, Some(position)).unwrap();
    }
    (1..1000).for_each(|step| machine.poll(step * 1_000_000));
    let payload: usize = machine.received(1).iter().map(|(_, bytes, _)| bytes.len() - 54).sum();
    assert_eq!(payload, 30_000, "the guest notifies the device of nothing");
}

/// Returns the header of a large TCP packet to segment.
fn tcp_header() -> NetHeader {
    NetHeader {
        flags: flag::NEEDS_CSUM,
        gso_type: gso::TCPV4,
        gso_size: 1448,
        checksum_start: 34,
        checksum_offset: 16,
        ..NetHeader::default()
    }
}

#[test]
fn transmit_ring_in_unmapped_memory_stops_and_counts_a_fault() {
    for packed in [false, true] {
        for part in PARTS {
            for after in (0..60).step_by(7) {
                let mut machine = machine(packed);
                for n in 0..40 {
                    assert!(machine.send(0, NetHeader::default(), &datagram(0, 2, &[n; 100]), &[]));
                    assert!(machine.send(1, NetHeader::default(), &datagram(1, 2, &[n; 100]), &[]));
                }
                let hole = RING + part;
                machine.bus.holes = vec![(0, hole..hole + 0x1000)];
                (machine.bus.accesses, machine.bus.holes_after) = (0, after);
                machine.poll(0);
                assert_eq!(machine.finished(1), 40, "packed {packed}, {part:#x}, {after}");
                let from_second = machine.received(2).iter().filter(|(_, bytes, _)| bytes[11] == 1).count();
                assert_eq!(from_second, 40);
                machine.nic.kick(0, 1);
                machine.poll(0);
                assert_eq!(machine.nic.counters(0).unwrap().faults, 1, "packed {packed}, {part:#x}, {after}");
                assert_eq!(machine.nic.rings(0).1, [], "the ring stays stopped");
            }
        }
    }
}

/// Checks a fault of guest memory that lasts for one access: the memory is present again at the card's next access.
#[test]
fn transmit_chains_return_only_once_after_a_brief_dma_fault() {
    for packed in [false, true] {
        for part in PARTS {
            for after in (0..120).step_by(5) {
                let mut machine = machine(packed);
                (0..80).for_each(|n| {
                    assert!(machine.send(0, NetHeader::default(), &datagram(0, 2, &[n; 100]), &[]));
                });
                let hole = RING + part;
                machine.bus.holes = vec![(0, hole..hole + 0x1000)];
                (machine.bus.accesses, machine.bus.holes_after) = (0, after);
                machine.bus.holes_last = 1;
                machine.poll(0);
                let faults = machine.nic.counters(0).unwrap().faults;
                let finished = machine.finished(0);
                assert!(
                    faults == 1 || finished == 80,
                    "packed {packed}, {part:#x}, {after}: {finished} of 80"
                );
                assert!(machine.plane.ledger.of(PortIndex::of_field(2)).rx_no_descriptors == 0);
            }
        }
    }
}
