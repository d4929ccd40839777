//! A tap as the port's thread has it: frames, and the link that follows. Nothing here waits for the kernel's lock on
//! interfaces: attaching, asking and letting go are the watcher's (`watch`), which holds the tap as well.

use super::UplinkError;
use super::watch::{News, Seen, Watch};
use crate::config::file::PortLink;
use crate::control::tap::{TapDrops, TapState, TapStatus};
use crate::port::hal::now;
use crate::vault::PortVault;
use host::confine::Prepared;
use host::poll::{Interest, Poller, Waker};
use host::tap::{InterfaceName, Tap, TapReceived, TapSent};
use i82576::Time;
use std::sync::Arc;

/// What a frame has besides its payload: the header of Ethernet, and a VLAN tag. What Linux bridges forward at an MTU
/// has these, whether it is tagged or not.
const HEADERS: usize = 14 + 4;

/// A port's tap.
#[derive(Debug)]
pub(in crate::port) struct TapUplink {
    /// As configured.
    name: InterfaceName,
    policy: PortLink,
    /// `None` while it is gone.
    tap: Option<Arc<Tap>>,
    /// The tap may hold frames: it was reported readable and has not been found empty since.
    readable: bool,
    /// It cannot be read any more.
    broken: bool,
    /// As it was last seen.
    seen: Seen,
    /// The longest frame that it takes, bytes.
    longest: usize,
    /// Since when it is in the state it is in.
    since: Time,
    reattached: u64,
    drops: TapDrops,
    watch: Watch,
}

impl TapUplink {
    /// Has an attached tap watched from now on, and kept in the port's vault. The port's thread is woken when there is
    /// news.
    pub(super) fn new(
        vault: &PortVault,
        tap: Tap,
        policy: PortLink,
        waker: Waker,
        watcher: &Prepared,
    ) -> Result<Self, UplinkError> {
        let tap = Arc::new(tap);
        let (seen, watch) = Watch::start(vault, tap.clone(), waker, watcher)?;
        Ok(Self {
            name: tap.name().clone(),
            policy,
            tap: Some(tap),
            readable: true,
            broken: false,
            longest: longest(&seen),
            seen,
            since: now(),
            reattached: 0,
            drops: TapDrops::default(),
            watch,
        })
    }

    /// The configured name.
    pub(super) fn name(&self) -> &InterfaceName {
        &self.name
    }

    pub(super) fn descriptor(&self) -> Option<&Tap> {
        self.tap.as_deref()
    }

    pub(super) fn set_readable(&mut self) {
        self.readable = true;
    }

    pub(super) fn state(&self) -> TapState {
        match (&self.tap, self.seen.up) {
            (None, _) => TapState::Gone,
            (Some(_), true) => TapState::Up,
            (Some(_), false) => TapState::Down,
        }
    }

    /// The port's link: as the tap's, or always up.
    pub(super) fn link(&self) -> bool {
        match self.policy {
            PortLink::Up => true,
            PortLink::Uplink => self.state() == TapState::Up && self.seen.carrier != Some(false),
        }
    }

    pub(super) fn status(&self) -> TapStatus {
        let there = self.tap.is_some();
        TapStatus {
            interface: self.seen.interface.clone(),
            state: self.state(),
            seconds: now().since(self.since).as_secs(),
            carrier: self.seen.carrier.filter(|_| there),
            mtu: self.seen.mtu.filter(|_| there),
            reattached: self.reattached,
            drops: self.drops,
        }
    }

    /// Takes note of what the watcher has seen, and lets go of a tap that cannot be read any more.
    pub(super) fn follow(&mut self, poller: &Poller, token: u64) -> bool {
        let before = self.state();
        let mut happened = std::mem::take(&mut self.broken);
        if happened {
            self.let_go(poller);
        }
        while let Some(news) = self.watch.news() {
            happened = true;
            match news {
                News::Seen(seen) => self.see(seen),
                News::Gone => self.let_go(poller),
                News::Attached(tap, seen) => {
                    self.let_go(poller);
                    self.attach(tap, seen, poller, token);
                }
            }
        }
        if self.state() != before {
            self.since = now();
        }
        happened
    }

    fn see(&mut self, seen: Seen) {
        self.longest = longest(&seen);
        self.seen = seen;
    }

    fn attach(&mut self, tap: Arc<Tap>, seen: Seen, poller: &Poller, token: u64) {
        if let Err(error) = poller.add(&*tap, token, Interest::READ) {
            tracing::error!(tap = self.name.as_str(), %error, "cannot wait for frames of the tap");
            return self.watch.give_back(tap);
        }
        self.see(seen);
        (self.tap, self.readable, self.broken) = (Some(tap), true, false);
        self.reattached += 1;
    }

    /// Stops using the tap, if there is one. Its descriptor would be reported for ever.
    fn let_go(&mut self, poller: &Poller) {
        if let Some(tap) = self.tap.take() {
            // The watcher closes the descriptor, which removes it from the poller too; a failure here has no
            // consequence.
            let _ = poller.remove(&*tap);
            self.seen.interface = self.name.to_string();
            self.watch.give_back(tap);
        }
    }

    /// Gives the tap a frame; `false` if it is lost, which is counted.
    pub(super) fn transmit(&mut self, frame: &[u8]) -> bool {
        if frame.len() > self.longest {
            self.drops.too_long += 1;
            return false;
        }
        match self.tap.as_ref().map(|tap| tap.send(frame)) {
            Some(Ok(TapSent::Sent)) => return true,
            Some(Ok(TapSent::Full)) => self.drops.no_room += 1,
            None | Some(Ok(TapSent::Down) | Err(_)) => self.drops.no_link += 1,
        }
        false
    }

    pub(super) fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        if !self.readable {
            return None;
        }
        match self.tap.as_ref()?.recv(into) {
            Ok(TapReceived::Frame(length)) => return Some(length),
            Ok(TapReceived::Empty) => {}
            Err(_) => self.broken = true,
        }
        self.readable = false;
        None
    }
}

/// The longest frame, bytes. Where the MTU is not known, the tap may take any.
fn longest(seen: &Seen) -> usize {
    seen.mtu.map_or(usize::MAX, |mtu| mtu as usize + HEADERS)
}
