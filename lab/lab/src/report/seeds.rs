//! Merges result rows of several seeds: the mean of each metric, with its confidence interval. Seeds may have
//! different points; a row is merged over the seeds that have it.

use crate::named::{Metrics, Params};
use crate::row::{ResultRow, rounded};
use crate::runner::store::StoredResultRow;

/// Student's t, two-sided 95 %, for 1 and more degrees of freedom; the normal distribution's beyond.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
const NORMAL: f64 = 1.960;

/// Half of each metric's 95 % confidence interval, for a row of several seeds.
#[derive(Clone, Debug)]
pub(super) struct ConfidenceIntervals {
    experiment: String,
    params: Params,
    pub(super) half: Metrics,
}

impl ConfidenceIntervals {
    /// Returns `true` if the confidence intervals belong to this result row.
    pub(super) fn is_of(&self, row: &ResultRow) -> bool {
        self.experiment == row.experiment && self.params == row.params
    }
}

/// Merges the records of each point over all seeds. Returns one record per point with its confidence
/// intervals, in the order of the first seed.
pub(super) fn merge(records: Vec<StoredResultRow>) -> (Vec<StoredResultRow>, Vec<ConfidenceIntervals>) {
    let mut points: Vec<Vec<StoredResultRow>> = Vec::new();
    for record in records {
        let is_same = |known: &&mut Vec<StoredResultRow>| {
            let row = &known[0].row;
            row.experiment == record.row.experiment && row.params == record.row.params
        };
        match points.iter_mut().find(is_same) {
            Some(known) if known.iter().all(|other| other.seed != record.seed) => known.push(record),
            Some(_) => {}
            None => points.push(vec![record]),
        }
    }
    points.into_iter().map(one).unzip()
}

fn one(mut all: Vec<StoredResultRow>) -> (StoredResultRow, ConfidenceIntervals) {
    all.sort_by_key(|record| record.seed);
    let values = |name: &str| -> Vec<f64> {
        all.iter().filter_map(|record| record.row.metrics.get(name).copied()).collect()
    };
    let names: Vec<String> = all[0].row.metrics.names().map(str::to_owned).collect();
    let found: Vec<_> = names.iter().map(|name| interval(&values(name))).collect();
    let mean = names.iter().cloned().zip(found.iter().map(|(mean, _)| rounded(*mean))).collect();
    let half = names.into_iter().zip(found.iter().map(|(_, half)| rounded(*half))).collect();
    let mut record = all.swap_remove(0);
    record.row.metrics = mean;
    let ResultRow { experiment, params, .. } = &record.row;
    let spread = ConfidenceIntervals { experiment: experiment.clone(), params: params.clone(), half };
    (record, spread)
}

/// Returns the mean of the values and half of its 95 % confidence interval, which is 0 for a single value.
pub(crate) fn interval(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return (mean, 0.0);
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let t = T.get(values.len() - 2).copied().unwrap_or(NORMAL);
    (mean, t * (variance / count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::interval;

    #[test]
    fn confidence_interval_uses_students_t() {
        let (mean, half) = interval(&[9.0, 10.0, 11.0]);
        assert!((mean - 10.0).abs() < 1e-12 && (half - 4.303 / 3f64.sqrt()).abs() < 1e-9, "{half}");
        assert_eq!(interval(&[7.0]), (7.0, 0.0));
    }
}
