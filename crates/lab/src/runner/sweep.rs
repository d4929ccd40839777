//! Sweeps of a run: axes and settings that take several values, `KEY=VALUE,VALUE` or `KEY=FIRST..LAST`. Several sweeps
//! are combined, the last varying fastest.

use std::str::FromStr;

use thiserror::Error;

/// Largest number of values of one sweep, and of combinations of all sweeps of a run.
const MOST: usize = 100_000;

/// Axis or setting that takes several values in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterSweep {
    /// Name of the axis or setting.
    pub key: String,
    /// Values in the order of the rows, as written. Never empty.
    pub values: Vec<String>,
}

/// Combination of the sweeps: each swept key with one of its values.
pub(super) type SweepCombination<'a> = Vec<(&'a str, &'a str)>;

/// Error: a text does not describe a sweep.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum InvalidParameterSweep {
    /// The key or a value is missing.
    #[error("expected a sweep of the form key=value,value or key=first..last or key=first..last:step")]
    Form,
    /// A range has no values, or its ends are not integers.
    #[error(
        "invalid range `{0}`: expected first..last or first..last:step, with integers, first <= last and step >= 1"
    )]
    Range(String),
    /// The sweep has too many values, or names one twice.
    #[error("a sweep must have from 1 to {MOST} different values; {0}")]
    Values(String),
}

impl FromStr for ParameterSweep {
    type Err = InvalidParameterSweep;

    fn from_str(text: &str) -> Result<Self, InvalidParameterSweep> {
        let (key, list) = text.split_once('=').ok_or(InvalidParameterSweep::Form)?;
        let key = key.trim().to_owned();
        let mut values: Vec<String> = Vec::new();
        for item in list.split(',').map(str::trim) {
            if item.is_empty() || key.is_empty() {
                return Err(InvalidParameterSweep::Form);
            }
            match item.split_once("..") {
                Some(ends) => range(item, ends, &mut values)?,
                None => values.push(item.to_owned()),
            }
        }
        let mut sorted: Vec<_> = values.iter().collect();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(InvalidParameterSweep::Values(format!("{key} has the value {} twice", pair[0])));
        }
        Ok(Self { key, values })
    }
}

/// Appends the integers of a range, both ends included.
fn range(
    item: &str,
    (first, rest): (&str, &str),
    values: &mut Vec<String>,
) -> Result<(), InvalidParameterSweep> {
    let invalid = || InvalidParameterSweep::Range(item.to_owned());
    let (last, step) = rest.split_once(':').unwrap_or((rest, "1"));
    let number = |text: &str| text.trim().parse::<i64>().map_err(|_| invalid());
    let (first, last, step) = (number(first)?, number(last)?, number(step)?);
    let step = usize::try_from(step).ok().filter(|step| *step > 0).ok_or_else(invalid)?;
    if first > last {
        return Err(invalid());
    }
    if last.abs_diff(first) / step as u64 >= (MOST - values.len().min(MOST)) as u64 {
        return Err(InvalidParameterSweep::Values(format!("`{item}` has more")));
    }
    values.extend((first..=last).step_by(step).map(|value| value.to_string()));
    Ok(())
}

/// Returns all combinations of the sweeps' values, the last sweep varying fastest: one empty combination without
/// sweeps. Returns `None` if there are more than [`MOST`].
pub(super) fn combinations(sweeps: &[ParameterSweep]) -> Option<Vec<SweepCombination<'_>>> {
    let count = sweeps.iter().try_fold(1_usize, |count, sweep| count.checked_mul(sweep.values.len()))?;
    if count > MOST {
        return None;
    }
    let mut all: Vec<SweepCombination> = vec![Vec::new()];
    for ParameterSweep { key, values } in sweeps {
        let mut longer = Vec::with_capacity(all.len() * values.len());
        for combination in &all {
            for value in values {
                longer.push([combination.as_slice(), &[(key.as_str(), value.as_str())]].concat());
            }
        }
        all = longer;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::{InvalidParameterSweep, ParameterSweep, combinations};

    fn values(text: &str) -> Vec<String> {
        text.parse::<ParameterSweep>().unwrap().values
    }

    #[test]
    fn sweep_lists_values_and_ranges_in_order() {
        assert_eq!(values("policy=aic,2k"), ["aic", "2k"]);
        assert_eq!(values("vms=1..3"), ["1", "2", "3"]);
        assert_eq!(values("vms=1, 10..60:25, 7"), ["1", "10", "35", "60", "7"]);
        assert_eq!(values("cost.eoi_fast=-1..0"), ["-1", "0"]);
    }

    #[test]
    fn sweep_without_values_or_with_an_invalid_range_is_refused() {
        for text in ["vms", "vms=", "=1", "vms=1,,2", "vms=3..1", "vms=1..x", "vms=1..9:0", "vms=1..9:-2"] {
            assert!(text.parse::<ParameterSweep>().is_err(), "{text}");
        }
    }

    #[test]
    fn sweep_with_a_repeated_value_or_too_many_is_refused() {
        for text in
            ["vms=1,2,1", "vms=1..3,2", "vms=0..100000", "vms=-9223372036854775808..9223372036854775807"]
        {
            let refused = text.parse::<ParameterSweep>();
            assert!(matches!(refused, Err(InvalidParameterSweep::Values(_))), "{text}: {refused:?}");
        }
    }

    #[test]
    fn sweeps_are_combined_with_the_last_varying_fastest() {
        let sweeps = ["vms=1..2", "policy=aic,2k"].map(|text| text.parse().unwrap());
        let all = combinations(&sweeps).unwrap();
        let text: Vec<_> = all
            .iter()
            .map(|set| set.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(text, ["vms=1 policy=aic", "vms=1 policy=2k", "vms=2 policy=aic", "vms=2 policy=2k"]);
        assert_eq!(combinations(&[]).unwrap(), [Vec::new()]);
        let large = ["a=1..1000", "b=1..1000"].map(|text| text.parse().unwrap());
        assert_eq!(combinations(&large), None);
    }
}
