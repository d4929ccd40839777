//! Records which constants of a cost table were read. A constant that an experiment does not read cannot
//! change the experiment's results.

use super::CostConstant;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

const WORDS: usize = CostConstant::COUNT.div_ceil(64);

/// Set of the constants that were read, shared by a cost table and its copies. Comparisons of cost tables
/// ignore the set.
#[derive(Clone, Debug, Default)]
pub(super) struct UsedCostConstants(Arc<[AtomicU64; WORDS]>);

impl UsedCostConstants {
    #[inline]
    pub(super) fn insert(&self, cost: CostConstant) {
        let (word, bit) = word_and_bit(cost);
        if self.0[word].load(Ordering::Relaxed) & bit == 0 {
            self.0[word].fetch_or(bit, Ordering::Relaxed);
        }
    }

    pub(super) fn contains(&self, cost: CostConstant) -> bool {
        let (word, bit) = word_and_bit(cost);
        self.0[word].load(Ordering::Relaxed) & bit != 0
    }
}

fn word_and_bit(cost: CostConstant) -> (usize, u64) {
    (cost as usize / 64, 1 << (cost as usize % 64))
}

impl PartialEq for UsedCostConstants {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for UsedCostConstants {}
