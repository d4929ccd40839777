//! Experiments on the latency of a request while other guests load the back end (netback-latency), and on the
//! effect of load thresholds (netback-thresholds).

use super::{DISPATCHER, policy, setup, thresholds};
use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, Metric, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::point::{self, DOM0, metric};
use crate::machine::{ClientTraffic, ServerResults};
use crate::value::ParameterValue;
use guest::ProgramWorkload;
use split::dispatch::DispatchPolicy;

const HALF: Metric = metric("round_trip_us_p50", "us", "median round trip");
const MOST: Metric = metric("round_trip_us_p99", "us", "99th percentile of the round trips");
const TASKLETS: u8 = 4;

pub(super) const LATENCY: Experiment = Experiment {
    name: "netback-latency",
    title: "A back end on several virtual CPUs: latency beside load",
    shows: "Claimed: at low load one virtual CPU suffices; at high load the events of others delay. A client \
            sends one-byte requests on one port, one at a time; on three others datagrams take part of the \
            wire. Calibrated: nothing. Predicted: all. The card's interrupt interval is part of every round \
            trip. Not modelled: the warm cache of a single virtual CPU, so spreading costs less here than in \
            reality.",
    axes: &[
        DISPATCHER,
        ExperimentAxis {
            name: "load_pct",
            what: "share of each of the other three wires that datagrams take, percent",
            values: ExperimentAxisValues::List(&[
                ParameterValue::Int(0),
                ParameterValue::Int(10),
                ParameterValue::Int(25),
                ParameterValue::Int(50),
                ParameterValue::Int(75),
                ParameterValue::Int(100),
            ]),
            labels: &[],
        },
    ],
    points: AxisCombinations::All,
    metrics: &[HALF, MOST],
    figures: &[FigureDefinition {
        title: "Round trip",
        kind: FigureKind::Lines,
        x: &["load_pct"],
        x_title: "Load of the other wires, %",
        split: Some("dispatcher"),
        left: FigureScale {
            title: "Round trip",
            unit: "us",
            series: &[("round_trip_us_p50", "median"), ("round_trip_us_p99", "99 %")],
        },
        right: None,
    }],
    run: latency,
};

pub(super) const THRESHOLDS: Experiment = Experiment {
    name: "netback-thresholds",
    title: "A back end on several virtual CPUs: thresholds of the dispatcher",
    shows: "The source does not publish its thresholds. The load is that of netback-latency. Above the high \
            threshold events are spread, below the low one gathered; with equal thresholds and a load near \
            them, everything moves back and forth. Calibrated: nothing. Not modelled: a changing load.",
    axes: &[
        ExperimentAxis {
            name: "high_kfps",
            what: "higher threshold of the dispatcher, thousand frames per second",
            values: ExperimentAxisValues::List(&[
                ParameterValue::Int(64),
                ParameterValue::Int(112),
                ParameterValue::Int(240),
            ]),
            labels: &[],
        },
        ExperimentAxis {
            name: "low_pct",
            what: "lower threshold of the dispatcher, percent of the higher",
            values: ExperimentAxisValues::List(&[ParameterValue::Int(50), ParameterValue::Int(100)]),
            labels: &["lower at half", "one threshold"],
        },
        ExperimentAxis {
            name: "load_pct",
            what: "share of each of the other three wires that datagrams take, percent",
            values: ExperimentAxisValues::Range { first: 20, last: 80, step: 20 },
            labels: &[],
        },
    ],
    points: AxisCombinations::All,
    metrics: &[metric("moves_per_s", "1/s", "moves of tasklets, cards and interfaces"), DOM0, MOST],
    figures: &[FigureDefinition {
        title: "Moves, and the slowest round trips",
        kind: FigureKind::GroupedBars,
        x: &["high_kfps", "load_pct"],
        x_title: "Higher threshold, and load of the other wires in %",
        split: Some("low_pct"),
        left: FigureScale { title: "Moves", unit: "1/s", series: &[("moves_per_s", "moves")] },
        right: Some(FigureScale {
            title: "Round trip",
            unit: "us",
            series: &[("round_trip_us_p99", "99 % of round trips")],
        }),
    }],
    run: sensitivity,
};

fn latency(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let (measured, mut outcome) = run(at, policy(at.axes.text(DISPATCHER.name)?)?, context)?;
    outcome.metrics = outcome
        .metrics
        .with(HALF.name, measured.round_trip_quantile_us(50))
        .with(MOST.name, measured.round_trip_quantile_us(99));
    Ok(outcome)
}

fn sensitivity(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let high = amount(at, "high_kfps", 10_000)? * 1_000;
    let low = high * amount(at, "low_pct", 100)? / 100;
    let (measured, mut outcome) = run(at, DispatchPolicy::Balanced(thresholds(low, high)?), context)?;
    outcome.metrics = outcome
        .metrics
        .with("moves_per_s", measured.moves_per_s())
        .with(DOM0.name, measured.cpu_dom0_pct())
        .with(MOST.name, measured.round_trip_quantile_us(99));
    Ok(outcome)
}

/// Runs a server in which the clients of the first port send requests, and the clients of all other ports
/// load their ports' wires.
fn run(
    at: &ExperimentPoint,
    dispatch: DispatchPolicy,
    context: &PointRunInputs,
) -> Result<(ServerResults, PointOutcome), PointRunError> {
    let permille = amount(at, "load_pct", 100)? as u16 * 10;
    let mut setup = setup(context, TASKLETS, dispatch)?;
    setup.traffic = ClientTraffic::Paced { permille };
    setup.first = Some((ClientTraffic::RequestResponse, ProgramWorkload::RequestResponse));
    point::run(&setup, context)
}

fn amount(at: &ExperimentPoint, axis: &str, most: u64) -> Result<u64, PointRunError> {
    let value = at.axes.int(axis)?;
    let found = u64::try_from(value).ok().filter(|value| *value <= most);
    found.ok_or_else(|| PointRunError::Refused(format!("{axis} is {value}; it must be from 0 to {most}")))
}
