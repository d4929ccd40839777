//! Tests of guests with front ends. Each run ends with the checks of cycles and frames.

use super::setup;
use crate::machine::{
    ClientTraffic, InterDomainSender, InterDomainTraffic, NetworkAccessMode, ServerBuildError, ServerSetup,
    ServerSimulation,
};
use driver::moderation::ModerationPolicy;
use guest::{KernelConfig, ProgramWorkload};
use hypervisor::account::CycleCategory;
use hypervisor::cost::CostTable;
use hypervisor::domain::DomainKind;
use sim::VirtualDuration;

const STOCK: NetworkAccessMode = NetworkAccessMode::Split { workers: 1 };

fn millis(millis: u64) -> VirtualDuration {
    VirtualDuration::from_millis(millis)
}

#[test]
fn split_driver_delivers_a_gigabit_a_second_of_datagrams() {
    for kind in [DomainKind::Hvm, DomainKind::Pvm] {
        let mut world =
            ServerSimulation::new(&ServerSetup { kind, network: STOCK, guests: 2, ..setup() }).unwrap();
        let measured = world.measure(millis(20), millis(100)).unwrap();
        let rate = measured.throughput_mbps();
        assert!((956.0..958.0).contains(&rate), "{kind:?} {rate}");
        for category in
            [CycleCategory::Backend, CycleCategory::Bridge, CycleCategory::Grant, CycleCategory::EventChannel]
        {
            assert!(measured.mcycles_per_s(category) > 1.0, "{kind:?} {category:?}");
        }
        let injects = measured.mcycles_per_s(CycleCategory::Injection) > 0.0;
        assert_eq!(
            injects,
            kind == DomainKind::Hvm,
            "only a hardware-virtualized guest gets interrupts injected"
        );
    }
}

#[test]
fn costly_back_end_limits_throughput_and_drops_frames() {
    let slow = |workers| {
        let mut table = CostTable::nehalem();
        table.set("backend", 200_000).unwrap();
        let network = NetworkAccessMode::Split { workers };
        let mut world = ServerSimulation::new(&ServerSetup { table, network, guests: 4, ..setup() }).unwrap();
        world.measure(millis(50), millis(50)).unwrap()
    };
    let (one, four) = (slow(1), slow(4));
    // At least 200 K cycles per frame, and at most half as much again with a busy sibling. The first frames of the interval
    // were copied before it.
    let most = 2.8e9 / 2e5 * 1_472.0 * 8.0 / 1e6;
    for (measured, most) in [(one, most), (four, 4.0 * most)] {
        let rate = measured.throughput_mbps();
        assert!((most / 2.0..1.02 * most).contains(&rate), "{rate} of {most}");
        assert!(measured.loss_pct() > 30.0, "{}", measured.loss_pct());
    }
}

#[test]
fn tcp_acknowledgements_leave_by_the_service_domains_card() {
    let traffic = ClientTraffic::Tcp { window: 64 };
    let spec = KernelConfig::linux_2_6_28(ProgramWorkload::Tcp);
    let moderation = ModerationPolicy::Fixed(50);
    let mut world =
        ServerSimulation::new(&ServerSetup { network: STOCK, traffic, spec, moderation, ..setup() }).unwrap();
    let measured = world.measure(millis(20), millis(50)).unwrap();
    assert!(measured.throughput_mbps() > 930.0, "{}", measured.throughput_mbps());
}

#[test]
fn guests_send_to_each_other_over_the_bridge() {
    for load in [ProgramWorkload::Udp, ProgramWorkload::Tcp] {
        let inside = InterDomainTraffic {
            from: InterDomainSender::Guest,
            load,
            message_bytes: 4_000,
            mtu: 1_500,
            transmit_interval_us: 100,
        };
        let between = ServerSetup {
            network: STOCK,
            guests: 2,
            spec: KernelConfig::linux_2_6_28(load),
            traffic: ClientTraffic::Silent,
            inside: Some(inside),
            ..setup()
        };
        let measured = ServerSimulation::new(&between).unwrap().measure(millis(5), millis(20)).unwrap();
        assert!(measured.throughput_mbps() > 1_000.0, "{load:?} {}", measured.throughput_mbps());
        assert!(measured.mcycles_per_s(CycleCategory::Driver) > 0.0);
    }
}

#[test]
fn eight_back_end_workers_give_equal_traces_for_equal_seeds() {
    let hash = |seed| {
        let network = NetworkAccessMode::Split { workers: 8 };
        let mut world = ServerSimulation::new(&ServerSetup { seed, network, guests: 3, ..setup() }).unwrap();
        world.measure(millis(5), millis(10)).unwrap();
        world.hash()
    };
    assert_eq!(hash(7), hash(7));
    assert_ne!(hash(7), hash(8));
}

#[test]
fn each_back_end_worker_needs_a_vcpu_of_the_service_domain() {
    for (kind, workers) in [(DomainKind::Hvm, 0), (DomainKind::Hvm, 9), (DomainKind::Native, 1)] {
        let network = NetworkAccessMode::Split { workers };
        let built = ServerSimulation::new(&ServerSetup { kind, network, ..setup() });
        assert!(
            matches!(built, Err(ServerBuildError::Workers { workers: n, .. }) if n == workers),
            "{kind:?} {workers}"
        );
    }
}
