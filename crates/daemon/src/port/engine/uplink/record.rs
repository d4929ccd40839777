//! What is noted of every kind of uplink: how it is, since when, and what was lost.

use crate::control::uplink::{UplinkDrops, UplinkState, UplinkStatus, UplinkTraffic};
use i82576::Time;

#[derive(Debug)]
pub(super) struct Record {
    kind: &'static str,
    state: UplinkState,
    since: Time,
    reattached: u64,
    pub(super) drops: UplinkDrops,
}

impl Record {
    pub(super) fn new(kind: &'static str, state: UplinkState, now: Time) -> Self {
        Self { kind, state, since: now, reattached: 0, drops: UplinkDrops::default() }
    }

    pub(super) fn state(&self) -> UplinkState {
        self.state
    }

    /// The uplink is so from now on.
    pub(super) fn set_state(&mut self, state: UplinkState, now: Time) {
        if self.state != state {
            (self.state, self.since) = (state, now);
        }
    }

    /// The uplink was gone and is there again.
    pub(super) fn reattached(&mut self) {
        self.reattached += 1;
    }

    /// The status of an uplink of which no more is known.
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
