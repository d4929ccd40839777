//! Records which constants and features of a cost table were read. A constant that an experiment does not read cannot
//! change the experiment's results.

use super::CostConstant;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

/// Most features of a processor.
const FEATURES: usize = 8;
/// Number of constants and features.
const COUNT: usize = CostConstant::COUNT + FEATURES;

/// Set of the constants and features that were read, shared by a cost table and its copies. Comparisons of cost tables
/// ignore the set. Each member has a byte of its own: a read constant costs one comparison.
#[derive(Clone, Debug)]
pub(super) struct UsedCostConstants(Arc<[AtomicBool; COUNT]>);

impl Default for UsedCostConstants {
    fn default() -> Self {
        Self(Arc::new([const { AtomicBool::new(false) }; COUNT]))
    }
}

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
        // Copies of a table in other threads read the set too, so it is written once.
        if !self.0[index].load(Ordering::Relaxed) {
            self.0[index].store(true, Ordering::Relaxed);
        }
    }

    fn contains_at(&self, index: usize) -> bool {
        self.0[index].load(Ordering::Relaxed)
    }
}

impl PartialEq for UsedCostConstants {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for UsedCostConstants {}
