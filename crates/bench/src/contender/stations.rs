//! Guests on one thread: our VF driver on some VFs, polled. The driver never acknowledges an interrupt, so the card
//! sends none after the first. Each guest sends frames to the next. Every byte of a frame is copied in by one guest and
//! out by another.
//!
//! There is no TCP/IP stack.

use super::card::CardVariant;
use super::work::Workload;
use anyhow::{Context, Result, ensure};
use driver::any_vf::{AnyVfConfig, AnyVfLinkStatus};
use driver::vf::TxOffload;
use driver::{AnyVf, Hal};
use i82576::MacAddress;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use vfio_client::VfioUserHal;

/// Bytes of a guest's memory for each descriptor of a ring: a driver's buffer, and two descriptors.
const SLOT: u64 = 2048 + 32;
/// Buffers of a receiver beyond the maximum number of pending frames. A receiver has twice this margin if it posts
/// buffers by messages, which stay in the socket for a while.
const MARGIN: u16 = 64;
/// Number of frames sent, and of buffers returned, per doorbell of a guest.
const BURST: u16 = 32;
/// Time after which pending frames between guests count as lost.
const LOST: Duration = Duration::from_millis(20);
/// Maximum time until a VF's driver has started and its link is up.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause between two attempts to attach to a VF.
const RETRY: Duration = Duration::from_millis(20);
/// Bytes of an Ethernet header, behind which a frame carries its send time.
const HEADER: usize = 14;

/// VF of a `softiov serve` process, with its driver, which the benchmark polls in place of a guest.
#[derive(Debug)]
pub(crate) struct PolledVf {
    pub(crate) hal: VfioUserHal,
    pub(crate) vf: AnyVf,
    /// Frame that the guest of the card sends repeatedly.
    frame: Vec<u8>,
    /// Pending frames that the guest has sent, as counted at the receiver.
    under_way: u64,
}

/// VFs of one port that send frames to one another: each to the next, and the last to the first.
#[derive(Debug)]
pub struct VfTrafficCircle {
    stations: Vec<PolledVf>,
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
    /// Attaches to the first VFs of a port, at least two, and waits for their links. `socket` returns a VF's socket.
    ///
    /// # Errors
    /// A VF does not start, or the frame size is unsupported.
    pub fn attach(
        vfs: usize,
        socket: impl Fn(usize) -> PathBuf,
        card: CardVariant,
        work: Workload,
    ) -> Result<Self> {
        ensure!(
            (60..=1514).contains(&work.size()),
            "frame size {} is out of range (60-1514 bytes)",
            work.size()
        );
        let wanted = card.wanted(work.descriptors(), BURST);
        let station = |vf: usize| {
            let frame = work.frame(address(vf), address((vf + 1) % vfs));
            PolledVf::attach(&socket(vf), frame, &wanted)
        };
        let stations = (0..vfs).map(station).collect::<Result<Vec<PolledVf>>>()?;
        let margin = if rings_in_memory(&stations) { MARGIN } else { 2 * MARGIN };
        let window = (work.descriptors() - margin).into();
        Ok(Self { stations, work, window, buffer: vec![0; 2048], lost: 0 })
    }

    /// Returns true if all VFs ring doorbells by stores into memory.
    #[must_use]
    pub fn rings_in_memory(&self) -> bool {
        rings_in_memory(&self.stations)
    }

    /// Sends a burst from one VF, unless too many of the VF's earlier frames are pending.
    fn send(&mut self, from: usize) {
        let (window, arrivals) = (self.window, self.work.arrivals());
        // A send that the card segments is a burst by itself.
        let burst = (u64::from(BURST) / arrivals).max(1);
        let offload = TxOffload { tso: self.work.mss(), ..TxOffload::default() };
        let sender = &mut self.stations[from];
        if window - sender.under_way >= burst * arrivals {
            let PolledVf { hal, vf, frame, under_way } = sender;
            let sent = vf.transmit_burst(hal, &[&frame[..]; BURST as usize][..burst as usize], &offload);
            vf.flush(hal);
            *under_way += sent as u64 * arrivals;
        }
    }

    /// Receives at the VF after `from`. Returns the number of frames of `from` that arrived.
    fn take(&mut self, from: usize) -> u64 {
        let window = self.window;
        let to = (from + 1) % self.stations.len();
        let (sender, size) = (address(from), self.work.size());
        let mut arrived = 0;
        while arrived < window {
            let (found, ours) = self.stations[to].receive(BURST.into(), &mut self.buffer, sender, size);
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
    pub fn send_stamped(&mut self, stamps: impl Iterator<Item = u64>) -> u64 {
        let sender = &mut self.stations[0];
        let sent = sender.send_stamped(stamps);
        sender.under_way += sent;
        sent
    }

    /// Returns the number of frames that the first VF may send before it reaches the maximum number of pending frames.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.window.saturating_sub(self.stations[0].under_way)
    }

    /// Returns the send time in the next frame that has arrived at the second VF.
    pub fn next_stamp(&mut self) -> Option<u64> {
        let stamp = self.stations[1].next_stamp(&mut self.buffer, address(0), self.work.size())?;
        let under_way = &mut self.stations[0].under_way;
        *under_way = under_way.saturating_sub(1);
        Some(stamp)
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

fn rings_in_memory(stations: &[PolledVf]) -> bool {
    stations.iter().all(|station| station.hal.is_mapped())
}

impl PolledVf {
    /// Attaches to a VF that will send `frame`, and waits for its link.
    ///
    /// # Errors
    /// The VF does not start.
    pub(crate) fn attach(socket: &Path, frame: Vec<u8>, wanted: &AnyVfConfig) -> Result<Self> {
        let name = socket.display();
        let AnyVfConfig { i82576, avf } = wanted;
        let slots = u64::from(i82576.rx_descriptors.max(avf.descriptors))
            + u64::from(i82576.tx_descriptors.max(avf.descriptors));
        // Includes room for alignment. The size is a power of two, as machines have it.
        let memory = (slots * SLOT + (1 << 20)).next_power_of_two();
        let begun = Instant::now();
        let attach = || -> Result<_> {
            let mut hal = VfioUserHal::attach(socket, memory)?;
            let family = hal.family();
            let vf = AnyVf::probe(&mut hal, family, wanted)?;
            Ok((hal, vf))
        };
        let (mut hal, mut vf) = loop {
            match attach() {
                Ok(attached) => break attached,
                // The PF's driver may not have started yet. Or a program that this process is starting still has a copy
                // of the former guest's socket, so that the host turns this client away.
                Err(_) if begun.elapsed() < PATIENCE => thread::sleep(RETRY),
                Err(error) => return Err(error).with_context(|| format!("the VF of {name} did not start")),
            }
        };
        vf.start(&mut hal).with_context(|| format!("the VF of {name} did not start"))?;
        while vf.check_link(&mut hal) != AnyVfLinkStatus::Up {
            ensure!(begun.elapsed() < PATIENCE, "the VF of {name} has no link within the timeout");
            hal.wait(Duration::from_millis(5));
        }
        Ok(Self { hal, vf, frame, under_way: 0 })
    }

    /// Sends a frame for each send time in `stamps`, which the frame carries, while the ring has free descriptors.
    /// Returns the number of sent frames.
    pub(crate) fn send_stamped(&mut self, stamps: impl Iterator<Item = u64>) -> u64 {
        let Self { hal, vf, frame, .. } = self;
        let mut sent = 0;
        for stamp in stamps {
            frame[HEADER..HEADER + 8].copy_from_slice(&stamp.to_le_bytes());
            if vf.transmit(hal, frame, &TxOffload::default()).is_err() {
                break;
            }
            sent += 1;
        }
        if sent > 0 {
            vf.flush(hal);
        }
        sent
    }

    /// Returns the send time in the next received frame of a sender, or `None` if no frame is left.
    pub(crate) fn next_stamp(&mut self, buffer: &mut [u8], sender: MacAddress, size: usize) -> Option<u64> {
        loop {
            match self.receive(1, buffer, sender, size) {
                (0, _) => return None,
                (_, 0) => {}
                _ => return buffer.get(HEADER..)?.first_chunk().map(|stamp| u64::from_le_bytes(*stamp)),
            }
        }
    }

    /// Receives a burst of frames, and copies each frame to `buffer`, over the previous one. Returns the number of
    /// frames, and the number of those with `size` bytes from `sender`.
    fn receive(&mut self, most: usize, buffer: &mut [u8], sender: MacAddress, size: usize) -> (usize, u64) {
        let mut ours = 0;
        let found = self.vf.receive_burst(&mut self.hal, most, |mut frame| {
            ours += u64::from(frame.copy_to(buffer) == Ok(size) && buffer[6..12] == sender.0);
        });
        (found, ours)
    }
}
