//! Parts of the report's charts: series, and a chart with named positions.

use figure::{Chart, ChartScale, ChartSeries, ChartSeriesStyle, XPositions};

/// Returns a line with a value at each position.
pub(super) fn line(label: String, colour: usize, values: Vec<Option<f64>>) -> ChartSeries {
    ChartSeries { mark: ChartSeriesStyle::Line, ..bars(label, colour, values) }
}

/// Returns bars with a value at each position, in the place `at` among the bars of a position.
pub(super) fn bars(label: String, at: usize, values: Vec<Option<f64>>) -> ChartSeries {
    let variant_label = String::new();
    ChartSeries {
        label,
        variant_label,
        colour: at,
        variant: 0,
        mark: ChartSeriesStyle::Bar { stack: at },
        right: false,
        values,
        spreads: Vec::new(),
    }
}

/// Returns a chart whose positions have names.
pub(super) fn chart(
    title: &str,
    unit: &str,
    x_title: &str,
    names: Vec<Vec<String>>,
    series: Vec<ChartSeries>,
) -> Chart {
    Chart {
        id: title.to_lowercase().replace(' ', "-"),
        title: title.to_owned(),
        description: format!("{title}, {unit}, by {x_title}; summary.json has the numbers"),
        x_title: x_title.to_owned(),
        x: XPositions::Names(names),
        left: ChartScale { title: title.to_owned(), unit: unit.to_owned() },
        right: None,
        stated: Vec::new(),
        ranges: Vec::new(),
        stated_label: None,
        series,
    }
}
