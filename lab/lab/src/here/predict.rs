//! Predicts the performance of SR-IOV and of split drivers with a cost table: ten guests on ten ports, with
//! the sensitivity of each number. Figures with the same settings have other numbers of guests.

use std::num::NonZeroUsize;

use hypervisor::cost::CostTable;
use serde::Serialize;

use super::constants;
use crate::calibrate::sensitivity::sensitivity;
use crate::calibrate::target::{CalibrationTarget, CalibrationTargetFormula, reported};
use crate::catalogue::ExperimentPointRef;
use crate::catalogue::{ConstantEffect, ValueSensitivity};
use crate::experiments;
use crate::runner::LabError;

const THROUGHPUT: CalibrationTargetFormula = CalibrationTargetFormula::Metric("throughput_gbps", 1.0);
const CPU: CalibrationTargetFormula = CalibrationTargetFormula::Metric("cpu_total_pct", 1.0);

const SR_IOV: &[ExperimentPointRef] = &[ExperimentPointRef { experiment: "fig14", axes: &[("vms", "10")] }];
const ONE_THREAD: &[ExperimentPointRef] =
    &[ExperimentPointRef { experiment: "fig16", axes: &[("vms", "10"), ("backend_threads", "1")] }];
const THREADS: &[ExperimentPointRef] =
    &[ExperimentPointRef { experiment: "fig16", axes: &[("vms", "10"), ("backend_threads", "8")] }];

/// Calibration-style targets for the throughput and processor use of each compared set-up on this host.
static COMPARED: [[CalibrationTarget; 2]; 3] = [
    [reported("SR-IOV", SR_IOV, THROUGHPUT), reported("SR-IOV", SR_IOV, CPU)],
    [
        reported("PV, 1 backend thread", ONE_THREAD, THROUGHPUT),
        reported("PV, 1 backend thread", ONE_THREAD, CPU),
    ],
    [reported("PV, 8 backend threads", THREADS, THROUGHPUT), reported("PV, 8 backend threads", THREADS, CPU)],
];

/// Predicted performance of a set-up (SR-IOV or split driver) on this host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostPrediction {
    /// Description of the set-up, of ten guests on ten ports.
    pub what: String,
    /// Experiment and point of the set-up.
    pub point: String,
    /// Payload that programs read, in gigabits per second.
    pub throughput_gbps: f64,
    /// Processor use of all domains, in percent of one hardware thread.
    pub cpu_total_pct: f64,
    /// Processor use in percent of one hardware thread, per gigabit per second of throughput.
    pub cpu_pct_per_gbps: f64,
    /// Effects of cost constants on the throughput, the largest first.
    pub throughput_hangs_on: Vec<ConstantEffect>,
    /// Effects of constants on the total processor use, the largest first.
    pub cpu_hangs_on: Vec<ConstantEffect>,
}

/// Predicts the set-ups whose experiments exist. `tell` is called with progress messages.
///
/// # Errors
/// [`LabError`] if a point cannot be run.
pub fn predict(
    table: &CostTable,
    jobs: NonZeroUsize,
    tell: &dyn Fn(&str),
) -> Result<Vec<HostPrediction>, LabError> {
    let catalogue = experiments::catalogue();
    let is_there =
        |pair: &&[CalibrationTarget; 2]| catalogue.experiment(pair[0].points[0].experiment).is_some();
    let compared: Vec<_> = COMPARED.iter().filter(is_there).collect();
    let targets = compared.iter().copied().flatten().collect();
    let found = sensitivity(targets, &constants(table), jobs, tell)?;
    Ok(compared.iter().zip(found.chunks_exact(2)).map(|(pair, found)| prediction(&pair[0], found)).collect())
}

fn prediction(target: &CalibrationTarget, found: &[ValueSensitivity]) -> HostPrediction {
    let (throughput, cpu) = (&found[0], &found[1]);
    HostPrediction {
        what: target.name.to_owned(),
        point: target.points[0].to_string(),
        throughput_gbps: throughput.value,
        cpu_total_pct: cpu.value,
        cpu_pct_per_gbps: crate::row::rounded(cpu.value / throughput.value),
        throughput_hangs_on: throughput.effects.clone(),
        cpu_hangs_on: cpu.effects.clone(),
    }
}
