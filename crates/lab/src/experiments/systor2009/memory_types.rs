//! Effective memory types of a guest's MTRR and PAT under the host's (memory-types).

use crate::experiment::{
    Axis, Context, Experiment, Figure, Kind, Outcome, Point, Points, RunError, Scale, Values,
};
use crate::experiments::point::{metric, untimed};
use crate::machine::quality::memory_types::{HOST_PAT, Type, effective, entry};
use crate::named::Metrics;
use crate::value::Value;

const MTRR: Values = Values::List(&[
    Value::name("UC"),
    Value::name("WC"),
    Value::name("WT"),
    Value::name("WP"),
    Value::name("WB"),
]);

pub(super) const TYPES: Experiment = Experiment {
    name: "memory-types",
    title: "A guest's memory types under the host's",
    shows: "Claimed: a page of an assigned device is cached as its guest wants, without changing the host's \
            MTRRs. The effective type of the guest's MTRR and PAT is searched in the host's PAT (as Linux sets \
            it) under the host's MTRR. If it is missing the page is uncached and counted. Encodings: UC 0, WC \
            1, WT 4, WP 5, WB 6. Predicted: all; exhaustive. Not modelled: overlapping ranges.",
    axes: &[
        Axis {
            name: "host_mtrr",
            what: "type that the host's MTRR has for the page",
            values: MTRR,
            labels: &[],
        },
        Axis {
            name: "guest_mtrr",
            what: "type that the guest's MTRR has for the page",
            values: MTRR,
            labels: &[],
        },
        Axis {
            name: "guest_pat",
            what: "type that the guest's PAT has for the page",
            values: Values::List(&[
                Value::name("UC"),
                Value::name("WC"),
                Value::name("WT"),
                Value::name("WP"),
                Value::name("WB"),
                Value::name("UC-"),
            ]),
            labels: &[],
        },
    ],
    points: Points::All,
    metrics: &[
        metric("effective", "", "resulting memory type, in the processor's encoding"),
        metric("fallbacks", "", "1 if the guest wants another type"),
    ],
    figures: &[Figure {
        title: "Pages not cached as wanted",
        kind: Kind::GroupedBars,
        x: &["host_mtrr", "guest_mtrr"],
        x_title: "Host's MTRR, and guest's",
        split: Some("guest_pat"),
        left: Scale { title: "Pages uncached instead", unit: "", series: &[("fallbacks", "fallback")] },
        right: None,
    }],
    run: types,
};

fn types(at: &Point, _: &Context) -> Result<Outcome, RunError> {
    let of = |axis: &str| {
        Ok::<_, RunError>(match at.axes.text(axis)? {
            "UC" => Type::Uc,
            "WC" => Type::Wc,
            "WT" => Type::Wt,
            "WP" => Type::Wp,
            "WB" => Type::Wb,
            _ => Type::UcMinus,
        })
    };
    let (host, guest, pat) = (of("host_mtrr")?, of("guest_mtrr")?, of("guest_pat")?);
    let found = effective(guest, pat).and_then(|wanted| entry(wanted, host, &HOST_PAT));
    let found = found
        .ok_or_else(|| RunError::Refused("invalid MTRR type: it must be UC, WC, WT, WP or WB".into()))?;
    let metrics = Metrics::default()
        .with("effective", found.gets.encoding().into())
        .with("fallbacks", f64::from(u8::from(found.is_fallback)));
    Ok(untimed(metrics))
}
