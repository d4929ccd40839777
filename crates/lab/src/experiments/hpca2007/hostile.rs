//! Attacks of a guest on others through its own context (cdna-hostile).

use crate::experiment::{
    Axis, Context, Experiment, Figure, Kind, Outcome, Point, Points, RunError, Scale, Values,
};
use crate::experiments::point::{metric, untimed};
use crate::machine::single::{Attack, attack};
use crate::named::Metrics;
use crate::value::Value;

pub(super) const HOSTILE: Experiment = Experiment {
    name: "cdna-hostile",
    title: "A context of the card for each guest: what a hostile guest can do",
    shows: "Claimed: a guest accesses only its own memory and stops only itself. Each attack runs on the card, \
            the hypervisor's rings and the pages of cdna-throughput, with three other active guests. Nothing \
            is calibrated. Not modelled: attacks on the hypervisor itself, and timing attacks.",
    axes: &[Axis {
        name: "attack",
        what: "attack of the first guest",
        values: Values::List(&[
            Value::name("forged-producer"),
            Value::name("duplicate-sequence"),
            Value::name("wrap"),
            Value::name("free-while-dma"),
            Value::name("cross-context-mailbox"),
            Value::name("interrupt-ring-full"),
            Value::name("teardown-race"),
        ]),
        labels: &[],
    }],
    points: Points::All,
    metrics: &[
        metric("contained", "", "1 if only the attacker's memory was accessed"),
        metric("others_disturbed", "", "disturbed guests of three others"),
    ],
    figures: &[Figure {
        title: "Result of each attack",
        kind: Kind::GroupedBars,
        x: &["attack"],
        x_title: "Attack",
        split: None,
        left: Scale {
            title: "Contained; others disturbed",
            unit: "",
            series: &[("contained", "contained"), ("others_disturbed", "others disturbed")],
        },
        right: None,
    }],
    run,
};

fn run(at: &Point, _: &Context) -> Result<Outcome, RunError> {
    let what = match at.axes.text("attack")? {
        "forged-producer" => Attack::ForgedProducer,
        "duplicate-sequence" => Attack::DuplicateSequence,
        "wrap" => Attack::Wrap,
        "free-while-dma" => Attack::FreeWhileDma,
        "cross-context-mailbox" => Attack::CrossContextMailbox,
        "interrupt-ring-full" => Attack::InterruptRingFull,
        _ => Attack::TeardownRace,
    };
    let (contained, disturbed) = attack(what);
    let metrics = Metrics::default()
        .with("contained", f64::from(u8::from(contained)))
        .with("others_disturbed", f64::from(disturbed));
    Ok(untimed(metrics))
}
