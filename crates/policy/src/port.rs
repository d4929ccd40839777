//! Policy of a whole port: mirror rules, storm control, and thresholds for offences of its VFs.

use crate::conduct::{ConductLimits, DEFAULT_CONDUCT};
use crate::error::PolicyError;
use crate::limits::{CardFamilyLimits, WINDOWS_MS};
use crate::vlan::VlanSet;
use pcie::{VfIndex, VfSet};
use serde::{Deserialize, Serialize};

/// Number of mirror rules of a port.
pub const MIRROR_RULES: usize = 4;
/// Number of bytes in a block: a storm threshold is a number of blocks per window.
pub const STORM_BLOCK: u32 = 64;
const BLOCK_BITS: u32 = STORM_BLOCK * 8;

/// Mirror rule: frames that a watching VF gets a copy of. A frame is copied once, however many rules name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "Mirror")]
pub struct VfMirrorRule {
    /// VF that receives the mirror rule's copies.
    pub to: VfIndex,
    /// VFs whose received frames the mirror rule copies.
    pub vfs: VfSet,
    /// True if the mirror rule copies frames from the uplink.
    pub ingress: bool,
    /// True if the mirror rule copies frames to the uplink.
    pub egress: bool,
    /// VLANs whose frames the mirror rule copies, wherever the frames come from.
    pub vlans: Option<VlanSet>,
}

/// Limits of broadcasts and multicasts to VFs; the uplink receives all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StormControl {
    /// Limit of broadcasts in Kb/s, frame check sequences included; 0 is no limit.
    pub broadcast: u32,
    /// Limit of multicasts in Kb/s, frame check sequences included; 0 is no limit.
    pub multicast: u32,
    /// Window in which broadcasts and multicasts are counted, in milliseconds ([`WINDOWS_MS`]).
    pub window_ms: u16,
}

/// Policy of a port: mirror rules, storm control, and thresholds for offences of its VFs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortPolicy {
    /// Mirror rules of the port, by the number of the rule.
    pub mirrors: [Option<VfMirrorRule>; MIRROR_RULES],
    /// Limits of broadcasts and multicasts to the port's VFs.
    pub storm: StormControl,
    /// Thresholds for offences of the port's VFs.
    pub limits: ConductLimits,
}

impl Default for PortPolicy {
    fn default() -> Self {
        let storm = StormControl { broadcast: 0, multicast: 0, window_ms: 100 };
        Self { mirrors: [None; MIRROR_RULES], storm, limits: DEFAULT_CONDUCT }
    }
}

impl PortPolicy {
    /// Checks that the policy is consistent, and that a family supports it.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn check(&self, limits: &CardFamilyLimits) -> Result<(), PolicyError> {
        for (number, mirror) in self.mirrors.iter().enumerate() {
            mirror.map_or(Ok(()), |mirror| mirror.check(number, limits))?;
        }
        self.storm.check(limits)
    }
}

impl VfMirrorRule {
    /// Checks that rule `number` copies frames that its watcher does not receive anyway.
    fn check(&self, number: usize, limits: &CardFamilyLimits) -> Result<(), PolicyError> {
        let others = self.ingress || self.egress || self.vlans.is_some();
        let watcher = VfSet::from_iter([self.to]);
        if self.vfs.or(watcher).iter().any(|vf| vf.index() >= limits.vfs) {
            return Err(PolicyError::MirrorVf(limits.family, limits.vfs - 1));
        }
        match self.vfs {
            _ if others => Ok(()),
            VfSet::NONE => Err(PolicyError::EmptyMirror(number)),
            watched if watched == watcher => Err(PolicyError::OwnMirror(number)),
            _ => Ok(()),
        }
    }
}

impl StormControl {
    /// Checks that the window is in range, and that the card can count both thresholds in it.
    fn check(&self, limits: &CardFamilyLimits) -> Result<(), PolicyError> {
        let Self { broadcast, multicast, window_ms } = *self;
        if !WINDOWS_MS.contains(&window_ms) {
            return Err(PolicyError::Window(window_ms));
        }
        let window = u32::from(window_ms);
        let least = BLOCK_BITS.div_ceil(window);
        let most = u64::from(limits.storm_blocks) * u64::from(BLOCK_BITS) / u64::from(window);
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        for kbps in [broadcast, multicast] {
            match kbps {
                1.. if kbps < least => return Err(PolicyError::SmallStormRate(kbps, window_ms, least)),
                _ if kbps > most => return Err(PolicyError::StormRate(kbps, window_ms, most)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns a threshold in blocks of [`STORM_BLOCK`] bytes per window, at most `u32::MAX`; 0 is no limit.
    #[must_use]
    pub fn blocks(&self, kbps: u32) -> u32 {
        let bits = u64::from(kbps) * u64::from(self.window_ms);
        u32::try_from(bits / u64::from(BLOCK_BITS)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{PortPolicy, StormControl, VfMirrorRule};
    use crate::PolicyError;
    use crate::limits::{CardFamilyLimits, TOY};
    use pcie::VfIndex;

    const MANY: CardFamilyLimits = CardFamilyLimits { vfs: 64, ..TOY };
    const STORM: StormControl = StormControl { broadcast: 0, multicast: 0, window_ms: 100 };

    fn vf(n: u8) -> VfIndex {
        VfIndex::new(n).unwrap()
    }

    /// Checks a policy whose rule 1 copies the frames that VFs receive.
    fn rule(to: u8, watched: &[u8], egress: bool, limits: &CardFamilyLimits) -> Result<(), PolicyError> {
        let vfs = watched.iter().map(|n| vf(*n)).collect();
        let mirror = VfMirrorRule { to: vf(to), vfs, ingress: false, egress, vlans: None };
        PortPolicy { mirrors: [None, Some(mirror), None, None], ..PortPolicy::default() }.check(limits)
    }

    #[test]
    fn storm_threshold_is_in_64_byte_blocks_per_window() {
        assert_eq!(STORM.blocks(0), 0, "no limit");
        assert_eq!(STORM.blocks(1_000), 195, "100,000 bits, 512 a block");
        assert_eq!(STORM.blocks(6), 1, "the smallest limit: 600 bits");
        assert_eq!(StormControl { window_ms: 1_000, ..STORM }.blocks(1_000), 1_953);
    }

    #[test]
    fn storm_rate_beyond_the_block_counter_is_refused() {
        let check = |broadcast, window_ms| StormControl { broadcast, window_ms, ..STORM }.check(&TOY);
        assert_eq!(check(0, 0), Err(PolicyError::Window(0)));
        assert_eq!(check(0, 1_001), Err(PolicyError::Window(1_001)));
        let most = 268_434;
        assert_eq!(check(most + 1, 1_000), Err(PolicyError::StormRate(most + 1, 1_000, most)));
        assert_eq!(check(most, 1_000), Ok(()));
        assert!(StormControl { window_ms: 1_000, ..STORM }.blocks(most) <= TOY.storm_blocks);
    }

    /// Tests storm thresholds of less than one block per window. Rounded up, 1 Kb/s in windows of 1 ms would
    /// become 512 Kb/s.
    #[test]
    fn storm_rate_below_one_block_per_window_is_refused() {
        for (window_ms, least) in [(1, 512), (3, 171), (100, 6), (1_000, 1)] {
            let storm = |kbps| StormControl { window_ms, multicast: kbps, ..STORM };
            assert_eq!(storm(least).check(&TOY), Ok(()));
            assert_eq!(storm(least).blocks(least), 1, "{window_ms} ms");
            let below = storm(least - 1).check(&TOY);
            let refused = Err(PolicyError::SmallStormRate(least - 1, window_ms, least));
            assert_eq!(below, if least == 1 { Ok(()) } else { refused });
        }
    }

    #[test]
    fn mirror_rule_for_its_targets_own_traffic_is_refused() {
        for n in [0, 8, 63] {
            assert_eq!(rule(n, &[n], false, &MANY), Err(PolicyError::OwnMirror(1)));
        }
        assert_eq!(rule(2, &[], false, &TOY), Err(PolicyError::EmptyMirror(1)));
        assert_eq!(rule(2, &[2, 0], false, &TOY), Ok(()));
        assert_eq!(rule(2, &[2], true, &TOY), Ok(()));
    }

    #[test]
    fn mirror_rule_with_a_vf_beyond_the_device_family_is_refused() {
        assert_eq!(rule(7, &[0], false, &TOY), Ok(()));
        for (to, watched) in [(8, 0), (0, 8)] {
            assert_eq!(rule(to, &[watched], false, &TOY), Err(PolicyError::MirrorVf("toy", 7)));
            assert_eq!(rule(to, &[watched], false, &MANY), Ok(()));
        }
    }
}
