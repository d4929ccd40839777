//! Experiment on the waiting time of VF requests for a PF driver without interrupts (bitvisor-liveness).

use super::traffic::quantile;
use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::point::metric;
use crate::machine::thin::liveness::{VfRequestDelaySetup, run};
use crate::named::Metrics;
use crate::value::ParameterValue;
use sim::VirtualDuration;

pub(super) const LIVENESS: Experiment = Experiment {
    name: "bitvisor-liveness",
    title: "A PF driver without interrupts: waiting time of requests",
    shows: "The trap of the design: a guest that never exits is never served. Requests come in bursts about \
            every 50 ms, to a queue of 32, eight per visit. Without a preemption timer the wait is the time \
            between exits, and unbounded without exits; the timer bounds it. Nothing is calibrated; the source \
            has no such figure. Not modelled: the cost of a visit.",
    axes: &[
        ExperimentAxis {
            name: "exits_per_s",
            what: "the guest's exits for other reasons",
            values: ExperimentAxisValues::List(&[
                ParameterValue::Int(0),
                ParameterValue::Int(10),
                ParameterValue::Int(100),
                ParameterValue::Int(1_000),
                ParameterValue::Int(10_000),
            ]),
            labels: &[],
        },
        ExperimentAxis {
            name: "preempt_ms",
            what: "interval of the preemption timer; 0: off",
            values: ExperimentAxisValues::List(&[
                ParameterValue::Int(0),
                ParameterValue::Int(1),
                ParameterValue::Int(10),
            ]),
            labels: &["off", "1 ms", "10 ms"],
        },
        ExperimentAxis {
            name: "burst",
            what: "number of requests that VFs send together",
            values: ExperimentAxisValues::List(&[
                ParameterValue::Int(1),
                ParameterValue::Int(16),
                ParameterValue::Int(64),
            ]),
            labels: &[],
        },
    ],
    points: AxisCombinations::All,
    metrics: &[
        metric("request_delay_us_p50", "us", "median waiting time of answered requests"),
        metric("request_delay_us_max", "us", "longest waiting time of a request"),
        metric("lost", "", "requests without an answer: refused by a full queue, or waiting at the end"),
    ],
    figures: &[FigureDefinition {
        title: "The longest wait",
        kind: FigureKind::GroupedBars,
        x: &["burst", "exits_per_s"],
        x_title: "Requests at once, and exits a second",
        split: Some("preempt_ms"),
        left: FigureScale {
            title: "Longest wait",
            unit: "us",
            series: &[("request_delay_us_max", "longest wait")],
        },
        right: None,
    }],
    run: liveness,
};

/// Simulated time, long enough for the rarest VM exits.
const SPAN: VirtualDuration = VirtualDuration::from_secs(10);

fn liveness(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let amount = |name: &str, most: u32| {
        let value = at.axes.int(name)?;
        u32::try_from(value)
            .ok()
            .filter(|value| *value <= most)
            .ok_or_else(|| PointRunError::Refused(format!("{name} is {value}; it must be from 0 to {most}")))
    };
    let preempt = amount("preempt_ms", 10_000)?;
    let found = run(&VfRequestDelaySetup {
        exits_per_s: amount("exits_per_s", 1_000_000)?,
        preempt: (preempt > 0).then(|| VirtualDuration::from_millis(preempt.into())),
        burst: amount("burst", 1_024)?,
        seed: context.seed,
        span: SPAN,
    });
    let delays: Vec<f64> = found.delays.iter().map(|delay| delay.as_secs_f64() * 1e6).collect();
    let metrics = Metrics::default()
        .with("request_delay_us_p50", quantile(&delays, 50))
        .with("request_delay_us_max", delays.last().copied().unwrap_or_default())
        .with("lost", found.lost as f64);
    Ok(PointOutcome {
        metrics,
        trace: found.visits,
        simulated_ps: SPAN.picos(),
        events: found.visits,
        cycles: None,
    })
}
