//! Which constants of a table were looked up: what no run looks up moves none of its numbers. Left out: how often.

use super::Cost;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

const WORDS: usize = Cost::COUNT.div_ceil(64);

/// A set of constants that a table and its copies share. It is no part of what two tables are compared by.
#[derive(Clone, Debug, Default)]
pub(super) struct LookedUp(Arc<[AtomicU64; WORDS]>);

impl LookedUp {
    #[inline]
    pub(super) fn insert(&self, cost: Cost) {
        let (word, bit) = place(cost);
        if self.0[word].load(Ordering::Relaxed) & bit == 0 {
            self.0[word].fetch_or(bit, Ordering::Relaxed);
        }
    }

    pub(super) fn contains(&self, cost: Cost) -> bool {
        let (word, bit) = place(cost);
        self.0[word].load(Ordering::Relaxed) & bit != 0
    }
}

fn place(cost: Cost) -> (usize, u64) {
    (cost as usize / 64, 1 << (cost as usize % 64))
}

impl PartialEq for LookedUp {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for LookedUp {}
