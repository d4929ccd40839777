//! Tests of the server in the set-ups of the paper.

mod inside;
mod mechanisms;
mod monitor;
mod netback;
mod overflow;
mod responses;
mod split;

use super::{Limits, Netback, Network, Scheduling, Setup, Topology, Traffic, World};
use driver::moderation::Policy;
use guest::{Load, Spec};
use hypervisor::account::Category;
use hypervisor::cost::CostTable;
use hypervisor::domain::DomainKind;
use hypervisor::exit::EoiPath;
use hypervisor::msix::Handler;
use sim::Span;

fn setup() -> Setup {
    Setup {
        table: CostTable::nehalem(),
        topology: Topology::HPCA2010,
        ports: 1,
        guests: 1,
        network: Network::Direct,
        netback: Netback::SPREAD,
        kind: DomainKind::Hvm,
        spec: Spec::linux_2_6_28(Load::Udp),
        traffic: Traffic::Udp,
        first: None,
        inside: None,
        loopback: None,
        limits: Limits::default(),
        moderation: Policy::Fixed(500),
        msix: Handler::Hypervisor,
        scheduling: Scheduling::RoundRobin,
        eoi: EoiPath::Emulated,
        seed: 1,
    }
}

#[test]
fn one_guest_reads_a_gigabit_of_datagrams() {
    let mut world = World::new(&setup()).unwrap();
    let measured = world.measure(Span::from_millis(20), Span::from_millis(100)).unwrap();
    assert!((956.0..958.0).contains(&measured.throughput_mbps()), "{}", measured.throughput_mbps());
    assert!((1_900.0..2_010.0).contains(&measured.interrupts_per_s()), "{}", measured.interrupts_per_s());
}

#[test]
fn paravirtualized_guest_takes_events_and_has_no_vm_exits() {
    let mut world = World::new(&Setup { kind: DomainKind::Pvm, ..setup() }).unwrap();
    let measured = world.measure(Span::from_millis(20), Span::from_millis(100)).unwrap();
    assert!((956.0..958.0).contains(&measured.throughput_mbps()), "{}", measured.throughput_mbps());
    for exit in [Category::ApicEoi, Category::ApicOther, Category::Hlt, Category::ExternalInterrupt] {
        assert_eq!(measured.mcycles_per_s(exit).to_bits(), 0.0f64.to_bits(), "{exit:?}");
    }
    assert!(measured.mcycles_per_s(Category::EventChannel) > 0.0);
}

/// Checks that ten programs on a bare machine with sixteen threads have their own; of ten guests, two share with two
/// others.
#[test]
fn bare_machine_uses_all_its_threads() {
    let switching = |kind| {
        let mut world = World::new(&Setup { kind, guests: 10, ports: 10, ..setup() }).unwrap();
        let measured = world.measure(Span::from_millis(5), Span::from_millis(10)).unwrap();
        measured.mcycles_per_s(Category::Switch) + measured.mcycles_per_s(Category::Refill)
    };
    // Each program is switched to its thread once.
    assert!(switching(DomainKind::Native) < 1e-9, "{}", switching(DomainKind::Native));
    assert!(switching(DomainKind::Hvm) > 10.0, "{}", switching(DomainKind::Hvm));
}

#[test]
fn equal_seeds_give_equal_server_traces() {
    let hash = |seed| {
        let mut world = World::new(&Setup { seed, guests: 3, ..setup() }).unwrap();
        world.measure(Span::from_millis(5), Span::from_millis(10)).unwrap();
        world.hash()
    };
    assert_eq!(hash(7), hash(7));
    assert_ne!(hash(7), hash(8));
}

/// Checks that the counts balance and the wires stay full with either scheduler, when twenty guests share eight
/// threads.
#[test]
fn guests_fill_their_links_with_either_scheduler() {
    let found = [Scheduling::RoundRobin, Scheduling::Credit].map(|scheduling| {
        let setup = Setup { scheduling, guests: 20, ports: 10, ..setup() };
        let mut world = World::new(&setup).unwrap();
        let measured = world.measure(Span::from_millis(20), Span::from_millis(60)).unwrap();
        assert!(measured.throughput_mbps() > 9_500.0, "{scheduling:?}: {}", measured.throughput_mbps());
        measured.cpu_total_pct()
    });
    assert!((found[0] - found[1]).abs() > 1e-6, "who wakes takes the thread: {found:?}");
}
