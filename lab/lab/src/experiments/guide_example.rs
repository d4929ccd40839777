//! Experiment `eoi_price`: a guest's processor use by the price of an emulated end of interrupt.

use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, FigureDefinition, FigureKind,
};
use crate::experiments::point::{self, CPU, DOM0, DOM0_ATTRIBUTED, GUEST, XEN, XEN_ATTRIBUTED};
use crate::experiments::settings;

pub(super) const PRICE: Experiment = Experiment {
    name: "eoi_price",
    title: "Price of an end of interrupt",
    shows: "One guest on one port; the hypervisor's share grows with the price.",
    axes: &[ExperimentAxis {
        name: "cost.eoi_emulated",
        what: "price of an end of interrupt, cycles",
        values: ExperimentAxisValues::Range { first: 2_000, last: 10_000, step: 2_000 },
        labels: &[],
    }],
    points: AxisCombinations::All,
    metrics: &[DOM0, XEN, GUEST, DOM0_ATTRIBUTED, XEN_ATTRIBUTED],
    figures: &[FigureDefinition {
        title: "CPU by domain",
        kind: FigureKind::Lines,
        x: &["cost.eoi_emulated"],
        x_title: "Cycles",
        split: None,
        left: CPU,
        right: None,
    }],
    run: |_, context| {
        let setup = point::setup(context, settings::fixed(context)?)?;
        let (measured, mut outcome) = point::run(&setup, context)?;
        outcome.metrics = point::cpu(outcome.metrics, &measured);
        Ok(outcome)
    },
};
