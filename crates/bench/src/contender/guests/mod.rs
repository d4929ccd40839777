//! Guests of the card's families behind one trait: bursts of frames out, bursts of frames in. Each guest polls and
//! requests no interrupts, or sleeps until an interrupt when it has found no frame.
//!
//! | module | guest |
//! |---|---|
//! | [`vf`] | driver of an 82576's VF or an Adaptive Virtual Function, over vfio-user |
//! | [`virtio`] | driver of a virtio function, over vhost-user |

pub(crate) mod vf;
pub(super) mod virtio;

use super::kind::ContenderKind;
use i82576::MacAddress;
use std::fmt::Debug;
use std::ops::{Add, RangeInclusive};
use std::time::Duration;

/// Number of frames sent, and of buffers returned, per doorbell of a guest.
pub(super) const BURST: u16 = 32;
/// Maximum time until a guest's driver has started and its link is up.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// Pause between two attempts to attach to a function.
pub(super) const RETRY: Duration = Duration::from_millis(20);
/// Bytes of an Ethernet header, behind which a frame carries its send time.
const HEADER: usize = 14;

/// Events by which guests and card notify each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NotificationCounts {
    /// Number of kicks by eventfds.
    pub kicks: u64,
    /// Number of doorbells and other register accesses by message.
    pub messages: u64,
    /// Number of interrupts to the guests.
    pub interrupts: u64,
}

impl Add for NotificationCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            kicks: self.kicks + other.kicks,
            messages: self.messages + other.messages,
            interrupts: self.interrupts + other.interrupts,
        }
    }
}

/// Rings of a guest, of any family, with the driver that moves frames through them.
pub(crate) trait GuestRings: Debug {
    /// Returns the mode in which the guest notifies the card.
    fn mode(&self) -> ContenderKind;

    /// Sends a frame `count` times, and notifies the card. The card cuts the frame into segments if `mss` has their
    /// payload. Returns the number of sent frames.
    fn send_burst(&mut self, frame: &[u8], count: usize, mss: Option<u16>) -> usize;

    /// Queues a frame. Returns false if the ring is full. [`GuestRings::flush`] notifies the card.
    fn queue(&mut self, frame: &[u8]) -> bool;

    /// Notifies the card of queued frames.
    fn flush(&mut self);

    /// Receives a burst of frames, and copies each frame to `buffer`, over the previous one. Returns the number of
    /// frames, and the number of those from `sender` whose length is in `sizes`.
    fn receive(
        &mut self,
        most: usize,
        buffer: &mut [u8],
        sender: MacAddress,
        sizes: &RangeInclusive<usize>,
    ) -> (usize, u64);

    /// Returns the numbers of notifications since the last call.
    fn notifications(&mut self) -> NotificationCounts;

    /// Sends a frame for each send time in `stamps`, which the frame carries, while the ring has free descriptors.
    /// Returns the number of sent frames.
    fn send_stamped(&mut self, frame: &mut [u8], stamps: &mut dyn Iterator<Item = u64>) -> u64 {
        let mut sent = 0;
        for stamp in stamps {
            frame[HEADER..HEADER + 8].copy_from_slice(&stamp.to_le_bytes());
            if !self.queue(frame) {
                break;
            }
            sent += 1;
        }
        if sent > 0 {
            self.flush();
        }
        sent
    }

    /// Returns the send time in the next received frame of a sender, or `None` if no frame is left.
    fn next_stamp(&mut self, buffer: &mut [u8], sender: MacAddress, size: usize) -> Option<u64> {
        loop {
            match self.receive(1, buffer, sender, &(size..=size)) {
                (0, _) => return None,
                (_, 0) => {}
                _ => return buffer.get(HEADER..)?.first_chunk().map(|stamp| u64::from_le_bytes(*stamp)),
            }
        }
    }
}
