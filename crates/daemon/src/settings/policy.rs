//! What the administrator decides for a port as a whole, in the same terms for a port of any family: VFs are those of any
//! device. The PF driver of the 82576 has terms of its own, with the eight VFs of its card.
//!
//! Left out: single VFs, whose policy names no other VF (`driver::pf::VfPolicy`).

use super::{SettingError, refuse};
use driver::conduct::Limits;
use driver::pf::{self, PortPolicyError, StormControl, VlanSet, check_mirror};
use i82576::ids::MIRROR_RULES;
use pcie::{VfIndex, VfSet};
use serde::{Deserialize, Serialize};

/// A rule for copies. A frame is copied once, however many rules name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mirror {
    /// The VF that gets the copies.
    pub to: VfIndex,
    /// What these VFs receive is copied.
    pub vfs: VfSet,
    /// What comes from the uplink is copied.
    pub ingress: bool,
    /// What goes to the uplink is copied.
    pub egress: bool,
    /// What is in these VLANs is copied, wherever it comes from.
    pub vlans: Option<VlanSet>,
}

/// The administrator's decisions for the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortPolicy {
    /// Rules for copies, by number.
    pub mirrors: [Option<Mirror>; MIRROR_RULES],
    /// Broadcasts and multicasts.
    pub storm: StormControl,
    /// From when on a VF's conduct has consequences.
    pub limits: Limits,
}

impl Default for PortPolicy {
    fn default() -> Self {
        Self::from(&pf::PortPolicy::default())
    }
}

impl PortPolicy {
    /// Whether it makes sense.
    ///
    /// # Errors
    /// [`PortPolicyError`].
    pub fn check(&self) -> Result<(), PortPolicyError> {
        for (number, mirror) in self.mirrors.iter().enumerate() {
            let Some(Mirror { to, vfs, ingress, egress, vlans }) = mirror else { continue };
            let others = *ingress || *egress || vlans.is_some();
            check_mirror(number, VfSet::from_iter([*to]).bits(), vfs.bits(), others)?;
        }
        self.storm.check()
    }
}

impl From<&pf::PortPolicy> for PortPolicy {
    fn from(policy: &pf::PortPolicy) -> Self {
        let pf::PortPolicy { mirrors, storm, limits } = *policy;
        let mirror = |mirror: pf::Mirror| {
            let pf::Mirror { to, vfs, ingress, egress, vlans } = mirror;
            Mirror { to: to.into(), vfs: VfSet::new(vfs.into()), ingress, egress, vlans }
        };
        Self { mirrors: mirrors.map(|rule| rule.map(mirror)), storm, limits }
    }
}

/// A rule names a VF that an 82576 does not have.
impl TryFrom<&PortPolicy> for pf::PortPolicy {
    type Error = SettingError;

    fn try_from(policy: &PortPolicy) -> Result<Self, SettingError> {
        let PortPolicy { mirrors, storm, limits } = *policy;
        let mut own = Self { storm, limits, ..Self::default() };
        for (place, rule) in own.mirrors.iter_mut().zip(mirrors) {
            let Some(Mirror { to, vfs, ingress, egress, vlans }) = rule else { continue };
            let (Ok(to), Ok(vfs)) = (to.try_into(), vfs.bits().try_into()) else {
                return refuse("mirror", "a port with family = \"82576\" has no VF beyond 7; name others");
            };
            *place = Some(pf::Mirror { to, vfs, ingress, egress, vlans });
        }
        Ok(own)
    }
}

#[cfg(test)]
mod tests {
    use super::{Mirror, PortPolicy};
    use driver::pf::{self, PortPolicyError};
    use pcie::{VfIndex, VfSet};

    fn rule(to: u8, watched: u8) -> PortPolicy {
        let [to, watched] = [to, watched].map(|n| VfIndex::new(n).unwrap());
        let vfs = VfSet::from_iter([watched]);
        let mirror = Mirror { to, vfs, ingress: false, egress: false, vlans: None };
        PortPolicy { mirrors: [None, Some(mirror), None, None], ..PortPolicy::default() }
    }

    #[test]
    fn an_82576_takes_rules_for_its_eight_vfs() {
        let policy = rule(7, 0);
        let own = pf::PortPolicy::try_from(&policy).unwrap();
        assert_eq!((own.mirrors[1].unwrap().to.get(), own.mirrors[1].unwrap().vfs), (7, 1));
        assert_eq!(PortPolicy::from(&own), policy);
        for beyond in [rule(8, 0), rule(0, 8)] {
            assert_eq!(beyond.check(), Ok(()), "another family may have it");
            assert_eq!(pf::PortPolicy::try_from(&beyond).unwrap_err().key, "mirror");
        }
    }

    #[test]
    fn a_mirror_of_the_watchers_own_traffic_is_refused_for_every_vf() {
        for n in [0, 8, 63] {
            assert_eq!(rule(n, n).check(), Err(PortPolicyError::OwnMirror(1)));
        }
    }
}
