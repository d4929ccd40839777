//! Learning of a VF's address from its first packets.

use crate::address;
use crate::exchange::datagram;
use crate::machine::{GuestDriverConfig, MODERN, TestMachine};
use plane::PortIndex;
use units::{MacAddress, WorkCost};
use virtio::net::NetHeader;
use virtio_nic::VfRules;

/// Number of buffers of the first packet of each transmit ring.
const BUFFERS: usize = 100;

/// Returns a card with a guest that has no address. The first packet of each transmit ring has a group as its source, and many
/// buffers.
fn card_without_addresses(pairs: u8) -> TestMachine {
    let mut machine = TestMachine::with(&[GuestDriverConfig::of(false, MODERN, pairs)]);
    machine.nic.set_rules(0, VfRules { spoof_check: true, ..VfRules::default() });
    let mut frame = datagram(0, 9, &[7; 200]);
    frame[6] |= 1;
    for pair in 0..u32::from(pairs) {
        let buffers = machine.place(0, NetHeader::default(), &frame, &[1; BUFFERS - 1]);
        assert!(buffers.len() == BUFFERS && machine.make_available(0, 2 * pair + 1, &buffers));
    }
    machine
}

#[test]
fn vf_in_debt_has_no_packet_read_to_learn_from() {
    let mut machine = card_without_addresses(4);
    machine.plane.shares.set_quantum(WorkCost(4));
    let mut accesses = Vec::new();
    for _ in 0..12 {
        machine.bus.accesses = 0;
        let in_debt = !accesses.is_empty() && !machine.plane.shares.have_credit(PortIndex::of_field(0));
        assert!(machine.poll_awake(0, 64), "the packets stay in the rings");
        accesses.push((in_debt, machine.bus.accesses));
    }
    // The first look costs some 56 units, and each round pays 4 of them.
    assert!(accesses[0].1 > 0, "{accesses:?}");
    assert!(accesses[1..].iter().all(|reads| *reads == (true, 0)), "{accesses:?}");
}

#[test]
fn looks_at_first_packets_leave_credit_to_send_them() {
    let mut machine = card_without_addresses(16);
    // A look costs 14 units, so looks at all rings would cost more than the credit of each round.
    let rounds = (0..100).position(|_| !machine.poll_awake(0, 64));
    assert!(rounds.is_some_and(|rounds| rounds < 40), "the packets stay in the rings: {rounds:?}");
}

#[test]
fn source_of_zeros_is_no_address_to_learn() {
    let mut machine = TestMachine::with(&[GuestDriverConfig::of(false, MODERN, 1)]);
    machine.nic.set_rules(0, VfRules::default());
    let own = datagram(0, 9, &[7; 200]);
    let mut without_source = own.clone();
    without_source[6..12].fill(0);
    assert!(machine.send(0, NetHeader::default(), &without_source, &[]));
    machine.poll(0);
    assert_eq!(machine.nic.address(0), None);
    assert!(machine.send(0, NetHeader::default(), &own, &[]));
    machine.poll(0);
    assert_eq!(machine.nic.address(0), MacAddress::from_slice(&own[6..]));
}

/// An administrator sets an address, and takes it back.
#[test]
fn address_by_policy_ends_the_learned_one() {
    let mut machine = TestMachine::with(&[GuestDriverConfig::of(false, MODERN, 1); 2]);
    let own = datagram(0, 1, &[7; 200]);
    let [first, second] = [0, 5].map(|n| MacAddress(address(n)));
    machine.nic.set_rules(0, VfRules::default());
    machine.nic.set_rules(1, VfRules::default());
    assert!(machine.send(0, NetHeader::default(), &own, &[]));
    machine.poll(0);
    assert_eq!(machine.nic.address(0), Some(first));
    machine.nic.set_rules(0, VfRules { addresses: vec![second], ..VfRules::default() });
    // No guest has the address any more, and another may use it.
    assert!(machine.send(1, NetHeader::default(), &own, &[]));
    machine.poll(0);
    assert_eq!((machine.nic.address(0), machine.nic.address(1)), (Some(second), Some(first)));
    machine.nic.set_rules(0, VfRules::default());
    assert_eq!(machine.nic.address(0), None);
    assert!(machine.send(0, NetHeader::default(), &datagram(5, 1, &[7; 200]), &[]));
    machine.poll(0);
    assert_eq!(machine.nic.address(0), Some(second));
}
