//! State and counters of an uplink of any kind, for its status: the state, the time of the last change, and dropped
//! frames.

use crate::control::uplink::{UplinkDrops, UplinkState, UplinkStatus, UplinkTraffic};
use i82576::Time;

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
