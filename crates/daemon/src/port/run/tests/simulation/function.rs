//! Function of a simulated guest with its driver: a VF of the 82576 or of an AVF behind vfio-user, or a virtio device behind
//! vhost-user.

use super::guest::pages::ComparedPages;
use super::host::SimulatedHost;
use super::hostile::{HostileGuest, Misdeeds};
use host::shared::SharedMemory;
use i82576::MacAddress;
use std::cell::RefCell;
use std::fmt::Debug;
use std::rc::Rc;

/// Longest frame of a guest in bytes.
pub(super) const LONGEST: usize = 1514;

/// Events that the interrupts of a function have announced.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AnnouncedEvents {
    /// Frames may be in a receive ring.
    pub(super) frames: bool,
    /// The watchdog has to run at once.
    pub(super) watchdog: bool,
}

/// Finding of a card about the checksum of a received frame's TCP or UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReceivedChecksum {
    Unknown,
    Right,
    Wrong,
    /// The receiver completes the checksum (VIRTIO 1.2, 5.1.6.4.2).
    Partial,
}

/// Frame with what the card has found about it.
#[derive(Debug)]
pub(super) struct ReceivedFrame {
    pub(super) bytes: Vec<u8>,
    pub(super) checksum: ReceivedChecksum,
}

/// Link of a function, as its driver's watchdog finds it.
#[derive(Debug, Clone, Copy)]
pub(super) struct WatchedLink {
    pub(super) is_up: bool,
    /// True if the function was reset, or its host has ended, since the last look. Its driver has started again.
    pub(super) was_reset: bool,
}

/// Function of a guest with its driver. An error states a broken promise of the host.
pub(super) trait SimulatedFunction: Debug {
    fn mac(&self) -> MacAddress;

    /// Sends a frame. Returns false if the ring has no room.
    fn send(&mut self, frame: &[u8]) -> bool;

    /// Sends a TCP packet, and has the card complete its checksum and cut it into segments of `mss` bytes of payload; `None` for a
    /// packet that is one segment. Returns false if the ring has no room, or the driver has not accepted this offload.
    fn send_tcp(&mut self, packet: &[u8], mss: Option<u16>) -> bool;

    /// Returns true if the driver has accepted the offloads that [`SimulatedFunction::send_tcp`] needs.
    fn segments_tcp(&self) -> bool {
        true
    }

    /// Returns the number of descriptors in the transmit ring of a virtio device that the device has not handled. The rings of a VF
    /// are empty after a death, and the account of frames knows the others.
    fn unsent(&mut self) -> usize {
        0
    }

    /// Maps the guest's memory for the device at a second address, or ends that mapping, as VMMs do. A VMM with vhost-user adds it
    /// at a second address, or stops the rings for a moment.
    fn remap(&mut self) -> Result<(), String>;

    /// Compares each register that the guest has mapped with the same register by message.
    fn compare_pages(&mut self) -> ComparedPages {
        ComparedPages::default()
    }

    /// Handles the interrupts that have arrived.
    fn take_interrupts(&mut self) -> AnnouncedEvents;

    /// Takes all frames of the receive rings. Unless interrupts have `announced` frames, looks at the rings as a timer does.
    fn receive(&mut self, announced: bool) -> Result<Vec<ReceivedFrame>, String>;

    /// Runs the driver's watchdog, which finds out that the function was reset, and starts again then.
    fn watch(&mut self) -> Result<WatchedLink, String>;

    /// Checks that the host has not ended the connection. Returns false if the host has died, and the driver has to connect again.
    fn check_connection(&mut self) -> Result<bool, String>;

    /// Returns true if the host has ended the connection, or has died.
    fn is_disconnected(&mut self) -> bool;

    /// Tries a number of misdeeds, and returns those that it has done. The driver is of no use afterwards.
    fn misbehave(&mut self, random: &mut fastrand::Rng, guest: HostileGuest, misdeeds: usize) -> Misdeeds;

    /// Returns the guest's memory.
    fn memory(&self) -> &SharedMemory;
}

/// Numbers of the events of which each may reset a function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ResetCauses {
    deaths: u64,
    policy_changes: u32,
}

/// Place of a guest in the simulation.
#[derive(Clone)]
pub(super) struct GuestPlace {
    pub(super) index: u16,
    pub(super) host: Rc<RefCell<SimulatedHost>>,
}

impl GuestPlace {
    pub(super) fn deaths(&self) -> u64 {
        self.host.borrow().deaths
    }

    /// Returns the events until now that may have reset the guest's function.
    pub(super) fn reset_causes(&self) -> ResetCauses {
        let host = self.host.borrow();
        ResetCauses { deaths: host.deaths, policy_changes: host.policies.changes() }
    }

    /// Returns true if the PF may leave a request of the guest's driver without an answer: the function was reset since its
    /// [`Self::reset_causes`] were `before`, or the VF is throttled or quarantined.
    pub(super) fn may_go_unanswered(&self, before: ResetCauses) -> bool {
        if self.reset_causes() != before {
            return true;
        }
        let status = self.host.borrow_mut().status();
        let conduct = &status.vfs[usize::from(self.index)].conduct;
        conduct.throttled || conduct.quarantine.is_some()
    }
}
