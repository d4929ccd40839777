//! Tests of the thin-hypervisor machine: its calibration target, and relations between the PF drivers.

use super::{
    PfNotificationMethod, ThinHypervisorProperties, ThinHypervisorResults, ThinHypervisorSetup,
    ThinHypervisorSimulation, WireTraffic,
};
use hypervisor::cost::{CostTable, MachineModel};
use sim::VirtualDuration;

fn simulate(pf: PfNotificationMethod, busy: bool, load: WireTraffic) -> ThinHypervisorResults {
    let plan = ThinHypervisorSetup {
        table: CostTable::of(MachineModel::Skylake),
        pf,
        busy,
        load,
        properties: ThinHypervisorProperties::iida(busy),
        seed: 1,
    };
    ThinHypervisorSimulation::new(&plan)
        .measure(VirtualDuration::from_millis(20), VirtualDuration::from_millis(100))
        .unwrap()
}

#[test]
fn throughput_gain_without_pf_interrupts_matches_calibration() {
    let loaded = |pf| simulate(pf, true, WireTraffic::Stream).throughput_gbps;
    let gain = loaded(PfNotificationMethod::Interruptless) / loaded(PfNotificationMethod::Classical) - 1.0;
    assert!((gain - 0.112).abs() < 0.01, "{gain}");
}

#[test]
fn guest_interrupts_exit_unless_posted_or_pf_is_interruptless() {
    for busy in [false, true] {
        let [classical, without, posted] = [
            PfNotificationMethod::Classical,
            PfNotificationMethod::Interruptless,
            PfNotificationMethod::Posted,
        ]
        .map(|pf| simulate(pf, busy, WireTraffic::Stream));
        assert!(classical.interrupt_exits_per_s > 10_000.0, "{classical:?}");
        assert!(without.interrupt_exits_per_s < 1e-9, "{without:?}");
        assert!(
            (50.0..200.0).contains(&posted.interrupt_exits_per_s),
            "only the PF's interrupts exit: {posted:?}"
        );
    }
}

#[test]
fn guest_fills_the_link_beside_any_pf_driver() {
    for pf in
        [PfNotificationMethod::Classical, PfNotificationMethod::Interruptless, PfNotificationMethod::Posted]
    {
        let found = simulate(pf, false, WireTraffic::Stream);
        assert!((9.3..9.5).contains(&found.throughput_gbps), "{found:?}");
    }
}

#[test]
fn mailbox_request_latency_is_lower_without_vm_exits() {
    for busy in [false, true] {
        let mean = |pf| {
            let all = simulate(pf, busy, WireTraffic::Requests).latencies_us;
            assert!(all.len() > 200, "{}", all.len());
            all.iter().sum::<f64>() / all.len() as f64
        };
        assert!(mean(PfNotificationMethod::Interruptless) < mean(PfNotificationMethod::Classical));
    }
}
