//! Values that papers state, of one point or related over two, in one form.

use std::collections::BTreeMap;

use crate::catalogue::{ExperimentCatalogue, ExperimentPointRef, PointRelation};
use crate::named::Metrics;

/// Metrics of the points that a model has, with one seed.
pub(super) type PointMetrics = BTreeMap<ExperimentPointRef, Metrics>;

/// Value that a paper states for one point, or for a relation between two.
pub(super) struct StatedQuantity {
    /// The point, or both points of the relation.
    pub(super) points: Vec<ExperimentPointRef>,
    /// Metrics whose sum the paper states.
    metrics: Vec<&'static str>,
    relation: Option<PointRelation>,
    pub(super) value: f64,
    pub(super) is_calibrated: bool,
    pub(super) is_bounded: bool,
}

/// Returns all values that papers state, then all relations.
pub(super) fn stated(catalogue: &ExperimentCatalogue) -> Vec<StatedQuantity> {
    let values = catalogue.stated.iter().map(|stated| StatedQuantity {
        points: vec![stated.point()],
        metrics: vec![stated.metric],
        relation: None,
        value: stated.value,
        is_calibrated: stated.is_calibrated,
        is_bounded: stated.is_bounded,
    });
    let relations = catalogue.relations.iter().map(|stated| StatedQuantity {
        points: stated.points.to_vec(),
        metrics: stated.metrics.to_vec(),
        relation: Some(stated.relation),
        value: stated.value,
        is_calibrated: stated.is_calibrated,
        is_bounded: false,
    });
    values.chain(relations).collect()
}

impl StatedQuantity {
    /// Returns the model's value, or `None` if the model lacks a point or a metric.
    pub(super) fn value_of(&self, found: &PointMetrics) -> Option<f64> {
        let sum = |point| {
            let metrics = found.get(point)?;
            self.metrics.iter().map(|name| metrics.get(name).copied()).sum::<Option<f64>>()
        };
        let sums = self.points.iter().map(sum).collect::<Option<Vec<_>>>()?;
        match (self.relation, &sums[..]) {
            (None, &[value]) => Some(value),
            (Some(relation), &[from, to]) => Some(relation.value(from, to)),
            _ => None,
        }
    }

    /// Returns the axis values of the points. The second point's experiment is named if it is another one.
    pub(super) fn point_text(&self) -> String {
        let axes = |point: &ExperimentPointRef| {
            point.axes.iter().map(|(axis, value)| format!("{axis}={value}")).collect::<Vec<_>>().join(" ")
        };
        match &self.points[..] {
            [from, to] if from.experiment == to.experiment => format!("{} to {}", axes(from), axes(to)),
            [from, to] => format!("{} to {to}", axes(from)),
            points => points.iter().map(axes).collect(),
        }
    }

    /// Returns the name of the metric, with the relation before it.
    pub(super) fn metric_text(&self) -> String {
        let metrics = self.metrics.join(" + ");
        self.relation.map_or(metrics.clone(), |relation| format!("{relation} {metrics}"))
    }
}
