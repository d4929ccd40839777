//! An experiment's rows as a chart, in the way the experiment says. Left out: drawing it.

use super::{Chart, Mark, Scale, Series, X};
use crate::experiment::{self, Axis, Experiment, Figure, Kind};
use crate::named::Params;
use crate::row::Row;
use crate::value::Value;

/// Every figure of an experiment. The rows are of this experiment, and differ on its axes only; points without
/// a row leave gaps. `id` is what the charts' identifiers begin with.
#[must_use]
pub fn charts(experiment: &Experiment, rows: &[&Row], id: &str) -> Vec<Chart> {
    let draw = |(at, figure): (usize, &Figure)| {
        let source = Source { experiment, figure, rows };
        source.chart(format!("{id}-{}", at + 1))
    };
    experiment.figures.iter().enumerate().map(draw).collect()
}

struct Source<'a> {
    experiment: &'a Experiment,
    figure: &'a Figure,
    rows: &'a [&'a Row],
}

impl Source<'_> {
    fn chart(&self, id: String) -> Chart {
        let figure = self.figure;
        let places = self.places();
        let scale = |scale: &experiment::Scale| Scale { title: scale.title.into(), unit: scale.unit.into() };
        Chart {
            id,
            title: figure.title.to_owned(),
            description: self.description(),
            x_title: figure.x_title.to_owned(),
            x: self.x(&places),
            left: scale(&figure.left),
            right: figure.right.as_ref().map(scale),
            series: self.series(&places),
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

    /// The different places along x, in the order of the rows.
    fn places(&self) -> Vec<Vec<Value>> {
        let mut places = Vec::new();
        for row in self.rows {
            let place = self.place(&row.params);
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    fn place(&self, params: &Params) -> Vec<Value> {
        self.figure.x.iter().filter_map(|name| params.get(name).cloned()).collect()
    }

    /// Lines over integers are true to distance; everything else has names.
    fn x(&self, places: &[Vec<Value>]) -> X {
        if self.figure.kind == Kind::Lines {
            let number = |place: &Vec<Value>| match place.as_slice() {
                [Value::Int(int)] => Some(*int as f64),
                _ => None,
            };
            if let Some(numbers) = places.iter().map(number).collect() {
                return X::Numbers(numbers);
            }
        }
        let axes: Vec<_> = self.figure.x.iter().filter_map(|name| self.axis(name)).collect();
        let names =
            |place: &Vec<Value>| place.iter().zip(&axes).map(|(value, axis)| axis.label(value)).collect();
        X::Names(places.iter().map(names).collect())
    }

    fn axis(&self, name: &str) -> Option<&Axis> {
        self.experiment.axes.iter().find(|axis| axis.name == name)
    }

    /// The values of the axis that is split, with what they are called; one of nothing if none is.
    fn variants(&self) -> Vec<(Option<Value>, String)> {
        let Some(axis) = self.figure.split.and_then(|name| self.axis(name)) else {
            return vec![(None, String::new())];
        };
        let mut variants: Vec<(Option<Value>, String)> = Vec::new();
        for value in self.rows.iter().filter_map(|row| row.params.get(axis.name)) {
            if !variants.iter().any(|(known, _)| known.as_ref() == Some(value)) {
                variants.push((Some(value.clone()), axis.label(value)));
            }
        }
        variants
    }

    fn series(&self, places: &[Vec<Value>]) -> Vec<Series> {
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
            for (at, ((metric, label), right)) in metrics.iter().enumerate() {
                let mark = match self.figure.kind {
                    _ if *right => Mark::Line,
                    Kind::Lines => Mark::Line,
                    Kind::StackedBars => Mark::Bar { stack: variant },
                    Kind::GroupedBars => Mark::Bar { stack: variant * left + at },
                };
                series.push(Series {
                    label: (*label).to_owned(),
                    variant_label: variant_label.clone(),
                    colour: self.colour(metric),
                    variant,
                    mark,
                    right: *right,
                    values: places.iter().map(|place| self.value(place, value.as_ref(), metric)).collect(),
                });
            }
        }
        series
    }

    /// A metric has the same colour in every figure of its experiment.
    fn colour(&self, metric: &str) -> usize {
        self.experiment.metrics.iter().position(|known| known.name == metric).unwrap_or(0)
    }

    fn value(&self, place: &[Value], variant: Option<&Value>, metric: &str) -> Option<f64> {
        let of_variant = |row: &Row| self.figure.split.is_none_or(|name| row.params.get(name) == variant);
        let row = self.rows.iter().find(|row| self.place(&row.params) == place && of_variant(row))?;
        row.metrics.get(metric).copied()
    }
}
