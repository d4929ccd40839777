//! Calibration targets: the experiment points and formula that compute the model's counterpart of each published value.
//! The values are in [`OBSERVATIONS`].

use std::borrow::Cow;

use hypervisor::cost::{CostUnit, OBSERVATIONS, PublishedObservation};

use crate::catalogue::{ExperimentPointRef, PointRelation};
use crate::experiments;
use crate::named::Metrics;

/// Published value to calibrate the model on, with the formula that computes the model's value for comparison.
#[derive(Clone, Copy, Debug)]
pub struct CalibrationTarget {
    /// Name of the published observation that the target is compared with.
    pub name: &'static str,
    /// Experiment points of the target, in the order in which the formula uses them.
    pub points: &'static [ExperimentPointRef],
    /// Formula that computes the target's value from the points' metrics.
    pub formula: CalibrationTargetFormula,
    /// Weight of the target's relative residual; 0 for values that are only reported.
    pub weight: f64,
    /// Value of a file of targets; otherwise the value is the published observation of the target's name.
    pub given: Option<GivenValue>,
}

/// Value of a calibration target that a file gives, in the unit of the target's metrics.
#[derive(Clone, Copy, Debug)]
pub struct GivenValue {
    /// Value to compare the model's value with.
    pub value: f64,
    /// Source of the value, possibly empty.
    pub source: &'static str,
}

/// Formula that computes a target's value from the metrics of its points.
#[derive(Clone, Copy, Debug)]
pub enum CalibrationTargetFormula {
    /// Formula: one metric of the target's only experiment point, times a unit conversion factor.
    Metric(&'static str, f64),
    /// Formula: the sum of several metrics of the target's only experiment point, all in one unit.
    Sum(&'static [&'static str]),
    /// Formula: a relation of a sum of metrics, all in one unit, between the target's two experiment points.
    Relation(PointRelation, &'static [&'static str]),
}

impl CalibrationTargetFormula {
    /// Computes the target's value from the metrics of its points. A missing metric yields NaN, which a test would
    /// detect.
    pub(super) fn value(&self, points: &[&Metrics]) -> f64 {
        let get = |at: usize, name: &str| {
            points.get(at).and_then(|metrics| metrics.get(name)).copied().unwrap_or(f64::NAN)
        };
        let sum = |at, names: &[&str]| names.iter().map(|name| get(at, name)).sum::<f64>();
        match *self {
            Self::Metric(name, factor) => get(0, name) * factor,
            Self::Sum(names) => sum(0, names),
            Self::Relation(relation, names) => relation.value(sum(0, names), sum(1, names)),
        }
    }
}

/// Processor use of all domains. The service domain's has its hypercalls, as the papers' accounting has.
pub(super) const CPU: &[&str] = &[DOM0, "cpu_xen_attributed_pct", "cpu_guest_pct"];
/// Processor use of the service domain with its hypercalls.
pub(super) const DOM0: &str = "cpu_dom0_attributed_pct";
const MSI_OFF: ExperimentPointRef =
    ExperimentPointRef { experiment: "fig06", axes: &[("vms", "1"), ("msi_accel", "false")] };
const MSI_ON: ExperimentPointRef =
    ExperimentPointRef { experiment: "fig06", axes: &[("vms", "1"), ("msi_accel", "true")] };
const EOI_OFF: ExperimentPointRef =
    ExperimentPointRef { experiment: "fig07", axes: &[("vms", "1"), ("eoi_accel", "false")] };
const UDP_20K: ExperimentPointRef = ExperimentPointRef { experiment: "fig08", axes: &[("policy", "20k")] };
const UDP_2K: ExperimentPointRef = ExperimentPointRef { experiment: "fig08", axes: &[("policy", "2k")] };
const TCP_20K: ExperimentPointRef = ExperimentPointRef { experiment: "fig09", axes: &[("policy", "20k")] };
const OLD_NONE: ExperimentPointRef =
    ExperimentPointRef { experiment: "fig11", axes: &[("guest", "2.6.18"), ("opts", "none")] };
const OLD_MSI: ExperimentPointRef =
    ExperimentPointRef { experiment: "fig11", axes: &[("guest", "2.6.18"), ("opts", "msi")] };
const NEW_ALL: ExperimentPointRef =
    ExperimentPointRef { experiment: "fig11", axes: &[("guest", "2.6.28"), ("opts", "aic")] };
const PV_TEN: ExperimentPointRef =
    ExperimentPointRef { experiment: "fig16", axes: &[("vms", "10"), ("backend_threads", "1")] };
/// Experiment point with sixty guests. The adaptive policy with six guests per port starts at its lowest rate and stays
/// there, so a short warm-up suffices.
const SIXTY: ExperimentPointRef =
    ExperimentPointRef { experiment: "fig14", axes: &[("vms", "60"), ("warm_up_ms", "50")] };

/// All calibration targets; every target to which constants are fitted has the same weight.
pub const TARGETS: &[CalibrationTarget] = &[
    fitted("msi_dom0_before", &[MSI_OFF], CalibrationTargetFormula::Metric(DOM0, 1.0)),
    fitted("msi_dom0_after", &[MSI_ON], CalibrationTargetFormula::Metric(DOM0, 1.0)),
    fitted("overhead_per_second", &[EOI_OFF], CalibrationTargetFormula::Metric("total_mcycles_per_s", 1.0)),
    fitted(
        "apic_access_per_second",
        &[EOI_OFF],
        CalibrationTargetFormula::Metric("apic_access_mcycles", 1.0),
    ),
    fitted("eoi_share_of_apic_access", &[EOI_OFF], CalibrationTargetFormula::Metric("eoi_share_pct", 1.0)),
    fitted(
        "udp_saving_20k_to_2k",
        &[UDP_20K, UDP_2K],
        CalibrationTargetFormula::Relation(PointRelation::Saving, CPU),
    ),
    fitted("ten_vms_2_6_18_before", &[OLD_NONE], CalibrationTargetFormula::Metric("cpu_total_pct", 1.0)),
    fitted("ten_vms_2_6_18_after", &[OLD_MSI], CalibrationTargetFormula::Metric("cpu_total_pct", 1.0)),
    fitted("ten_vms_2_6_28_all", &[NEW_ALL], CalibrationTargetFormula::Metric("cpu_total_pct", 1.0)),
    fitted(
        "hvm_scaling_per_vm",
        &[NEW_ALL, SIXTY],
        CalibrationTargetFormula::Relation(PointRelation::Difference(50.0), &["cpu_total_pct"]),
    ),
    fitted("pv_one_backend", &[PV_TEN], CalibrationTargetFormula::Metric("throughput_gbps", 1_000.0)),
    reported("udp_throughput", &[UDP_20K], CalibrationTargetFormula::Metric("throughput_mbps", 1.0)),
    reported("tcp_throughput", &[TCP_20K], CalibrationTargetFormula::Metric("throughput_mbps", 1.0)),
    reported("ten_vms_throughput", &[NEW_ALL], CalibrationTargetFormula::Metric("throughput_gbps", 1_000.0)),
];

const fn fitted(
    name: &'static str,
    points: &'static [ExperimentPointRef],
    formula: CalibrationTargetFormula,
) -> CalibrationTarget {
    CalibrationTarget { name, points, formula, weight: 1.0, given: None }
}

/// Creates a target that is only reported: no constant is fitted to it.
pub(crate) const fn reported(
    name: &'static str,
    points: &'static [ExperimentPointRef],
    formula: CalibrationTargetFormula,
) -> CalibrationTarget {
    CalibrationTarget { name, points, formula, weight: 0.0, given: None }
}

impl CalibrationTarget {
    /// Returns `true` if constants are fitted to the target.
    #[must_use]
    pub fn is_fitted(&self) -> bool {
        self.weight > 0.0
    }

    fn observation(&self) -> Option<&'static PublishedObservation> {
        OBSERVATIONS.iter().find(|observation| observation.name == self.name)
    }

    /// Returns the target's published value in the formula's unit, and that unit.
    #[must_use]
    pub fn value(&self) -> (f64, &'static str) {
        if let Some(given) = self.given {
            return (given.value, self.unit());
        }
        self.observation().map_or((f64::NAN, ""), |observation| {
            let value = observation.value as f64;
            match observation.unit {
                CostUnit::Permille => (value / 10.0, "%"),
                CostUnit::Hertz => (value / 1e6, "Mcycles/s"),
                CostUnit::BitsPerSecond => (value / 1e6, "Mb/s"),
                unit => (value, unit.name()),
            }
        })
    }

    /// Returns the unit of the value that the target's formula computes.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        let of_metric = |name: &str| {
            let experiment =
                self.points.first().and_then(|at| experiments::catalogue().experiment(at.experiment));
            experiment
                .and_then(|it| it.metrics.iter().find(|metric| metric.name == name))
                .map_or("", |it| it.unit)
        };
        match self.formula {
            _ if self.given.is_none() && self.observation().is_some() => self.value().1,
            CalibrationTargetFormula::Metric(name, _) => of_metric(name),
            CalibrationTargetFormula::Relation(PointRelation::Saving, _) => "%",
            CalibrationTargetFormula::Relation(PointRelation::Ratio, _) => "",
            CalibrationTargetFormula::Sum(names)
            | CalibrationTargetFormula::Relation(PointRelation::Difference(_), names) => {
                names.first().map_or("", |name| of_metric(name))
            }
        }
    }

    /// Returns the target's name, with a note if no constant is fitted to it.
    #[must_use]
    pub fn what(&self) -> String {
        let note = if self.is_fitted() { "" } else { " (not fitted)" };
        format!("{}{note}", self.name)
    }

    /// Returns the source of the target's published value, with its circumstances.
    #[must_use]
    pub fn source(&self) -> String {
        if let Some(given) = self.given {
            return given.source.to_owned();
        }
        let source = self.observation().map_or(Cow::Borrowed(""), |observation| observation.source.into());
        format!("Dong et al., HPCA 2010: {source}")
    }
}
