//! Claims to names of the store. Several holders may keep their file descriptors under one name, one after the other: only the
//! holder with the highest claim changes the descriptor.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Source of ranks and of numbers of holders.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Rank of a claim: a later one takes the name from an earlier one, in whatever order their threads carry them out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClaimRank(u64);

impl ClaimRank {
    /// Rank of a holder that is not in use yet.
    pub(crate) const PREPARED: Self = Self(0);

    /// Returns a rank above all earlier ones. Never blocks.
    pub(crate) fn next() -> Self {
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Number that identifies a holder of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NameHolder(u64);

impl NameHolder {
    /// Returns a number that no other holder has.
    pub(crate) fn new() -> Self {
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Highest claims to names of the store, with their holders.
#[derive(Debug, Default)]
pub(super) struct NameClaims(BTreeMap<String, (NameHolder, ClaimRank)>);

impl NameClaims {
    /// Claims a name for a holder, unless the name has a claim of a higher rank.
    pub(super) fn claim(&mut self, name: &str, holder: NameHolder, rank: ClaimRank) {
        if self.0.get(name).is_none_or(|(_, highest)| *highest < rank) {
            self.0.insert(name.to_owned(), (holder, rank));
        }
    }

    /// Returns true if the holder has the highest claim to a name.
    pub(super) fn is_of(&self, name: &str, holder: NameHolder) -> bool {
        self.0.get(name).is_some_and(|(highest, _)| *highest == holder)
    }

    /// Removes the claim to a name.
    pub(super) fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }
}
