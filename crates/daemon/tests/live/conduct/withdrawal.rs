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

/// Offends with broadcasts of VF 1's guest until VF 1 is quarantined, and withdraws VF 1. Checks that the next guest has a link.
#[track_caller]
fn ends_with_its_guest(live: &LiveHost, port: &str, mut broadcast: impl FnMut()) {
    limit(live, "storm", QUARANTINE);
    eventually("the VF is quarantined", || {
        (0..5).for_each(|_| broadcast());
        quarantine(live).is_some()
    });
    drop(broadcast);
    offer_again(live, port, "");
    assert_eq!(quarantine(live), None, "{port}");
    eventually("the VF has a link", || live.show(1).link);
}

#[test]
fn quarantine_for_an_offence_ends_with_the_withdrawn_vf() {
    for port in PORTS {
        let live = LiveHost::keeping(port);
        // VF 1 has the port's family.
        if port.starts_with("[[port]]\nfamily = \"virtio\"") {
            let mut guest = VirtioGuest::boot(&live, 1);
            ends_with_its_guest(&live, port, || guest.if_room(1, |guest| guest.send(&[1; 60])));
        } else if port.starts_with("[[port]]\nfamily = \"avf\"") {
            let mut guest = AvfGuest::boot(&live, 1);
            ends_with_its_guest(&live, port, || guest.broadcast());
        } else {
            let mut guest = VfGuest::under_qemu(&live, 1);
            ends_with_its_guest(&live, port, || guest.send_many(MacAddress::BROADCAST, 5));
        }
    }
}

/// Not only a command removes a VF: so does a successor with another file.
#[test]
fn quarantine_ends_with_a_vf_that_a_successor_lacks() {
    let mut live = LiveHost::start();
    let mut guest = VfGuest::under_qemu(&live, 1);
    limit(&live, "storm", QUARANTINE);
    eventually("the VF is quarantined", || {
        guest.send_many(MacAddress::BROADCAST, 5);
        quarantine(&live).is_some()
    });
    drop(guest);
    live.hand_over("[[port]]\nvfs = 1\n");
    live.change_port(PortSettings { vfs: Some(2), ..PortSettings::default() }).unwrap();
    assert_eq!(quarantine(&live), None);
}
