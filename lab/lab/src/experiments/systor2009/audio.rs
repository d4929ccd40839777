//! Experiment on audio underruns of a guest beside a busy service domain (rt-audio).

use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::point::metric;
use crate::experiments::settings;
use crate::machine::quality::audio::{ACCESSES, AudioSetup, WORK, run};
use crate::named::Metrics;
use crate::value::ParameterValue;
use sim::VirtualDuration;

pub(super) const AUDIO: Experiment = Experiment {
    name: "rt-audio",
    title: "Audio beside a busy service domain",
    shows: "Claimed: the credit scheduler, which charges a whole tick to the virtual CPU running at it, causes \
            occasional underruns of a player's device; a guest of a real-time class, run at once at its \
            device's interrupt, has few. Guest and service domain share a processor. The samples come from an \
            emulated disk: at each access to it the guest stands still until the device model has answered, \
            and then has no precedence. Calibrated: 2.47 underruns a second with the credit scheduler, ticks of \
            10 ms and weights of 1:16 (the player's work per period). Predicted: the rest. Not modelled: other \
            guests, the guest's own kernel.",
    axes: &[
        ExperimentAxis {
            name: "scheduler",
            what: "scheduling class of the guest",
            values: ExperimentAxisValues::List(&[
                ParameterValue::name("credit"),
                ParameterValue::name("realtime"),
            ]),
            labels: &["credit", "real time"],
        },
        ExperimentAxis {
            name: "tick_ms",
            what: "tick period of the scheduler",
            values: ExperimentAxisValues::List(&[ParameterValue::Int(10), ParameterValue::Int(1)]),
            labels: &["10 ms", "1 ms"],
        },
        ExperimentAxis {
            name: "weights",
            what: "scheduling weights of guest and service domain",
            values: ExperimentAxisValues::List(&[ParameterValue::name("1:16"), ParameterValue::name("1:1")]),
            labels: &[],
        },
    ],
    points: AxisCombinations::All,
    metrics: &[
        metric("underruns_per_s", "1/s", "missing periods, mean of all runs"),
        metric("ci_low", "1/s", "lower end of the 95 % interval of the mean"),
        metric("ci_high", "1/s", "upper end of the 95 % interval of the mean"),
    ],
    figures: &[FigureDefinition {
        title: "Underruns",
        kind: FigureKind::GroupedBars,
        x: &["tick_ms", "weights"],
        x_title: "Tick, and weights of guest and service domain",
        split: Some("scheduler"),
        left: FigureScale { title: "Underruns", unit: "1/s", series: &[("underruns_per_s", "underruns")] },
        right: None,
    }],
    run: audio,
};

/// Number of simulations of the audio experiment, with different start times and clock errors.
const RUNS: u64 = 32;
/// Length of each simulation in simulated time.
const SPAN: VirtualDuration = VirtualDuration::from_secs(60);
/// Student's t for a 95 % confidence interval and 31 degrees of freedom.
const T: f64 = 2.040;

fn audio(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let tick = at.axes.int("tick_ms")?;
    let tick_ms = u16::try_from(tick)
        .ok()
        .filter(|tick| (1..=30).contains(tick))
        .ok_or_else(|| PointRunError::Refused(format!("tick_ms is {tick}; it must be from 1 to 30")))?;
    let weights = if at.axes.text("weights")? == "1:1" { (1, 1) } else { (1, 16) };
    let real_time = at.axes.text("scheduler")? == "realtime";
    let periods = settings::audio_periods(context)?;
    let plan = |n| {
        let seed = context.seed.wrapping_add(n);
        AudioSetup { real_time, tick_ms, weights, work: WORK, periods, accesses: ACCESSES, seed, span: SPAN }
    };
    let rate = |n| run(&plan(n)).map(|underruns| underruns as f64 / SPAN.as_secs_f64());
    let rates: Result<Vec<f64>, _> = (0..RUNS).map(rate).collect();
    let rates = rates.map_err(|error| PointRunError::Invariant(error.to_string()))?;
    let count = RUNS as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let half = T * (variance / count).sqrt();
    let metrics = Metrics::default()
        .with("underruns_per_s", mean)
        .with("ci_low", (mean - half).max(0.0))
        .with("ci_high", mean + half);
    Ok(PointOutcome { metrics, trace: 0, simulated_ps: SPAN.picos() * RUNS, events: 0, cycles: None })
}
