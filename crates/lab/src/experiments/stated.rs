//! Values stated by papers for points of experiments, shown in figures beside the rows. Each is a metric of
//! one point.

use crate::calibrate::target::{CalibrationTargetFormula, TARGETS};
use crate::catalogue::PublishedValue;

const fn stated(
    experiment: &'static str,
    axes: &'static [(&'static str, &'static str)],
    (metric, value): (&'static str, f64),
    is_calibrated: bool,
) -> PublishedValue {
    PublishedValue { experiment, axes, metric, value, is_calibrated }
}

/// Values stated by papers to which no cost constant is fitted.
const OTHERS: &[PublishedValue] = &[
    // Dong et al., HPCA 2010: the wires stay full from ten to sixty guests.
    stated("fig14", &[("vms", "10")], ("throughput_gbps", 9.57), false),
    stated("fig14", &[("vms", "60")], ("throughput_gbps", 9.57), false),
    stated("smart-vnic-tx", &[("step", "base"), ("nic", "smart")], ("throughput_mbps", 750.0), true),
    stated("cdna-throughput", &[("system", "xen"), ("direction", "tx")], ("throughput_mbps", 1_602.0), true),
    stated("cdna-throughput", &[("system", "cdna"), ("direction", "tx")], ("cpu_hypervisor_pct", 10.2), true),
    // CDNA's 1,867 Mb/s are 2.1 times as much.
    stated(
        "cdna-scaling",
        &[("vms", "24"), ("system", "xen"), ("direction", "tx")],
        ("throughput_mbps", 889.0),
        false,
    ),
    stated("direct-net", &[("path", "pv")], ("throughput_gbps", 2.6), true),
    stated("direct-net", &[("path", "vmdq")], ("throughput_gbps", 8.2), false),
    // 3.6 times the throughput of the split driver.
    stated("direct-net", &[("path", "direct")], ("throughput_gbps", 9.36), false),
    // Zhang et al.: four tasklets with balanced events, instead of the stock back end.
    stated(
        "netback-multicore",
        &[("tasklets", "1"), ("dispatcher", "vcpu0"), ("guests", "4")],
        ("throughput_gbps", 2.3),
        true,
    ),
    stated(
        "netback-multicore",
        &[("tasklets", "4"), ("dispatcher", "balanced"), ("guests", "4")],
        ("throughput_gbps", 3.7),
        false,
    ),
    stated(
        "rt-audio",
        &[("scheduler", "credit"), ("tick_ms", "10"), ("weights", "1:16")],
        ("underruns_per_s", 2.47),
        true,
    ),
];

/// Returns all values that the papers state.
pub(crate) fn all() -> Vec<PublishedValue> {
    let of_targets = TARGETS.iter().filter_map(|target| match (target.points, target.formula) {
        ([at], CalibrationTargetFormula::Metric(metric, factor)) => {
            let value = target.value().0 / factor;
            Some(stated(at.experiment, at.axes, (metric, value), target.weight > 0.0))
        }
        _ => None,
    });
    of_targets.chain(OTHERS.iter().copied()).collect()
}
