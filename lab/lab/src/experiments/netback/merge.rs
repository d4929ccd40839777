//! Experiment on the next steps that Zhang et al. name: fewer events to guests, and front ends that merge
//! segments (netfront-lro).

use super::{policy, setup};
use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, Metric, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::hpca2010::scaling::{RIGHT, THROUGHPUT};
use crate::experiments::point::{self, count, metric};
use crate::experiments::settings;
use crate::machine::ClientTraffic;
use crate::value::ParameterValue;
use guest::ProgramWorkload;

const CYCLES: Metric =
    metric("cycles_per_packet", "cycles", "cycles of all processors for each segment that came over a wire");

pub(super) const MERGE: Experiment = Experiment {
    name: "netfront-lro",
    title: "A front end that merges segments, and a back end that sends fewer events",
    shows: "Claimed: nothing; the authors name both as their next steps. Four guests receive a stream each, \
            over the stock back end and over four tasklets with a balanced dispatcher. Merged segments are \
            acknowledged once, so the back end has fewer frames from guests. An event waits for the given \
            number of frames or 50 us; a saturated stock back end gives a guest more than that at a time \
            anyway. Calibrated: nothing. Predicted: all. Not modelled: losses and options that end a merge, \
            since a client's segments are consecutive.",
    axes: &[
        ExperimentAxis {
            name: "lro",
            what: "front ends merge segments",
            values: ExperimentAxisValues::List(&[ParameterValue::Bool(false), ParameterValue::Bool(true)]),
            labels: &["unmerged", "merged"],
        },
        ExperimentAxis {
            name: "notify_batch",
            what: "frames after which a guest gets its event at once",
            values: ExperimentAxisValues::List(&[
                ParameterValue::Int(1),
                ParameterValue::Int(8),
                ParameterValue::Int(32),
            ]),
            labels: &[],
        },
        ExperimentAxis {
            name: "backend",
            what: "one pair of tasklets on the first virtual CPU, or four with a balanced dispatcher",
            values: ExperimentAxisValues::List(&[
                ParameterValue::name("stock"),
                ParameterValue::name("multicore"),
            ]),
            labels: &[],
        },
    ],
    points: AxisCombinations::All,
    metrics: &[THROUGHPUT, CYCLES],
    figures: &[FigureDefinition {
        title: "Cycles for a segment, and throughput",
        kind: FigureKind::GroupedBars,
        x: &["backend", "notify_batch"],
        x_title: "Back end, and frames of an event",
        split: Some("lro"),
        left: FigureScale {
            title: "Cycles",
            unit: "cycles",
            series: &[("cycles_per_packet", "cycles for a segment")],
        },
        right: RIGHT,
    }],
    run,
};

fn run(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let is_stock = at.axes.text("backend")? == "stock";
    let (workers, dispatcher) = if is_stock { (1, "vcpu0") } else { (4, "balanced") };
    let mut setup = setup(context, workers, policy(dispatcher)?)?;
    let window = settings::window(context)?;
    (setup.traffic, setup.spec.stream_segments) = (ClientTraffic::Tcp { window }, window.into());
    setup.spec.load = ProgramWorkload::Tcp;
    setup.netback.merge = at.axes.bool("lro")?;
    setup.netback.notify_every = count(at, "notify_batch")?.into();
    let (measured, mut outcome) = point::run(&setup, context)?;
    outcome.metrics = outcome
        .metrics
        .with(THROUGHPUT.name, measured.throughput_mbps() / 1_000.0)
        .with(CYCLES.name, measured.cycles_per_frame());
    Ok(outcome)
}
