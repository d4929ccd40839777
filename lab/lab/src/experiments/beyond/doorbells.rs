//! Experiment beyond the papers: an adaptive virtual function, whose doorbells can be mapped into the guest
//! and which has several queue pairs. The card's own processing time is not modelled, and there is one flow
//! per queue.

use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, Metric, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::point::{self, DOM0, GUEST, OWN_CPU, XEN, metric, times};
use crate::experiments::settings;
use crate::machine::queues::{DoorbellPath, MultiqueueSetup, MultiqueueSimulation, MultiqueueTraffic};
use crate::value::ParameterValue;
use hypervisor::cost::MachineModel;

const LOAD: ExperimentAxis = ExperimentAxis {
    name: "load",
    what: "a stream to each processor of the guest, datagrams from each, or requests to one",
    values: ExperimentAxisValues::List(&[
        ParameterValue::name("stream"),
        ParameterValue::name("datagrams"),
        ParameterValue::name("requests"),
    ]),
    labels: &["a stream in", "datagrams out", "requests"],
};

/// Experiment axis of the traffic without its value for requests: only traffic that several processors can share.
const BULK: ExperimentAxis = ExperimentAxis {
    values: ExperimentAxisValues::List(&[ParameterValue::name("stream"), ParameterValue::name("datagrams")]),
    labels: &["a stream in", "datagrams out"],
    ..LOAD
};

const DOORBELL: ExperimentAxis = ExperimentAxis {
    name: "doorbell",
    what: "a store to a mapped page; an exit and a message; an exit, a message and its answer",
    values: ExperimentAxisValues::List(&[
        ParameterValue::name("mapped"),
        ParameterValue::name("posted"),
        ParameterValue::name("answered"),
    ]),
    labels: &["mapped page", "posted message", "answered message"],
};

const PAIRS: ExperimentAxis = ExperimentAxis {
    name: "pairs",
    what: "queue pairs of the VF, and processors of the guest",
    values: ExperimentAxisValues::List(&[
        ParameterValue::Int(1),
        ParameterValue::Int(2),
        ParameterValue::Int(4),
    ]),
    labels: &[],
};

const THROUGHPUT: Metric = metric("throughput_gbps", "Gb/s", "payload read by programs, or sent");
const METRICS: &[Metric] = &[
    THROUGHPUT,
    metric("doorbells_per_kframe", "", "doorbells for 1,000 frames"),
    metric("exits_per_kframe", "", "doorbell exits for 1,000 frames"),
    metric(
        "round_trip_us",
        "us",
        "from a request's first bit on the wire to its response's last, mean; 0 without any",
    ),
    DOM0,
    XEN,
    GUEST,
];

pub(crate) const DOORBELLS: Experiment = Experiment {
    name: "doorbells",
    title: "Doorbells with and without exits",
    shows: "One processor and one queue pair of an adaptive virtual function, with the real card and drivers \
            of its family. A sender of datagrams rings for each; with a mapped page that is a store. A posted \
            message releases the guest sooner than one with an answer, but both exit, and a process of the \
            service domain passes them to the card. Nothing is calibrated, and no paper has such a figure. Not \
            modelled: the card's processing time, and locks of the process that carries messages.",
    axes: &[LOAD, DOORBELL],
    points: AxisCombinations::All,
    metrics: METRICS,
    figures: &[
        FigureDefinition {
            title: "CPU by domain, and doorbell exits",
            kind: FigureKind::StackedBars,
            x: &["doorbell"],
            x_title: "Doorbell",
            split: Some("load"),
            left: OWN_CPU,
            right: Some(FigureScale {
                title: "Exits",
                unit: "for 1,000 frames",
                series: &[("exits_per_kframe", "exits")],
            }),
        },
        FigureDefinition {
            title: "Throughput",
            kind: FigureKind::GroupedBars,
            x: &["load"],
            x_title: "Load",
            split: Some("doorbell"),
            left: FigureScale {
                title: "Throughput",
                unit: "Gb/s",
                series: &[("throughput_gbps", "throughput")],
            },
            right: None,
        },
    ],
    run: one_pair,
};

pub(crate) const QUEUE_PAIRS: Experiment = Experiment {
    name: "queue-pairs",
    title: "Queue pairs for a guest's processors",
    shows: "Each processor of the guest has a queue pair, a vector and a flow, placed there by the card's \
            hash. With mapped doorbells they share nothing and throughput grows with them; with messages all \
            wait for the one process that passes these to the card. Nothing is calibrated, and no paper has \
            such a figure. Not modelled: cache lines and locks shared by a guest's processors, and flows that \
            share a queue.",
    axes: &[BULK, DOORBELL, PAIRS],
    points: AxisCombinations::All,
    metrics: METRICS,
    figures: &[FigureDefinition {
        title: "Throughput",
        kind: FigureKind::GroupedBars,
        x: &["load", "pairs"],
        x_title: "Load and queue pairs",
        split: Some("doorbell"),
        left: FigureScale { title: "Throughput", unit: "Gb/s", series: &[("throughput_gbps", "throughput")] },
        right: None,
    }],
    run: several_pairs,
};

fn one_pair(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    run(at, 1, context)
}

fn several_pairs(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    run(at, point::count(at, PAIRS.name)?, context)
}

fn run(at: &ExperimentPoint, pairs: u8, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let doorbell = match at.axes.text(DOORBELL.name)? {
        "mapped" => DoorbellPath::Memory,
        "posted" => DoorbellPath::Posted,
        _ => DoorbellPath::Answered,
    };
    let load = match at.axes.text(LOAD.name)? {
        "stream" => MultiqueueTraffic::Stream,
        "datagrams" => MultiqueueTraffic::Datagrams,
        _ => MultiqueueTraffic::Requests,
    };
    let table = settings::table(context, MachineModel::Modern)?;
    let plan = MultiqueueSetup { table, pairs, doorbell, load, seed: context.seed };
    let mut machine = MultiqueueSimulation::new(&plan).map_err(PointRunError::Refused)?;
    let (run_up, span) = times(context)?;
    let found =
        machine.measure(load, run_up, span).map_err(|error| PointRunError::Invariant(error.to_string()))?;
    let outcome = point::timed(&machine, run_up + span);
    let metrics = outcome
        .metrics
        .with(THROUGHPUT.name, found.throughput_gbps)
        .with("doorbells_per_kframe", found.doorbells)
        .with("exits_per_kframe", found.exits)
        .with("round_trip_us", found.round_trip_us)
        .with(DOM0.name, found.service_pct)
        .with(XEN.name, found.hypervisor_pct)
        .with(GUEST.name, found.guest_pct);
    Ok(PointOutcome { metrics, ..outcome })
}
