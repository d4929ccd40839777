//! Which of the service domain's virtual CPUs hears what, and which worker has which interface. With little to do, one
//! virtual CPU hears all events and has its cache warm; with much, every one has its share. Left out: measuring what
//! there is to do, and moving ([`crate::back::Backend::move_to`]).

use alloc::vec;
use alloc::vec::Vec;

/// Frames of a sample that mean much, and that mean little. What lies between changes nothing, so that a load near one
/// of them does not move everything to and fro.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    low: u64,
    high: u64,
}

impl Thresholds {
    /// `None` if less than `low` would be more than `high`.
    #[must_use]
    pub fn new(low: u64, high: u64) -> Option<Self> {
        (low <= high).then_some(Self { low, high })
    }
}

/// Who hears events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The first virtual CPU all of them.
    First,
    /// Each its share.
    Spread,
    /// The first while there is little to do, each its share while there is much.
    Balanced(Thresholds),
}

/// Who hears events now.
#[derive(Debug, Clone)]
pub struct Dispatcher {
    policy: Policy,
    is_spread: bool,
}

impl Dispatcher {
    /// A dispatcher that has not seen a load.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self { policy, is_spread: policy == Policy::Spread }
    }

    /// So many frames went through since the last sample: whether that changes who hears events.
    pub fn sample(&mut self, frames: u64) -> bool {
        let Policy::Balanced(Thresholds { low, high }) = self.policy else { return false };
        let was = self.is_spread;
        self.is_spread = if was { frames >= low } else { frames > high };
        was != self.is_spread
    }

    /// The virtual CPU for worker or card `n`.
    #[must_use]
    pub fn cpu(&self, n: usize, cpus: usize) -> usize {
        if self.is_spread { n % cpus.max(1) } else { 0 }
    }

    /// The worker for each interface, by what each had to do. Where the policy does not look at loads they go to the
    /// workers in turn; where it does, to the first while there is little to do, and else to who has the least.
    #[must_use]
    pub fn workers(&self, loads: &[u64], workers: usize) -> Vec<usize> {
        match self.policy {
            Policy::First | Policy::Spread => (0..loads.len()).map(|n| n % workers.max(1)).collect(),
            Policy::Balanced(_) if self.is_spread => least_loaded(loads, workers),
            Policy::Balanced(_) => vec![0; loads.len()],
        }
    }
}

/// The worker for each of these loads: the greatest first, each to the worker that has the least.
fn least_loaded(loads: &[u64], workers: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..loads.len()).collect();
    order.sort_by_key(|at| core::cmp::Reverse(loads[*at]));
    let mut sums = vec![0u64; workers.max(1)];
    let mut found = vec![0; loads.len()];
    for at in order {
        let least = (0..sums.len()).min_by_key(|worker| sums[*worker]).unwrap_or_default();
        // One that had nothing to do takes a place all the same.
        sums[least] = sums[least].saturating_add(loads[at].max(1));
        found[at] = least;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Dispatcher, Policy, Thresholds, least_loaded};
    use alloc::vec::Vec;

    fn balanced(low: u64, high: u64) -> Dispatcher {
        Dispatcher::new(Policy::Balanced(Thresholds::new(low, high).unwrap()))
    }

    #[test]
    fn a_load_between_the_thresholds_changes_nothing() {
        let mut dispatcher = balanced(100, 200);
        let changes: Vec<bool> = [150, 200, 201, 150, 100, 99, 150, 0, 300]
            .into_iter()
            .map(|load| dispatcher.sample(load))
            .collect();
        assert_eq!(changes, [false, false, true, false, false, true, false, false, true]);
    }

    #[test]
    fn one_threshold_for_both_ways_is_allowed_and_thresholds_that_cross_are_not() {
        let mut dispatcher = balanced(100, 100);
        assert!(!dispatcher.sample(100) && dispatcher.sample(101) && dispatcher.sample(99));
        assert_eq!(Thresholds::new(101, 100), None);
    }

    #[test]
    fn only_the_balanced_one_looks_at_the_load() {
        for policy in [Policy::First, Policy::Spread] {
            let mut dispatcher = Dispatcher::new(policy);
            assert!(!dispatcher.sample(0) && !dispatcher.sample(u64::MAX));
            assert_eq!(dispatcher.workers(&[9, 0, 0, 9], 2), [0, 1, 0, 1]);
            assert_eq!(dispatcher.cpu(3, 4), if policy == Policy::Spread { 3 } else { 0 });
        }
    }

    #[test]
    fn little_to_do_is_the_first_workers_and_much_is_shared() {
        let mut dispatcher = balanced(10, 20);
        assert_eq!(dispatcher.workers(&[5, 1, 1, 5], 2), [0, 0, 0, 0]);
        assert!(dispatcher.sample(21));
        assert_eq!(dispatcher.workers(&[5, 1, 1, 5], 2), [0, 0, 1, 1]);
    }

    #[test]
    fn the_greatest_loads_go_to_workers_of_their_own() {
        assert_eq!(least_loaded(&[10, 10, 10, 10], 4), [0, 1, 2, 3]);
        assert_eq!(least_loaded(&[1, 9, 1, 9], 2), [0, 0, 1, 1]);
        assert_eq!(least_loaded(&[0, 0, 0], 2), [0, 1, 0]);
        assert_eq!(least_loaded(&[u64::MAX, u64::MAX, 1], 1), [0, 0, 0]);
        assert_eq!(least_loaded(&[], 3), []);
    }
}
