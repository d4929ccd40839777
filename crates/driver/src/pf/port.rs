//! What the administrator decides for the port as a whole: which frames are copied to a watching VF (VMRCTL, VMRVM,
//! VMRVLAN), how much of broadcasts and multicasts the VFs get (SCCRL, SCBI, BSCTRH, MSCTRH), and from when on a VF's
//! conduct has consequences.
//!
//! A rule for VLANs names entries of the VLAN filter, so it follows them: a VLAN is copied while a VF is a member.
//!
//! Left out: single VFs (`policy`); what a VF sends, which the card has no rule for, other than to whom it goes; and
//! unicast that no filter knows, which storm control could count as broadcast.

use super::{Pf, VlanSet};
use crate::conduct::{DEFAULT_LIMITS, Limits};
use crate::hal::Hal;
use i82576::VfIndex;
use i82576::bits::{icr, sccrl, vmrctl};
use i82576::ids::MIRROR_RULES;
use i82576::register as r;
use serde::{Deserialize, Serialize};

/// A rule for copies. A frame is copied once, however many rules name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mirror {
    /// The VF that gets the copies.
    pub to: VfIndex,
    /// VFs, a bit each: what they receive is copied.
    pub vfs: u8,
    /// What comes from the uplink is copied.
    pub ingress: bool,
    /// What goes to the uplink is copied.
    pub egress: bool,
    /// What is in these VLANs is copied, wherever it comes from.
    pub vlans: Option<VlanSet>,
}

/// How much of the traffic that is for many reaches VFs; the uplink gets all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StormControl {
    /// Broadcasts, Kb/s, frame check sequences counted; 0 is no limit.
    pub broadcast: u32,
    /// Multicasts, Kb/s; 0 is no limit.
    pub multicast: u32,
    /// Over how many milliseconds they are counted, [`WINDOWS_MS`].
    pub window_ms: u16,
}

/// The shortest and the longest window of storm control, milliseconds.
pub const WINDOWS_MS: core::ops::RangeInclusive<u16> = 1..=1_000;

/// The administrator's decisions for the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortPolicy {
    /// The card's rules for copies, by number.
    pub mirrors: [Option<Mirror>; MIRROR_RULES],
    /// Broadcasts and multicasts.
    pub storm: StormControl,
    /// From when on a VF's conduct has consequences.
    pub limits: Limits,
}

impl Default for PortPolicy {
    fn default() -> Self {
        let storm = StormControl { broadcast: 0, multicast: 0, window_ms: 100 };
        Self { mirrors: [None; MIRROR_RULES], storm, limits: DEFAULT_LIMITS }
    }
}

/// Why a port's policy makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PortPolicyError {
    /// A rule that names no traffic.
    #[error("mirror rule {0} copies nothing")]
    EmptyMirror(usize),
    /// What the watcher receives is the watcher's anyway.
    #[error(
        "mirror rule {0} names no traffic other than its watcher's own; name other VFs, the uplink or VLANs"
    )]
    OwnMirror(usize),
    /// The window cannot be had.
    #[error("a window of {0} ms is not possible ({least} to {most})", least = WINDOWS_MS.start(), most = WINDOWS_MS.end())]
    Window(u16),
    /// The thresholds are counted in 19 bits.
    #[error("{0} Kb/s are too many to be counted in {1} ms: at most {max}", max = most_kbps(*.1))]
    StormRate(u32, u16),
    /// Thresholds are whole blocks.
    #[error("{0} Kb/s are less than the card can count in {1} ms: at least {min}, or a longer interval; 0 is no limit", min = least_kbps(*.1))]
    SmallStormRate(u32, u16),
}

/// SCBI for a millisecond, so that SCCRL counts milliseconds.
const MILLISECOND: u32 = (1_000_000 / sccrl::BASIC_TICK_NS) as u32;
/// BSCTRH and MSCTRH have 19 bits.
const MOST_BLOCKS: u32 = (1 << 19) - 1;
/// Bits of a block.
const BLOCK_BITS: u32 = sccrl::BLOCK as u32 * 8;

/// The most Kb/s that a threshold can say.
#[must_use]
pub const fn most_kbps(window_ms: u16) -> u32 {
    let window = if window_ms == 0 { 1 } else { window_ms as u64 };
    (MOST_BLOCKS as u64 * BLOCK_BITS as u64 / window) as u32
}

/// The fewest Kb/s that a threshold can say: a block a window.
const fn least_kbps(window_ms: u16) -> u32 {
    BLOCK_BITS.div_ceil(if window_ms == 0 { 1 } else { window_ms as u32 })
}

impl StormControl {
    /// Whether the thresholds can be counted in such windows.
    ///
    /// # Errors
    /// [`PortPolicyError`].
    pub fn check(&self) -> Result<(), PortPolicyError> {
        if !WINDOWS_MS.contains(&self.window_ms) {
            return Err(PortPolicyError::Window(self.window_ms));
        }
        let (least, most) = (least_kbps(self.window_ms), most_kbps(self.window_ms));
        for kbps in [self.broadcast, self.multicast] {
            match kbps {
                1.. if kbps < least => return Err(PortPolicyError::SmallStormRate(kbps, self.window_ms)),
                _ if kbps > most => return Err(PortPolicyError::StormRate(kbps, self.window_ms)),
                _ => {}
            }
        }
        Ok(())
    }

    /// A threshold, in blocks of 64 bytes a window; none is no limit.
    #[must_use]
    pub fn blocks(&self, kbps: u32) -> u32 {
        let bits = u64::from(kbps) * u64::from(self.window_ms);
        (bits / u64::from(BLOCK_BITS)) as u32
    }
}

/// Whether the rule for copies of this number has anything to copy: what its watcher (`to`) does not receive anyway. Both are
/// sets of VFs, a bit each; `others` says that the rule names the uplink or VLANs too.
///
/// # Errors
/// [`PortPolicyError::EmptyMirror`], [`PortPolicyError::OwnMirror`].
pub fn check_mirror(number: usize, to: u64, vfs: u64, others: bool) -> Result<(), PortPolicyError> {
    match vfs {
        _ if others => Ok(()),
        0 => Err(PortPolicyError::EmptyMirror(number)),
        watched if watched == to => Err(PortPolicyError::OwnMirror(number)),
        _ => Ok(()),
    }
}

impl PortPolicy {
    /// Whether the card can do it.
    ///
    /// # Errors
    /// [`PortPolicyError`].
    pub fn check(&self) -> Result<(), PortPolicyError> {
        for (number, mirror) in self.mirrors.iter().enumerate() {
            let Some(Mirror { to, vfs, ingress, egress, vlans }) = mirror else { continue };
            let others = *ingress || *egress || vlans.is_some();
            check_mirror(number, to.bit().into(), (*vfs).into(), others)?;
        }
        self.storm.check()
    }
}

impl Pf {
    /// The policy of the port.
    #[must_use]
    pub fn port_policy(&self) -> &PortPolicy {
        &self.port_policy
    }

    /// How many storms have begun.
    #[must_use]
    pub fn storms(&self) -> u64 {
        self.storms
    }

    /// Sets the policy of the port; it holds at once.
    ///
    /// # Errors
    /// [`PortPolicyError`]: nothing is changed.
    pub fn set_port_policy<H: Hal>(
        &mut self,
        hal: &mut H,
        policy: PortPolicy,
    ) -> Result<(), PortPolicyError> {
        policy.check()?;
        let before = core::mem::replace(&mut self.port_policy, policy);
        self.apply_mirrors(hal);
        if before.storm != policy.storm {
            self.apply_storm_control(hal);
        }
        Ok(())
    }

    pub(super) fn apply_mirrors<H: Hal>(&mut self, hal: &mut H) {
        for (i, mirror) in (0..).zip(self.port_policy.mirrors) {
            let control = mirror.map_or(0, |mirror| {
                hal.write(r::vmrvm(i), mirror.vfs.into());
                let kinds = [
                    (mirror.vfs != 0, vmrctl::VPME),
                    (mirror.ingress, vmrctl::UPME),
                    (mirror.egress, vmrctl::DPME),
                    (mirror.vlans.is_some(), vmrctl::VLME),
                ];
                let kinds = kinds.into_iter().filter(|(on, _)| *on).fold(0, |all, (_, kind)| all | kind);
                kinds | u32::from(mirror.to.get()) << vmrctl::POOL_SHIFT
            });
            hal.write(r::vmrctl(i), control);
        }
        self.name_vlans(hal);
    }

    /// Has the rules for VLANs name the filters that these VLANs have now.
    pub(super) fn follow_vlans<H: Hal>(&mut self, hal: &mut H) {
        if self.vlans.take_changed() {
            self.name_vlans(hal);
        }
    }

    fn name_vlans<H: Hal>(&self, hal: &mut H) {
        for (i, mirror) in (0..).zip(&self.port_policy.mirrors) {
            if let Some(vlans) = mirror.as_ref().and_then(|mirror| mirror.vlans.as_ref()) {
                hal.write(r::vmrvlan(i), self.vlans.filters_of(vlans));
            }
        }
    }

    pub(super) fn apply_storm_control<H: Hal>(&self, hal: &mut H) {
        let storm = &self.port_policy.storm;
        hal.write(r::SCBI, MILLISECOND);
        hal.write(r::BSCTRH, storm.blocks(storm.broadcast));
        hal.write(r::MSCTRH, storm.blocks(storm.multicast));
        // What goes beyond a threshold is dropped, not what comes after it: the rate is the threshold's.
        let window = u32::from(storm.window_ms) << sccrl::INTERVAL_SHIFT;
        hal.write(r::SCCRL, sccrl::BDICW | sccrl::MDICW | window);
    }

    /// Counts a storm that has begun.
    pub(super) fn count_storm<H: Hal>(&mut self, hal: &mut H, causes: u32) {
        if causes & icr::SCE != 0 && hal.read(r::SCSTS) != 0 {
            self.storms += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_BLOCKS, Mirror, PortPolicy, PortPolicyError, StormControl, least_kbps, most_kbps};
    use i82576::VfIndex;

    const STORM: StormControl = StormControl { broadcast: 0, multicast: 0, window_ms: 100 };

    #[test]
    fn a_threshold_is_the_blocks_of_a_window() {
        assert_eq!(STORM.blocks(0), 0, "no limit");
        assert_eq!(STORM.blocks(1_000), 195, "100,000 bits, 512 a block");
        assert_eq!(STORM.blocks(6), 1, "the smallest limit: 600 bits");
        assert_eq!(StormControl { window_ms: 1_000, ..STORM }.blocks(1_000), 1_953);
    }

    #[test]
    fn what_the_registers_cannot_say_is_refused() {
        let check = |broadcast, window_ms| StormControl { broadcast, window_ms, ..STORM }.check();
        assert_eq!(check(0, 0), Err(PortPolicyError::Window(0)));
        assert_eq!(check(0, 1_001), Err(PortPolicyError::Window(1_001)));
        let most = most_kbps(1_000);
        assert_eq!(check(most + 1, 1_000), Err(PortPolicyError::StormRate(most + 1, 1_000)));
        assert_eq!((check(most, 1_000), most), (Ok(()), 268_434));
        assert!(StormControl { window_ms: 1_000, ..STORM }.blocks(most) <= MOST_BLOCKS);
    }

    /// A rate that was taken for one block would be another rate than it says: 512 Kb/s for 1, in 1 ms.
    #[test]
    fn less_than_a_block_a_window_is_refused() {
        for (window_ms, least) in [(1, 512), (3, 171), (100, 6), (1_000, 1)] {
            let storm = |kbps| StormControl { window_ms, multicast: kbps, ..STORM };
            assert_eq!((least_kbps(window_ms), storm(least).check()), (least, Ok(())));
            assert_eq!(storm(least).blocks(least), 1, "{window_ms} ms");
            let below = storm(least - 1).check();
            let refused = Err(PortPolicyError::SmallStormRate(least - 1, window_ms));
            assert_eq!(below, if least == 1 { Ok(()) } else { refused });
        }
    }

    #[test]
    fn a_mirror_of_the_watchers_own_traffic_is_refused() {
        let rule =
            Mirror { to: VfIndex::new(2).unwrap(), vfs: 1 << 2, ingress: false, egress: false, vlans: None };
        let check =
            |rule| PortPolicy { mirrors: [None, Some(rule), None, None], ..PortPolicy::default() }.check();
        assert_eq!(check(rule), Err(PortPolicyError::OwnMirror(1)));
        assert_eq!(check(Mirror { vfs: 0, ..rule }), Err(PortPolicyError::EmptyMirror(1)));
        assert_eq!(check(Mirror { vfs: 1 << 2 | 1, ..rule }), Ok(()));
        assert_eq!(check(Mirror { egress: true, ..rule }), Ok(()));
    }
}
