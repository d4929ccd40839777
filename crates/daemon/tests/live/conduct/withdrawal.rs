//! Tests of quarantines of VFs that the administrator withdraws and offers again. The administrator's quarantine is a setting, so
//! it is that of the present settings. A quarantine for an offence ends with the guest that has offended.

use super::{QUARANTINE, limit};
use crate::support::avf_guest::AvfGuest;
use crate::support::eventually;
use crate::support::guest::VfGuest;
use crate::support::live::LiveHost;
use crate::vhost::guest::VirtioGuest;
use daemon::settings::{PortSettings, VfSettings};
use i82576::MacAddress;

/// Port of each family, and mixed ports whose VF 0 has the other family. Each has two VFs.
const PORTS: [&str; 5] = [
    "[[port]]\nvfs = 2\n",
    "[[port]]\nfamily = \"avf\"\nvfs = 2\n",
    "[[port]]\nfamily = \"virtio\"\nvfs = 2\n",
    "[[port]]\nfamily = \"virtio\"\nvfs = 2\n[[port.vf]]\nindex = 0\nfamily = \"avf\"\n",
    "[[port]]\nfamily = \"avf\"\nvfs = 2\n[[port.vf]]\nindex = 0\nfamily = \"virtio\"\n",
];
/// Settings by which VF 1 is quarantined.
const IN_QUARANTINE: &str = "[[port.vf]]\nindex = 1\nquarantine = true\n";

/// Returns the cause of VF 1's quarantine, or `None` if VF 1 is not quarantined.
fn quarantine(live: &LiveHost) -> Option<String> {
    let status = live.show(1);
    let is_set = status.settings.quarantine;
    let cause = status.conduct.quarantine;
    assert_eq!(is_set, Some(cause.as_deref() == Some("administrator")), "the status contradicts itself");
    cause
}

/// Withdraws VF 1, and offers it again with the settings `then`.
fn offer_again(live: &LiveHost, port: &str, then: &str) {
    live.apply(&port.replace("vfs = 2", "vfs = 1")).unwrap();
    assert_eq!(live.port().vfs.len(), 1);
    live.apply(&[port, then].concat()).unwrap();
}

#[test]
fn administrators_quarantine_ends_with_the_withdrawn_vf() {
    for port in PORTS {
        let live = LiveHost::keeping(&[port, IN_QUARANTINE].concat());
        assert_eq!(quarantine(&live).as_deref(), Some("administrator"), "{port}");
        offer_again(&live, port, "");
        assert_eq!(quarantine(&live), None, "{port}");
        offer_again(&live, port, IN_QUARANTINE);
        assert_eq!(quarantine(&live).as_deref(), Some("administrator"), "{port}");
    }
}

/// The setting of a withdrawn VF outlives it, like its other settings.
#[test]
fn quarantine_by_command_stays_with_the_settings_of_a_vf() {
    for port in PORTS {
        let live = LiveHost::keeping(port);
        live.change(1, VfSettings { quarantine: Some(true), ..VfSettings::default() });
        offer_again(&live, port, "");
        assert_eq!(quarantine(&live).as_deref(), Some("administrator"), "{port}");
    }
}

/// Boots VF 1's guest, which sends broadcasts until VF 1 is quarantined for them.
#[track_caller]
fn offend(live: &LiveHost, port: &str) {
    limit(live, "storm", QUARANTINE);
    let until_quarantined = |broadcast: &mut dyn FnMut()| {
        eventually("the VF is quarantined", || {
            (0..5).for_each(|_| broadcast());
            quarantine(live).is_some()
        });
    };
    // VF 1 has the port's family.
    if port.starts_with("[[port]]\nfamily = \"virtio\"") {
        let mut guest = VirtioGuest::boot(live, 1);
        until_quarantined(&mut || guest.if_room(1, |guest| guest.send(&[1; 60])));
    } else if port.starts_with("[[port]]\nfamily = \"avf\"") {
        let mut guest = AvfGuest::boot(live, 1);
        until_quarantined(&mut || guest.broadcast());
    } else {
        let mut guest = VfGuest::under_qemu(live, 1);
        until_quarantined(&mut || guest.send_many(MacAddress::BROADCAST, 5));
    }
}

/// Has VF 1 quarantined for an offence in each family. Checks that the next guest of VF 1 has a link after `replace` has removed
/// and added VF 1. `replace` gets the configurations with one VF and with two.
#[track_caller]
fn quarantine_ends_by(replace: impl Fn(&mut LiveHost, &str, &str)) {
    for port in PORTS {
        let mut live = LiveHost::with(port);
        offend(&live, port);
        replace(&mut live, &port.replace("vfs = 2", "vfs = 1"), port);
        assert_eq!(quarantine(&live), None, "{port}");
        eventually("the VF has a link", || live.show(1).link);
    }
}

/// Changes the number of VFs, as `softiov port set --vfs` does.
fn set_vfs(live: &LiveHost, vfs: u8) {
    live.change_port(PortSettings { vfs: Some(vfs), ..PortSettings::default() }).unwrap();
    assert_eq!(live.port().vfs.len(), usize::from(vfs));
}

#[test]
fn quarantine_for_an_offence_ends_with_the_withdrawn_vf() {
    quarantine_ends_by(|live, _, _| {
        set_vfs(live, 1);
        set_vfs(live, 2);
    });
}

#[test]
fn quarantine_ends_with_a_vf_that_a_successor_lacks() {
    quarantine_ends_by(|live, without, _| {
        live.hand_over(without);
        set_vfs(live, 2);
    });
}

#[test]
fn quarantine_ends_with_a_vf_that_a_successor_adds_again() {
    quarantine_ends_by(|live, without, with| {
        live.hand_over(without);
        live.hand_over(with);
    });
}
