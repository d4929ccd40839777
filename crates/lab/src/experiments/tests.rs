//! The experiments: declared as they run, and the same twice.

use super::catalogue;
use crate::runner::plan::Selection;
use crate::runner::{self, Options};
use std::num::NonZeroUsize;

#[test]
fn every_experiment_is_declared_consistently() {
    assert_eq!(catalogue().problems(), Vec::<String>::new());
}

/// Every point of every experiment, for a little while.
#[test]
fn every_experiment_tells_the_same_story_twice() {
    let set = ["measure_ms=2", "warm_up_ms=5"].map(|text| text.parse().unwrap());
    let run = |jobs| {
        let jobs = NonZeroUsize::new(jobs).unwrap();
        let options = Options { seed: 3, jobs, shard: None, set: set.to_vec(), out: None };
        runner::run(&catalogue(), &Selection::All, &options, &mut ()).unwrap()
    };
    let (one, two) = (run(1), run(2));
    assert!(one.records.len() >= 48, "{}", one.records.len());
    assert_eq!(format!("{:?}", one.records), format!("{:?}", two.records));
}
