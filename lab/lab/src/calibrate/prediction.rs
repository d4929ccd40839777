//! Predictions of the model that calibration does not fit: key numbers of figures. The calibration targets are in
//! [`super::target`].

use super::target::{CPU, CalibrationTarget, CalibrationTargetFormula, DOM0, reported};
use crate::catalogue::{
    ExperimentCatalogue, ExperimentPointRef, ModelSensitivity, PointRelation, PredictedRange,
    ValueSensitivity,
};

const fn at(experiment: &'static str, axes: &'static [(&'static str, &'static str)]) -> ExperimentPointRef {
    ExperimentPointRef { experiment, axes }
}

const fn metric(
    name: &'static str,
    point: &'static [ExperimentPointRef],
    metric: &'static str,
) -> CalibrationTarget {
    reported(name, point, CalibrationTargetFormula::Metric(metric, 1.0))
}

const TOTAL: &str = "cpu_total_pct";
const MBPS: &str = "throughput_mbps";
const GBPS: &str = "throughput_gbps";

const SEVEN_EMULATED: ExperimentPointRef = at("fig07", &[("vms", "7"), ("eoi_accel", "false")]);
const SEVEN_FAST: ExperimentPointRef = at("fig07", &[("vms", "7"), ("eoi_accel", "true")]);
const HVM: ExperimentPointRef = at("fig14", &[("vms", "60")]);
const PVM: ExperimentPointRef = at("fig15", &[("vms", "60")]);
const NATIVE: ExperimentPointRef = at("fig11", &[("guest", "native"), ("opts", "aic")]);
const ADAPTIVE: ExperimentPointRef = at("fig11", &[("guest", "2.6.28"), ("opts", "aic")]);
const PV_ONE: ExperimentPointRef = at("fig16", &[("vms", "60"), ("backend_threads", "1")]);
const PV_ALL: ExperimentPointRef = at("fig16", &[("vms", "60"), ("backend_threads", "8")]);
const PVM_PV_ONE: ExperimentPointRef = at("fig17", &[("vms", "60"), ("backend_threads", "1")]);
const PVM_PV_ALL: ExperimentPointRef = at("fig17", &[("vms", "60"), ("backend_threads", "8")]);

const ALL: &[CalibrationTarget] = &[
    metric(
        "fig06: dom0, 7 guests, device model",
        &[at("fig06", &[("vms", "7"), ("msi_accel", "false")])],
        DOM0,
    ),
    metric("fig07: cycles, 7 guests, emulated", &[SEVEN_EMULATED], "total_mcycles_per_s"),
    metric("fig07: cycles, 7 guests, fast", &[SEVEN_FAST], "total_mcycles_per_s"),
    reported(
        "fig08: CPU, adaptive",
        &[at("fig08", &[("policy", "aic")])],
        CalibrationTargetFormula::Sum(CPU),
    ),
    reported(
        "fig09: CPU, adaptive",
        &[at("fig09", &[("policy", "aic")])],
        CalibrationTargetFormula::Sum(CPU),
    ),
    metric("fig09: throughput, 1 kHz", &[at("fig09", &[("policy", "1k")])], MBPS),
    metric("fig10: received, 20 kHz", &[at("fig10", &[("policy", "20k")])], "rx_mbps"),
    metric("fig10: received, adaptive", &[at("fig10", &[("policy", "aic")])], "rx_mbps"),
    metric("fig11: CPU, 2.6.28", &[at("fig11", &[("guest", "2.6.28"), ("opts", "none")])], TOTAL),
    metric("fig11: CPU, 2.6.28 + EOI", &[at("fig11", &[("guest", "2.6.28"), ("opts", "eoi")])], TOTAL),
    metric("fig11: CPU, native", &[at("fig11", &[("guest", "native"), ("opts", "none")])], TOTAL),
    reported(
        "fig11: CPU beyond native, both adaptive",
        &[NATIVE, ADAPTIVE],
        CalibrationTargetFormula::Relation(PointRelation::Difference(1.0), &[TOTAL]),
    ),
    metric("fig12: throughput, 1,500 B", &[at("fig12", &[("message_bytes", "1500")])], GBPS),
    metric("fig12: throughput, 4,000 B", &[at("fig12", &[("message_bytes", "4000")])], GBPS),
    metric("fig13: throughput, 1,500 B", &[at("fig13", &[("message_bytes", "1500")])], GBPS),
    metric("fig13: throughput, 4,000 B", &[at("fig13", &[("message_bytes", "4000")])], GBPS),
    metric("fig14: CPU, 60 guests", &[HVM], TOTAL),
    metric("fig14: throughput, 60 guests", &[HVM], GBPS),
    metric("fig15: CPU, 60 guests", &[PVM], TOTAL),
    metric("fig15: throughput, 60 guests", &[PVM], GBPS),
    metric("fig16: throughput, 60 guests, 1 thread", &[PV_ONE], GBPS),
    metric("fig16: CPU, 60 guests, 8 threads", &[PV_ALL], TOTAL),
    metric("fig16: throughput, 60 guests, 8 threads", &[PV_ALL], GBPS),
    metric("fig17: throughput, 60 guests, 1 thread", &[PVM_PV_ONE], GBPS),
    metric("fig17: CPU, 60 guests, 8 threads", &[PVM_PV_ALL], TOTAL),
    metric("fig17: throughput, 60 guests, 8 threads", &[PVM_PV_ALL], GBPS),
];

/// Returns the predictions whose experiments are in the catalogue.
#[must_use]
pub fn predictions(catalogue: &ExperimentCatalogue) -> Vec<&'static CalibrationTarget> {
    let is_there = |at: &ExperimentPointRef| catalogue.experiment(at.experiment).is_some();
    ALL.iter().filter(|target| target.points.iter().all(is_there)).collect()
}

/// Returns the ranges of the predictions of a point's metric. Sums and relations have no place in a figure.
pub(crate) fn ranges(found: &ModelSensitivity) -> Vec<PredictedRange> {
    let range = |value: &ValueSensitivity| {
        let target = ALL.iter().find(|target| target.name == value.what)?;
        let ([point], CalibrationTargetFormula::Metric(metric, _)) = (target.points, target.formula) else {
            return None;
        };
        let [least, most] = value.range?;
        Some(PredictedRange { point: *point, metric, least, most })
    };
    found.values.iter().filter_map(range).collect()
}
