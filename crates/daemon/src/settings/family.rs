//! What a family other than the 82576 makes of policies: those of AVF in its PF driver's words, and what it does not have
//! yet. Left out: rules that depend on the card (`driver::avf::pf`).

use super::{SettingError, refuse};
use driver::avf::pf::{PolicyError, VfPolicy as AvfPolicy};
use driver::pf::VfPolicy;
use i82576::ids::FCS;

/// Bytes around the packet in a frame, as drivers of AVF count them: addresses and type, two VLAN tags, the check sequence.
const AROUND: u16 = 14 + 2 * 4 + FCS as u16;

/// The policy of an AVF VF. Interrupts it moderates itself, by the intervals that its driver sets.
///
/// # Errors
/// [`SettingError`]: the setting is one that the family does not have yet, or makes no sense.
pub fn avf_policy(policy: &VfPolicy) -> Result<AvfPolicy, SettingError> {
    let default = VfPolicy::default();
    let lacks = [
        ("min_interrupts", policy.interrupts.min_interrupts != default.interrupts.min_interrupts),
        ("max_interrupts", policy.interrupts.max_interrupts != default.interrupts.max_interrupts),
        ("coalesce", policy.interrupts.adaptive != default.interrupts.adaptive),
    ];
    if let Some((key, _)) = lacks.into_iter().find(|(_, asked)| *asked) {
        return refuse(key, GUESTS);
    }
    if policy.rss != default.rss {
        return refuse("rss", SCALES);
    }
    let longest = AvfPolicy::default().max_frame;
    let policy = AvfPolicy {
        mac: policy.mac,
        admin_mac: policy.admin_mac,
        vlan: policy.vlan,
        vlans: policy.vlans,
        spoofchk: policy.spoofchk,
        trust: policy.trust,
        allmulti: policy.allmulti,
        enabled: policy.enabled,
        state: policy.state,
        max_tx_rate: policy.max_tx_rate,
        max_frame: policy.max_mtu.map_or(longest, |mtu| mtu.saturating_add(AROUND).min(longest)),
        share_mac: policy.share_mac,
        ..AvfPolicy::default()
    };
    policy.check()?;
    Ok(policy)
}

const GUESTS: &str = "the guest of a port with family = \"avf\" moderates its interrupts itself; leave it out, or use family = \"82576\"";
const SCALES: &str = "a VF of family = \"avf\" always spreads what it receives over its queue pairs; leave it out, or use family = \"82576\"";

/// The setting that the PF driver has refused.
impl From<PolicyError> for SettingError {
    fn from(error: PolicyError) -> Self {
        let key = match error {
            PolicyError::NoSuchVf(_) | PolicyError::Pairs(..) => "vfs",
            PolicyError::Mac(_) | PolicyError::MacInUse(..) => "mac",
            PolicyError::Vlan(_) | PolicyError::VlanNotAllowed(_) => "vlan",
            PolicyError::Frame(_) => "max_mtu",
            PolicyError::Rate(_) => "max_tx_rate",
        };
        Self { key, problem: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::avf_policy;
    use driver::pf::{Link, PortVlan, VfPolicy};

    #[test]
    fn what_both_families_have_is_passed_on() {
        let policy = VfPolicy {
            vlan: Some(PortVlan { id: 7, qos: 2 }),
            trust: true,
            allmulti: false,
            spoofchk: false,
            state: Link::Disable,
            max_mtu: Some(1500),
            max_tx_rate: 5,
            share_mac: true,
            ..VfPolicy::default()
        };
        let avf = avf_policy(&policy).unwrap();
        assert_eq!((avf.vlan, avf.trust, avf.spoofchk, avf.state), (policy.vlan, true, false, Link::Disable));
        assert_eq!((avf.max_frame, avf.max_tx_rate, avf.allmulti), (1526, 5, false), "Linux takes 26 off");
        assert!(avf.share_mac);
        assert_eq!(avf_policy(&VfPolicy::default()).unwrap().max_frame, 9728);
    }

    #[test]
    fn longest_mtu_is_the_longest_frame_of_the_family() {
        for (max_mtu, frame) in [(9702, 9728), (9703, 9728), (9706, 9728)] {
            let policy = VfPolicy { max_mtu: Some(max_mtu), ..VfPolicy::default() };
            assert_eq!(avf_policy(&policy).unwrap().max_frame, frame);
        }
    }

    #[test]
    fn what_the_family_does_not_have_is_refused_by_name() {
        let refused = |policy| avf_policy(&policy).unwrap_err().key;
        assert_eq!(refused(VfPolicy { rss: true, ..VfPolicy::default() }), "rss");
        assert_eq!(refused(VfPolicy { max_mtu: Some(1000), ..VfPolicy::default() }), "max_mtu");
    }
}
