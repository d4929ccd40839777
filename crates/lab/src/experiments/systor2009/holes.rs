//! Device registers that reveal a device's physical location (driver-holes).

use crate::experiment::{
    Axis, Context, Experiment, Figure, Kind, Outcome, Point, Points, RunError, Scale, Values,
};
use crate::experiments::point::{metric, untimed};
use crate::machine::quality::holes::{Device, found_and_closed};
use crate::named::Metrics;
use crate::value::Value;

pub(super) const HOLES: Experiment = Experiment {
    name: "driver-holes",
    title: "Registers that tell where a device is",
    shows: "Claimed: some devices repeat base address or function number in registers of their own, which no virtual \
            configuration space covers; a page that traps does. An audit compares a device at several places: what \
            changes with the place alone is a hole. Predicted: all. Not modelled: holes outside the device's \
            registers, and graphics but for this register.",
    axes: &[
        Axis {
            name: "device",
            what: "whose registers",
            values: Values::List(&[
                Value::name("radeon-like"),
                Value::name("e1000e-like"),
                Value::name("clean"),
            ]),
            labels: &[],
        },
        Axis {
            name: "trap_page",
            what: "pages with holes trap",
            values: Values::List(&[Value::Bool(false), Value::Bool(true)]),
            labels: &["not trapped", "trapped"],
        },
    ],
    points: Points::All,
    metrics: &[
        metric("holes_found", "", "registers that tell the place"),
        metric("holes_closed", "", "of these, those that tell the guest's"),
    ],
    figures: &[Figure {
        title: "Holes found and closed",
        kind: Kind::GroupedBars,
        x: &["device", "trap_page"],
        x_title: "Device",
        split: None,
        left: Scale {
            title: "Registers",
            unit: "",
            series: &[("holes_found", "found"), ("holes_closed", "closed")],
        },
        right: None,
    }],
    run: holes,
};

fn holes(at: &Point, _: &Context) -> Result<Outcome, RunError> {
    let device = match at.axes.text("device")? {
        "radeon-like" => Device::RadeonLike,
        "e1000e-like" => Device::E1000eLike,
        _ => Device::Clean,
    };
    let (found, closed) = found_and_closed(device, at.axes.bool("trap_page")?);
    let metrics = Metrics::default().with("holes_found", found as f64).with("holes_closed", closed as f64);
    Ok(untimed(metrics))
}
