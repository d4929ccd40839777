//! Records which constants and features of a cost table were read. A constant that an experiment does not read cannot
//! change the experiment's results.

use super::CostConstant;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

/// Most features of a processor.
const FEATURES: usize = 8;
/// Number of constants and features.
const COUNT: usize = CostConstant::COUNT + FEATURES;
const WORDS: usize = COUNT.div_ceil(64);

/// Set of the constants and features that were read, shared by a cost table and its copies. Comparisons of cost tables
/// ignore the set.
#[derive(Clone, Debug, Default)]
pub(super) struct UsedCostConstants(Arc<[AtomicU64; WORDS]>);

impl UsedCostConstants {
    #[inline]
    pub(super) fn insert(&self, cost: CostConstant) {
        self.insert_at(cost as usize);
    }

    #[inline]
    pub(super) fn insert_feature(&self, feature: usize) {
        self.insert_at(CostConstant::COUNT + feature);
    }

    pub(super) fn contains(&self, cost: CostConstant) -> bool {
        self.contains_at(cost as usize)
    }

    pub(super) fn contains_feature(&self, feature: usize) -> bool {
        self.contains_at(CostConstant::COUNT + feature)
    }

    #[inline]
    fn insert_at(&self, index: usize) {
        let (word, bit) = word_and_bit(index);
        if self.0[word].load(Ordering::Relaxed) & bit == 0 {
            self.0[word].fetch_or(bit, Ordering::Relaxed);
        }
    }

    fn contains_at(&self, index: usize) -> bool {
        let (word, bit) = word_and_bit(index);
        self.0[word].load(Ordering::Relaxed) & bit != 0
    }
}

fn word_and_bit(index: usize) -> (usize, u64) {
    (index / 64, 1 << (index % 64))
}

impl PartialEq for UsedCostConstants {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for UsedCostConstants {}
