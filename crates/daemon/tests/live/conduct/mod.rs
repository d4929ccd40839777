//! Tests of the thresholds for offences of VFs on a live host. A malicious guest commits each kind of offence. The host
//! logs it, or throttles or quarantines the VF, and the administrator releases the VF. The PF drivers' tests cover the
//! rates.

mod avf;
mod i82576;
mod virtio;
mod withdrawal;

use crate::support::eventually;
use crate::support::live::LiveHost;
use daemon::control::status::VfStatus;
use daemon::settings::{ConductThresholds, PortSettings, VfSettings};
use std::collections::BTreeMap;

// The limit is one event a second, so that a slow machine exceeds it too.
const WARN: ConductThresholds = ConductThresholds { warn: Some(1), throttle: Some(0), quarantine: Some(0) };
const THROTTLE: ConductThresholds =
    ConductThresholds { warn: Some(0), throttle: Some(1), quarantine: Some(0) };
const QUARANTINE: ConductThresholds =
    ConductThresholds { warn: Some(0), throttle: Some(0), quarantine: Some(1) };

/// Repeats an offence by `offend` until `acted` returns true for the status of VF 0, and returns that status.
#[track_caller]
fn until(
    live: &LiveHost,
    what: &str,
    mut offend: impl FnMut(),
    acted: impl Fn(&VfStatus) -> bool,
) -> VfStatus {
    eventually(what, || {
        (0..5).for_each(|_| offend());
        acted(&live.show(0))
    });
    live.show(0)
}

/// Repeats an offence until VF 0 is quarantined for this kind of offence. Checks that VF 1 is unaffected, and that the
/// administrator can release VF 0.
#[track_caller]
fn is_quarantined(live: &LiveHost, kind: &str, offend: impl FnMut()) {
    let status = until(live, "the VF is quarantined", offend, |status| status.conduct.quarantine.is_some());
    assert_eq!((status.conduct.quarantine.as_deref(), status.link), (Some(kind), false));
    assert!(status.conduct.offences[kind] > 0);
    let neighbour = live.show(1);
    assert_eq!((neighbour.conduct.quarantine, neighbour.link), (None, true), "the neighbour is affected");
    let status = live.change(0, VfSettings { quarantine: Some(false), ..VfSettings::default() });
    assert_eq!(status.conduct.quarantine, None);
    // A virtio VF has no link until the connection of its quarantined client has ended.
    eventually("the VF has a link", || live.show(0).link);
}

/// Sets the port's thresholds for a kind of offence, as `softiov port limit` does.
fn limit(live: &LiveHost, kind: &str, limit: ConductThresholds) {
    let limits = BTreeMap::from([(kind.to_owned(), limit)]);
    live.change_port(PortSettings { limits, ..PortSettings::default() }).unwrap();
}
