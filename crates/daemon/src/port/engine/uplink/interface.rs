//! Network interface as a port's uplink, with the calls of the port's thread: frames, and the link. No call here takes
//! the kernel's lock on interfaces. The watcher (`watch`) attaches, queries and closes, and holds a reference to the
//! device as well. `tap`, `packet` and `xdp` move the frames.

use super::UplinkError;
use super::addresses::{ParentAddressRegistry, ParentInterface, PortAddresses};
use super::backend::{UplinkBackend, UplinkPollContext, UplinkResources};
use super::device::{UplinkDevice, UplinkReceiveOutcome, kept_as};
use super::state::{InterfaceState, UplinkStateCounters};
use super::watch::{InterfaceReport, InterfaceWatcherHandle};
use crate::control::uplink::{UplinkState, UplinkStatus};
use host::packet::UnsentFrameCounts;
use host::poll::{PollInterest, Poller};
use host::tap::InterfaceName;
use i82576::Time;
use nic::{TrustedChecksum, UnsegmentedPacketLayout};
use offload::headers::ETHERNET_HEADER;
use plane::bytes::be16;
use plane::guard::SharedAddresses;
use plane::tag::{OUTERMOST, TAG};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Bytes by which a frame may exceed the interface's MTU: Ethernet header and one VLAN tag, as in Linux's forwarding.
const HEADERS: usize = ETHERNET_HEADER + TAG;
/// Types of the outermost VLAN tag that Linux removes from a frame (IEEE 802.1Q and 802.1ad).
const TAG_TYPES: [u16; 2] = [0x8100, 0x88a8];

/// Delay of the next attempt to send frames for which the device had no room.
const AGAIN: Duration = Duration::from_millis(1);

/// Maximum number of invalid frames that one call skips to receive a valid one. A sender of only invalid frames must
/// not delay the port.
const PASSED_OVER: usize = 32;

/// Network interface that is a port's uplink.
#[derive(Debug)]
pub(super) struct InterfaceUplink<D: UplinkDevice> {
    /// Name of the interface, as configured.
    name: InterfaceName,
    /// Attached device, or `None` while the interface is gone.
    device: Option<Arc<D>>,
    burst: D::Burst,
    /// True if the device may hold frames: it was reported readable and has not been found empty since.
    readable: bool,
    /// True if reading from the interface has failed.
    broken: bool,
    /// Last known state of the uplink's interface.
    seen: InterfaceState,
    /// Bytes of the longest frame that the interface accepts.
    longest: usize,
    /// Time of the next flush, if the device had no room for all frames.
    again: Option<Time>,
    parents: ParentAddressRegistry,
    /// Addresses of the ports whose uplinks share the interface's link, with the interface that they share. `None` while the port
    /// does not use the uplink, or if the interface is in another network namespace.
    shared: Option<(ParentInterface, Arc<PortAddresses>)>,
    record: UplinkStateCounters,
    watch: InterfaceWatcherHandle<D>,
}

impl<D: UplinkDevice> InterfaceUplink<D> {
    /// Attaches to the interface, starts its watcher, and keeps the device's file descriptor for the successor process.
    /// If the previous host process's interface is gone, the port waits for it, and guests keep their VFs.
    pub(super) fn open(
        name: &InterfaceName,
        terms: &D::Terms,
        with: &UplinkResources<'_>,
    ) -> Result<Self, UplinkError> {
        // Earlier versions kept it under the shorter name.
        let kept = with.vault.copy_named(&kept_as::<D>(name)).or_else(|| with.vault.copy_named(D::KIND));
        let device = match kept.map(|fd| D::adopt(fd, name, terms)) {
            // The administrator may have set the interface of the previous host process down.
            Some(device) => device,
            None => {
                let device = D::open(name, terms)?;
                device.set_up();
                Some(device)
            }
        };
        let device = device.map(Arc::new);
        let mut burst = D::Burst::default();
        if let Some(device) = &device {
            device.begin(&mut burst);
        }
        let (seen, watch) = InterfaceWatcherHandle::start(name, (device.clone(), terms), with)?;
        let mut uplink = Self {
            name: name.clone(),
            longest: longest(&seen, device.as_deref()),
            device,
            burst,
            readable: true,
            broken: false,
            again: None,
            seen,
            parents: with.parents.clone(),
            shared: None,
            record: UplinkStateCounters::new(D::KIND, UplinkState::Up, with.now),
            watch,
        };
        uplink.record.set_state(uplink.state(), with.now);
        Ok(uplink)
    }

    fn state(&self) -> UplinkState {
        match (&self.device, self.seen.up) {
            (None, _) => UplinkState::Gone,
            (Some(_), true) => UplinkState::Up,
            (Some(_), false) => UplinkState::Down,
        }
    }

    fn see(&mut self, seen: InterfaceState) {
        self.longest = longest(&seen, self.device.as_deref());
        self.seen = seen;
        self.share();
    }

    /// Shares addresses with the ports whose uplinks have the same parent. A deleted interface keeps the addresses of its former
    /// parent until the interface is back.
    fn share(&mut self) {
        let parent = self.seen.parent;
        if self.shared.as_ref().map(|(before, _)| *before) != parent {
            self.shared = parent.map(|parent| (parent, Arc::new(self.parents.join(parent))));
        }
    }

    fn attach(&mut self, device: Arc<D>, seen: InterfaceState, poller: &Poller, token: u64) {
        if let Err(error) = poller.add(&*device, token, PollInterest::READ) {
            tracing::error!(uplink = self.name.as_str(), %error, "cannot wait for frames of the {}", D::KIND);
            return self.watch.give_back(device);
        }
        D::clear(&mut self.burst);
        device.begin(&mut self.burst);
        (self.device, self.readable, self.broken) = (Some(device), true, false);
        self.see(seen);
        self.record.reattached();
    }

    /// Detaches from the uplink's interface, and removes its file descriptor from the poller. Does nothing without an
    /// attached interface.
    fn detach(&mut self, poller: &Poller) {
        if let Some(device) = self.device.take() {
            self.record.drops.missed += device.missed();
            self.record.drops.no_link += u64::from(D::unsent(&mut self.burst));
            // The watcher closes the descriptor, which removes it from the poller too. So a failure here has no
            // consequence.
            let _ = poller.remove(&*device);
            self.seen.interface = self.name.to_string();
            // Now the watcher has the last reference, and closes the device on its thread.
            D::clear(&mut self.burst);
            self.watch.give_back(device);
        }
    }

    /// Returns true if a frame of `length` bytes is longer than the interface accepts.
    fn is_too_long(&self, length: usize, tagged: bool) -> bool {
        let on_top = if D::TAG_ON_TOP && tagged { TAG } else { 0 };
        length > self.longest.saturating_add(on_top)
    }

    fn count(&mut self, lost: UnsentFrameCounts) -> bool {
        self.record.drops.too_long += lost.too_long;
        self.record.drops.no_room += lost.no_room;
        self.record.drops.no_link += lost.no_link;
        lost == UnsentFrameCounts::default()
    }
}

impl<D: UplinkDevice> UplinkBackend for InterfaceUplink<D> {
    fn addresses(&self) -> Option<Arc<dyn SharedAddresses>> {
        let (_, addresses) = self.shared.clone()?;
        Some(addresses)
    }

    fn join(&mut self, UplinkPollContext { poller, token, .. }: UplinkPollContext<'_>) -> io::Result<()> {
        self.readable = true;
        self.share();
        self.device.as_ref().map_or(Ok(()), |device| poller.add(&**device, token, PollInterest::READ))
    }

    fn leave_poller(&mut self, poller: &Poller) {
        if let Some(device) = &self.device {
            // A failure means that the poller does not watch the device, which is the goal.
            let _ = poller.remove(&**device);
        }
        self.shared = None;
    }

    fn set_readable(&mut self) {
        self.readable = true;
    }

    /// Handles changes that the watcher has reported, and detaches from a device that cannot be read any more.
    fn follow(&mut self, UplinkPollContext { poller, token, now }: UplinkPollContext<'_>) -> bool {
        let mut happened = std::mem::take(&mut self.broken);
        if happened {
            self.detach(poller);
        }
        while let Some(report) = self.watch.report() {
            happened = true;
            match report {
                InterfaceReport::Changed(seen) => self.see(seen),
                InterfaceReport::Gone => self.detach(poller),
                InterfaceReport::Attached(device, seen) => {
                    self.detach(poller);
                    self.attach(device, seen, poller, token);
                }
            }
        }
        self.record.set_state(self.state(), now);
        happened
    }

    /// Returns the interface's link: it is up and has a carrier.
    fn link(&self) -> bool {
        self.record.state() == UplinkState::Up && self.seen.carrier != Some(false)
    }

    fn status(&self, now: Time) -> Option<UplinkStatus> {
        let there = self.device.is_some();
        let mut status = self.record.status(self.seen.interface.clone(), now);
        status.carrier = self.seen.carrier.filter(|_| there);
        status.mtu = self.seen.mtu.filter(|_| there);
        status.mode = self.device.as_ref().and_then(|device| device.mode());
        status.drops.missed += self.device.as_ref().map_or(0, |device| device.missed());
        Some(status)
    }

    fn transmit(&mut self, frame: &[u8]) -> bool {
        let tagged = be16(frame, OUTERMOST).is_some_and(|kind| TAG_TYPES.contains(&kind));
        if self.is_too_long(frame.len(), tagged) {
            self.record.drops.too_long += 1;
            return false;
        }
        let lost = match self.device.as_ref().filter(|_| self.seen.up) {
            Some(device) => device.transmit(&mut self.burst, frame),
            None => UnsentFrameCounts { no_link: 1, ..UnsentFrameCounts::default() },
        };
        self.count(lost)
    }

    fn takes_uncut(&self) -> bool {
        self.device.as_ref().is_some_and(|device| device.takes_uncut())
    }

    /// Queues a packet for the interface to segment. A dropped packet counts as the frames that its segmentation would
    /// have made.
    fn transmit_uncut(&mut self, packet: &[u8], uncut: &UnsegmentedPacketLayout) -> bool {
        let frames = uncut.frames(packet.len());
        if self.is_too_long(uncut.longest(), uncut.l3 > ETHERNET_HEADER) {
            self.record.drops.too_long += frames;
            return false;
        }
        let UnsentFrameCounts { too_long, no_room, no_link } =
            match self.device.as_ref().filter(|_| self.seen.up) {
                Some(device) => device.transmit_uncut(&mut self.burst, packet, uncut),
                None => UnsentFrameCounts { no_link: 1, ..UnsentFrameCounts::default() },
            };
        self.count(UnsentFrameCounts {
            too_long: too_long * frames,
            no_room: no_room * frames,
            no_link: no_link * frames,
        })
    }

    fn sealed(&self) -> Option<TrustedChecksum> {
        D::sealed(&self.burst)
    }

    fn flush(&mut self, now: Time) {
        if let Some(device) = &self.device {
            let lost = device.flush(&mut self.burst);
            self.count(lost);
        }
        self.again = D::has_left(&self.burst).then(|| now + AGAIN);
    }

    fn deadline(&self) -> Option<Time> {
        self.again.filter(|_| self.seen.up && self.device.is_some())
    }

    fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        let device = self.device.as_ref().filter(|_| self.readable)?;
        for _ in 0..PASSED_OVER {
            match device.receive(&mut self.burst, into) {
                Ok(UplinkReceiveOutcome::Frame(length)) => return Some(length),
                Ok(UplinkReceiveOutcome::Malformed) => self.record.drops.malformed += 1,
                Ok(UplinkReceiveOutcome::Empty) => {
                    self.readable = false;
                    return None;
                }
                Err(_) => {
                    (self.readable, self.broken) = (false, true);
                    return None;
                }
            }
        }
        None
    }

    fn uncut(&mut self) -> Option<(&mut [u8], UnsegmentedPacketLayout)> {
        let device = self.device.as_ref().filter(|_| self.readable)?;
        // A failure is that of the next call of `receive`.
        self.readable = device.fetch(&mut self.burst).unwrap_or(true);
        if self.readable { D::uncut(&mut self.burst) } else { None }
    }

    fn pass_uncut(&mut self) {
        D::clear(&mut self.burst);
    }

    /// Returns `false` while the device may hold frames, also after a call that has only skipped invalid frames.
    fn may_sleep(&mut self) -> bool {
        !self.readable || self.device.is_none()
    }

    fn own(&mut self) {
        self.watch.own();
    }

    fn retire(self: Box<Self>) {
        let Self { watch, .. } = *self;
        watch.retire();
    }
}

/// Returns the longest frame that the interface accepts, in bytes. If the MTU is unknown, only the device limits it.
fn longest<D: UplinkDevice>(seen: &InterfaceState, device: Option<&D>) -> usize {
    let device = device.map_or(usize::MAX, UplinkDevice::longest);
    seen.mtu.map_or(usize::MAX, |mtu| mtu as usize + HEADERS).min(device)
}
