//! Filters that are guaranteed to VFs of a port, and the check that a card has enough for all of them.

use crate::error::{PolicyError, RefusedVf};
use crate::filters::FilterKind;
use crate::limits::CardFamilyLimits;
use crate::vf::VfPolicy;
use core::cmp::Reverse;
use pcie::VfIndex;

impl VfPolicy {
    /// Returns the number of filters that are guaranteed to the VF: not more than its policy lets it request. The filter
    /// of a port VLAN, which the VF has anyway, is not among them. A VF that is not offered has none.
    #[must_use]
    pub fn guaranteed(&self, kind: FilterKind) -> u16 {
        let min = self.quotas.of(kind).min;
        match kind {
            _ if !self.enabled => 0,
            FilterKind::Mac if self.has_fixed_mac() => 0,
            FilterKind::Vlan if self.vlan.is_some() => 0,
            FilterKind::Vlan => match &self.vlans {
                Some(allowed) => {
                    allowed.iter().filter(|vlan| *vlan != 0).take(min.into()).fold(0, |count, _| count + 1)
                }
                None => min,
            },
            FilterKind::Mac => min,
        }
    }

    /// Returns the greatest number of filters of a kind that the VF may have in a table of `table` entries. A VF with a fixed
    /// address may add none, and one with a port VLAN has only that.
    #[must_use]
    pub fn most_filters(&self, kind: FilterKind, table: u16) -> u16 {
        let most = self.quotas.of(kind).most(table);
        match (kind, &self.vlan, &self.vlans) {
            (FilterKind::Mac, ..) if self.has_fixed_mac() => 0,
            (FilterKind::Vlan, Some(vlan), _) => u16::from(vlan.id != 0),
            (FilterKind::Vlan, None, Some(allowed)) => {
                most.min(allowed.iter().filter(|vlan| *vlan != 0).fold(0, |count, _| count + 1))
            }
            _ => most,
        }
    }
}

/// Checks that the filters that are guaranteed to VFs, by index, and those of their port VLANs fit the card's tables.
///
/// # Errors
/// The first VF with the largest guarantee, which need not be the one that a change is about, with the sum of all
/// guarantees and the size of the table.
pub fn check_guarantees(vfs: &[VfPolicy], limits: &CardFamilyLimits) -> Result<(), RefusedVf> {
    let Some(tables) = limits.filters.as_ref().ok().filter(|tables| tables.is_shared) else { return Ok(()) };
    for kind in FilterKind::ALL {
        let offered = vfs.iter().filter(|policy| policy.enabled).count();
        let (table, total) = (tables.entries(kind, offered), sum(kind, vfs));
        if total > table {
            // The first one of several.
            let share = |(vf, policy): &(VfIndex, &VfPolicy)| (policy.guaranteed(kind), Reverse(vf.get()));
            let largest = VfIndex::first(vfs.len()).zip(vfs).max_by_key(share);
            return largest
                .map_or(Ok(()), |(vf, _)| Err((vf, PolicyError::Guarantees(kind, total, table, vf))));
        }
    }
    Ok(())
}

/// Returns the number of filters of a kind that VFs are guaranteed or have by a port VLAN.
fn sum(kind: FilterKind, vfs: &[VfPolicy]) -> usize {
    let guaranteed: usize = vfs.iter().map(|policy| usize::from(policy.guaranteed(kind))).sum();
    let port_vlan = |policy: &VfPolicy| policy.vlan.map(|vlan| vlan.id).filter(|id| *id != 0);
    let is_first = |(at, id): &(usize, u16)| !vfs.iter().take(*at).any(|vf| port_vlan(vf) == Some(*id));
    let vlans =
        vfs.iter().enumerate().filter_map(|(at, vf)| Some((at, port_vlan(vf)?))).filter(is_first).count();
    guaranteed + if kind == FilterKind::Vlan { vlans } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::check_guarantees;
    use crate::filters::{FilterKind, FilterQuota, FilterQuotas, FilterTables};
    use crate::limits::{CardFamilyLimits, TOY};
    use crate::{PolicyError, PortVlan, VfPolicy};
    use pcie::VfIndex;

    fn quotas(mac: (u16, u16), vlan: (u16, u16)) -> VfPolicy {
        let quota = |(min, max)| FilterQuota { min, max };
        VfPolicy { quotas: FilterQuotas { mac: quota(mac), vlan: quota(vlan) }, ..VfPolicy::default() }
    }

    #[test]
    fn quota_beyond_the_table_or_above_its_limit_is_refused() {
        let check = |mac, vlan| quotas(mac, vlan).check(&TOY).map_err(|error| (error.setting(), error));
        assert_eq!(check((19, 0), (31, 31)), Ok(()));
        let beyond = |setting, value, most| Err((setting, PolicyError::FilterQuota(setting, value, most)));
        assert_eq!(check((20, 0), (0, 0)), beyond("min_mac_filters", 20, 19));
        assert_eq!(check((0, 0), (0, 32)), beyond("max_vlan_filters", 32, 31));
        let crossed = PolicyError::FilterQuotas(FilterKind::Vlan, 3, 2);
        assert_eq!(check((0, 0), (3, 2)), Err(("min_vlan_filters", crossed)));
    }

    #[test]
    fn family_without_filters_refuses_a_quota_by_name() {
        const NONE: CardFamilyLimits = CardFamilyLimits { filters: Err("no filters"), ..TOY };
        for (policy, setting) in [
            (quotas((0, 0), (2, 0)), "min_mac_filters"),
            (quotas((1, 4), (2, 0)), "max_mac_filters"),
            (quotas((1, 0), (1, 0)), "min_vlan_filters"),
            (quotas((1, 0), (2, 9)), "max_vlan_filters"),
        ] {
            assert_eq!(policy.check(&NONE), Err(PolicyError::Unsupported(setting, "no filters")));
        }
        assert_eq!(VfPolicy::default().check(&NONE), Ok(()));
    }

    #[test]
    fn vf_that_can_request_no_filter_has_a_limit_of_none() {
        let default = VfPolicy::default();
        let most = |policy: &VfPolicy| FilterKind::ALL.map(|kind| (kind, policy.most_filters(kind, 31)));
        let fixed = VfPolicy { admin_mac: true, ..default };
        let rows = [
            (default, [31, 31]),
            (fixed, [0, 31]),
            (VfPolicy { trust: true, ..fixed }, [31, 31]),
            (VfPolicy { vlan: Some(PortVlan { id: 5, qos: 0 }), ..default }, [31, 1]),
            (VfPolicy { vlan: Some(PortVlan { id: 0, qos: 1 }), ..default }, [31, 0]),
            (VfPolicy { vlans: Some([0, 7, 9].into_iter().collect()), ..default }, [31, 2]),
        ];
        for (policy, [macs, vlans]) in rows {
            assert_eq!(most(&policy), [(FilterKind::Mac, macs), (FilterKind::Vlan, vlans)], "{policy:?}");
        }
    }

    #[test]
    fn guarantees_beyond_the_table_are_refused_with_both_numbers() {
        let vlans = |min| quotas((0, 0), (min, 0));
        let of = VfIndex::of_field;
        let refused =
            |vf: u8, total| Err((vf, PolicyError::Guarantees(FilterKind::Vlan, total, 31, of(vf.into()))));
        let check = |vfs: &[VfPolicy]| check_guarantees(vfs, &TOY).map_err(|(vf, error)| (vf.get(), error));
        assert_eq!(check(&[vlans(15), vlans(16)]), Ok(()));
        assert_eq!(check(&[vlans(16), vlans(16)]), refused(0, 32), "the first one of several");
        assert_eq!(check(&[vlans(15), vlans(17), vlans(1)]), refused(1, 33));
        let on = |id| VfPolicy { vlan: Some(PortVlan { id, qos: 1 }), ..vlans(9) };
        assert_eq!(
            check(&[on(5), on(5), on(0), vlans(30)]),
            Ok(()),
            "a port VLAN has one filter for all its VFs"
        );
        assert_eq!(check(&[on(5), on(6), vlans(30)]), refused(2, 32));
        let macs = PolicyError::Guarantees(FilterKind::Mac, 19, 18, of(0));
        assert_eq!(
            check(&[quotas((19, 0), (0, 0)), quotas((0, 0), (0, 0))]),
            Err((0, macs)),
            "a VF's own address"
        );
        let own = FilterTables { is_shared: false, mac: 19, vlan: 31 };
        let apart = CardFamilyLimits { filters: Ok(own), ..TOY };
        assert_eq!(check_guarantees(&[vlans(31), vlans(31)], &apart), Ok(()));
    }

    #[test]
    fn removed_vf_leaves_its_filters_to_the_others() {
        let not_offered = VfPolicy { enabled: false, ..VfPolicy::default() };
        assert_eq!(
            check_guarantees(&[quotas((0, 0), (29, 0)), quotas((0, 0), (2, 0)), not_offered], &TOY),
            Ok(())
        );
        let most = quotas((18, 0), (0, 0));
        assert_eq!(check_guarantees(&[most, not_offered, not_offered], &TOY), Ok(()), "one own address");
    }

    #[test]
    fn default_guarantees_of_all_vfs_fit() {
        assert_eq!(check_guarantees(&[VfPolicy::default(); 8], &TOY), Ok(()));
    }

    #[test]
    fn guarantee_is_not_more_than_a_vf_may_request() {
        let default = VfPolicy::default();
        let of = |policy: VfPolicy| FilterKind::ALL.map(|kind| policy.guaranteed(kind));
        assert_eq!(of(default), [1, 2]);
        assert_eq!(of(VfPolicy { admin_mac: true, ..default }), [0, 2]);
        assert_eq!(of(VfPolicy { admin_mac: true, trust: true, ..default }), [1, 2]);
        assert_eq!(of(VfPolicy { vlans: Some([7].into_iter().collect()), ..default }), [1, 1]);
        assert_eq!(of(VfPolicy { vlan: Some(PortVlan { id: 7, qos: 0 }), ..default }), [1, 0]);
    }
}
