//! Applies the policy of the port as a whole to registers: mirroring to a watching VF (VMRCTL, VMRVM, VMRVLAN), and
//! limits of broadcasts and multicasts (SCCRL, SCBI, BSCTRH, MSCTRH).
//!
//! A mirror rule for VLANs names entries of the VLAN filter, so it follows them: a VLAN is mirrored while a VF is a
//! member.
//!
//! The card cannot mirror all frames that a VF sends, only those to a receiver. Storm control does not count
//! unicast to unknown addresses as broadcast.

use super::Pf;
use super::limits::LIMITS;
use crate::hal::Hal;
use i82576::bits::{icr, sccrl, vmrctl};
use i82576::ids;
use i82576::register as r;
use pcie::VfSet;
use policy::{
    ConductLimits, MIRROR_RULES, PolicyError, PortPolicy, STORM_BLOCK, StormControl, VfMirrorRule, VlanSet,
};
use serde::{Deserialize, Serialize};

// The card has the rules and units that all families offer.
const _: () = assert!(MIRROR_RULES == ids::MIRROR_RULES && STORM_BLOCK as u64 == sccrl::BLOCK as u64);

/// SCBI value of a millisecond, so that SCCRL counts milliseconds.
const MILLISECOND: u32 = (1_000_000 / sccrl::BASIC_TICK_NS) as u32;

/// Saved encoding of a port's policy. A set of VFs is one byte, for the 82576's eight VFs, while [`PortPolicy`] has
/// sets of 64 VFs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(into = "EncodedPortPolicy", from = "EncodedPortPolicy")]
pub struct SavedPortPolicy(pub PortPolicy);

#[derive(Serialize, Deserialize)]
#[serde(rename = "PortPolicy")]
struct EncodedPortPolicy {
    mirrors: [Option<EncodedMirrorRule>; MIRROR_RULES],
    storm: StormControl,
    limits: ConductLimits,
}

#[derive(Serialize, Deserialize)]
#[serde(rename = "Mirror")]
struct EncodedMirrorRule {
    to: pcie::VfIndex,
    vfs: u8,
    ingress: bool,
    egress: bool,
    vlans: Option<VlanSet>,
}

impl From<SavedPortPolicy> for EncodedPortPolicy {
    fn from(SavedPortPolicy(PortPolicy { mirrors, storm, limits }): SavedPortPolicy) -> Self {
        let narrow = |VfMirrorRule { to, vfs, ingress, egress, vlans }| {
            // A rule for other VFs is refused when it is set.
            EncodedMirrorRule { to, vfs: vfs.bits() as u8, ingress, egress, vlans }
        };
        Self { mirrors: mirrors.map(|rule| rule.map(narrow)), storm, limits }
    }
}

impl From<EncodedPortPolicy> for SavedPortPolicy {
    fn from(EncodedPortPolicy { mirrors, storm, limits }: EncodedPortPolicy) -> Self {
        let widen = |EncodedMirrorRule { to, vfs, ingress, egress, vlans }| VfMirrorRule {
            to,
            vfs: VfSet::new(vfs.into()),
            ingress,
            egress,
            vlans,
        };
        Self(PortPolicy { mirrors: mirrors.map(|rule| rule.map(widen)), storm, limits })
    }
}

impl Pf {
    /// Returns the policy of the port.
    #[must_use]
    pub fn port_policy(&self) -> &PortPolicy {
        &self.port_policy.0
    }

    /// Returns the number of broadcast and multicast storms that have begun.
    #[must_use]
    pub fn storms(&self) -> u64 {
        self.storms
    }

    /// Sets the policy of the port, which takes effect at once.
    ///
    /// # Errors
    /// [`PolicyError`]: nothing is changed.
    pub fn set_port_policy<H: Hal>(&mut self, hal: &mut H, policy: PortPolicy) -> Result<(), PolicyError> {
        policy.check(&LIMITS)?;
        let before = core::mem::replace(&mut self.port_policy.0, policy);
        self.apply_mirrors(hal);
        if before.storm != policy.storm {
            self.apply_storm_control(hal);
        }
        Ok(())
    }

    pub(super) fn apply_mirrors<H: Hal>(&mut self, hal: &mut H) {
        for (i, mirror) in (0..).zip(self.port_policy.0.mirrors) {
            let control = mirror.map_or(0, |mirror| {
                hal.write(r::vmrvm(i), mirror.vfs.bits() as u32);
                let kinds = [
                    (!mirror.vfs.is_empty(), vmrctl::VPME),
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

    /// Updates the mirror rules for VLANs to the current entries of the VLAN filter.
    pub(super) fn follow_vlans<H: Hal>(&mut self, hal: &mut H) {
        if self.vlans.take_changed() {
            self.name_vlans(hal);
        }
    }

    fn name_vlans<H: Hal>(&self, hal: &mut H) {
        for (i, mirror) in (0..).zip(&self.port_policy.0.mirrors) {
            if let Some(vlans) = mirror.as_ref().and_then(|mirror| mirror.vlans.as_ref()) {
                hal.write(r::vmrvlan(i), self.vlans.filters_of(vlans));
            }
        }
    }

    pub(super) fn apply_storm_control<H: Hal>(&self, hal: &mut H) {
        let storm = &self.port_policy.0.storm;
        hal.write(r::SCBI, MILLISECOND);
        hal.write(r::BSCTRH, storm.blocks(storm.broadcast));
        hal.write(r::MSCTRH, storm.blocks(storm.multicast));
        // Frames beyond the threshold are dropped, and not all later ones: the rate is the threshold's.
        let window = u32::from(storm.window_ms) << sccrl::INTERVAL_SHIFT;
        hal.write(r::SCCRL, sccrl::BDICW | sccrl::MDICW | window);
    }

    /// Counts a broadcast or multicast storm if the causes report that one has begun.
    pub(super) fn count_storm<H: Hal>(&mut self, hal: &mut H, causes: u32) {
        if causes & icr::SCE != 0 && hal.read(r::SCSTS) != 0 {
            self.storms += 1;
        }
    }
}
