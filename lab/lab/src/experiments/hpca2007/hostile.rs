//! Experiment on attacks that a guest makes on other guests through the guest's own context of a CDNA card
//! (cdna-hostile).

use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::point::{metric, untimed};
use crate::machine::single::{CdnaAttack, attack};
use crate::named::Metrics;
use crate::value::ParameterValue;

pub(super) const HOSTILE: Experiment = Experiment {
    name: "cdna-hostile",
    title: "A context of the card for each guest: what a hostile guest can do",
    shows: "Claimed: a guest accesses only its own memory and stops only itself. Each attack runs on the card, \
            the hypervisor's rings and the pages of cdna-throughput, with three other active guests. Nothing \
            is calibrated. Not modelled: attacks on the hypervisor itself, and timing attacks.",
    axes: &[ExperimentAxis {
        name: "attack",
        what: "attack of the first guest",
        values: ExperimentAxisValues::List(&[
            ParameterValue::name("forged-producer"),
            ParameterValue::name("duplicate-sequence"),
            ParameterValue::name("wrap"),
            ParameterValue::name("free-while-dma"),
            ParameterValue::name("cross-context-mailbox"),
            ParameterValue::name("interrupt-ring-full"),
            ParameterValue::name("teardown-race"),
        ]),
        labels: &[],
    }],
    points: AxisCombinations::All,
    metrics: &[
        metric("contained", "", "1 if only the attacker's memory was accessed"),
        metric("others_disturbed", "", "disturbed guests of three others"),
    ],
    figures: &[FigureDefinition {
        title: "Result of each attack",
        kind: FigureKind::GroupedBars,
        x: &["attack"],
        x_title: "Attack",
        split: None,
        left: FigureScale {
            title: "Contained; others disturbed",
            unit: "",
            series: &[("contained", "contained"), ("others_disturbed", "others disturbed")],
        },
        right: None,
    }],
    run,
};

fn run(at: &ExperimentPoint, _: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let what = match at.axes.text("attack")? {
        "forged-producer" => CdnaAttack::ForgedProducer,
        "duplicate-sequence" => CdnaAttack::DuplicateSequence,
        "wrap" => CdnaAttack::Wrap,
        "free-while-dma" => CdnaAttack::FreeWhileDma,
        "cross-context-mailbox" => CdnaAttack::CrossContextMailbox,
        "interrupt-ring-full" => CdnaAttack::InterruptRingFull,
        _ => CdnaAttack::TeardownRace,
    };
    let (contained, disturbed) = attack(what);
    let metrics = Metrics::default()
        .with("contained", f64::from(u8::from(contained)))
        .with("others_disturbed", f64::from(disturbed));
    Ok(untimed(metrics))
}
