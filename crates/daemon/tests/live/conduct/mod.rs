//! A VF that does too much on a live host, each kind of it by a guest that means harm: it is logged, throttled or
//! quarantined, and released again. Which rates call for what is tested with the PF drivers.

mod avf;
mod i82576;

use crate::support::eventually;
use crate::support::live::Live;
use daemon::control::status::VfStatus;
use daemon::settings::{Limit, PortSettings, VfSettings};
use std::collections::BTreeMap;

// One event a second is too many: however slowly time passes, some seconds see more.
const WARN: Limit = Limit { warn: Some(1), throttle: Some(0), quarantine: Some(0) };
const THROTTLE: Limit = Limit { warn: Some(0), throttle: Some(1), quarantine: Some(0) };
const QUARANTINE: Limit = Limit { warn: Some(0), throttle: Some(0), quarantine: Some(1) };

/// Offends until the host has acted.
#[track_caller]
fn until(live: &Live, what: &str, mut offend: impl FnMut(), acted: impl Fn(&VfStatus) -> bool) -> VfStatus {
    eventually(what, || {
        (0..5).for_each(|_| offend());
        acted(&live.show(0))
    });
    live.show(0)
}

/// The VF is quarantined for one kind of conduct, its neighbour is not, and the administrator releases it.
#[track_caller]
fn is_quarantined(live: &Live, kind: &str, offend: impl FnMut()) {
    let status = until(live, "the VF is quarantined", offend, |status| status.conduct.quarantine.is_some());
    assert_eq!((status.conduct.quarantine.as_deref(), status.link), (Some(kind), false));
    assert!(status.conduct.offences[kind] > 0);
    let neighbour = live.show(1);
    assert_eq!((neighbour.conduct.quarantine, neighbour.link), (None, true), "the neighbour is free");
    let status = live.change(0, VfSettings { quarantine: Some(false), ..VfSettings::default() });
    assert_eq!((status.conduct.quarantine, status.link), (None, true));
}

/// Sets the thresholds of a kind, as `softiov port limit` does.
fn limit(live: &Live, kind: &str, limit: Limit) {
    let limits = BTreeMap::from([(kind.to_owned(), limit)]);
    live.change_port(PortSettings { limits, ..PortSettings::default() }).unwrap();
}
