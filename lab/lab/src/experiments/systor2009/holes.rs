//! Experiment on device registers that reveal a device's physical location (driver-holes).

use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::point::{metric, untimed};
use crate::machine::quality::holes::{AuditedDevice, found_and_closed};
use crate::named::Metrics;
use crate::value::ParameterValue;

pub(super) const HOLES: Experiment = Experiment {
    name: "driver-holes",
    title: "Registers that reveal a device's location",
    shows: "Claimed: some devices repeat their base address or function number in registers that no virtual \
            configuration space covers; a page that traps hides them. An audit compares a device at several \
            locations: a register that changes only with the location is a hole. Predicted: all. Not modelled: \
            holes outside the device's registers, and graphics beyond this register.",
    axes: &[
        ExperimentAxis {
            name: "device",
            what: "audited device",
            values: ExperimentAxisValues::List(&[
                ParameterValue::name("radeon-like"),
                ParameterValue::name("e1000e-like"),
                ParameterValue::name("clean"),
            ]),
            labels: &[],
        },
        ExperimentAxis {
            name: "trap_page",
            what: "register pages that reveal the location trap",
            values: ExperimentAxisValues::List(&[ParameterValue::Bool(false), ParameterValue::Bool(true)]),
            labels: &["not trapped", "trapped"],
        },
    ],
    points: AxisCombinations::All,
    metrics: &[
        metric("holes_found", "", "registers that reveal the location"),
        metric("holes_closed", "", "holes that show the location the guest sees"),
    ],
    figures: &[FigureDefinition {
        title: "Holes found and closed",
        kind: FigureKind::GroupedBars,
        x: &["device", "trap_page"],
        x_title: "Device",
        split: None,
        left: FigureScale {
            title: "Registers",
            unit: "",
            series: &[("holes_found", "found"), ("holes_closed", "closed")],
        },
        right: None,
    }],
    run: holes,
};

fn holes(at: &ExperimentPoint, _: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let device = match at.axes.text("device")? {
        "radeon-like" => AuditedDevice::RadeonLike,
        "e1000e-like" => AuditedDevice::E1000eLike,
        _ => AuditedDevice::Clean,
    };
    let (found, closed) = found_and_closed(device, at.axes.bool("trap_page")?);
    let metrics = Metrics::default().with("holes_found", found as f64).with("holes_closed", closed as f64);
    Ok(untimed(metrics))
}
