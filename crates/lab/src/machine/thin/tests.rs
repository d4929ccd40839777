//! Tests of the machine: its calibration target, and relations between the PF drivers.

use super::{Load, PfDriver, Plan, Results, Thin};
use hypervisor::cost::CostTable;
use sim::Span;

fn found(pf: PfDriver, busy: bool, load: Load) -> Results {
    let plan = Plan { table: CostTable::skylake(), pf, busy, load, seed: 1 };
    Thin::new(&plan).measure(Span::from_millis(20), Span::from_millis(100)).unwrap()
}

#[test]
fn throughput_gain_without_pf_interrupts_matches_calibration() {
    let loaded = |pf| found(pf, true, Load::Stream).throughput_gbps;
    let gain = loaded(PfDriver::Interruptless) / loaded(PfDriver::Classical) - 1.0;
    assert!((gain - 0.112).abs() < 0.01, "{gain}");
}

#[test]
fn guest_interrupts_exit_only_with_a_classical_pf_driver() {
    for busy in [false, true] {
        let [classical, without, posted] = [PfDriver::Classical, PfDriver::Interruptless, PfDriver::Posted]
            .map(|pf| found(pf, busy, Load::Stream));
        assert!(classical.interrupt_exits_per_s > 10_000.0, "{classical:?}");
        assert!(without.interrupt_exits_per_s < 1e-9, "{without:?}");
        assert!((50.0..200.0).contains(&posted.interrupt_exits_per_s), "only the PF's: {posted:?}");
    }
}

#[test]
fn guest_fills_the_link_beside_any_pf_driver() {
    for pf in [PfDriver::Classical, PfDriver::Interruptless, PfDriver::Posted] {
        let found = found(pf, false, Load::Stream);
        assert!((9.3..9.5).contains(&found.throughput_gbps), "{found:?}");
    }
}

#[test]
fn mailbox_request_latency_is_lower_without_vm_exits() {
    for busy in [false, true] {
        let mean = |pf| {
            let all = found(pf, busy, Load::Requests).latencies_us;
            assert!(all.len() > 200, "{}", all.len());
            all.iter().sum::<f64>() / all.len() as f64
        };
        assert!(mean(PfDriver::Interruptless) < mean(PfDriver::Classical));
    }
}
