//! Shares of VFs in a filter table: each VF is guaranteed some entries, and the rest is first come, first served.
//!
//! An entry of the VLAN filter has several members, and is free only when all of them have left it. So the guarantees are
//! kept for sets of VFs: each set finds its guaranteed number of entries among the free ones and those that only VFs of the
//! set are members of. A request that would break a guarantee is refused. A VF that leaves an entry breaks none, and neither
//! does a VF with fewer filters than are guaranteed to it, as the test checks for random sequences of requests.

use super::limits::{LIMITS, SHARED_ADDRESSES};
use super::{Pf, VfState};
use i82576::VfIndex;
use i82576::ids::{MAX_VFS, VLAN_FILTERS};
use pcie::VfSet;
use policy::{FilterKind, FilterQuota, FilterUse, RefusedVf, VfPolicy};

/// Number of different sets of VFs.
const SETS: usize = 1 << MAX_VFS;

/// Entries of a filter table that VFs may still take.
#[derive(Debug, Clone)]
pub(super) struct FilterShares {
    /// Number of each VF's filters.
    used: [u16; MAX_VFS],
    guaranteed: [u16; MAX_VFS],
    /// Number of free entries.
    free: i16,
    /// Entries beyond the guaranteed ones for each set of VFs, a bit each: free ones, and those of the set alone.
    spare: [i16; SETS],
}

impl FilterShares {
    /// Returns the shares in a table of `size` entries, from the VFs that use each entry, and the number of entries that
    /// each VF is guaranteed.
    pub(super) fn new(size: usize, entries: impl Iterator<Item = VfSet>, guaranteed: [u16; MAX_VFS]) -> Self {
        let mut shares = Self { used: [0; MAX_VFS], guaranteed, free: size as i16, spare: [0; SETS] };
        for members in entries.filter(|members| !members.is_empty()) {
            shares.free -= 1;
            shares.spare[members.bits() as usize % SETS] += 1;
            for (vf, used) in VfIndex::all().zip(&mut shares.used) {
                *used += u16::from(members.has(vf.into()));
            }
        }
        shares.spare[0] = shares.free;
        for (vf, guaranteed) in VfIndex::all().zip(guaranteed) {
            shares.spare[vf.bit() as usize] -= guaranteed as i16;
        }
        // Adds to each set the numbers of all its subsets.
        for bit in VfIndex::all().map(|vf| vf.bit() as usize) {
            for set in (0..SETS).filter(|set| set & bit != 0) {
                shares.spare[set] += shares.spare[set ^ bit];
            }
        }
        shares
    }

    /// Returns the number of a VF's filters.
    pub(super) fn used(&self, vf: VfIndex) -> u16 {
        self.used[vf.index()]
    }

    /// Returns true if a VF may use one more entry: a free one, or the entry of `others`.
    pub(super) fn admits(&self, vf: VfIndex, quota: FilterQuota, others: VfSet) -> bool {
        let used = self.used(vf);
        if others.is_empty() && self.free <= 0 || !quota.permits_more(used.into()) {
            return false;
        }
        let others = others.bits() as usize;
        let loses = |set: usize| set & others == others && set & vf.bit() as usize == 0;
        used < self.guaranteed[vf.index()]
            || (0..SETS).filter(|set| loses(*set)).all(|set| self.spare[set] > 0)
    }
}

impl Pf {
    /// Returns the use of a VF's quota of a kind of filters.
    #[must_use]
    pub fn filter_use(&self, vf: VfIndex, kind: FilterKind) -> FilterUse {
        let policy = &self.state(vf).policy;
        FilterUse {
            used: self.shares(kind).used(vf),
            guaranteed: policy.guaranteed(kind),
            most: policy.most_filters(kind, self.table_size(kind) as u16),
        }
    }

    /// Returns the shares of the VFs in the table of a kind of filters.
    pub(super) fn shares(&self, kind: FilterKind) -> FilterShares {
        let guaranteed = |vf: &VfState| vf.policy.guaranteed(kind);
        let mut shares = [0; MAX_VFS];
        shares.iter_mut().zip(&self.vfs).take(self.enabled.into()).for_each(|(n, vf)| *n = guaranteed(vf));
        match kind {
            FilterKind::Mac => {
                FilterShares::new(self.table_size(kind), self.filters.owners_of_added(), shares)
            }
            FilterKind::Vlan => FilterShares::new(self.table_size(kind), self.vlans.members(), shares),
        }
    }

    fn table_size(&self, kind: FilterKind) -> usize {
        match kind {
            FilterKind::Mac => SHARED_ADDRESSES - usize::from(self.enabled),
            FilterKind::Vlan => VLAN_FILTERS - 1,
        }
    }

    /// Checks that the filters that are guaranteed to the VFs fit the card, once VFs have these new policies.
    ///
    /// # Errors
    /// The VF with the largest guarantee, with the reason.
    pub(super) fn check_guarantees(
        &self,
        changed: impl Iterator<Item = (VfIndex, VfPolicy)>,
    ) -> Result<(), RefusedVf> {
        let mut policies: [VfPolicy; MAX_VFS] = core::array::from_fn(|vf| self.vfs[vf].policy);
        changed.for_each(|(vf, policy)| policies[vf.index()] = policy);
        policy::check_guarantees(&policies[..usize::from(self.enabled)], &LIMITS)
    }
}

#[cfg(test)]
mod tests {
    use super::FilterShares;
    use i82576::VfIndex;
    use i82576::ids::MAX_VFS;
    use pcie::VfSet;
    use policy::FilterQuota;
    use proptest::prelude::*;
    use std::vec::Vec;

    const FREE: FilterQuota = FilterQuota { min: 0, max: 0 };

    fn vf(n: u8) -> VfIndex {
        VfIndex::new(n).unwrap()
    }

    fn set(vfs: &[u8]) -> VfSet {
        VfSet::new(vfs.iter().fold(0, |all, vf| all | 1 << vf))
    }

    fn shares(size: usize, entries: &[VfSet], guaranteed: &[u16]) -> FilterShares {
        let mut all = [0; MAX_VFS];
        all[..guaranteed.len()].copy_from_slice(guaranteed);
        FilterShares::new(size, entries.iter().copied(), all)
    }

    #[test]
    fn first_come_entries_are_those_that_no_other_vf_is_guaranteed() {
        let of_vf_0 = |count: usize| std::vec![set(&[0]); count];
        let admits = |count, who| shares(10, &of_vf_0(count), &[2, 2, 3]).admits(vf(who), FREE, VfSet::NONE);
        assert!(admits(4, 0));
        assert!(!admits(5, 0), "5 of 10 are left, and all are guaranteed to VFs 1 and 2");
        assert!(admits(5, 1) && admits(5, 2));
        assert!(!admits(5, 7), "a VF without a guarantee");
    }

    #[test]
    fn vf_may_join_an_entry_of_others_without_a_free_one() {
        let full = [set(&[0]), set(&[0]), set(&[1])];
        let shares = shares(3, &full, &[1, 1]);
        assert!(!shares.admits(vf(1), FREE, VfSet::NONE));
        assert!(shares.admits(vf(1), FREE, set(&[0])));
        assert!(!shares.admits(vf(2), FREE, set(&[1])), "VF 1 would find no entry after it leaves its own");
    }

    #[test]
    fn limit_holds_below_the_guarantee_of_others() {
        let quota = FilterQuota { min: 0, max: 2 };
        let shares = |count| shares(10, &std::vec![set(&[0]); count], &[]);
        assert!(shares(1).admits(vf(0), quota, VfSet::NONE));
        assert!(!shares(2).admits(vf(0), quota, VfSet::NONE));
        assert!(!shares(2).admits(vf(0), quota, set(&[3])));
    }

    /// Request of a VF for a name, such as a VLAN id: to join it, or to leave it.
    type Request = (u8, u8, bool);

    proptest! {
        #[test]
        fn vf_below_its_guarantee_is_never_refused(
            guaranteed in prop::array::uniform4(0_u16..4),
            first_come in 0_usize..3,
            requests in prop::collection::vec((0_u8..4, 0_u8..12, prop::bool::weighted(0.7)), 0..200),
        ) {
            let size = guaranteed.iter().map(|n| usize::from(*n)).sum::<usize>() + first_come;
            let mut entries = [VfSet::NONE; 12];
            for (who, name, joins) in requests as Vec<Request> {
                let (before, own) = (shares(size, &entries, &guaranteed), set(&[who]));
                let entry = &mut entries[usize::from(name)];
                if !joins {
                    *entry = VfSet::new(entry.bits() & !own.bits());
                    continue;
                }
                if entry.bits() & own.bits() != 0 {
                    continue;
                }
                let admitted = before.admits(vf(who), FREE, *entry);
                prop_assert!(admitted || before.used(vf(who)) >= guaranteed[usize::from(who)]);
                if admitted {
                    *entry = VfSet::new(entry.bits() | own.bits());
                }
                let used = entries.iter().filter(|members| !members.is_empty()).count();
                prop_assert!(used <= size, "{} entries of {}", used, size);
            }
        }
    }
}
