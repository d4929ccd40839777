//! Experiment on the effect of tasklets and an event dispatcher on throughput (netback-multicore).

use super::{DISPATCHER, policy, setup};
use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, Metric, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::hpca2010::scaling::THROUGHPUT;
use crate::experiments::point::{self, DOM0, count, metric};
use crate::value::ParameterValue;

const SHARE: Metric = metric(
    "vcpu0_share_pct",
    "%",
    "share of the first virtual CPU in the work of all of dom0's, including the hypervisor's",
);

pub(super) const MULTICORE: Experiment = Experiment {
    name: "netback-multicore",
    title: "A back end on several virtual CPUs",
    shows: "Claimed: the stock back end carries 2.3 Gb/s of four gigabit ports, since one virtual CPU receives \
            all events; more tasklets alone change nothing, and with spread events they fill the wires. \
            Calibrated: the 2.3 Gb/s, by the cost of a packet in the back end; with that of fig16 it would be \
            2.95. Predicted: the rest. Reordered frames and lost events are counted over the whole run, in \
            which a balanced dispatcher spreads the initially gathered events. Not modelled: the cold cache of \
            a tasklet on another virtual CPU, and the dispatcher's work.",
    axes: &[
        ExperimentAxis {
            name: "tasklets",
            what: "pairs of tasklets of the back end",
            values: ExperimentAxisValues::List(&[
                ParameterValue::Int(1),
                ParameterValue::Int(2),
                ParameterValue::Int(4),
            ]),
            labels: &[],
        },
        DISPATCHER,
        ExperimentAxis {
            name: "guests",
            what: "guests on four ports",
            values: ExperimentAxisValues::List(&[ParameterValue::Int(4), ParameterValue::Int(8)]),
            labels: &["4 guests", "8 guests"],
        },
    ],
    points: AxisCombinations::All,
    metrics: &[
        THROUGHPUT,
        DOM0,
        SHARE,
        metric("reordered", "", "reordered datagrams"),
        metric("lost_events", "", "pending events that no virtual CPU will take"),
    ],
    figures: &[
        FigureDefinition {
            title: "Throughput",
            kind: FigureKind::GroupedBars,
            x: &["guests", "tasklets"],
            x_title: "Guests, and tasklets",
            split: Some("dispatcher"),
            left: FigureScale {
                title: "Throughput",
                unit: "Gb/s",
                series: &[("throughput_gbps", "throughput")],
            },
            right: None,
        },
        FigureDefinition {
            title: "Distribution of the work",
            kind: FigureKind::GroupedBars,
            x: &["guests", "tasklets"],
            x_title: "Guests, and tasklets",
            split: Some("dispatcher"),
            left: FigureScale {
                title: "The first virtual CPU's part",
                unit: "%",
                series: &[("vcpu0_share_pct", "part of the first")],
            },
            right: None,
        },
    ],
    run,
};

fn run(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let policy = policy(at.axes.text(DISPATCHER.name)?)?;
    let mut setup = setup(context, count(at, "tasklets")?, policy)?;
    setup.guests = count(at, "guests")?;
    let (measured, mut outcome) = point::run(&setup, context)?;
    outcome.metrics = outcome
        .metrics
        .with(THROUGHPUT.name, measured.throughput_mbps() / 1_000.0)
        .with(DOM0.name, measured.cpu_dom0_pct())
        .with(SHARE.name, measured.first_cpu_share_pct())
        .with("reordered", measured.reordered() as f64)
        .with("lost_events", measured.lost_events() as f64);
    Ok(outcome)
}
