//! Uplink of a port: none, or one of several kinds that move frames to and from the card, each a file behind
//! [`UplinkBackend`].
//!
//! | kind | other end | a thread beside the port's |
//! |---|---|---|
//! | `tap` | a tap: the host's network stack | watches the interface |
//! | `tap` | a macvtap: the interface below it | watches the interface |
//! | `packet` | an existing network interface, by a packet socket | watches the interface |
//! | `xdp` | an existing network interface, by AF_XDP | watches the interface |
//! | `port_wire` | another port of this host (`wire:NAME`), by a ring each way | none |
//! | `stream` | another process, by a UNIX stream socket | connects, or listens |
//! | `replay` | a recording | reads it |
//!
//! Stages are between the port and its uplink (`stages`). If the configuration wants it, they delay, drop and
//! reorder frames (`impair`), and record the frames of the uplink (`recorder`). They always count.
//!
//! `backend` has the trait, `claimed_name` keeps descriptors for the successor process, and `addresses` has the addresses that ports on one link hold. `interface` implements the trait for
//! `tap`, `packet` and `xdp`, which implement the trait of `device`.
//!
//! No call on the port's thread blocks. Every kind receives whole frames. Some kinds send packets before
//! segmentation (`offload`).

mod addresses;
mod backend;
mod claimed_name;
mod device;
mod error;
mod impair;
mod interface;
mod offload;
mod packet;
mod port_wire;
mod recorder;
mod replay;
mod stages;
mod state;
mod stream;
mod tap;
#[cfg(test)]
pub(in crate::port) mod test_support;
mod watch;
mod xdp;

use crate::capture::{CaptureWriter, PortCaptures};
use crate::config::PortConfig;
use crate::config::file::PortLinkRule;
use crate::config::uplink;
use crate::control::uplink::{UplinkState, UplinkStatus};
use crate::vault::PortFileDescriptorStore;
pub(crate) use addresses::ParentAddressRegistry;
use backend::UplinkBackend;
pub(in crate::port) use backend::UplinkPollContext;
pub(crate) use backend::UplinkResources;
use device::{UplinkDevice, kept_as};
pub use error::UplinkError;
use host::packet::PacketSocket;
use i82576::Time;
use interface::InterfaceUplink;
use nic::{TrustedChecksum, UnsegmentedPacketLayout, UplinkWire};
use plane::frame::HEADROOM;
use plane::guard::SharedAddresses;
use plane::watch::FrameObservation;
use port_wire::WireUplink;
pub(crate) use port_wire::cable::WireRegistry;
#[cfg(test)]
pub(in crate::port) use port_wire::far_end::FarWireEnd;
use replay::ReplayUplink;
pub use replay::frames_of_recording;
pub(crate) use stages::UplinkPipelineStages;
use std::fmt;
use std::io;
use std::sync::Arc;
use stream::StreamUplink;
pub use stream::frames_of_stream;
use tap::{HostStackTap, Macvtap, TapDevice};
use xdp::XdpDevice;
pub(crate) use xdp::programs::XdpPrograms;

/// Uplink of a port, with its link policy and stages.
#[derive(Debug)]
pub(crate) struct PortUplink {
    /// Kind of the uplink with its name or path, as configured.
    config: uplink::UplinkConfig,
    /// Rule by which the port's link is up or down.
    policy: PortLinkRule,
    kind: Box<dyn UplinkBackend>,
    stages: UplinkPipelineStages,
    captures: PortCaptures,
    /// Time of the present round of the port's loop.
    now: Time,
}

impl PortUplink {
    /// Opens the configured uplink, or resumes the uplink whose file descriptors the previous host process has kept. No
    /// frame passes before [`PortUplink::join`].
    pub(crate) fn open(config: &PortConfig, with: &UplinkResources<'_>) -> Result<Self, UplinkError> {
        let kind: Box<dyn UplinkBackend> = match &config.uplink {
            uplink::UplinkConfig::None => Box::new(NoUplink),
            uplink::UplinkConfig::Tap(name) => {
                Box::new(InterfaceUplink::<TapDevice<HostStackTap>>::open(&name.parse()?, &(), with)?)
            }
            uplink::UplinkConfig::Macvtap(name) => {
                Box::new(InterfaceUplink::<TapDevice<Macvtap>>::open(&name.parse()?, &(), with)?)
            }
            uplink::UplinkConfig::Interface(name) => {
                Box::new(InterfaceUplink::<PacketSocket>::open(&name.parse()?, &(), with)?)
            }
            uplink::UplinkConfig::Xdp(name, xdp) => {
                let terms = with.programs.terms(*xdp);
                Box::new(InterfaceUplink::<XdpDevice>::open(&name.parse()?, &terms, with)?)
            }
            uplink::UplinkConfig::Stream(place) => Box::new(StreamUplink::open(place, config.access, with)?),
            uplink::UplinkConfig::Wire(name) => {
                Box::new(WireUplink::new(name, with.wires, with.port.clone(), with.now)?)
            }
            uplink::UplinkConfig::Replay(path) => Box::new(ReplayUplink::open(path, with)?),
        };
        // Without its recording a port still runs. If it did not start, its guests would lose their VFs.
        let stages = UplinkPipelineStages::open(config, with).unwrap_or_else(|error| {
            tracing::error!(
                port = config.name,
                %error,
                "cannot record the uplink; the port runs without a recording"
            );
            UplinkPipelineStages::without_recording(config)
        });
        let captures = PortCaptures::default();
        let (policy, now) = (config.link, with.now);
        Ok(Self { config: config.uplink.clone(), policy, kind, stages, captures, now })
    }

    /// Returns the addresses that ports hold on the uplink's link, if several ports of the host may share it.
    pub(super) fn addresses(&self) -> Option<Arc<dyn SharedAddresses>> {
        self.kind.addresses()
    }

    /// Adds a capture of the port's frames. The capture ends at once if the port has the maximum number of captures.
    pub(super) fn capture(&mut self, capture: CaptureWriter) {
        self.captures.add(capture);
    }

    /// Replaces the impairment and the recording, and returns the former ones. The counters continue.
    pub(super) fn set_stages(&mut self, mut stages: UplinkPipelineStages) -> UplinkPipelineStages {
        stages.count_on(&self.stages);
        std::mem::replace(&mut self.stages, stages)
    }

    /// Returns the time of the next flush if no event comes before.
    pub(super) fn deadline(&self) -> Option<Time> {
        [self.stages.deadline(), self.kind.deadline()].into_iter().flatten().min()
    }

    /// Releases kept file descriptors of the previous host process's uplink that this configuration does not use.
    pub(in crate::port) fn forget_others(config: &PortConfig, vault: &PortFileDescriptorStore) {
        let ours = match &config.uplink {
            uplink::UplinkConfig::Tap(name) => kept_as::<TapDevice<HostStackTap>>(name),
            uplink::UplinkConfig::Macvtap(name) => kept_as::<TapDevice<Macvtap>>(name),
            uplink::UplinkConfig::Interface(name) => kept_as::<PacketSocket>(name),
            uplink::UplinkConfig::Xdp(name, _) => kept_as::<XdpDevice>(name),
            uplink::UplinkConfig::Stream(_) => stream::LISTENER.to_owned(),
            uplink::UplinkConfig::None | uplink::UplinkConfig::Wire(_) | uplink::UplinkConfig::Replay(_) => {
                String::new()
            }
        };
        let kinds = [
            TapDevice::<HostStackTap>::KEPT,
            TapDevice::<Macvtap>::KEPT,
            PacketSocket::KEPT,
            XdpDevice::KEPT,
            stream::LISTENER,
        ];
        let ours = [ours];
        for kind in kinds {
            vault.forget_named_others(kind, &ours);
        }
    }

    /// Gives the uplink's socket, which the previous host process may have left, the access that the configuration grants now.
    pub(in crate::port) fn renew_access(config: &PortConfig, vault: &PortFileDescriptorStore) {
        if let uplink::UplinkConfig::Stream(place) = &config.uplink {
            stream::renew_access(place, config.access, vault);
        }
    }

    /// Adds the uplink's file descriptors to the port's poller.
    pub(super) fn join(&mut self, at: UplinkPollContext<'_>) -> io::Result<()> {
        self.kind.join(at)
    }

    /// Replaces this uplink by the uplink `next`. Returns the former uplink with its link rule. If the poller does not
    /// accept `next`, keeps this uplink.
    pub(super) fn replace(
        &mut self,
        mut next: Self,
        at: UplinkPollContext<'_>,
    ) -> Result<Self, Box<(Self, io::Error)>> {
        self.kind.leave_poller(at.poller);
        if let Err(error) = next.kind.join(at) {
            if let Err(error) = self.kind.join(at) {
                tracing::error!(
                    uplink = %self.config,
                    %error,
                    "cannot return to the former uplink; the port has no uplink now"
                );
            }
            return Err(Box::new((next, error)));
        }
        next.own();
        next.captures = std::mem::take(&mut self.captures);
        Ok(std::mem::replace(self, next))
    }

    /// Keeps the uplink's file descriptors for the successor process, in place of a former uplink's. Deletes its socket file
    /// when the uplink is dropped, unless [`Self::leave`] is called before.
    pub(super) fn own(&mut self) {
        self.kind.own();
    }

    /// Leaves the uplink's socket file to the successor process.
    pub(super) fn leave(&mut self) {
        self.kind.leave();
    }

    /// Ends the uplink, and releases its file descriptors that are kept for the successor process. May block.
    pub(crate) fn retire(self) {
        self.kind.retire();
        self.stages.retire();
    }

    /// Sets the rule for the port's link. Returns the former rule.
    pub(super) fn set_policy(&mut self, policy: PortLinkRule) -> PortLinkRule {
        std::mem::replace(&mut self.policy, policy)
    }

    /// Records that a file descriptor of the uplink is readable.
    pub(super) fn set_readable(&mut self) {
        self.kind.set_readable();
    }

    /// Handles changes of the uplink's interface or peer. Returns `false` if there are none.
    pub(super) fn follow(&mut self, at: UplinkPollContext<'_>) -> bool {
        self.kind.follow(at)
    }

    /// Prepares the uplink for the port's sleep. Returns `false` if there are frames to receive.
    pub(super) fn may_sleep(&mut self) -> bool {
        self.kind.may_sleep()
    }

    /// Sets the uplink's time to the start of the present round of the port's loop.
    pub(super) fn set_time(&mut self, now: Time) {
        self.now = now;
    }

    /// Sends the frames that are queued for the uplink: delayed frames that are due, and frames that the card has
    /// transmitted.
    pub(super) fn flush(&mut self) {
        self.stages.send_due(&mut *self.kind, self.now);
        self.kind.flush(self.now);
        self.stages.flush();
        if !self.captures.is_empty() {
            self.captures.forget_ended();
        }
    }

    /// Returns true if the port has a link. Without an uplink the link is up, so that VFs reach each other.
    pub(in crate::port) fn link(&self) -> bool {
        self.policy == PortLinkRule::Up || self.kind.link()
    }

    /// Returns the configured uplink as text, such as `tap:NAME`.
    pub(super) fn configured(&self) -> String {
        self.config.to_string()
    }

    /// Returns the uplink's status, or `None` without an uplink.
    pub(super) fn status(&self, now: Time) -> Option<UplinkStatus> {
        let mut status = self.kind.status(now)?;
        self.stages.add_to(&mut status);
        Some(status)
    }
}

impl fmt::Display for PortUplink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind.status(self.now).map(|status| status.state) {
            None | Some(UplinkState::Up) => self.config.fmt(f),
            Some(state) => write!(f, "{} ({state})", self.config),
        }
    }
}

impl UplinkWire for PortUplink {
    fn transmit(&mut self, frame: &[u8]) -> bool {
        self.stages.transmit(&mut *self.kind, frame, self.now)
    }

    fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        self.stages.receive(&mut *self.kind, into, self.now)
    }

    fn sealed(&self) -> Option<TrustedChecksum> {
        self.kind.sealed().filter(|_| self.stages.take_uncut())
    }

    fn takes_uncut(&self) -> bool {
        self.kind.takes_uncut() && self.stages.take_uncut()
    }

    fn transmit_uncut(&mut self, packet: &[u8], uncut: &UnsegmentedPacketLayout) -> bool {
        let sent = self.kind.transmit_uncut(packet, uncut);
        self.stages.note_sent_uncut(sent, packet, uncut)
    }

    fn uncut(&mut self) -> Option<(&mut [u8], UnsegmentedPacketLayout)> {
        if self.stages.take_uncut() { self.kind.uncut() } else { None }
    }

    fn pass_uncut(&mut self) {
        if let Some((packet, uncut)) = self.kind.uncut() {
            self.stages.note_received_uncut(packet.get(HEADROOM..).unwrap_or_default(), &uncut);
        }
        self.kind.pass_uncut();
    }

    #[inline]
    fn is_watched(&self) -> bool {
        !self.captures.is_empty()
    }

    fn watch(&mut self, seen: FrameObservation, frame: &[u8]) {
        self.captures.note(seen, frame);
    }
}

/// Uplink of a port that has none.
#[derive(Debug)]
struct NoUplink;

impl UplinkBackend for NoUplink {
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
