//! Experiment beyond the paper: the ten ports of fig11 on a current machine, whose processor includes part of
//! the optimisations. Kernels and cards are those of the paper.

use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, FigureDefinition, FigureKind,
};
use crate::experiments::hpca2010::scaling::{FIG11, RIGHT};
use crate::experiments::point::CPU;
use crate::experiments::settings::TABLE;
use crate::value::ParameterValue;

const NEHALEM: ParameterValue = ParameterValue::name("nehalem");
const MODERN: ParameterValue = ParameterValue::name("modern");
const OLD: ParameterValue = ParameterValue::name("2.6.18");
const NEW: ParameterValue = ParameterValue::name("2.6.28");
const NATIVE: ParameterValue = ParameterValue::name("native");
const NONE: ParameterValue = ParameterValue::name("none");

pub(crate) const BEYOND: Experiment = Experiment {
    name: "beyond",
    title: "Each optimisation on a current machine",
    shows: "As fig11, on the paper's processor and on one with APIC virtualization, posted interrupts and \
            x2APIC. There an end of interrupt does not exit, so its fast path saves nothing; masking still \
            exits; fewer interrupts still save the guest's own work.",
    axes: &[
        ExperimentAxis {
            name: TABLE,
            what: "the processor's cost table",
            values: ExperimentAxisValues::List(&[NEHALEM, MODERN]),
            labels: &[],
        },
        FIG11.axes[0],
        FIG11.axes[1],
    ],
    points: AxisCombinations::Listed(&[
        &[NEHALEM, OLD, NONE],
        &[NEHALEM, OLD, ParameterValue::name("msi")],
        &[NEHALEM, NEW, NONE],
        &[NEHALEM, NEW, ParameterValue::name("eoi")],
        &[NEHALEM, NEW, ParameterValue::name("aic")],
        &[NEHALEM, NATIVE, NONE],
        &[NEHALEM, NATIVE, ParameterValue::name("aic")],
        &[MODERN, OLD, NONE],
        &[MODERN, OLD, ParameterValue::name("msi")],
        &[MODERN, NEW, NONE],
        &[MODERN, NEW, ParameterValue::name("eoi")],
        &[MODERN, NEW, ParameterValue::name("aic")],
        &[MODERN, NATIVE, NONE],
        &[MODERN, NATIVE, ParameterValue::name("aic")],
    ]),
    figures: &[FigureDefinition {
        title: "CPU by domain on either machine",
        kind: FigureKind::StackedBars,
        x: &["guest", "opts"],
        x_title: "Guest and optimisations",
        split: Some(TABLE),
        left: CPU,
        right: RIGHT,
    }],
    // The setting varied by the first axis is the only difference.
    ..FIG11
};
