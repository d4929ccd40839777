//! State and counters of an uplink of any kind, for its status: the state, the time of the last change, and dropped
//! frames. State of the interface of an uplink that has one.

use super::addresses::ParentInterface;
use crate::control::uplink::{UplinkDrops, UplinkState, UplinkStatus, UplinkTraffic};
use i82576::Time;

/// State of the interface to which an uplink is attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InterfaceState {
    /// Present name of the interface.
    pub(super) interface: String,
    /// True if the interface is set up.
    pub(super) up: bool,
    /// True if the interface has a carrier. `None` for an interface in another network namespace.
    pub(super) carrier: Option<bool>,
    /// MTU of the interface in bytes. `None` for an interface in another network namespace.
    pub(super) mtu: Option<u32>,
    /// Interface whose link the interface shares. `None` for an interface in another network namespace.
    pub(super) parent: Option<ParentInterface>,
}

impl InterfaceState {
    /// Returns the state of an interface that is deleted, or in another network namespace.
    pub(super) fn unknown(interface: String, up: bool) -> Self {
        Self { interface, up, carrier: None, mtu: None, parent: None }
    }
}

/// State of an uplink, with the numbers of its returns and dropped frames.
#[derive(Debug)]
pub(super) struct UplinkStateCounters {
    kind: &'static str,
    state: UplinkState,
    since: Time,
    reattached: u64,
    pub(super) drops: UplinkDrops,
}

impl UplinkStateCounters {
    pub(super) fn new(kind: &'static str, state: UplinkState, now: Time) -> Self {
        Self { kind, state, since: now, reattached: 0, drops: UplinkDrops::default() }
    }

    pub(super) fn state(&self) -> UplinkState {
        self.state
    }

    /// Sets the state of the uplink. A changed state also sets the time of the last change.
    pub(super) fn set_state(&mut self, state: UplinkState, now: Time) {
        if self.state != state {
            (self.state, self.since) = (state, now);
        }
    }

    /// Counts one more return of the uplink's interface or peer.
    pub(super) fn reattached(&mut self) {
        self.reattached += 1;
    }

    /// Returns the uplink's status, without the fields that only some kinds of uplinks have.
    pub(super) fn status(&self, name: String, now: Time) -> UplinkStatus {
        let &Self { kind, state, since, reattached, drops } = self;
        let seconds = now.since(since).as_secs();
        UplinkStatus {
            kind: kind.to_owned(),
            name,
            state,
            seconds,
            carrier: None,
            mtu: None,
            mode: None,
            reattached,
            rx: UplinkTraffic::default(),
            tx: UplinkTraffic::default(),
            drops,
        }
    }
}
