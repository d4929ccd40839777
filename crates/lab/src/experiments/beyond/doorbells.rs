//! Beyond the papers: an adaptive virtual function, whose doorbells can be mapped into the guest and which
//! has several queue pairs. The card's own processing time is not modelled, and there is one flow per queue.

use crate::experiment::{
    Axis, Context, Experiment, Figure, Kind, Metric, Outcome, Point, Points, RunError, Scale, Values,
};
use crate::experiments::point::{self, CPU, DOM0, GUEST, XEN, metric, times};
use crate::experiments::settings;
use crate::machine::queues::{Doorbell, Load, Plan, Queues};
use crate::value::Value;
use hypervisor::cost::CostTable;

const LOAD: Axis = Axis {
    name: "load",
    what: "a stream to each processor of the guest, datagrams from each, or requests to one",
    values: Values::List(&[Value::name("stream"), Value::name("datagrams"), Value::name("requests")]),
    labels: &["a stream in", "datagrams out", "requests"],
};

/// Loads that several processors can share.
const BULK: Axis = Axis {
    values: Values::List(&[Value::name("stream"), Value::name("datagrams")]),
    labels: &["a stream in", "datagrams out"],
    ..LOAD
};

const DOORBELL: Axis = Axis {
    name: "doorbell",
    what: "a store to a mapped page; an exit and a message; an exit, a message and its answer",
    values: Values::List(&[Value::name("mapped"), Value::name("posted"), Value::name("answered")]),
    labels: &["mapped page", "posted message", "answered message"],
};

const PAIRS: Axis = Axis {
    name: "pairs",
    what: "queue pairs of the VF, and processors of the guest",
    values: Values::List(&[Value::Int(1), Value::Int(2), Value::Int(4)]),
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
    points: Points::All,
    metrics: METRICS,
    figures: &[
        Figure {
            title: "CPU by domain, and doorbell exits",
            kind: Kind::StackedBars,
            x: &["doorbell"],
            x_title: "Doorbell",
            split: Some("load"),
            left: CPU,
            right: Some(Scale {
                title: "Exits",
                unit: "for 1,000 frames",
                series: &[("exits_per_kframe", "exits")],
            }),
        },
        Figure {
            title: "Throughput",
            kind: Kind::GroupedBars,
            x: &["load"],
            x_title: "Load",
            split: Some("doorbell"),
            left: Scale { title: "Throughput", unit: "Gb/s", series: &[("throughput_gbps", "throughput")] },
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
    points: Points::All,
    metrics: METRICS,
    figures: &[Figure {
        title: "Throughput",
        kind: Kind::GroupedBars,
        x: &["load", "pairs"],
        x_title: "Load and queue pairs",
        split: Some("doorbell"),
        left: Scale { title: "Throughput", unit: "Gb/s", series: &[("throughput_gbps", "throughput")] },
        right: None,
    }],
    run: several_pairs,
};

fn one_pair(at: &Point, context: &Context) -> Result<Outcome, RunError> {
    run(at, 1, context)
}

fn several_pairs(at: &Point, context: &Context) -> Result<Outcome, RunError> {
    run(at, point::count(at, PAIRS.name)?, context)
}

fn run(at: &Point, pairs: u8, context: &Context) -> Result<Outcome, RunError> {
    let doorbell = match at.axes.text(DOORBELL.name)? {
        "mapped" => Doorbell::Memory,
        "posted" => Doorbell::Posted,
        _ => Doorbell::Answered,
    };
    let load = match at.axes.text(LOAD.name)? {
        "stream" => Load::Stream,
        "datagrams" => Load::Datagrams,
        _ => Load::Requests,
    };
    let table = settings::table_or(context, CostTable::modern)?;
    let plan = Plan { table, pairs, doorbell, load, seed: context.seed };
    let mut machine = Queues::new(&plan).map_err(RunError::Refused)?;
    let (run_up, span) = times(context)?;
    let found =
        machine.measure(load, run_up, span).map_err(|error| RunError::Invariant(error.to_string()))?;
    let outcome = point::timed(machine.hash(), machine.events(), run_up + span);
    let metrics = outcome
        .metrics
        .with(THROUGHPUT.name, found.throughput_gbps)
        .with("doorbells_per_kframe", found.doorbells)
        .with("exits_per_kframe", found.exits)
        .with("round_trip_us", found.round_trip_us)
        .with(DOM0.name, found.service_pct)
        .with(XEN.name, found.hypervisor_pct)
        .with(GUEST.name, found.guest_pct);
    Ok(Outcome { metrics, ..outcome })
}
