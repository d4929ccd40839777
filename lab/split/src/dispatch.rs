//! Decides which virtual CPU of the service domain receives which events, and which worker serves which interface. At
//! low load one virtual CPU receives all events and keeps its cache warm; at high load all receive events. The caller
//! measures load and moves interfaces ([`crate::back::NetworkBackend::start_move`]).

use alloc::vec;
use alloc::vec::Vec;

/// Load thresholds in frames per sample. A load between both thresholds changes nothing, so a load near one of them
/// does not move interfaces back and forth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadThresholds {
    low: u64,
    high: u64,
}

impl LoadThresholds {
    /// Creates load thresholds in frames per sample. Returns `None` if `low` exceeds `high`.
    #[must_use]
    pub fn new(low: u64, high: u64) -> Option<Self> {
        (low <= high).then_some(Self { low, high })
    }
}

/// Distribution of events over the service domain's virtual CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DispatchPolicy {
    /// Policy: all events go to the first virtual CPU.
    First,
    /// Policy: events are distributed over all virtual CPUs of the service domain.
    Spread,
    /// Policy: all events go to the first virtual CPU at low load, and are distributed over all virtual CPUs at high
    /// load.
    Balanced(LoadThresholds),
}

/// Chooses the virtual CPU that receives the events of each worker and card, and the worker thread of each interface.
#[derive(Debug, Clone)]
pub struct EventDispatcher {
    policy: DispatchPolicy,
    is_spread: bool,
}

impl EventDispatcher {
    /// Creates a dispatcher with a policy for distributing events, in its state for low load.
    #[must_use]
    pub fn new(policy: DispatchPolicy) -> Self {
        Self { policy, is_spread: policy == DispatchPolicy::Spread }
    }

    /// Evaluates the number of frames since the last load sample. Returns `true` if the distribution of events changed.
    pub fn sample(&mut self, frames: u64) -> bool {
        let DispatchPolicy::Balanced(LoadThresholds { low, high }) = self.policy else { return false };
        let was = self.is_spread;
        self.is_spread = if was { frames >= low } else { frames > high };
        was != self.is_spread
    }

    /// Returns the index of the virtual CPU that receives the events of back-end worker thread or card `n`.
    #[must_use]
    pub fn cpu(&self, n: usize, cpus: usize) -> usize {
        if self.is_spread { n % cpus.max(1) } else { 0 }
    }

    /// Returns the worker thread of each interface, given the load of each. `First` and `Spread` assign workers in
    /// turn. `Balanced` assigns the first worker at low load, and the least loaded one at high load.
    #[must_use]
    pub fn workers(&self, loads: &[u64], workers: usize) -> Vec<usize> {
        match self.policy {
            DispatchPolicy::First | DispatchPolicy::Spread => {
                (0..loads.len()).map(|n| n % workers.max(1)).collect()
            }
            DispatchPolicy::Balanced(_) if self.is_spread => least_loaded(loads, workers),
            DispatchPolicy::Balanced(_) => vec![0; loads.len()],
        }
    }
}

/// Assigns interfaces to workers: the interface of largest load first, each to the worker thread with the smallest sum
/// of loads.
fn least_loaded(loads: &[u64], workers: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..loads.len()).collect();
    order.sort_by_key(|at| core::cmp::Reverse(loads[*at]));
    let mut sums = vec![0u64; workers.max(1)];
    let mut found = vec![0; loads.len()];
    for at in order {
        let least = (0..sums.len()).min_by_key(|worker| sums[*worker]).unwrap_or_default();
        // An idle interface counts as a load of 1, so that idle ones are spread too.
        sums[least] = sums[least].saturating_add(loads[at].max(1));
        found[at] = least;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{DispatchPolicy, EventDispatcher, LoadThresholds, least_loaded};
    use alloc::vec::Vec;

    fn balanced(low: u64, high: u64) -> EventDispatcher {
        EventDispatcher::new(DispatchPolicy::Balanced(LoadThresholds::new(low, high).unwrap()))
    }

    #[test]
    fn load_between_thresholds_keeps_the_event_distribution() {
        let mut dispatcher = balanced(100, 200);
        let changes: Vec<bool> = [150, 200, 201, 150, 100, 99, 150, 0, 300]
            .into_iter()
            .map(|load| dispatcher.sample(load))
            .collect();
        assert_eq!(changes, [false, false, true, false, false, true, false, false, true]);
    }

    #[test]
    fn load_thresholds_may_be_equal_but_low_above_high_is_refused() {
        let mut dispatcher = balanced(100, 100);
        assert!(!dispatcher.sample(100) && dispatcher.sample(101) && dispatcher.sample(99));
        assert_eq!(LoadThresholds::new(101, 100), None);
    }

    #[test]
    fn only_the_balanced_dispatch_policy_depends_on_load() {
        for policy in [DispatchPolicy::First, DispatchPolicy::Spread] {
            let mut dispatcher = EventDispatcher::new(policy);
            assert!(!dispatcher.sample(0) && !dispatcher.sample(u64::MAX));
            assert_eq!(dispatcher.workers(&[9, 0, 0, 9], 2), [0, 1, 0, 1]);
            assert_eq!(dispatcher.cpu(3, 4), if policy == DispatchPolicy::Spread { 3 } else { 0 });
        }
    }

    #[test]
    fn back_end_uses_one_worker_at_low_load_and_all_at_high_load() {
        let mut dispatcher = balanced(10, 20);
        assert_eq!(dispatcher.workers(&[5, 1, 1, 5], 2), [0, 0, 0, 0]);
        assert!(dispatcher.sample(21));
        assert_eq!(dispatcher.workers(&[5, 1, 1, 5], 2), [0, 0, 1, 1]);
    }

    #[test]
    fn busiest_interfaces_get_separate_back_end_workers() {
        assert_eq!(least_loaded(&[10, 10, 10, 10], 4), [0, 1, 2, 3]);
        assert_eq!(least_loaded(&[1, 9, 1, 9], 2), [0, 0, 1, 1]);
        assert_eq!(least_loaded(&[0, 0, 0], 2), [0, 1, 0]);
        assert_eq!(least_loaded(&[u64::MAX, u64::MAX, 1], 1), [0, 0, 0]);
        assert_eq!(least_loaded(&[], 3), []);
    }
}
