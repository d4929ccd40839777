//! Beyond the paper: the ten ports of fig11 on a current machine, whose processor includes part of the
//! optimisations. Kernels and cards are those of the paper.

use crate::experiment::{Axis, Experiment, Figure, Kind, Points, Values};
use crate::experiments::hpca2010::scaling::{FIG11, RIGHT};
use crate::experiments::point::CPU;
use crate::experiments::settings::TABLE;
use crate::value::Value;

const NEHALEM: Value = Value::name("nehalem");
const MODERN: Value = Value::name("modern");
const OLD: Value = Value::name("2.6.18");
const NEW: Value = Value::name("2.6.28");
const NATIVE: Value = Value::name("native");
const NONE: Value = Value::name("none");

pub(crate) const BEYOND: Experiment = Experiment {
    name: "beyond",
    title: "Each optimisation on a current machine",
    shows: "As fig11, on the paper's processor and on one with APIC virtualization, posted interrupts and \
            x2APIC. There an end of interrupt does not exit, so its fast path saves nothing; masking still \
            exits; fewer interrupts still save the guest's own work.",
    axes: &[
        Axis {
            name: TABLE,
            what: "the processor's cost table",
            values: Values::List(&[NEHALEM, MODERN]),
            labels: &[],
        },
        FIG11.axes[0],
        FIG11.axes[1],
    ],
    points: Points::Listed(&[
        &[NEHALEM, OLD, NONE],
        &[NEHALEM, OLD, Value::name("msi")],
        &[NEHALEM, NEW, NONE],
        &[NEHALEM, NEW, Value::name("eoi")],
        &[NEHALEM, NEW, Value::name("aic")],
        &[NEHALEM, NATIVE, NONE],
        &[MODERN, OLD, NONE],
        &[MODERN, OLD, Value::name("msi")],
        &[MODERN, NEW, NONE],
        &[MODERN, NEW, Value::name("eoi")],
        &[MODERN, NEW, Value::name("aic")],
        &[MODERN, NATIVE, NONE],
    ]),
    figures: &[Figure {
        title: "CPU by domain on either machine",
        kind: Kind::StackedBars,
        x: &["guest", "opts"],
        x_title: "Guest and optimisations",
        split: Some(TABLE),
        left: CPU,
        right: RIGHT,
    }],
    // The setting varied by the first axis is the only difference.
    ..FIG11
};
