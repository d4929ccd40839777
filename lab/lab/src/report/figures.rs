//! Converts an experiment's result rows to the charts it declares.

use crate::catalogue::{self, ExperimentPointRef};
use crate::experiment::{self, Experiment, ExperimentAxis, FigureDefinition, FigureKind};
use crate::named::Params;
use crate::row::ResultRow;
use crate::value::ParameterValue;
use figure::{
    Chart, ChartScale, ChartSeries, ChartSeriesStyle, PublishedValueMarker, ValueRangeMarker, XPositions,
};
use std::fmt;

#[cfg(test)]
mod tests;

/// Creates every figure of an experiment. The rows must be of this experiment and differ only on its axes; points
/// without a row leave gaps. `id` is the prefix of the charts' identifiers, and `annotations` has stated values and
/// intervals.
#[must_use]
pub fn charts(
    experiment: &Experiment,
    rows: &[&ResultRow],
    id: &str,
    annotations: &FigureAnnotations<'_>,
) -> Vec<Chart> {
    let draw = |(at, figure): (usize, &FigureDefinition)| {
        let source = FigureSource { experiment, figure, rows, annotations };
        source.chart(format!("{id}-{}", at + 1))
    };
    experiment.figures.iter().enumerate().map(draw).collect()
}

/// Stated values, ranges and confidence intervals that a figure draws beside the rows' values.
pub struct FigureAnnotations<'a> {
    /// Values that papers state for points of the experiment.
    pub stated: &'a [catalogue::PublishedValue],
    /// Ranges of predictions.
    pub ranges: &'a [catalogue::PredictedRange],
    /// Function that returns half the interval of a row's metric, if there are several seeds.
    pub spread: &'a dyn Fn(&ResultRow, &str) -> Option<f64>,
}

impl fmt::Debug for FigureAnnotations<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FigureAnnotations")
            .field("stated", &self.stated)
            .field("ranges", &self.ranges)
            .finish_non_exhaustive()
    }
}

impl FigureAnnotations<'static> {
    /// Annotations of a figure that has only its rows' values.
    pub const NONE: Self = Self { stated: &[], ranges: &[], spread: &|_, _| None };
}

/// Metric of the total processor use, which is the sum of a stack of domains.
const WHOLE: &str = "cpu_total_pct";

/// Prefixes of each domain's processor metrics, by the domain's colour: guests, hypervisor, service domain.
const DOMAINS: &[&[&str]] =
    &[&["cpu_guest"], &["cpu_xen", "cpu_hypervisor"], &["cpu_dom0", "cpu_driver_domain"]];

struct FigureSource<'a> {
    experiment: &'a Experiment,
    figure: &'a FigureDefinition,
    rows: &'a [&'a ResultRow],
    annotations: &'a FigureAnnotations<'a>,
}

impl FigureSource<'_> {
    fn chart(&self, id: String) -> Chart {
        let figure = self.figure;
        let places = self.places();
        let series = self.series(&places);
        let own = self.annotations.stated.iter().filter(|stated| stated.experiment == self.experiment.name);
        let stated = own.filter_map(|stated| self.stated(stated, &places, &series)).collect();
        let ranges = self.annotations.ranges.iter();
        let ranges = ranges.filter_map(|range| self.range(range, &places, &series)).collect();
        let scale = |scale: &experiment::FigureScale| ChartScale {
            title: scale.title.into(),
            unit: scale.unit.into(),
        };
        Chart {
            id,
            title: figure.title.to_owned(),
            description: self.description(),
            x_title: figure.x_title.to_owned(),
            x: self.x(&places),
            left: scale(&figure.left),
            right: figure.right.as_ref().map(scale),
            series,
            stated,
            ranges,
            stated_label: None,
        }
    }

    fn description(&self) -> String {
        let metrics = std::iter::once(&self.figure.left).chain(&self.figure.right);
        let names: Vec<_> = metrics
            .flat_map(|scale| scale.series.iter().map(move |(_, label)| (*label, scale.unit)))
            .collect();
        let names: Vec<_> = names.iter().map(|(label, unit)| format!("{label} in {unit}")).collect();
        format!("{}: {}. {}", self.experiment.title, names.join(", "), self.experiment.shows)
    }

    /// Returns the distinct positions along the figure's x axis, in the order of the rows.
    fn places(&self) -> Vec<Vec<ParameterValue>> {
        let mut places = Vec::new();
        for row in self.rows {
            let place = self.place(&row.params);
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    fn place(&self, params: &Params) -> Vec<ParameterValue> {
        self.figure.x.iter().filter_map(|name| params.get(name).cloned()).collect()
    }

    /// Returns the positions along the figure's x axis: numbers to scale for lines over integers, and names otherwise.
    fn x(&self, places: &[Vec<ParameterValue>]) -> XPositions {
        if self.figure.kind == FigureKind::Lines {
            let number = |place: &Vec<ParameterValue>| match place.as_slice() {
                [ParameterValue::Int(int)] => Some(*int as f64),
                _ => None,
            };
            if let Some(numbers) = places.iter().map(number).collect() {
                return XPositions::Numbers(numbers);
            }
        }
        let axes: Vec<_> = self.figure.x.iter().filter_map(|name| self.axis(name)).collect();
        let names = |place: &Vec<ParameterValue>| {
            place.iter().zip(&axes).map(|(value, axis)| axis.label(value)).collect()
        };
        XPositions::Names(places.iter().map(names).collect())
    }

    fn axis(&self, name: &str) -> Option<&ExperimentAxis> {
        self.experiment.axes.iter().find(|axis| axis.name == name)
    }

    /// Returns the values of the axis that splits the figure, with their labels, or one empty label without such an
    /// axis.
    fn variants(&self) -> Vec<(Option<ParameterValue>, String)> {
        let Some(axis) = self.figure.split.and_then(|name| self.axis(name)) else {
            return vec![(None, String::new())];
        };
        let mut variants: Vec<(Option<ParameterValue>, String)> = Vec::new();
        for value in self.rows.iter().filter_map(|row| row.params.get(axis.name)) {
            if !variants.iter().any(|(known, _)| known.as_ref() == Some(value)) {
                variants.push((Some(value.clone()), axis.label(value)));
            }
        }
        variants
    }

    fn series(&self, places: &[Vec<ParameterValue>]) -> Vec<ChartSeries> {
        let variants = self.variants();
        let scales = [(Some(&self.figure.left), false), (self.figure.right.as_ref(), true)];
        let metrics: Vec<_> = scales
            .into_iter()
            .flat_map(|(scale, right)| {
                scale.into_iter().flat_map(move |scale| scale.series.iter().map(move |of| (of, right)))
            })
            .collect();
        let left = self.figure.left.series.len();
        let mut series = Vec::new();
        for (variant, (value, variant_label)) in variants.iter().enumerate() {
            let row_by_row = |read: &dyn Fn(&ResultRow) -> Option<f64>| {
                places.iter().map(|place| self.row(place, value.as_ref()).and_then(read)).collect()
            };
            for (at, ((metric, label), right)) in metrics.iter().enumerate() {
                let mark = match self.figure.kind {
                    _ if *right => ChartSeriesStyle::Line,
                    FigureKind::Lines => ChartSeriesStyle::Line,
                    FigureKind::StackedBars => ChartSeriesStyle::Bar { stack: variant },
                    FigureKind::GroupedBars => ChartSeriesStyle::Bar { stack: variant * left + at },
                };
                series.push(ChartSeries {
                    label: (*label).to_owned(),
                    variant_label: variant_label.clone(),
                    colour: self.colour(metric),
                    variant,
                    mark,
                    right: *right,
                    values: row_by_row(&|row| row.metrics.get(metric).copied()),
                    spreads: row_by_row(&|row| (self.annotations.spread)(row, metric)),
                });
            }
        }
        series
    }

    /// Returns the colour of a metric: a domain's is equal in all figures, any other metric's in the figures of its
    /// experiment.
    fn colour(&self, metric: &str) -> usize {
        let of_domain = |name: &str| {
            let is_its = |of: &&[&str]| of.iter().any(|begin| name.starts_with(begin));
            DOMAINS.iter().position(is_its)
        };
        let others = || self.experiment.metrics.iter().filter(|known| of_domain(known.name).is_none());
        of_domain(metric)
            .unwrap_or_else(|| DOMAINS.len() + others().position(|known| known.name == metric).unwrap_or(0))
    }

    /// Returns the marker of a stated value, or `None` if the figure does not show the value.
    fn stated(
        &self,
        stated: &catalogue::PublishedValue,
        places: &[Vec<ParameterValue>],
        series: &[ChartSeries],
    ) -> Option<PublishedValueMarker> {
        let (which, at, below) = self.mark(stated.point(), stated.metric, places, series)?;
        let catalogue::PublishedValue { value, is_calibrated, .. } = *stated;
        Some(PublishedValueMarker { series: which, at, height: below + value, value, is_calibrated })
    }

    /// Returns the marker of a prediction's range, or `None` if the figure does not show the predicted value.
    fn range(
        &self,
        range: &catalogue::PredictedRange,
        places: &[Vec<ParameterValue>],
        series: &[ChartSeries],
    ) -> Option<ValueRangeMarker> {
        let is_own = range.point.experiment == self.experiment.name;
        let (which, at, below) = is_own.then(|| self.mark(range.point, range.metric, places, series))??;
        Some(ValueRangeMarker { series: which, at, below, ends: [range.least, range.most] })
    }

    /// Returns where a point's metric is drawn: the index of its series, its position along x, and the height of the
    /// parts of its stack below it. The total of a stack belongs to the topmost series, and has nothing below. Returns
    /// `None` if the figure shows neither.
    fn mark(
        &self,
        point: ExperimentPointRef,
        metric: &str,
        places: &[Vec<ParameterValue>],
        series: &[ChartSeries],
    ) -> Option<(usize, usize, f64)> {
        let said = |axis: &str| point.axes.iter().find(|(name, _)| *name == axis).map(|(_, value)| *value);
        let is_there = |place: &Vec<ParameterValue>| {
            let mut values = self.figure.x.iter().zip(place);
            values.all(|(axis, value)| said(axis) == Some(value.to_string().as_str()))
        };
        let at = places.iter().position(is_there)?;
        let label = self.figure.split.map_or(Some(String::new()), |split| {
            let axis = self.axis(split)?;
            let value =
                axis.values.list().into_iter().find(|value| said(split) == Some(&value.to_string()))?;
            Some(axis.label(&value))
        })?;
        let scales = std::iter::once(&self.figure.left).chain(&self.figure.right);
        let shown = scales.flat_map(|scale| scale.series).find(|(name, _)| *name == metric);
        let stacked = self.figure.kind == FigureKind::StackedBars;
        let of_variant = |series: &ChartSeries| series.variant_label == label;
        let mut own = series.iter().enumerate();
        let found = match shown {
            Some((_, name)) => own.find(|it| of_variant(it.1) && it.1.label == *name),
            None if stacked && metric == WHOLE => own.rfind(|it| of_variant(it.1) && !it.1.right),
            None => None,
        };
        let (which, found) = found?;
        let is_below = |(n, other): &(usize, &ChartSeries)| *n < which && other.mark == found.mark;
        let below: f64 = if stacked && !found.right && shown.is_some() {
            series.iter().enumerate().filter(is_below).filter_map(|(_, other)| *other.values.get(at)?).sum()
        } else {
            0.0
        };
        Some((which, at, below))
    }

    fn row(&self, place: &[ParameterValue], variant: Option<&ParameterValue>) -> Option<&ResultRow> {
        let of_variant =
            |row: &ResultRow| self.figure.split.is_none_or(|name| row.params.get(name) == variant);
        self.rows.iter().copied().find(|row| self.place(&row.params) == place && of_variant(row))
    }
}
