//! Interrupt coalescing: fixed rates compared with the adaptive policy, for datagrams (fig08) and a stream
//! (fig09).

use crate::experiment::{
    Axis, Context, Experiment, Figure, Kind, Metric, Outcome, Point, Points, RunError, Scale, Values,
};
use crate::experiments::point::{self, CPU, DOM0, GUEST, XEN, metric};
use crate::experiments::settings;
use crate::machine::Traffic;
use crate::value::Value;
use driver::moderation::{Policy, interval_us};
use guest::{Load, Spec};

pub(crate) const POLICY: Axis = Axis {
    name: "policy",
    what: "interrupts a second, or adaptive coalescing",
    values: Values::List(&[Value::name("20k"), Value::name("2k"), Value::name("aic"), Value::name("1k")]),
    labels: &["20 kHz", "2 kHz", "adaptive", "1 kHz"],
};

const METRICS: &[Metric] = &[
    metric("throughput_mbps", "Mb/s", "payload read by the program"),
    metric("loss_pct", "%", "frames not read by any program"),
    metric("interrupts_per_s", "1/s", "receive interrupts"),
    DOM0,
    XEN,
    GUEST,
];

const FIGURES: &[Figure] = &[Figure {
    title: "CPU by domain, and throughput",
    kind: Kind::StackedBars,
    x: &["policy"],
    x_title: "Interrupt policy",
    split: None,
    left: CPU,
    right: Some(Scale { title: "Throughput", unit: "Mb/s", series: &[("throughput_mbps", "throughput")] }),
}];

pub(crate) const FIG08: Experiment = Experiment {
    name: "fig08",
    title: "Coalescing of a datagram receiver's interrupts",
    shows: "Fewer interrupts cost less, until a socket's buffer overflows between two of them. The adaptive \
            policy interrupts just often enough. Missed: the service domain costs as much as in fig06 after \
            its optimisation, 3.0 % of a thread; the paper has about half, for reasons its text does not \
            state.",
    axes: &[POLICY],
    points: Points::All,
    metrics: METRICS,
    figures: FIGURES,
    run: |at, context| coalesce(at, context, Load::Udp),
};

pub(crate) const FIG09: Experiment = Experiment {
    name: "fig09",
    title: "Coalescing of a stream receiver's interrupts",
    shows: "A stream waits for its acknowledgements, so rare interrupts slow it down.",
    axes: &[POLICY],
    points: Points::All,
    metrics: METRICS,
    figures: FIGURES,
    run: |at, context| coalesce(at, context, Load::Tcp),
};

/// Returns the interrupt coalescing policy called `name`.
pub(crate) fn policy(name: &str, context: &Context) -> Result<Policy, RunError> {
    Ok(match name {
        "20k" => Policy::Fixed(interval_us(20_000)),
        "2k" => Policy::Fixed(interval_us(2_000)),
        "1k" => Policy::Fixed(interval_us(1_000)),
        "aic" => settings::adaptive(context)?,
        name => return Err(RunError::Refused(format!("unknown policy {name}"))),
    })
}

fn coalesce(at: &Point, context: &Context, load: Load) -> Result<Outcome, RunError> {
    let mut setup = point::setup(context, policy(at.axes.text("policy")?, context)?)?;
    setup.spec = Spec::linux_2_6_28(load);
    // The paper's optimisations are cumulative, and this is the last one.
    setup.eoi = settings::fast_eoi(context, &setup.table)?;
    if load == Load::Tcp {
        let window = settings::window(context)?;
        (setup.traffic, setup.spec.stream_segments) = (Traffic::Tcp { window }, window.into());
    }
    let (measured, mut outcome) = point::run(&setup, context)?;
    outcome.metrics = point::cpu(point::received(outcome.metrics, &measured), &measured);
    Ok(outcome)
}
