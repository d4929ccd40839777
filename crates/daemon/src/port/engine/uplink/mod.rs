//! What carries frames beyond a live card: nothing, or one of several kinds of uplink, each a file behind [`Kind`].
//!
//! | kind | what it is | a thread beside the port's |
//! |---|---|---|
//! | `tap` | a tap of the host | watches the interface |
//! | `tap` | a macvtap, whose frames pass an interface | watches the interface |
//! | `packet` | a network interface that is there, by a packet socket | watches the interface |
//! | `xdp` | the same, by AF_XDP | watches the interface |
//! | `wire` | a ring each way to another port of this host | none |
//! | `stream` | a UNIX stream socket to another process | connects, or listens |
//! | `replay` | a recording | reads it |
//!
//! Between the port and any of them are stages (`stages`): if the configuration wants it, frames are delayed, lost and put
//! out of order (`impair`), and what passes the uplink is recorded (`recorder`). It is counted in any case.
//!
//! Nothing of it that is called on the port's thread waits. Every kind gives whole frames; some take packets that are not
//! cut into segments yet (`offload`).

mod device;
mod error;
mod impair;
mod interface;
mod kind;
mod offload;
mod packet;
mod record;
mod recorder;
mod replay;
mod stages;
mod stream;
mod tap;
mod watch;
mod wire;
mod xdp;

use crate::capture::{Capture, Captures};
use crate::config::PortConfig;
use crate::config::file::PortLink;
use crate::config::uplink;
use crate::control::uplink::{UplinkState, UplinkStatus};
use crate::vault::PortVault;
use device::DeviceUplink;
pub use error::UplinkError;
use host::packet::PacketSocket;
use i82576::Time;
use interface::{Device, kept_as};
pub(in crate::port) use kind::At;
use kind::Kind;
pub(crate) use kind::Maker;
use nic::{Sealed, Uncut, Wire};
use plane::watch::Seen;
use replay::Replay;
pub(crate) use stages::Stages;
use std::fmt;
use std::io;
use stream::StreamUplink;
use tap::{Macvtap, Stack, TapDevice};
use wire::WireEnd;
pub(crate) use wire::cable::Wires;
use xdp::XdpDevice;
pub(crate) use xdp::programs::Programs;

/// The uplink of a port.
#[derive(Debug)]
pub(crate) struct Uplink {
    /// As configured.
    config: uplink::Uplink,
    /// What the port's link is.
    policy: PortLink,
    kind: Box<dyn Kind>,
    stages: Stages,
    captures: Captures,
    /// The time of the round.
    now: Time,
}

impl Uplink {
    /// Makes what is configured, or goes on with what a predecessor has left in the vault. Nothing passes before
    /// [`Uplink::join`].
    pub(crate) fn open(config: &PortConfig, with: &Maker<'_>) -> Result<Self, UplinkError> {
        let kind: Box<dyn Kind> = match &config.uplink {
            uplink::Uplink::None => Box::new(Nothing),
            uplink::Uplink::Tap(name) => {
                Box::new(DeviceUplink::<TapDevice<Stack>>::open(&name.parse()?, &(), with)?)
            }
            uplink::Uplink::Macvtap(name) => {
                Box::new(DeviceUplink::<TapDevice<Macvtap>>::open(&name.parse()?, &(), with)?)
            }
            uplink::Uplink::Interface(name) => {
                Box::new(DeviceUplink::<PacketSocket>::open(&name.parse()?, &(), with)?)
            }
            uplink::Uplink::Xdp(name, xdp) => {
                let terms = with.programs.terms(*xdp);
                Box::new(DeviceUplink::<XdpDevice>::open(&name.parse()?, &terms, with)?)
            }
            uplink::Uplink::Stream(place) => Box::new(StreamUplink::open(place, config.access, with)?),
            uplink::Uplink::Wire(name) => Box::new(WireEnd::new(name, with)?),
            uplink::Uplink::Replay(path) => Box::new(Replay::open(path, with)?),
        };
        // A port without a recording is better than none: its guests would lose their VFs.
        let stages = Stages::open(config, with).unwrap_or_else(|error| {
            tracing::error!(port = config.name, %error, "the port goes on without a recording");
            Stages::without_recording(config)
        });
        let captures = Captures::default();
        Ok(Self { config: config.uplink.clone(), policy: config.link, kind, stages, captures, now: with.now })
    }

    /// Has somebody see what becomes of the port's frames. If too many do already, the capture ends at once.
    pub(super) fn capture(&mut self, capture: Capture) {
        self.captures.add(capture);
    }

    /// Has frames pass other stages from now on; answers which they were.
    pub(super) fn set_stages(&mut self, mut stages: Stages) -> Stages {
        stages.count_on(&self.stages);
        std::mem::replace(&mut self.stages, stages)
    }

    /// When there is something to be done though nothing is reported.
    pub(super) fn deadline(&self) -> Option<Time> {
        [self.stages.deadline(), self.kind.deadline()].into_iter().flatten().min()
    }

    /// Gives up what a predecessor with another configuration has kept of its uplink.
    pub(in crate::port) fn forget_others(config: &PortConfig, vault: &PortVault) {
        let ours = match &config.uplink {
            uplink::Uplink::Tap(name) => kept_as::<TapDevice<Stack>>(name),
            uplink::Uplink::Macvtap(name) => kept_as::<TapDevice<Macvtap>>(name),
            uplink::Uplink::Interface(name) => kept_as::<PacketSocket>(name),
            uplink::Uplink::Xdp(name, _) => kept_as::<XdpDevice>(name),
            uplink::Uplink::Stream(_) => stream::LISTENER.to_owned(),
            uplink::Uplink::None | uplink::Uplink::Wire(_) | uplink::Uplink::Replay(_) => String::new(),
        };
        let kinds = [
            TapDevice::<Stack>::KEPT,
            TapDevice::<Macvtap>::KEPT,
            PacketSocket::KEPT,
            XdpDevice::KEPT,
            stream::LISTENER,
        ];
        for kind in kinds {
            vault.forget_named_others(kind, &ours);
        }
    }

    /// Has the port wait on the uplink from now on.
    pub(super) fn join(&mut self, at: At<'_>) -> io::Result<()> {
        self.kind.join(at)
    }

    /// Takes the place of another uplink; that one is handed back, with the policy. If the port cannot wait on this one,
    /// everything stays as it was.
    pub(super) fn replace(&mut self, mut next: Self, at: At<'_>) -> Result<Self, Box<(Self, io::Error)>> {
        self.kind.part(at.poller);
        if let Err(error) = next.kind.join(at) {
            if let Err(error) = self.kind.join(at) {
                tracing::error!(uplink = %self.config, %error, "the uplink is lost");
            }
            return Err(Box::new((next, error)));
        }
        next.own();
        next.captures = std::mem::take(&mut self.captures);
        Ok(std::mem::replace(self, next))
    }

    /// What it has made in the file system goes with it from now on, until it is left.
    pub(super) fn own(&mut self) {
        self.kind.own();
    }

    /// A successor goes on with what it has made.
    pub(super) fn leave(&mut self) {
        self.kind.leave();
    }

    /// Gives up what is kept for a successor. May take its time.
    pub(crate) fn retire(self) {
        self.kind.retire();
    }

    /// Has the link that this says from now on; answers what it was.
    pub(super) fn set_policy(&mut self, policy: PortLink) -> PortLink {
        std::mem::replace(&mut self.policy, policy)
    }

    /// A descriptor was reported.
    pub(super) fn set_readable(&mut self) {
        self.kind.set_readable();
    }

    /// Takes note of what has happened to the uplink; `false` if nothing has.
    pub(super) fn follow(&mut self, at: At<'_>) -> bool {
        self.kind.follow(at)
    }

    /// The port is about to sleep; `false` if there is something to be received by now.
    pub(super) fn may_sleep(&mut self) -> bool {
        self.kind.may_sleep()
    }

    /// Begins a round at this time.
    pub(super) fn set_time(&mut self, now: Time) {
        self.now = now;
    }

    /// Sends the frames that the card has given to it.
    pub(super) fn flush(&mut self) {
        self.stages.arrive(&mut *self.kind, self.now);
        self.kind.flush(self.now);
        self.stages.flush();
        if !self.captures.is_empty() {
            self.captures.forget_ended();
        }
    }

    /// The link that the port has by it. Without an uplink the port has one, so that its VFs reach each other.
    pub(in crate::port) fn link(&self) -> bool {
        self.policy == PortLink::Up || self.kind.link()
    }

    /// Returns its text in the configuration.
    pub(super) fn configured(&self) -> String {
        self.config.to_string()
    }

    /// What is told of it, if there is one.
    pub(super) fn status(&self, now: Time) -> Option<UplinkStatus> {
        let mut status = self.kind.status(now)?;
        self.stages.tell(&mut status);
        Some(status)
    }
}

impl fmt::Display for Uplink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind.status(self.now).map(|status| status.state) {
            None | Some(UplinkState::Up) => self.config.fmt(f),
            Some(state) => write!(f, "{} ({state})", self.config),
        }
    }
}

impl Wire for Uplink {
    fn transmit(&mut self, frame: &[u8]) -> bool {
        self.stages.transmit(&mut *self.kind, frame, self.now)
    }

    fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        self.stages.receive(&mut *self.kind, into, self.now)
    }

    fn sealed(&self) -> Option<Sealed> {
        self.kind.sealed().filter(|_| self.stages.take_uncut())
    }

    fn takes_uncut(&self) -> bool {
        self.kind.takes_uncut() && self.stages.take_uncut()
    }

    fn transmit_uncut(&mut self, packet: &[u8], uncut: &Uncut) -> bool {
        let sent = self.kind.transmit_uncut(packet, uncut);
        self.stages.note_sent_uncut(sent, packet, uncut)
    }

    #[inline]
    fn is_watched(&self) -> bool {
        !self.captures.is_empty()
    }

    fn watch(&mut self, seen: Seen, frame: &[u8]) {
        self.captures.note(seen, frame);
    }
}

/// No uplink.
#[derive(Debug)]
struct Nothing;

impl Kind for Nothing {
    fn link(&self) -> bool {
        true
    }

    fn status(&self, _now: Time) -> Option<UplinkStatus> {
        None
    }

    fn transmit(&mut self, _frame: &[u8]) -> bool {
        false
    }

    fn receive(&mut self, _into: &mut [u8]) -> Option<usize> {
        None
    }
}
