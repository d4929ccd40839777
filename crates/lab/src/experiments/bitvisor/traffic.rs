//! Performance of a guest's VF, with an idle and a busy guest: a stream (bitvisor-throughput) and requests
//! (bitvisor-latency).

use crate::experiment::{
    Axis, Context, Experiment, Figure, Kind, Outcome, Point, Points, RunError, Scale, Values,
};
use crate::experiments::point::{metric, timed, times};
use crate::experiments::settings;
use crate::machine::thin::{Load, PfDriver, Plan, Results, Thin};
use crate::value::Value;
use hypervisor::cost::CostTable;

const AXES: &[Axis] = &[
    Axis {
        name: "pf",
        what: "notification of the hypervisor's PF driver about requests",
        values: Values::List(&[
            Value::name("classical"),
            Value::name("interruptless"),
            Value::name("posted"),
        ]),
        labels: &["interrupts", "no interrupts", "posted interrupts"],
    },
    Axis {
        name: "guest",
        what: "load of the guest's processor besides networking",
        values: Values::List(&[Value::name("idle"), Value::name("loaded")]),
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
    points: Points::All,
    metrics: &[
        metric("throughput_gbps", "Gb/s", "payload that the guest's program has read"),
        metric("cpu_guest_pct", "%", "CPU use of the guest's networking, in percent of the processor"),
        metric("interrupt_exits_per_s", "1/s", "exits of the guest for interrupts"),
        metric("other_exits_per_s", "1/s", "exits of the guest for sensitive instructions"),
    ],
    figures: &[Figure {
        title: "Throughput, and exits for interrupts",
        kind: Kind::GroupedBars,
        x: &["pf"],
        x_title: "PF driver",
        split: Some("guest"),
        left: Scale { title: "Throughput", unit: "Gb/s", series: &[("throughput_gbps", "throughput")] },
        right: Some(Scale {
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
    points: Points::All,
    metrics: &[
        metric("latency_us_mean", "us", "mean time from a request to its answer"),
        metric("latency_us_p50", "us", "median time from a request to its answer"),
        metric("latency_us_p99", "us", "99th percentile of the time from a request to its answer"),
    ],
    figures: &[Figure {
        title: "From request to answer",
        kind: Kind::GroupedBars,
        x: &["guest", "pf"],
        x_title: "Guest and PF driver",
        split: None,
        left: Scale {
            title: "Latency",
            unit: "us",
            series: &[("latency_us_mean", "mean"), ("latency_us_p50", "median"), ("latency_us_p99", "99 %")],
        },
        right: None,
    }],
    run: latency,
};

fn throughput(at: &Point, context: &Context) -> Result<Outcome, RunError> {
    let (found, outcome) = run(at, Load::Stream, context)?;
    let metrics = outcome
        .metrics
        .with("throughput_gbps", found.throughput_gbps)
        .with("cpu_guest_pct", found.guest_pct)
        .with("interrupt_exits_per_s", found.interrupt_exits_per_s)
        .with("other_exits_per_s", found.other_exits_per_s);
    Ok(Outcome { metrics, ..outcome })
}

fn latency(at: &Point, context: &Context) -> Result<Outcome, RunError> {
    let (Results { latencies_us: all, .. }, outcome) = run(at, Load::Requests, context)?;
    let mean = if all.is_empty() { 0.0 } else { all.iter().sum::<f64>() / all.len() as f64 };
    let metrics = outcome
        .metrics
        .with("latency_us_mean", mean)
        .with("latency_us_p50", quantile(&all, 50))
        .with("latency_us_p99", quantile(&all, 99));
    Ok(Outcome { metrics, ..outcome })
}

/// Returns the given percentile of sorted values, or 0 if there are none.
pub(super) fn quantile(all: &[f64], percent: usize) -> f64 {
    let at = (all.len() * percent).div_ceil(100).saturating_sub(1);
    all.get(at).copied().unwrap_or_default()
}

fn run(at: &Point, load: Load, context: &Context) -> Result<(Results, Outcome), RunError> {
    let pf = match at.axes.text("pf")? {
        "classical" => PfDriver::Classical,
        "interruptless" => PfDriver::Interruptless,
        _ => PfDriver::Posted,
    };
    let busy = at.axes.text("guest")? == "loaded";
    let table = settings::table_or(context, CostTable::skylake)?;
    let mut machine = Thin::new(&Plan { table, pf, busy, load, seed: context.seed });
    let (run_up, span) = times(context)?;
    let found = machine.measure(run_up, span).map_err(|error| RunError::Invariant(error.to_string()))?;
    Ok((found, timed(machine.hash(), machine.events(), run_up + span)))
}
