//! Sweeps of a run: axes and settings that take several values, `KEY=VALUE,VALUE` or `KEY=FIRST..LAST`. Several sweeps
//! are combined, the last varying fastest. Samples of ranges (a Latin hypercube) vary together.

use std::str::FromStr;

use hypervisor::cost::CostTable;
use sim::RandomStream;
use thiserror::Error;

use crate::experiment::CONSTANT;

/// Largest number of values of one sweep, and of combinations of all sweeps of a run.
const MOST: usize = 100_000;

/// Axis or setting that takes several values in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterSweep {
    /// Name of the axis or setting.
    pub key: String,
    /// Values in the order of the rows, as written. Never empty.
    pub values: Vec<String>,
    /// The values are samples: all sampled parameters take their first values together, then their second ones.
    pub is_sampled: bool,
}

/// Parameter to take samples of, in a range of integers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledRange {
    key: String,
    /// First and last integer of the range. Without them, the parameter is a constant whose range a cost table states.
    ends: Option<(i64, i64)>,
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
    /// No cost table states a range for the parameter, or several tables state different ones.
    #[error("cannot sample {key} without a range: {reason}; give {key}=FIRST..LAST")]
    Stated {
        /// Name of the parameter.
        key: String,
        /// Reason why there is no stated range.
        reason: String,
    },
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
        Ok(Self { key, values, is_sampled: false })
    }
}

impl FromStr for SampledRange {
    type Err = InvalidParameterSweep;

    fn from_str(text: &str) -> Result<Self, InvalidParameterSweep> {
        let Some((key, ends)) = text.split_once('=') else {
            let key = text.trim().to_owned();
            // The ranges of axes and of other settings are not stated.
            return if key.starts_with(CONSTANT) {
                Ok(Self { key, ends: None })
            } else {
                Err(InvalidParameterSweep::Form)
            };
        };
        let key = key.trim().to_owned();
        if key.is_empty() {
            return Err(InvalidParameterSweep::Form);
        }
        let invalid = || InvalidParameterSweep::Range(ends.to_owned());
        let number = |text: &str| text.trim().parse::<i64>().map_err(|_| invalid());
        let (first, last) = ends.split_once("..").ok_or_else(invalid)?;
        let (first, last) = (number(first)?, number(last)?);
        if first > last { Err(invalid()) } else { Ok(Self { key, ends: Some((first, last)) }) }
    }
}

impl SampledRange {
    /// Returns the first and the last integer of the range. A constant without a range has the plausible one that the cost
    /// table called `table` states. If the run names no table, all tables must state the same range, since each experiment
    /// has the table of its paper's machine.
    fn ends(&self, table: Option<&str>) -> Result<(i64, i64), InvalidParameterSweep> {
        if let Some(ends) = self.ends {
            return Ok(ends);
        }
        let refused = |reason: String| InvalidParameterSweep::Stated { key: self.key.clone(), reason };
        let name = self.key.strip_prefix(CONSTANT).unwrap_or(&self.key);
        let tables =
            table.and_then(CostTable::named).map_or_else(|| CostTable::all().to_vec(), |it| vec![it]);
        let stated = |it: &CostTable| Some((it.name(), it.iter().find(|row| row.name == name)?.range));
        let ranges: Vec<_> = tables.iter().filter_map(stated).collect();
        let Some(&(_, range)) = ranges.first() else {
            return Err(refused("no cost table has this constant".to_owned()));
        };
        if let Some((other, _)) = ranges.iter().find(|(_, other)| *other != range) {
            let (first, _) = ranges[0];
            return Err(refused(format!(
                "the tables {first} and {other} state different ranges, and --set table=NAME or --machine selects one"
            )));
        }
        let bound = |end: u64| i64::try_from(end).map_err(|_| refused(format!("its range ends at {end}")));
        Ok((bound(range.0)?, bound(range.1)?))
    }
}

/// Returns `count` samples of the ranges as a Latin hypercube: each range is divided into `count` equal parts, and each
/// part of each range has one sample. The samples depend on the seed, the count, and each range's key. `table` is the cost
/// table that the run names, whose ranges are those of constants without one.
///
/// # Errors
/// [`InvalidParameterSweep::Values`] if a range has fewer integers than samples, or there are too many samples.
/// [`InvalidParameterSweep::Stated`] if a constant without a range has none in the table.
pub fn latin_hypercube(
    ranges: &[SampledRange],
    table: Option<&str>,
    count: u32,
    seed: u64,
) -> Result<Vec<ParameterSweep>, InvalidParameterSweep> {
    ranges.iter().map(|range| sample(&range.key, range.ends(table)?, count, seed)).collect()
}

/// Takes a sample of each of `count` parts of a range, in random order.
fn sample(
    key: &str,
    (first, last): (i64, i64),
    count: u32,
    seed: u64,
) -> Result<ParameterSweep, InvalidParameterSweep> {
    let size = u128::from(last.abs_diff(first)) + 1;
    if size < u128::from(count) || count == 0 || count as usize > MOST {
        let text = format!("{key} has {size} integers from {first} to {last} for {count} samples");
        return Err(InvalidParameterSweep::Values(text));
    }
    let values = samples_of_parts(key, (first, last), count, seed);
    Ok(ParameterSweep {
        key: key.to_owned(),
        values: values.iter().map(i64::to_string).collect(),
        is_sampled: true,
    })
}

/// Returns a sample of each of `count` equal parts of a range of integers, in random order. The order and the samples
/// depend on the seed and the key. A range of fewer integers has some of them several times.
pub(crate) fn samples_of_parts(key: &str, (first, last): (i64, i64), count: u32, seed: u64) -> Vec<i64> {
    let size = u128::from(last.abs_diff(first)) + 1;
    let mut random = RandomStream::named(seed, key);
    // Offsets in 64 bits: the end of the greatest range wraps to 0, and so does its distance from the part before.
    let bound = |part: u32| (size * u128::from(part) / u128::from(count)) as u64;
    let mut values: Vec<i64> = (0..count)
        .map(|part| {
            let offset = bound(part) + random.below(bound(part + 1).wrapping_sub(bound(part)).max(1));
            first.wrapping_add_unsigned(offset)
        })
        .collect();
    for at in (1..values.len()).rev() {
        values.swap(at, random.below(at as u64 + 1) as usize);
    }
    values
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

/// Returns all combinations of the sweeps' values, the last sweep varying fastest, and samples fastest of all: one empty
/// combination without sweeps. Returns `None` if there are more than [`MOST`].
pub(super) fn combinations(sweeps: &[ParameterSweep]) -> Option<Vec<SweepCombination<'_>>> {
    let (sampled, crossed): (Vec<_>, Vec<_>) = sweeps.iter().partition(|sweep| sweep.is_sampled);
    let samples = sampled.iter().map(|sweep| sweep.values.len()).min();
    let count = crossed
        .iter()
        .try_fold(samples.unwrap_or(1), |count, sweep| count.checked_mul(sweep.values.len()))?;
    if count > MOST {
        return None;
    }
    let crossed = crossed.iter().map(|sweep| {
        sweep.values.iter().map(|value| vec![(sweep.key.as_str(), value.as_str())]).collect::<Vec<_>>()
    });
    let together = samples.map(|samples| {
        let sample =
            |at: usize| sampled.iter().map(|sweep| (sweep.key.as_str(), sweep.values[at].as_str())).collect();
        (0..samples).map(sample).collect::<Vec<SweepCombination>>()
    });
    Some(crossed.chain(together).fold(vec![Vec::new()], |all, steps| extend(&all, &steps)))
}

/// Returns each combination with each of the steps.
fn extend<'a>(all: &[SweepCombination<'a>], steps: &[SweepCombination<'a>]) -> Vec<SweepCombination<'a>> {
    let with_steps = |one: &SweepCombination<'a>| {
        let one = one.clone();
        steps.iter().map(move |step| [one.as_slice(), step].concat())
    };
    all.iter().flat_map(with_steps).collect()
}

#[cfg(test)]
mod tests {
    use super::{InvalidParameterSweep, ParameterSweep, SampledRange, combinations, latin_hypercube};
    use hypervisor::cost::{CostRow, CostTable};
    use std::collections::BTreeSet;

    fn values(text: &str) -> Vec<String> {
        text.parse::<ParameterSweep>().unwrap().values
    }

    #[test]
    fn sweep_lists_values_and_ranges_in_order() {
        assert_eq!(values("policy=aic,2k"), ["aic", "2k"]);
        assert_eq!(values("vms=1..3"), ["1", "2", "3"]);
        assert_eq!(values("vms=1, 10..60:25, 7"), ["1", "10", "35", "60", "7"]);
        assert_eq!(values("cost.eoi_fast=-1..0"), ["-1", "0"]);
        assert_eq!(values("vms=3..3"), ["3"]);
        assert_eq!(values("vms=0..200000:4").len(), 50_001);
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
    fn sweep_has_at_most_100000_values_and_combinations() {
        assert_eq!(values("vms=-1,0..99998").len(), 100_000);
        assert!("vms=-1,0..99999".parse::<ParameterSweep>().is_err());
        let most = ["a=1..1000", "b=1..100"].map(|text| text.parse().unwrap());
        assert_eq!(combinations(&most).map(|all| all.len()), Some(100_000));
        assert_eq!(samples(&["a=0..999999"], 100_000, 1)[0].values.len(), 100_000);
        let range = ["a=0..999999".parse().unwrap()];
        assert!(latin_hypercube(&range, None, 100_001, 1).is_err());
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

    fn samples(ranges: &[&str], count: u32, seed: u64) -> Vec<ParameterSweep> {
        let ranges: Vec<SampledRange> = ranges.iter().map(|text| text.parse().unwrap()).collect();
        latin_hypercube(&ranges, None, count, seed).unwrap()
    }

    /// Checks samples of a constant without a range: the table's own range, and a refusal if tables differ.
    #[test]
    fn sampled_constant_without_a_range_has_that_of_its_table() {
        let range = |text: &str, table| text.parse::<SampledRange>().unwrap().ends(table);
        let row = |table: &CostTable, name: &str| table.iter().find(|row| row.name == name).unwrap().range;
        let nehalem = CostTable::nehalem();
        let differs =
            |name: &str| CostTable::all().iter().any(|table| row(table, name) != row(&nehalem, name));
        for CostRow { name, range: (first, last), .. } in nehalem.iter() {
            let key = format!("cost.{name}");
            let stated = (i64::try_from(*first).unwrap(), i64::try_from(*last).unwrap());
            assert_eq!(range(&key, Some("nehalem")).unwrap(), stated);
            assert_eq!(range(&key, None).ok(), (!differs(name)).then_some(stated), "{key}");
        }
        let error = range("cost.exit_external_interrupt", None).unwrap_err().to_string();
        assert!(error.contains("the tables nehalem and modern state different ranges"), "{error}");
        let error = range("cost.nothing", None).unwrap_err().to_string();
        assert_eq!(
            error,
            "cannot sample cost.nothing without a range: no cost table has this constant; give cost.nothing=FIRST..LAST"
        );
    }

    #[test]
    fn latin_hypercube_has_one_sample_in_each_part_of_each_range() {
        for sweep in samples(&["a=0..99", "b=-50..49"], 10, 3) {
            let first = if sweep.key == "a" { 0 } else { -50 };
            let parts: BTreeSet<_> =
                sweep.values.iter().map(|value| (value.parse::<i64>().unwrap() - first) / 10).collect();
            assert_eq!(parts, (0..10).collect());
        }
        let whole = format!("c={}..{}", i64::MIN, i64::MAX);
        assert_eq!(samples(&[&whole], 3, 1)[0].values.len(), 3);
    }

    /// Checks that a sample is anywhere in its part, and a part anywhere in the order.
    #[test]
    fn samples_are_random_in_their_parts_and_in_their_order() {
        let first_parts: BTreeSet<_> = (0..20)
            .map(|seed| samples(&["a=0..999"], 2, seed)[0].values[0].parse::<i64>().unwrap() / 500)
            .collect();
        assert_eq!(first_parts, [0, 1].into());
        let starts = samples(&["a=0..999"], 4, 1)[0]
            .values
            .iter()
            .filter(|value| value.parse::<i64>().unwrap() % 250 == 0)
            .count();
        assert!(starts < 4, "each sample is the first integer of its part");
        assert_eq!(samples(&["a=5..5"], 1, 1)[0].values, ["5"]);
    }

    #[test]
    fn samples_depend_on_the_seed_and_vary_together() {
        let one = samples(&["a=0..999", "b=0..999"], 4, 1);
        assert_eq!(one, samples(&["a=0..999", "b=0..999"], 4, 1));
        assert_ne!(one, samples(&["a=0..999", "b=0..999"], 4, 2));
        let crossed = "vms=1,2".parse().unwrap();
        let sweeps = [&one[..], &[crossed]].concat();
        let all = combinations(&sweeps).unwrap();
        assert_eq!(all.len(), 8);
        assert_eq!(all[1], [("vms", "1"), ("a", &one[0].values[1]), ("b", &one[1].values[1])]);
    }

    #[test]
    fn range_with_fewer_integers_than_samples_is_refused() {
        let ranges = ["a=1..3".parse().unwrap()];
        assert!(
            latin_hypercube(&ranges, None, 4, 1).is_err() && latin_hypercube(&ranges, None, 0, 1).is_err()
        );
        assert_eq!(samples(&["a=1..3"], 3, 1)[0].values.iter().collect::<BTreeSet<_>>().len(), 3);
        for text in ["a", "=1..2", "a=1", "a=2..1", "a=x..2"] {
            assert!(text.parse::<SampledRange>().is_err(), "{text}");
        }
    }
}
