//! The last steps of fig11 at several interrupt rates, since fig07 and fig11 hold at no common one (fig11-rates).

use super::scaling::{self, METRICS, RIGHT};
use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::point::CPU;
use crate::experiments::settings;
use crate::value::ParameterValue;

/// Name of the axis with the interrupt rate.
const RATE: &str = "rate_hz";

pub(super) const FIG11_RATES: Experiment = Experiment {
    name: "fig11-rates",
    title: "Two readings of the last steps of fig11",
    shows: "Ten 2.6.28 guests as in fig11, at three interrupt rates until coalescing is adaptive. The paper's text has \
            fig11's last two steps about equal, fast ends of interrupt and adaptive coalescing, and does not state the \
            rate. One reading is the driver's initial rate (6,028 Hz), with which fig07's ends of interrupt agree, or \
            fig07's own with the kernel's clocks (7,500 Hz): coalescing then saves several times as much. The other is \
            2,050 Hz, at which the hypervisor's part of both steps is about equal. But coalescing saves the guests' own \
            work too, and both steps are several times smaller than stated. So no rate has both figures.",
    axes: &[
        ExperimentAxis {
            name: RATE,
            what: "interrupt rate of a VF until coalescing is adaptive, in Hz",
            values: ExperimentAxisValues::List(&[
                ParameterValue::Int(2_050),
                ParameterValue::Int(6_028),
                ParameterValue::Int(7_500),
            ]),
            labels: &[],
        },
        ExperimentAxis {
            name: "opts",
            what: "optimisations, each including the earlier ones",
            values: ExperimentAxisValues::List(&[
                ParameterValue::name("none"),
                ParameterValue::name("eoi"),
                ParameterValue::name("aic"),
            ]),
            labels: &["none", "+ EOI", "+ AIC"],
        },
    ],
    points: AxisCombinations::All,
    metrics: METRICS,
    figures: &[FigureDefinition {
        title: "CPU by domain",
        kind: FigureKind::StackedBars,
        x: &[RATE, "opts"],
        x_title: "Interrupt rate in Hz, and optimisations",
        split: None,
        left: CPU,
        right: RIGHT,
    }],
    run: fig11_rates,
};

fn fig11_rates(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let (rate, opts) = (at.axes.int(RATE)?, at.axes.text("opts")?);
    let own = settings::fixed_at(RATE, rate)?;
    let moderation = if opts == "aic" { settings::adaptive(context)? } else { own };
    scaling::ten_guests("2.6.28", opts, moderation, context)
}
