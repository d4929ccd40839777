//! Synthetic experiments for tests: a queue computed by arithmetic, cheap and plausible.

use crate::catalogue::{
    ConstantEffect, ExperimentCatalogue, ModelConstant, ModelSensitivity, PublishedValue, Residual,
    SettingDefinition, ValueSensitivity,
};
use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, Metric, PointOutcome, PointRunError, PointRunInputs,
};
use crate::hash;
use crate::named::NamedValues;
use crate::value::ParameterValue;

const fn metric(name: &'static str, unit: &'static str, what: &'static str) -> Metric {
    Metric { name, unit, what }
}

const METRICS: &[Metric] = &[
    metric("throughput_mbps", "Mb/s", "payload received"),
    metric("cpu_dom0_pct", "%", "dom0, in threads"),
    metric("cpu_xen_pct", "%", "hypervisor, in threads"),
    metric("cpu_guest_pct", "%", "guests, in threads"),
];

const CPU: FigureScale = FigureScale {
    title: "CPU",
    unit: "% of a thread",
    series: &[("cpu_guest_pct", "guests"), ("cpu_xen_pct", "hypervisor"), ("cpu_dom0_pct", "dom0")],
};
const THROUGHPUT: FigureScale =
    FigureScale { title: "Throughput", unit: "Mb/s", series: &[("throughput_mbps", "throughput")] };

const VMS: ExperimentAxis = ExperimentAxis {
    name: "vms",
    what: "virtual machines on the port",
    values: ExperimentAxisValues::Range { first: 1, last: 7, step: 1 },
    labels: &[],
};

/// Synthetic experiment over all combinations of two axes: stacked bars, with a line on a second scale.
const QUEUE: Experiment = Experiment {
    name: "queue",
    title: "A queue with and without a short cut",
    shows: "Seven guests share a port. The short cut takes the service domain out of the path of an interrupt.",
    axes: &[
        VMS,
        ExperimentAxis {
            name: "accel",
            what: "the short cut",
            values: ExperimentAxisValues::List(&[ParameterValue::Bool(false), ParameterValue::Bool(true)]),
            labels: &["without", "with the short cut"],
        },
    ],
    points: AxisCombinations::All,
    metrics: METRICS,
    figures: &[FigureDefinition {
        title: "Load and loss",
        kind: FigureKind::StackedBars,
        x: &["vms"],
        x_title: "Virtual machines",
        split: Some("accel"),
        left: CPU,
        right: Some(THROUGHPUT),
    }],
    run,
};

/// Synthetic experiment with listed points over two axes of names.
const LADDER: Experiment = Experiment {
    name: "ladder",
    title: "One improvement after the other",
    shows: "Each guest gets what it can use.",
    axes: &[
        ExperimentAxis {
            name: "guest",
            what: "the guest's kernel",
            values: ExperimentAxisValues::List(&[
                ParameterValue::name("old"),
                ParameterValue::name("new"),
                ParameterValue::name("native"),
            ]),
            labels: &[],
        },
        ExperimentAxis {
            name: "opts",
            what: "what is improved, each with those before",
            values: ExperimentAxisValues::List(&[
                ParameterValue::name("none"),
                ParameterValue::name("msi"),
                ParameterValue::name("eoi"),
            ]),
            labels: &["none", "+ MSI-X", "+ EOI"],
        },
    ],
    points: AxisCombinations::Listed(&[
        &[ParameterValue::name("old"), ParameterValue::name("none")],
        &[ParameterValue::name("old"), ParameterValue::name("msi")],
        &[ParameterValue::name("new"), ParameterValue::name("none")],
        &[ParameterValue::name("new"), ParameterValue::name("eoi")],
        &[ParameterValue::name("native"), ParameterValue::name("none")],
    ]),
    metrics: METRICS,
    figures: &[FigureDefinition {
        title: "Load by domain",
        kind: FigureKind::StackedBars,
        x: &["guest", "opts"],
        x_title: "Guest and improvements",
        split: None,
        left: CPU,
        right: None,
    }],
    run,
};

/// Synthetic experiment over one integer axis: lines, and bars side by side.
const SIZES: Experiment = Experiment {
    name: "sizes",
    title: "Message sizes",
    shows: "Larger messages cost less for each byte.",
    axes: &[ExperimentAxis {
        name: "message_bytes",
        what: "payload of a message",
        values: ExperimentAxisValues::List(&[
            ParameterValue::Int(1500),
            ParameterValue::Int(2000),
            ParameterValue::Int(3000),
            ParameterValue::Int(4000),
        ]),
        labels: &[],
    }],
    points: AxisCombinations::All,
    metrics: METRICS,
    figures: &[
        FigureDefinition {
            title: "Throughput",
            kind: FigureKind::Lines,
            x: &["message_bytes"],
            x_title: "Message size (bytes)",
            split: None,
            left: THROUGHPUT,
            right: Some(CPU),
        },
        FigureDefinition {
            title: "Load",
            kind: FigureKind::GroupedBars,
            x: &["message_bytes"],
            x_title: "Message size (bytes)",
            split: None,
            left: CPU,
            right: None,
        },
    ],
    run,
};

/// Returns a catalogue of the three synthetic experiments and three settings.
pub(crate) fn catalogue() -> ExperimentCatalogue {
    let setting = |name: &str, default, unit, choices| SettingDefinition {
        name: name.to_owned(),
        default,
        unit,
        what: format!("{name} of the test"),
        choices,
    };
    ExperimentCatalogue {
        experiments: &[QUEUE, LADDER, SIZES],
        settings: vec![
            setting("cpu", ParameterValue::name("nehalem"), "", &["nehalem", "modern"]),
            setting("cost.eoi_full", ParameterValue::Int(8400), "cycles", &[]),
            setting("contention", ParameterValue::Real(1.3), "", &[]),
        ],
        stated: vec![
            stated(&[("vms", "1"), ("accel", "false")], ("cpu_dom0_pct", 17.0), true),
            stated(&[("vms", "7"), ("accel", "true")], ("throughput_mbps", 957.0), false),
        ],
        relations: Vec::new(),
        parameters: vec![
            parameter("eoi_full", 8400.0, "cycles", "stated"),
            parameter("grant_copy", 600.0, "cycles", "estimate"),
            parameter("contention", 1.3, "", "fitted"),
        ],
        residuals: vec![
            residual("dom0 before the short cut, 1 guest", 17.0, 17.1),
            residual("all CPUs, 10 guests", 499.0, 561.0),
        ],
        sensitivity: ModelSensitivity {
            version: "0.0.9+0".into(),
            values: vec![ValueSensitivity {
                what: "dom0, 7 guests".into(),
                unit: "%".into(),
                value: 35.7,
                range: Some([30.0, 40.0]),
                effects: vec![effect("eoi_full", -12.3, 12.4), effect("contention", 0.0, -1.5)],
            }],
        },
    }
}

fn stated(
    axes: &'static [(&'static str, &'static str)],
    (metric, value): (&'static str, f64),
    is_calibrated: bool,
) -> PublishedValue {
    PublishedValue { experiment: "queue", axes, metric, value, is_calibrated, is_bounded: false }
}

fn effect(constant: &str, less_pct: f64, more_pct: f64) -> ConstantEffect {
    ConstantEffect { constant: constant.into(), less_pct, more_pct }
}

fn parameter(name: &str, value: f64, unit: &str, kind: &str) -> ModelConstant {
    ModelConstant {
        table: "nehalem".into(),
        name: name.into(),
        value,
        unit: unit.into(),
        kind: kind.into(),
        source: "a <test> & nothing else".into(),
    }
}

fn residual(what: &str, target: f64, model: f64) -> Residual {
    Residual {
        what: what.into(),
        unit: "%".into(),
        target,
        model,
        half: None,
        left_out: None,
        source: "a test".into(),
    }
}

fn run(point: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let bytes = point.axes.int("message_bytes").map(|bytes| bytes / 1000);
    let vms = point.axes.int("vms").or(bytes).unwrap_or(10);
    if !(0..=60).contains(&vms) {
        return Err(PointRunError::Refused(format!("vms is {vms}; the port takes 0 to 60")));
    }
    let eoi = context.settings.int("cost.eoi_full")?;
    if eoi < 0 {
        return Err(PointRunError::Invariant("the sum of all cycles is not the time that passed".to_owned()));
    }
    let short = point.axes.bool("accel").unwrap_or(false);
    let jitter = (context.seed % 1000) as f64 / 1000.0;
    let vms = vms as f64;
    Ok(PointOutcome {
        metrics: NamedValues::new()
            .with("throughput_mbps", 957.1 - vms * 0.37 + jitter / 10.0)
            .with("cpu_dom0_pct", if short { 3.0 } else { 14.0 + 3.1 * vms })
            .with("cpu_xen_pct", vms * context.settings.real("contention")? * eoi as f64 / 2800.0)
            .with("cpu_guest_pct", 18.0 + 4.0 * vms + jitter),
        trace: hash::stable(format!("{point} {}", context.seed).as_bytes()),
        simulated_ps: 2_000_000_000_000,
        events: 1000,
        cycles: None,
    })
}
