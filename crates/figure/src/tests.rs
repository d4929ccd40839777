//! Tests of drawn charts: gaps, extreme values and intervals.

use crate::{Chart, ChartScale, ChartSeries, ChartSeriesStyle, XPositions};

/// Returns a chart with a series of four values: a line over numbers, or bars over names.
fn chart(mark: ChartSeriesStyle) -> Chart {
    let sizes = [1_500.0, 2_000.0, 3_000.0, 4_000.0];
    Chart {
        id: "sizes".to_owned(),
        title: "Throughput".to_owned(),
        description: "Throughput by message size".to_owned(),
        x_title: "message".to_owned(),
        x: match mark {
            ChartSeriesStyle::Line => XPositions::Numbers(sizes.to_vec()),
            ChartSeriesStyle::Bar { .. } => {
                XPositions::Names(sizes.map(|size| vec![size.to_string()]).to_vec())
            }
        },
        left: ChartScale { title: "payload".to_owned(), unit: "Gb/s".to_owned() },
        right: None,
        series: vec![ChartSeries {
            label: "throughput".to_owned(),
            variant_label: String::new(),
            colour: 3,
            variant: 0,
            mark,
            right: false,
            values: [1.5, 2.0, 2.5, 2.75].map(Some).to_vec(),
            spreads: vec![None; 4],
        }],
        stated: Vec::new(),
        ranges: Vec::new(),
        stated_label: None,
    }
}

const BAR: ChartSeriesStyle = ChartSeriesStyle::Bar { stack: 0 };

#[test]
fn line_of_a_missing_value_has_a_gap() {
    let mut chart = chart(ChartSeriesStyle::Line);
    chart.series[0].values[1] = None;
    let svg = chart.to_svg();
    let is_line = |line: &&str| line.contains("class=\"line c3\"") && line.contains(" d=");
    let line = svg.lines().rfind(is_line).unwrap();
    assert_eq!((line.matches('M').count(), line.matches('L').count()), (2, 1), "{line}");
}

#[test]
fn chart_of_negative_and_extreme_values_has_finite_coordinates() {
    for mark in [ChartSeriesStyle::Line, BAR] {
        let mut chart = chart(mark);
        chart.series[0].values = vec![Some(-5.0), Some(1e-300), Some(1e300), None];
        let svg = chart.to_svg();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}

/// Checks that each value with an interval has an error bar. The scale includes the interval, whose lower end is at least
/// zero.
#[test]
fn chart_draws_a_confidence_interval_around_its_value() {
    for (mark, which) in [(ChartSeriesStyle::Line, "a line"), (BAR, "a bar")] {
        let mut chart = chart(mark);
        assert!(!chart.to_svg().contains("class=\"spread\""), "{which}: one seed has no interval");
        chart.series[0].spreads[1] = Some(6.0);
        let svg = chart.to_svg();
        let spreads: Vec<_> = svg.lines().filter(|line| line.contains("class=\"spread\"")).collect();
        let [spread] = spreads[..] else { panic!("{which}: {spreads:?}") };
        assert!(spread.contains("<title>\u{b1} 6</title>"), "{which}: {spread}");
        let (left, high) = spread.rsplit_once('V').unwrap();
        let high: f64 = high.split('"').next().unwrap().parse().unwrap();
        let low: f64 = left.rsplit_once(' ').unwrap().1.parse().unwrap();
        let axis = svg.lines().find(|line| line.contains("class=\"axis\"")).unwrap();
        assert!(0.0 < high && high < low, "{which}: {spread}");
        assert!(axis.contains(&format!(" {low}H")), "{which}: {axis}, {spread}");
    }
}
