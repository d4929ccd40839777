//! Guests on one thread: each sends frames to the next. Every byte of a frame is copied in by one guest and out
//! by another. `guests` has the drivers of the families.
//!
//! There is no TCP/IP stack.

use super::card::CardVariant;
use super::guests::{BURST, GuestRings, NotificationCounts};
use super::kind::ContenderKind;
use super::work::Workload;
use anyhow::{Result, ensure};
use i82576::MacAddress;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Buffers of a receiver beyond the maximum number of pending frames. A receiver has twice this margin if it posts
/// buffers by messages, which stay in the socket for a while.
const MARGIN: u16 = 64;
/// Time after which pending frames between guests count as lost.
const LOST: Duration = Duration::from_millis(20);

/// Guest of a traffic circle.
#[derive(Debug)]
struct TrafficGuest {
    rings: Box<dyn GuestRings>,
    /// Frame that the guest of the card sends repeatedly.
    frame: Vec<u8>,
    /// Pending frames that the guest has sent, as counted at the receiver.
    under_way: u64,
}

/// VFs of one port that send frames to one another: each to the next, and the last to the first.
#[derive(Debug)]
pub struct VfTrafficCircle {
    stations: Vec<TrafficGuest>,
    work: Workload,
    /// Maximum number of pending frames to one receiver, fewer than it has buffers, so that no frame is dropped.
    window: u64,
    buffer: Vec<u8>,
    /// Number of frames that did not arrive at their receivers.
    lost: u64,
}

/// Result of an exchange of frames between the VFs.
#[derive(Debug)]
pub struct FrameExchangeResult {
    /// Number of arrived frames, by sender.
    pub arrived: Vec<u64>,
    /// Duration of the exchange of frames.
    pub took: Duration,
    /// Share of the limit on pending frames that senders used. Near 1 the forwarder limits the rate; far below 1 the
    /// guests limit it.
    pub under_way: f64,
}

/// Returns the Ethernet address that the host's configuration gives VF `vf`.
#[must_use]
pub fn address(vf: usize) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0x10, vf as u8])
}

impl VfTrafficCircle {
    /// Attaches to the first VFs of a port, at least two, and waits for their links. `socket` returns a VF's socket. With
    /// `events` the guests sleep until an interrupt.
    ///
    /// # Errors
    /// A VF does not start, or the frame size is unsupported.
    pub fn attach(
        vfs: usize,
        socket: impl Fn(usize) -> PathBuf,
        (card, events): (CardVariant, bool),
        work: Workload,
    ) -> Result<Self> {
        ensure!(
            (60..=1514).contains(&work.size()),
            "frame size {} is out of range (60-1514 bytes)",
            work.size()
        );
        let station = |vf: usize| -> Result<TrafficGuest> {
            let frame = work.frame(address(vf), address((vf + 1) % vfs));
            Ok(TrafficGuest { rings: card.attach(&socket(vf), work, events)?, frame, under_way: 0 })
        };
        let stations = (0..vfs).map(station).collect::<Result<Vec<TrafficGuest>>>()?;
        let is_posted = stations.iter().any(|station| station.rings.mode() == ContenderKind::Posted);
        let margin = if is_posted { 2 * MARGIN } else { MARGIN };
        let window = (work.descriptors() - margin).into();
        Ok(Self { stations, work, window, buffer: vec![0; 2048], lost: 0 })
    }

    /// Returns true if all guests notify the card in this mode.
    #[must_use]
    pub fn is_in_mode(&self, mode: ContenderKind) -> bool {
        self.stations.iter().all(|station| station.rings.mode() == mode)
    }

    /// Sends a burst from one VF, unless too many of the VF's earlier frames are pending.
    fn send(&mut self, from: usize) {
        let (window, arrivals) = (self.window, self.work.arrivals());
        // A send that the card segments is a burst by itself.
        let burst = (u64::from(BURST) / arrivals).max(1);
        let sender = &mut self.stations[from];
        if window - sender.under_way >= burst * arrivals {
            let TrafficGuest { rings, frame, under_way } = sender;
            *under_way += rings.send_burst(frame, burst as usize, self.work.mss()) as u64 * arrivals;
        }
    }

    /// Receives at the VF after `from`. Returns the number of frames of `from` that arrived.
    fn take(&mut self, from: usize) -> u64 {
        let window = self.window;
        let to = (from + 1) % self.stations.len();
        let (sender, sizes) = (address(from), self.work.sizes());
        let mut arrived = 0;
        while arrived < window {
            let (found, ours) =
                self.stations[to].rings.receive(BURST.into(), &mut self.buffer, sender, &sizes);
            arrived += ours;
            if found < BURST.into() {
                break;
            }
        }
        let under_way = &mut self.stations[from].under_way;
        *under_way = under_way.saturating_sub(arrived);
        arrived
    }

    /// Waits until pending frames have arrived, or are lost. Otherwise a sender would continue to count lost frames as
    /// pending, and send less than other senders.
    fn settle(&mut self) {
        let mut last = Instant::now();
        while self.stations.iter().any(|station| station.under_way > 0) && last.elapsed() < LOST {
            let arrived: u64 = (0..self.stations.len()).map(|from| self.take(from)).sum();
            if arrived > 0 {
                last = Instant::now();
            }
        }
        self.give_up();
    }

    /// Makes all VFs send for `length`, as fast as frames arrive.
    pub fn exchange(&mut self, length: Duration) -> FrameExchangeResult {
        self.settle();
        let begun = Instant::now();
        let (mut arrived, mut last) = (vec![0; self.stations.len()], begun);
        let (mut turns, mut under_way) = (0, 0);
        loop {
            let mut now = 0;
            for (from, total) in arrived.iter_mut().enumerate() {
                (turns, under_way) = (turns + 1, under_way + self.stations[from].under_way);
                self.send(from);
                let arrived = self.take(from);
                *total += arrived;
                now += arrived;
            }
            let at = Instant::now();
            if now > 0 {
                last = at;
            } else if at - last > LOST {
                self.give_up();
                last = at;
            }
            if at - begun >= length {
                let under_way = under_way as f64 / (turns * self.window) as f64;
                return FrameExchangeResult { arrived, took: at - begun, under_way };
            }
        }
    }

    /// Sends a frame from the first VF to the second for each send time in `stamps`, which the frame carries. Returns
    /// the number of sent frames.
    pub fn send_stamped(&mut self, mut stamps: impl Iterator<Item = u64>) -> u64 {
        let TrafficGuest { rings, frame, under_way } = &mut self.stations[0];
        let sent = rings.send_stamped(frame, &mut stamps);
        *under_way += sent;
        sent
    }

    /// Returns the number of frames that the first VF may send before it reaches the maximum number of pending frames.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.window.saturating_sub(self.stations[0].under_way)
    }

    /// Returns true if frames of the first VF are pending.
    #[must_use]
    pub fn has_stamped_frames(&self) -> bool {
        self.stations[0].under_way > 0
    }

    /// Returns the send time in the next frame that has arrived at the second VF.
    pub fn next_stamp(&mut self) -> Option<u64> {
        let stamp = self.stations[1].rings.next_stamp(&mut self.buffer, address(0), self.work.size())?;
        let under_way = &mut self.stations[0].under_way;
        *under_way = under_way.saturating_sub(1);
        Some(stamp)
    }

    /// Returns the numbers of notifications between guests and card since the last call.
    pub(crate) fn notifications(&mut self) -> NotificationCounts {
        let counts = self.stations.iter_mut().map(|station| station.rings.notifications());
        counts.fold(NotificationCounts::default(), |sum, counts| sum + counts)
    }

    /// Counts all pending frames of the exchange as lost.
    pub fn give_up(&mut self) {
        for station in &mut self.stations {
            self.lost += std::mem::take(&mut station.under_way);
        }
    }

    /// Returns the number of frames that did not arrive at their receivers.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }
}
