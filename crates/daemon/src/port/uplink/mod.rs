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
use device::{Device, DeviceUplink};
pub use error::UplinkError;
use host::confine::Prepared;
use host::packet::PacketSocket;
use host::poll::{Poller, Waker};
use i82576::Time;
use nic::{Sealed, Uncut, Wire};
use plane::watch::Seen;
use replay::Replay;
pub(crate) use stages::Stages;
use std::fmt;
use std::io;
use stream::StreamUplink;
use tap::{Macvtap, Stack, TapDevice};
use wire::WireEnd;
pub(crate) use wire::Wires;
pub(crate) use xdp::Programs;
use xdp::XdpDevice;

/// One kind of uplink, as the port's thread has it.
trait Kind: fmt::Debug + Send {
    /// The port waits on the uplink from now on: its descriptors, if it has any, are reported as `token`.
    fn join(&mut self, _poller: &Poller, _token: u64) -> io::Result<()> {
        Ok(())
    }

    /// The port waits on it no more.
    fn part(&mut self, _poller: &Poller) {}

    /// A descriptor was reported.
    fn set_readable(&mut self) {}

    /// Takes note of what has happened to the uplink; `false` if nothing has. What takes the place of a descriptor is
    /// waited on as `token`.
    fn follow(&mut self, _poller: &Poller, _token: u64) -> bool {
        false
    }

    /// Frames can pass.
    fn link(&self) -> bool;

    /// How it is; `None` if there is nothing.
    fn status(&self) -> Option<UplinkStatus>;

    /// Takes a frame, to go out at the next flush at the latest; `false` if it is lost, which is counted.
    fn transmit(&mut self, frame: &[u8]) -> bool;

    /// Whether it takes packets that are not cut into segments yet.
    fn takes_uncut(&self) -> bool {
        false
    }

    /// Takes such a packet, as [`Kind::transmit`] takes a frame.
    fn transmit_uncut(&mut self, _packet: &[u8], _uncut: &Uncut) -> bool {
        false
    }

    /// Sends what it has taken.
    fn flush(&mut self) {}

    /// When it is to be flushed again, though nothing is reported.
    fn deadline(&self) -> Option<Time> {
        None
    }

    /// The next frame, if there is one.
    fn receive(&mut self, into: &mut [u8]) -> Option<usize>;

    /// What is known of the checksum of the frame that was received last.
    fn sealed(&self) -> Option<Sealed> {
        None
    }

    /// The port is about to sleep; `false` if there is something to be received by now. What comes later wakes it.
    fn may_sleep(&mut self) -> bool {
        true
    }

    /// What it has made in the file system goes with it from now on.
    fn own(&mut self) {}

    /// A successor goes on with what it has made.
    fn leave(&mut self) {}

    /// The port has another uplink: what is kept for a successor is given up. May take its time.
    fn retire(self: Box<Self>) {}
}

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
}

/// What an uplink is made with.
pub(crate) struct Maker<'a> {
    pub(crate) vault: &'a PortVault,
    /// Wakes the port when something has happened to its uplink.
    pub(crate) port: &'a Waker,
    /// What the thread gives up that watches it.
    pub(crate) watcher: &'a Prepared,
    /// The wires between the host's ports.
    pub(crate) wires: &'a Wires,
    /// The programs for interfaces.
    pub(crate) programs: &'a Programs,
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
        Ok(Self { config: config.uplink.clone(), policy: config.link, kind, stages, captures })
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
    pub(super) fn forget_others(config: &PortConfig, vault: &PortVault) {
        let ours = match &config.uplink {
            uplink::Uplink::Tap(name) => device::kept_as::<TapDevice<Stack>>(name),
            uplink::Uplink::Macvtap(name) => device::kept_as::<TapDevice<Macvtap>>(name),
            uplink::Uplink::Interface(name) => device::kept_as::<PacketSocket>(name),
            uplink::Uplink::Xdp(name, _) => device::kept_as::<XdpDevice>(name),
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

    /// The port waits on it from now on, as `token`.
    pub(super) fn join(&mut self, poller: &Poller, token: u64) -> io::Result<()> {
        self.kind.join(poller, token)
    }

    /// Takes the place of another uplink; that one is handed back, with the policy. If the port cannot wait on this one,
    /// everything stays as it was.
    pub(super) fn replace(
        &mut self,
        mut next: Self,
        poller: &Poller,
        token: u64,
    ) -> Result<Self, Box<(Self, io::Error)>> {
        self.kind.part(poller);
        if let Err(error) = next.kind.join(poller, token) {
            if let Err(error) = self.kind.join(poller, token) {
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
    pub(super) fn follow(&mut self, poller: &Poller, token: u64) -> bool {
        self.kind.follow(poller, token)
    }

    /// The port is about to sleep; `false` if there is something to be received by now.
    pub(super) fn may_sleep(&mut self) -> bool {
        self.kind.may_sleep()
    }

    /// Sends what the card has given to it.
    pub(super) fn flush(&mut self) {
        self.stages.arrive(&mut *self.kind);
        self.kind.flush();
        self.stages.flush();
        if !self.captures.is_empty() {
            self.captures.forget_ended();
        }
    }

    /// The link that the port has by it. Without an uplink the port has one, so that its VFs reach each other.
    pub(super) fn link(&self) -> bool {
        self.policy == PortLink::Up || self.kind.link()
    }

    /// Returns its text in the configuration.
    pub(super) fn configured(&self) -> String {
        self.config.to_string()
    }

    /// What is told of it, if there is one.
    pub(super) fn status(&self) -> Option<UplinkStatus> {
        let mut status = self.kind.status()?;
        self.stages.tell(&mut status);
        Some(status)
    }
}

impl fmt::Display for Uplink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind.status().map(|status| status.state) {
            None | Some(UplinkState::Up) => self.config.fmt(f),
            Some(state) => write!(f, "{} ({state})", self.config),
        }
    }
}

impl Wire for Uplink {
    fn transmit(&mut self, frame: &[u8]) -> bool {
        self.stages.transmit(&mut *self.kind, frame)
    }

    fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        self.stages.receive(&mut *self.kind, into)
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

    fn status(&self) -> Option<UplinkStatus> {
        None
    }

    fn transmit(&mut self, _frame: &[u8]) -> bool {
        false
    }

    fn receive(&mut self, _into: &mut [u8]) -> Option<usize> {
        None
    }
}
