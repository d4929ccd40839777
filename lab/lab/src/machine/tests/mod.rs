//! Tests of the modelled server in the set-ups of the paper.

mod inside;
mod mechanisms;
mod monitor;
mod netback;
mod overflow;
mod responses;
mod split;
mod wire;

use super::{
    ClientTraffic, NetbackOptions, NetworkAccessMode, ServerSetup, ServerSimulation, TrafficLimits,
    VcpuScheduling,
};
use crate::experiments::topology::of_paper;
use driver::moderation::ModerationPolicy;
use guest::{KernelConfig, ProgramWorkload};
use hypervisor::account::CycleCategory;
use hypervisor::cost::{CostTable, MachineModel};
use hypervisor::domain::DomainKind;
use hypervisor::exit::EoiPath;
use hypervisor::msix::MsixTablePolicy;
use sim::VirtualDuration;
use std::collections::BTreeSet;

fn setup() -> ServerSetup {
    ServerSetup {
        table: CostTable::nehalem(),
        topology: of_paper(MachineModel::Nehalem),
        ports: 1,
        guests: 1,
        network: NetworkAccessMode::Direct,
        netback: NetbackOptions::SPREAD,
        kind: DomainKind::Hvm,
        spec: KernelConfig::linux_2_6_28(ProgramWorkload::Udp),
        traffic: ClientTraffic::Udp,
        first: None,
        inside: None,
        loopback: None,
        limits: TrafficLimits::default(),
        moderation: ModerationPolicy::Fixed(500),
        msix: MsixTablePolicy::Hypervisor,
        scheduling: VcpuScheduling::RoundRobin,
        eoi: EoiPath::Emulated,
        seed: 1,
    }
}

#[test]
fn one_guest_receives_a_gigabit_a_second_of_datagrams() {
    let mut world = ServerSimulation::new(&setup()).unwrap();
    let measured =
        world.measure(VirtualDuration::from_millis(20), VirtualDuration::from_millis(100)).unwrap();
    assert!((956.0..958.0).contains(&measured.throughput_mbps()), "{}", measured.throughput_mbps());
    assert!((1_900.0..2_010.0).contains(&measured.interrupts_per_s()), "{}", measured.interrupts_per_s());
}

#[test]
fn paravirtualized_guest_takes_events_and_has_no_vm_exits() {
    let mut world = ServerSimulation::new(&ServerSetup { kind: DomainKind::Pvm, ..setup() }).unwrap();
    let measured =
        world.measure(VirtualDuration::from_millis(20), VirtualDuration::from_millis(100)).unwrap();
    assert!((956.0..958.0).contains(&measured.throughput_mbps()), "{}", measured.throughput_mbps());
    for exit in [
        CycleCategory::ApicEoi,
        CycleCategory::ApicOther,
        CycleCategory::Hlt,
        CycleCategory::ExternalInterrupt,
    ] {
        assert_eq!(measured.mcycles_per_s(exit).to_bits(), 0.0f64.to_bits(), "{exit:?}");
    }
    assert!(measured.mcycles_per_s(CycleCategory::EventChannel) > 0.0);
}

/// Checks that ten programs on a bare machine with sixteen threads have a thread each, whereas ten guests share eight
/// threads.
#[test]
fn programs_on_a_bare_machine_cause_no_context_switches() {
    let switching = |kind| {
        let mut world =
            ServerSimulation::new(&ServerSetup { kind, guests: 10, ports: 10, ..setup() }).unwrap();
        let measured =
            world.measure(VirtualDuration::from_millis(5), VirtualDuration::from_millis(10)).unwrap();
        measured.mcycles_per_s(CycleCategory::Switch) + measured.mcycles_per_s(CycleCategory::Refill)
    };
    // Each program is switched to its thread once.
    assert!(switching(DomainKind::Native) < 1e-9, "{}", switching(DomainKind::Native));
    assert!(switching(DomainKind::Hvm) > 10.0, "{}", switching(DomainKind::Hvm));
}

#[test]
fn equal_seeds_give_equal_server_traces() {
    let hash = |seed| {
        let mut world = ServerSimulation::new(&ServerSetup { seed, guests: 3, ..setup() }).unwrap();
        world.measure(VirtualDuration::from_millis(5), VirtualDuration::from_millis(10)).unwrap();
        world.hash()
    };
    assert_eq!(hash(7), hash(7));
    assert_ne!(hash(7), hash(8));
}

/// Checks that the counters balance and the wires stay full with either scheduler, when twenty guests share eight
/// threads.
#[test]
fn guests_fill_links_with_round_robin_or_credit_scheduler() {
    let found = [VcpuScheduling::RoundRobin, VcpuScheduling::Credit].map(|scheduling| {
        let setup = ServerSetup { scheduling, guests: 20, ports: 10, ..setup() };
        let mut world = ServerSimulation::new(&setup).unwrap();
        let measured =
            world.measure(VirtualDuration::from_millis(20), VirtualDuration::from_millis(60)).unwrap();
        assert!(measured.throughput_mbps() > 9_500.0, "{scheduling:?}: {}", measured.throughput_mbps());
        measured.cpu_total_pct()
    });
    assert!((found[0] - found[1]).abs() > 1e-6, "both schedulers use equal processor time: {found:?}");
}

/// Checks that clients of different ports do not start together, whatever they send.
#[test]
fn clients_of_each_port_start_at_a_random_phase() {
    for traffic in [ClientTraffic::Udp, ClientTraffic::Tcp { window: 40 }, ClientTraffic::RequestResponse] {
        let first = |seed| {
            let setup = ServerSetup { ports: 10, guests: 10, traffic, seed, ..setup() };
            let world = ServerSimulation::new(&setup).unwrap();
            world.system.ports.iter().map(|port| port.line.next_arrival().unwrap()).collect::<BTreeSet<_>>()
        };
        assert_eq!(first(1).len(), 10, "{traffic:?}");
        assert_ne!(first(1), first(2), "{traffic:?}");
    }
}
