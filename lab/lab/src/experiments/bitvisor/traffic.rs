//! Experiments on the performance of a guest's VF, with an idle and a busy guest: a stream
//! (bitvisor-throughput) and requests (bitvisor-latency).

use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::parts;
use crate::experiments::point::{metric, timed, times};
use crate::experiments::settings;
use crate::machine::thin::{
    PfNotificationMethod, ThinHypervisorResults, ThinHypervisorSetup, ThinHypervisorSimulation, WireTraffic,
};
use crate::value::ParameterValue;
use hypervisor::cost::MachineModel;

const AXES: &[ExperimentAxis] = &[
    ExperimentAxis {
        name: "pf",
        what: "notification of the hypervisor's PF driver about requests",
        values: ExperimentAxisValues::List(&[
            ParameterValue::name("classical"),
            ParameterValue::name("interruptless"),
            ParameterValue::name("posted"),
        ]),
        labels: &["interrupts", "no interrupts", "posted interrupts"],
    },
    ExperimentAxis {
        name: "guest",
        what: "load of the guest's processor besides networking",
        values: ExperimentAxisValues::List(&[ParameterValue::name("idle"), ParameterValue::name("loaded")]),
        labels: &["idle guest", "busy guest"],
    },
];

pub(super) const THROUGHPUT: Experiment = Experiment {
    name: "bitvisor-throughput",
    title: "A PF driver without interrupts: throughput",
    shows: "Claimed: a classical PF driver makes each of the guest's interrupts exit; without it a busy guest gets more \
            of a 10 Gb/s wire. Calibrated: with a busy guest, 11.2 % more. Predicted: exits, the idle guest, posted \
            interrupts. Not modelled: several processors, segments merged by card or kernel, the guest's sends.",
    axes: AXES,
    points: AxisCombinations::All,
    metrics: &[
        metric("throughput_gbps", "Gb/s", "payload that the guest's program has read"),
        metric("cpu_guest_pct", "%", "CPU use of the guest's networking, in percent of the processor"),
        metric("interrupt_exits_per_s", "1/s", "exits of the guest for interrupts"),
        metric("other_exits_per_s", "1/s", "exits of the guest for sensitive instructions"),
    ],
    figures: &[FigureDefinition {
        title: "Throughput, and exits for interrupts",
        kind: FigureKind::GroupedBars,
        x: &["pf"],
        x_title: "PF driver",
        split: Some("guest"),
        left: FigureScale { title: "Throughput", unit: "Gb/s", series: &[("throughput_gbps", "throughput")] },
        right: Some(FigureScale {
            title: "Exits for interrupts",
            unit: "1/s",
            series: &[("interrupt_exits_per_s", "exits")],
        }),
    }],
    run: throughput,
};

pub(super) const LATENCY: Experiment = Experiment {
    name: "bitvisor-latency",
    title: "A PF driver without interrupts: latency",
    shows: "Claimed: answers come sooner without interrupt exits. A client sends requests of 64 bytes, one at \
            a time, and the guest answers. Calibrated: nothing here. Predicted: all, with the exit cost \
            calibrated for bitvisor-throughput. Not modelled: sleep states of the processor, the client's \
            jitter.",
    axes: AXES,
    points: AxisCombinations::All,
    metrics: &[
        metric("latency_us_mean", "us", "mean time from a request to its answer"),
        metric("latency_us_p50", "us", "median time from a request to its answer"),
        metric("latency_us_p99", "us", "99th percentile of the time from a request to its answer"),
    ],
    figures: &[FigureDefinition {
        title: "From request to answer",
        kind: FigureKind::GroupedBars,
        x: &["guest", "pf"],
        x_title: "Guest and PF driver",
        split: None,
        left: FigureScale {
            title: "Latency",
            unit: "us",
            series: &[("latency_us_mean", "mean"), ("latency_us_p50", "median"), ("latency_us_p99", "99 %")],
        },
        right: None,
    }],
    run: latency,
};

fn throughput(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let (found, outcome) = run(at, WireTraffic::Stream, context)?;
    let metrics = outcome
        .metrics
        .with("throughput_gbps", found.throughput_gbps)
        .with("cpu_guest_pct", found.guest_pct)
        .with("interrupt_exits_per_s", found.interrupt_exits_per_s)
        .with("other_exits_per_s", found.other_exits_per_s);
    Ok(PointOutcome { metrics, ..outcome })
}

fn latency(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let (ThinHypervisorResults { latencies_us: all, .. }, outcome) = run(at, WireTraffic::Requests, context)?;
    let mean = if all.is_empty() { 0.0 } else { all.iter().sum::<f64>() / all.len() as f64 };
    let metrics = outcome
        .metrics
        .with("latency_us_mean", mean)
        .with("latency_us_p50", quantile(&all, 50))
        .with("latency_us_p99", quantile(&all, 99));
    Ok(PointOutcome { metrics, ..outcome })
}

/// Returns a percentile of sorted values, or 0 if there are none.
pub(super) fn quantile(all: &[f64], percent: usize) -> f64 {
    let at = (all.len() * percent).div_ceil(100).saturating_sub(1);
    all.get(at).copied().unwrap_or_default()
}

fn run(
    at: &ExperimentPoint,
    load: WireTraffic,
    context: &PointRunInputs,
) -> Result<(ThinHypervisorResults, PointOutcome), PointRunError> {
    let pf = match at.axes.text("pf")? {
        "classical" => PfNotificationMethod::Classical,
        "interruptless" => PfNotificationMethod::Interruptless,
        _ => PfNotificationMethod::Posted,
    };
    let busy = at.axes.text("guest")? == "loaded";
    let table = settings::table(context, MachineModel::Skylake)?;
    let properties = parts::thin((load == WireTraffic::Stream, busy), context, MachineModel::Skylake)?;
    let plan = ThinHypervisorSetup { table, pf, busy, load, properties, seed: context.seed };
    let mut machine = ThinHypervisorSimulation::new(&plan);
    let (run_up, span) = times(context)?;
    let found = machine.measure(run_up, span).map_err(|error| PointRunError::Invariant(error.to_string()))?;
    Ok((found, timed(&machine, run_up + span)))
}
