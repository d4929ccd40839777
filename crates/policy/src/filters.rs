//! Receive filters that guests request: their kinds, quotas of a VF, and tables of a family.

use core::fmt;

/// Kind of a receive filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterKind {
    /// MAC address that a VF receives by, besides its own.
    Mac,
    /// VLAN that a VF is a member of.
    Vlan,
}

impl FilterKind {
    /// All kinds of filters.
    pub const ALL: [Self; 2] = [Self::Mac, Self::Vlan];

    /// Returns the name of the kind in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mac => "mac",
            Self::Vlan => "vlan",
        }
    }

    /// Returns the name of the setting that guarantees filters of this kind.
    #[must_use]
    pub const fn min_setting(self) -> &'static str {
        match self {
            Self::Mac => "min_mac_filters",
            Self::Vlan => "min_vlan_filters",
        }
    }

    /// Returns the name of the setting that limits filters of this kind.
    #[must_use]
    pub const fn max_setting(self) -> &'static str {
        match self {
            Self::Mac => "max_mac_filters",
            Self::Vlan => "max_vlan_filters",
        }
    }
}

impl fmt::Display for FilterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mac => "MAC address",
            Self::Vlan => "VLAN",
        })
    }
}

/// Quota of one kind of a VF's filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterQuota {
    /// Number of filters that other VFs cannot take from the VF.
    pub min: u16,
    /// Greatest number of filters that the VF may have; 0 is the family's limit.
    pub max: u16,
}

impl FilterQuota {
    /// Returns true if the quota permits one filter more than `used`.
    #[must_use]
    pub fn permits_more(self, used: usize) -> bool {
        self.max == 0 || used < self.max.into()
    }

    /// Returns the greatest number of filters that the VF may have, for a family's limit.
    #[must_use]
    pub const fn most(self, limit: u16) -> u16 {
        if self.max == 0 || self.max > limit { limit } else { self.max }
    }
}

/// Use of a VF's quota of a kind of filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterUse {
    /// Number of filters that the VF's guest has requested and received.
    pub used: u16,
    /// Number of filters that are guaranteed to the VF.
    pub guaranteed: u16,
    /// Greatest number of filters that the VF may have.
    pub most: u16,
}

/// Quotas of a VF's filters. Saved states do not have them: the configuration sets them in each process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterQuotas {
    /// Quota of MAC addresses.
    pub mac: FilterQuota,
    /// Quota of VLANs.
    pub vlan: FilterQuota,
}

impl Default for FilterQuotas {
    fn default() -> Self {
        Self { mac: FilterQuota { min: 1, max: 0 }, vlan: FilterQuota { min: 2, max: 0 } }
    }
}

impl FilterQuotas {
    /// Returns the quota of a kind of filters.
    #[must_use]
    pub const fn of(&self, kind: FilterKind) -> FilterQuota {
        match kind {
            FilterKind::Mac => self.mac,
            FilterKind::Vlan => self.vlan,
        }
    }
}

/// Tables of receive filters that VFs of a family request.
#[derive(Debug, Clone, Copy)]
pub struct FilterTables {
    /// Most MAC addresses that a VF may have besides its own.
    pub mac: u16,
    /// Most VLANs that a VF may join.
    pub vlan: u16,
    /// True if the VFs of a port share the tables, also for their own addresses.
    pub is_shared: bool,
}

impl FilterTables {
    /// Returns the greatest number of filters of a kind that a VF may have.
    #[must_use]
    pub const fn most(&self, kind: FilterKind) -> u16 {
        match kind {
            FilterKind::Mac => self.mac,
            FilterKind::Vlan => self.vlan,
        }
    }

    /// Returns the number of entries that a shared table has for requests of `vfs` VFs, each of which uses one for its own
    /// address.
    #[must_use]
    pub fn entries(&self, kind: FilterKind, vfs: usize) -> usize {
        match kind {
            FilterKind::Mac => (usize::from(self.mac) + 1).saturating_sub(vfs),
            FilterKind::Vlan => self.vlan.into(),
        }
    }
}
