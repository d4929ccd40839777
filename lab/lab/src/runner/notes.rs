//! Inputs of a run that have no effect on its rows: values of a machine file that no point reads, and seeds.

use std::collections::BTreeMap;

use super::store::StoredResultRow;
use crate::named::Metrics;

/// Returns the values of the machine file that no row of an experiment has read, by experiment in the order of the rows.
#[must_use]
pub fn unread_values(records: &[StoredResultRow]) -> Vec<(&str, Vec<&str>)> {
    let mut found = Vec::new();
    for rows in records.chunk_by(|one, next| one.row.experiment == next.row.experiment) {
        let is_unread = |name: &&str| rows.iter().all(|record| record.unread.get(name).is_some());
        let names: Vec<_> = rows[0].unread.names().filter(is_unread).collect();
        if !names.is_empty() {
            found.push((rows[0].row.experiment.as_str(), names));
        }
    }
    found
}

/// Returns the experiments whose rows are equal for all of several seeds.
#[must_use]
pub fn equal_for_all_seeds(records: &[StoredResultRow]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for record in records {
        if !names.contains(&record.row.experiment.as_str()) {
            names.push(&record.row.experiment);
        }
    }
    names.retain(|name| {
        let rows: Vec<_> = records.iter().filter(|record| record.row.experiment == *name).collect();
        rows.iter().any(|record| record.seed != rows[0].seed) && are_equal(&rows)
    });
    names
}

/// Returns `true` if rows with equal parameters have equal metrics.
fn are_equal(rows: &[&StoredResultRow]) -> bool {
    let mut known: BTreeMap<String, &Metrics> = BTreeMap::new();
    rows.iter().all(|record| {
        let metrics = &record.row.metrics;
        *known.entry(record.row.params.to_string()).or_insert(metrics) == metrics
    })
}
