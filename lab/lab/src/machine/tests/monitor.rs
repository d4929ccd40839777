//! Tests of the PF drivers in a running server: their cost, and the time of answers to guests.

use super::setup;
use crate::machine::parts::card::card_time;
use crate::machine::{ClientTraffic, NetworkAccessMode, ServerSetup, ServerSimulation};
use hypervisor::account::CycleCategory;
use hypervisor::cost::CostConstant;
use hypervisor::domain::DomainKind;
use i82576::bits::v2p;
use i82576::mailbox::{ACK, INFO_SHIFT, id};
use i82576::register::vf;
use pcie::Function;
use sim::{VirtualDuration, VirtualInstant};

fn at_millis(millis: u64) -> VirtualInstant {
    VirtualInstant::ZERO + VirtualDuration::from_millis(millis)
}

/// Runs the server to `at`, and returns the cycles that the service domain has spent in network drivers.
fn spent(world: &mut ServerSimulation, at: VirtualInstant) -> u64 {
    world.run(at);
    let dom0 = world.core.processors.domain_of(world.system.service[0].vcpu);
    world.core.processors.snapshot(at).ledger().spent(dom0, CycleCategory::Driver)
}

/// Checks the cost of a poll of the PF drivers without work, which reads only ICR, MBVFICR and VFLRE.
#[test]
fn pf_monitor_polls_every_port_100_times_a_second() {
    let quiet = ServerSetup { ports: 3, guests: 3, traffic: ClientTraffic::Silent, ..setup() };
    let mut world = ServerSimulation::new(&quiet).unwrap();
    let read = world.core.table[CostConstant::MmioRead];
    let before = spent(&mut world, at_millis(100));
    assert_eq!(spent(&mut world, at_millis(1_100)) - before, 100 * 3 * 3 * read);
}

/// Requests a multicast group for a VF, as the VF's driver does.
fn ask(world: &mut ServerSimulation, now: VirtualInstant) {
    let nic = &mut world.system.ports[0].nic;
    let mut write = |offset, value| nic.write(Function::Vf(0), offset, value, card_time(now));
    write(vf::V2PMAILBOX, v2p::VFU);
    write(vf::VMBMEM, id::SET_MULTICAST | 1 << INFO_SHIFT);
    write(vf::VMBMEM + 4, 0x123);
    write(vf::V2PMAILBOX, v2p::REQ);
}

#[test]
fn mailbox_request_is_answered_at_dom0s_next_mailbox_poll() {
    let split = NetworkAccessMode::Split { workers: 1 };
    for (kind, network) in [(DomainKind::Hvm, NetworkAccessMode::Direct), (DomainKind::Pvm, split)] {
        let mut world =
            ServerSimulation::new(&ServerSetup { kind, network, traffic: ClientTraffic::Silent, ..setup() })
                .unwrap();
        let idle = [30, 40].map(|at| spent(&mut world, at_millis(at)));
        ask(&mut world, at_millis(40));
        let status = |world: &mut ServerSimulation, now: VirtualInstant| {
            let nic = &mut world.system.ports[0].nic;
            let answer = nic.read(Function::Vf(0), vf::VMBMEM, card_time(now));
            answer & (ACK | i82576::mailbox::ID_MASK)
        };
        world.run(at_millis(40) + VirtualDuration::from_micros(1));
        assert_eq!(
            status(&mut world, at_millis(40)),
            id::SET_MULTICAST,
            "the request was answered before the next visit: {network:?}"
        );
        let answered = spent(&mut world, at_millis(50));
        assert_eq!(status(&mut world, at_millis(50)), ACK | id::SET_MULTICAST, "{network:?}");
        assert!(answered - idle[1] > idle[1] - idle[0], "{network:?}: {answered} after {idle:?}");
        world.measure(VirtualDuration::ZERO, VirtualDuration::from_millis(5)).unwrap();
    }
}
