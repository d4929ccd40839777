//! Configuration of the checks' host, and the settings in which each check begins.

use super::{CAROL_MAC, PF_MAC, PORT_VLAN, PORTS, STORM};
use crate::wire::WireNamespace;
use daemon::control::status::LinkState;
use daemon::settings::{CoalesceMode, PortSettings, StormControlSettings, VfSettings};

/// Returns the default value of every setting of a VF, with an Ethernet address.
pub(super) fn defaults(mac: &str) -> VfSettings {
    VfSettings {
        state: Some(LinkState::Auto),
        mac: Some(mac.into()),
        vlan: Some(0),
        vlans: Some("any".into()),
        spoofchk: Some(true),
        trust: Some(false),
        share_mac: Some(false),
        max_tx_rate: Some(0),
        allmulti: Some(true),
        max_mtu: Some(0),
        rss: Some(false),
        min_interrupts: Some(0),
        max_interrupts: Some(0),
        coalesce: Some(CoalesceMode::Guest),
        quarantine: Some(false),
        ..VfSettings::default()
    }
}

/// Returns port settings that switch storm control off and remove all mirror rules.
pub(super) fn no_rules() -> PortSettings {
    let storm = StormControlSettings { broadcast: Some(0), multicast: Some(0), interval: Some(100) };
    let mirror = (0..4).map(|rule: u8| (rule.to_string(), None)).collect();
    PortSettings { storm: Some(storm), mirror, ..PortSettings::default() }
}

/// Returns the configuration of the checks' host.
pub(super) fn config(wire: Option<&WireNamespace>) -> String {
    let [first, second, third] =
        PORTS.map(|port| wire.map_or(String::new(), |wire| format!("uplink.tap = {:?}", wire.tap(port))));
    // SOFTIOV_WAIT=mapped runs the same checks with mapped doorbells.
    let wait = std::env::var("SOFTIOV_WAIT").unwrap_or("sleep".into());
    format!(
        "[[port]]\n{first}\nwait = {wait:?}\n\
         [[port.vf]]\nindex = 2\nmac = {CAROL_MAC:?}\n\
         [[port.vf]]\nindex = 3\nvlan = {PORT_VLAN}\n\
         [[port]]\n{second}\nwait = {wait:?}\nvfs = 1\nlimits.storm.quarantine = {STORM}\n\
         [[port]]\n{third}\npf = \"guest\"\nmac = {PF_MAC:?}\n\
         [[port]]\nfamily = \"avf\"\nvfs = 64\nuplink.wire = \"avf\"\nwait = {wait:?}\nlimits.storm.quarantine = {STORM}\n\
         [[port]]\nfamily = \"avf\"\nvfs = 2\nuplink.wire = \"avf\"\nwait = \"mapped\"\n\
         [[port]]\nfamily = \"virtio\"\nvfs = 10\nworkers = 2\ndispatcher = \"spread\"\n"
    )
}
