//! Computes a chart's legend: the meaning of each colour, pattern and marker.

use crate::chart::{Chart, ChartSeries, ChartSeriesStyle};

/// Entry of a chart's legend: a swatch of colour, pattern, line or marker, with its label.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LegendEntry {
    pub(crate) sample: LegendSwatch,
    pub(crate) label: String,
    /// Distance of the legend entry from the left edge of the plot, in pixels.
    pub(crate) x: f64,
}

/// Swatch that a chart's legend shows before a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LegendSwatch {
    /// Legend key: square filled with a colour.
    Bar { colour: usize },
    /// Legend key: square with a pattern, without colour.
    Pattern { variant: usize },
    /// Legend key: marker of a value that the paper states.
    Stated { is_calibrated: bool },
    /// Legend key: bar of a value's range.
    Range,
    /// Legend key: line of a colour and dash, with a marker.
    Line { colour: usize, variant: usize },
}

/// Estimated width of a character of a label in pixels.
const CHARACTER: f64 = 6.6;
const SAMPLE: f64 = 24.0;
const GAP: f64 = 22.0;

/// Arranges the legend's entries in rows that fit the width.
pub(crate) fn rows(chart: &Chart, width: f64) -> Vec<Vec<LegendEntry>> {
    let mut rows: Vec<Vec<LegendEntry>> = Vec::new();
    let mut x = 0.0;
    for (sample, label) in entries(chart) {
        let needed = SAMPLE + label.chars().count() as f64 * CHARACTER;
        if rows.is_empty() || x + needed > width {
            rows.push(Vec::new());
            x = 0.0;
        }
        if let Some(row) = rows.last_mut() {
            row.push(LegendEntry { sample, label, x });
        }
        x += needed + GAP;
    }
    rows
}

/// Returns the legend's entries: bars by colour and, if several have one colour, by pattern; each line separately.
fn entries(chart: &Chart) -> Vec<(LegendSwatch, String)> {
    let mut entries: Vec<(LegendSwatch, String)> = Vec::new();
    let mut add = |sample, label: String| {
        if !entries.iter().any(|(known, _)| *known == sample) {
            entries.push((sample, label));
        }
    };
    let bars = || chart.series.iter().filter(|series| series.mark != ChartSeriesStyle::Line);
    bars().for_each(|series| add(LegendSwatch::Bar { colour: series.colour }, series.label.clone()));
    for series in bars().filter(|series| !series.variant_label.is_empty()) {
        add(LegendSwatch::Pattern { variant: series.variant }, series.variant_label.clone());
    }
    for series in chart.series.iter().filter(|series| series.mark == ChartSeriesStyle::Line) {
        let scale = match (&chart.right, series.right) {
            (Some(right), true) => format!(" ({}, right)", right.unit),
            _ => String::new(),
        };
        add(LegendSwatch::Line { colour: series.colour, variant: series.variant }, name(series) + &scale);
    }
    if !chart.ranges.is_empty() {
        add(LegendSwatch::Range, RANGE.to_owned());
    }
    for is_calibrated in [true, false] {
        if chart.stated.iter().any(|stated| stated.is_calibrated == is_calibrated) {
            add(LegendSwatch::Stated { is_calibrated }, stated_label(chart, is_calibrated).to_owned());
        }
    }
    entries
}

/// Label of the ranges of values.
pub(super) const RANGE: &str = "range of estimates";

/// Returns the label of the values that papers state.
pub(crate) fn stated_label(chart: &Chart, is_calibrated: bool) -> &str {
    let relation = if is_calibrated { "stated, calibrated on" } else { "stated, predicted" };
    chart.stated_label.as_deref().unwrap_or(relation)
}

/// Returns the name of a series, followed by its variant.
pub(crate) fn name(series: &ChartSeries) -> String {
    match series.variant_label.as_str() {
        "" => series.label.clone(),
        variant => format!("{}, {variant}", series.label),
    }
}
