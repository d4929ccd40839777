//! Experiment on the reset of devices before they change owners (reset-ladder).

use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::point::{metric, untimed};
use crate::machine::quality::reset::{ResetCapabilities, plan, run};
use crate::named::Metrics;
use crate::value::ParameterValue;

pub(super) const RESET: Experiment = Experiment {
    name: "reset-ladder",
    title: "Reset before a new owner",
    shows: "Claimed: a device is reset by its function if capable, else by its power state, else with its bus \
            if no other owner has a device there, else not at all and not handed over; and no write of its old \
            owner reaches pages of the new one. Rung 1 is the function reset, 2 D3hot and back, 3 the bus; 0 \
            is none. Predicted: all; times are those of the PCI Express specification. Not modelled: devices \
            that violate it.",
    axes: &[
        ExperimentAxis {
            name: "device",
            what: "reset capabilities of the device",
            values: ExperimentAxisValues::List(&[
                ParameterValue::name("flr"),
                ParameterValue::name("d3hot"),
                ParameterValue::name("no-soft-reset"),
                ParameterValue::name("shared-bus"),
                ParameterValue::name("none"),
            ]),
            labels: &[],
        },
        ExperimentAxis {
            name: "traffic",
            what: "the device writes to memory when it is taken from its owner",
            values: ExperimentAxisValues::List(&[ParameterValue::Bool(false), ParameterValue::Bool(true)]),
            labels: &["idle", "busy"],
        },
    ],
    points: AxisCombinations::All,
    metrics: &[
        metric("rung", "", "1: function, 2: power state, 3: bus, 0: none"),
        metric("refused", "", "1 if the device stays with its owner"),
        metric("late_writes", "", "writes of the old owner in pages of the new one"),
        metric("duration_ms", "ms", "time from the first step to the last"),
    ],
    figures: &[FigureDefinition {
        title: "Reset method and duration",
        kind: FigureKind::GroupedBars,
        x: &["device"],
        x_title: "Device",
        split: Some("traffic"),
        left: FigureScale { title: "Duration", unit: "ms", series: &[("duration_ms", "duration")] },
        right: Some(FigureScale { title: "Rung", unit: "", series: &[("rung", "rung")] }),
    }],
    run: reset,
};

fn reset(at: &ExperimentPoint, _: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let device = match at.axes.text("device")? {
        "flr" => ResetCapabilities { flr: true, power: Some(true), bus: Some(false) },
        "d3hot" => ResetCapabilities { flr: false, power: Some(false), bus: Some(false) },
        // The device keeps its state through D3hot, but is alone below its bridge.
        "no-soft-reset" => ResetCapabilities { flr: false, power: Some(true), bus: Some(true) },
        "shared-bus" => ResetCapabilities { flr: false, power: Some(true), bus: Some(false) },
        _ => ResetCapabilities { flr: false, power: None, bus: None },
    };
    let metrics = Metrics::default();
    let metrics = match plan(&device) {
        None => {
            metrics.with("rung", 0.0).with("refused", 1.0).with("late_writes", 0.0).with("duration_ms", 0.0)
        }
        Some(actions) => {
            let found = run(&actions, at.axes.bool("traffic")?);
            metrics
                .with("rung", found.rung.map_or(0.0, |rung| f64::from(rung as u8)))
                .with("refused", 0.0)
                .with("late_writes", found.late_writes.into())
                .with("duration_ms", found.took.as_secs_f64() * 1e3)
        }
    };
    Ok(untimed(metrics))
}
