//! Returns hints for the messages of refused names and values: what the user may have meant.

use crate::catalogue::ExperimentCatalogue;
use crate::experiment::Experiment;
use crate::similar::similar;
use crate::value::ParameterValue;

/// Returns a hint for an unknown experiment: the most similar names, or all names if none is similar.
pub(super) fn experiment(name: &str, known: &[&str]) -> String {
    match similar(name, known).as_slice() {
        _ if name == "all" => "give `all` alone, since it includes each experiment".to_owned(),
        [] => format!("known: {}", known.join(", ")),
        names => format!("did you mean {}? `softiov lab list` shows all", names.join(", ")),
    }
}

/// Returns a hint for a key that is an axis of other experiments only: these experiments, and the axes of the selected
/// ones.
pub(super) fn axis(
    catalogue: &ExperimentCatalogue,
    selected: &[&'static Experiment],
    key: &str,
) -> Option<String> {
    let has_axis = |experiment: &&Experiment| experiment.axes.iter().any(|axis| axis.name == key);
    let others: Vec<_> = catalogue.experiments.iter().filter(has_axis).map(|other| other.name).collect();
    let mut axes: Vec<_> =
        selected.iter().flat_map(|experiment| experiment.axes).map(|axis| axis.name).collect();
    axes.sort_unstable();
    axes.dedup();
    (!others.is_empty()).then(|| {
        format!(": it is an axis of {}; axes of this run are {}", others.join(", "), axes.join(", "))
    })
}

/// Returns a hint for an unknown key: the most similar names, or some existing names if none is similar.
pub(super) fn key(key: &str, known: &[&str]) -> String {
    match similar(key, known).as_slice() {
        [] if known.is_empty() => ": this catalogue has none".to_owned(),
        [] => format!(": `softiov lab list` shows all, such as {}", known[0]),
        names => format!("; did you mean {}?", names.join(", ")),
    }
}

/// Returns what was expected instead of a value: its kind and unit, and how to give several values if these were given.
pub(super) fn expected(like: &ParameterValue, unit: &str, key: &str, value: &str) -> String {
    let unit = if unit.is_empty() { String::new() } else { format!(" ({unit}, without the unit)") };
    let range = value.split_once('-').filter(|(first, last)| !first.is_empty() && !last.is_empty());
    let several = match range {
        Some((first, last)) => format!("; a range is --sweep {key}={first}..{last}"),
        None if value.contains(',') || value.contains("..") => {
            format!("; several values are --sweep {key}={value}")
        }
        None => String::new(),
    };
    format!("{}{unit}{several}", like.kind())
}
