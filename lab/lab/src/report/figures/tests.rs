//! Tests of experiments' charts: stable bytes, series and stated values.

use super::{FigureAnnotations, charts};
use crate::catalogue::{ExperimentPointRef, PredictedRange};
use crate::row::ResultRow;
use crate::runner::plan::ExperimentSelection;
use crate::runner::{self, ExperimentOptions};
use crate::synthetic::catalogue;
use figure::{Chart, ChartSeriesStyle, XPositions};

const RANGE: PredictedRange = PredictedRange {
    point: ExperimentPointRef { experiment: "queue", axes: &[("vms", "7"), ("accel", "false")] },
    metric: "cpu_dom0_pct",
    least: 30.0,
    most: 40.0,
};

fn drawn(experiment: &str) -> Vec<Chart> {
    let options = ExperimentOptions::default();
    let selection = ExperimentSelection::Names(vec![experiment.to_owned()]);
    let run = runner::run(&catalogue(), &selection, &options, &mut ()).unwrap();
    let rows: Vec<&ResultRow> = run.records.iter().map(|record| &record.row).collect();
    let catalogue = catalogue();
    let annotations =
        FigureAnnotations { stated: &catalogue.stated, ranges: &[RANGE], ..FigureAnnotations::NONE };
    charts(catalogue.experiment(experiment).unwrap(), &rows, experiment, &annotations)
}

/// Compares a chart with its golden file. Set `BLESS` to write the file anew, and inspect it before committing.
fn golden(name: &str, svg: &str) {
    let path = format!("{}/tests/golden/{name}.svg", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, svg).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    assert!(golden == svg, "chart {name} differs from {path}; if that is intended, run again with BLESS=1");
}

#[test]
fn figures_match_their_golden_files() {
    golden("stacked-split-twin", &drawn("queue")[0].to_svg());
    golden("stacked-two-levels", &drawn("ladder")[0].to_svg());
    golden("lines-twin", &drawn("sizes")[0].to_svg());
    golden("grouped", &drawn("sizes")[1].to_svg());
}

#[test]
fn chart_bars_of_two_variants_stand_side_by_side() {
    let chart = &drawn("queue")[0];
    assert_eq!(chart.x, XPositions::Names((1..=7).map(|vms| vec![vms.to_string()]).collect()));
    let marks: Vec<_> =
        chart.series.iter().map(|series| (series.mark, series.variant_label.as_str())).collect();
    let (bar, line) = (|stack| ChartSeriesStyle::Bar { stack }, ChartSeriesStyle::Line);
    let expected =
        |stack, label| vec![(bar(stack), label), (bar(stack), label), (bar(stack), label), (line, label)];
    assert_eq!(marks, [expected(0, "without"), expected(1, "with the short cut")].concat());
}

#[test]
fn xen_domain_has_one_colour_in_all_figures() {
    let colour =
        |chart: &Chart| chart.series.iter().find(|series| series.label == "dom0").map(|dom0| dom0.colour);
    let two = [drawn("queue"), drawn("sizes")].concat();
    assert_eq!(two.iter().map(colour).collect::<Vec<_>>(), [Some(2); 3]);
    let catalogue = crate::experiments::catalogue();
    let all = catalogue
        .experiments
        .iter()
        .flat_map(|experiment| charts(experiment, &[], "all", &FigureAnnotations::NONE));
    for series in all.flat_map(|chart| chart.series) {
        let of = ["guests", "hypervisor", "dom0"].iter().position(|domain| *domain == series.label);
        assert!(of.is_none_or(|of| series.colour == of), "{}", series.label);
        assert!(of.is_some() || series.colour > 2, "{}", series.label);
    }
}

#[test]
fn line_chart_x_axis_is_to_scale_and_bar_chart_x_axis_is_not() {
    assert_eq!(drawn("sizes")[0].x, XPositions::Numbers(vec![1500.0, 2000.0, 3000.0, 4000.0]));
    assert_eq!(
        drawn("sizes")[1].x,
        XPositions::Names(["1500", "2000", "3000", "4000"].map(|name| vec![name.into()]).into())
    );
}

#[test]
fn experiment_points_without_a_row_leave_gaps_in_a_chart() {
    let experiment = catalogue().experiment("ladder").unwrap();
    for chart in charts(experiment, &[], "none", &FigureAnnotations::NONE) {
        assert!(!chart.to_svg().contains("NaN"), "{}", chart.to_svg());
    }
}

#[test]
fn published_value_is_drawn_at_its_segment_of_a_stacked_bar() {
    let chart = &drawn("queue")[0];
    let stated: Vec<_> = chart.stated.iter().map(|it| (it.at, it.value, it.is_calibrated)).collect();
    assert_eq!(stated, [(0, 17.0, true), (6, 957.0, false)]);
    let below: f64 = chart.series[..2].iter().map(|series| series.values[0].unwrap()).sum();
    assert!(
        (chart.stated[0].height - below - 17.0).abs() < 1e-9,
        "the stated value is above guests and hypervisor"
    );
    assert!((chart.stated[1].height - 957.0).abs() < 1e-9, "the stated value of a line is at its own height");
    let svg = chart.to_svg();
    assert!(svg.contains("class=\"stated full\"") && svg.contains("class=\"stated\""));
    assert!(svg.contains("stated, calibrated on") && svg.contains("stated, predicted"));
}

#[test]
fn range_of_estimates_is_drawn_at_its_segment_of_a_stacked_bar() {
    let chart = &drawn("queue")[0];
    let [range] = &chart.ranges[..] else { panic!("{:?}", chart.ranges) };
    assert_eq!((range.at, range.ends), (6, [30.0, 40.0]));
    let below: f64 = chart.series[..range.series].iter().map(|series| series.values[6].unwrap()).sum();
    assert_eq!(chart.series[range.series].label, "dom0");
    assert!((range.below - below).abs() < 1e-9, "the range is above guests and hypervisor");
    let svg = chart.to_svg();
    assert_eq!(svg.matches("class=\"range\"").count(), 2, "one in the legend, one in the plot");
    assert!(svg.contains("dom0, without 30 to 40 % of a thread (range of estimates)"), "{svg}");
    assert!(drawn("sizes")[0].ranges.is_empty());
}
