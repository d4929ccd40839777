//! Experiment `memory-types`: the memory type that results from a guest's MTRR and PAT, and the host PAT entry that
//! gives the guest's page this type.

use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::point::{metric, untimed};
use crate::machine::quality::memory_types::{HOST_PAT, MemoryType, effective, entry};
use crate::named::Metrics;
use crate::value::ParameterValue;

const MTRR: ExperimentAxisValues = ExperimentAxisValues::List(&[
    ParameterValue::name("UC"),
    ParameterValue::name("WC"),
    ParameterValue::name("WT"),
    ParameterValue::name("WP"),
    ParameterValue::name("WB"),
]);

pub(super) const TYPES: Experiment = Experiment {
    name: "memory-types",
    title: "A guest's memory types under the host's",
    shows: "Claimed: a page of an assigned device is cached as its guest wants, without changing the host's \
            MTRRs. The effective type of the guest's MTRR and PAT is searched in the host's PAT (as Linux sets \
            it) under the host's MTRR. If it is missing the page is uncached and counted. Encodings: UC 0, WC \
            1, WT 4, WP 5, WB 6. Predicted: all; exhaustive. Not modelled: overlapping ranges.",
    axes: &[
        ExperimentAxis {
            name: "host_mtrr",
            what: "type that the host's MTRR has for the page",
            values: MTRR,
            labels: &[],
        },
        ExperimentAxis {
            name: "guest_mtrr",
            what: "type that the guest's MTRR has for the page",
            values: MTRR,
            labels: &[],
        },
        ExperimentAxis {
            name: "guest_pat",
            what: "type that the guest's PAT has for the page",
            values: ExperimentAxisValues::List(&[
                ParameterValue::name("UC"),
                ParameterValue::name("WC"),
                ParameterValue::name("WT"),
                ParameterValue::name("WP"),
                ParameterValue::name("WB"),
                ParameterValue::name("UC-"),
            ]),
            labels: &[],
        },
    ],
    points: AxisCombinations::All,
    metrics: &[
        metric("effective", "", "resulting memory type, in the processor's encoding"),
        metric("fallbacks", "", "1 if the guest wants another type"),
    ],
    figures: &[FigureDefinition {
        title: "Pages not cached as wanted",
        kind: FigureKind::GroupedBars,
        x: &["host_mtrr", "guest_mtrr"],
        x_title: "Host's MTRR, and guest's",
        split: Some("guest_pat"),
        left: FigureScale { title: "Pages uncached instead", unit: "", series: &[("fallbacks", "fallback")] },
        right: None,
    }],
    run: types,
};

fn types(at: &ExperimentPoint, _: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let of = |axis: &str| {
        Ok::<_, PointRunError>(match at.axes.text(axis)? {
            "UC" => MemoryType::Uc,
            "WC" => MemoryType::Wc,
            "WT" => MemoryType::Wt,
            "WP" => MemoryType::Wp,
            "WB" => MemoryType::Wb,
            _ => MemoryType::UcMinus,
        })
    };
    let (host, guest, pat) = (of("host_mtrr")?, of("guest_mtrr")?, of("guest_pat")?);
    let found = effective(guest, pat).and_then(|wanted| entry(wanted, host, &HOST_PAT));
    let found = found
        .ok_or_else(|| PointRunError::Refused("invalid MTRR type: it must be UC, WC, WT, WP or WB".into()))?;
    let metrics = Metrics::default()
        .with("effective", found.gets.encoding().into())
        .with("fallbacks", f64::from(u8::from(found.is_fallback)));
    Ok(untimed(metrics))
}
