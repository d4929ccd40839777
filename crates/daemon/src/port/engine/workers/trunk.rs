//! Trunks between the workers of a port: a ring of batches of frames from each worker to each other one, and one from each worker
//! to the uplink. Each VF of the sending worker has a share of each ring, and each VF that receives frames of the uplink.

#[cfg(test)]
mod tests;

use crate::port::engine::batches::{self, BatchReceiver, BatchSender, TrunkShare};
use crate::port::engine::bell::{RingWakeFlag, RingWakeReceiver, announce, may_sleep};
use pcie::MAX_VFS;
use plane::{FrameTrunk, PortIndex, TrunkBatch, TrunkFrameHeader, UnsegmentedPacketLayout, UplinkWire};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// State that the workers of a port share.
#[derive(Debug)]
pub(super) struct SharedTrunkState {
    /// Worker of each VF. It changes only while no frame is in a trunk.
    pub(super) homes: [AtomicU8; MAX_VFS],
    /// Bell of each worker.
    pub(super) bells: Vec<RingWakeFlag>,
}

/// VF whose rings a worker visits, by its number in the order of the worker's visits. This order changes only while no frame is in
/// a trunk. Only the thread that has the worker's part of the card uses it.
#[derive(Debug, Clone)]
pub(super) struct VisitedVf(Arc<AtomicU8>);

impl VisitedVf {
    /// Number beyond that of any VF: the worker visits none, so its frames are those of the uplink.
    const NONE: u8 = MAX_VFS as u8;

    fn new() -> Self {
        Self(Arc::new(AtomicU8::new(Self::NONE)))
    }

    /// Begins the visits of a round with the first VF. The visits end when the returned value is dropped.
    pub(super) fn begin(&self) -> VfVisits<'_> {
        self.0.store(0, Ordering::Relaxed);
        VfVisits(&self.0)
    }

    /// Returns the share to which a frame for a port is charged.
    #[inline]
    fn share(&self, port: PortIndex) -> TrunkShare {
        TrunkShare::of_sender(self.0.load(Ordering::Relaxed)).unwrap_or_else(|| TrunkShare::of_receiver(port))
    }
}

/// Visits of a worker to the rings of its VFs, in one round.
#[derive(Debug)]
pub(super) struct VfVisits<'a>(&'a AtomicU8);

impl VfVisits<'_> {
    /// Ends the visit to a VF, and begins that to the next.
    #[inline]
    pub(super) fn advance(&self) {
        self.0.store(self.0.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
    }
}

impl Drop for VfVisits<'_> {
    fn drop(&mut self) {
        self.0.store(VisitedVf::NONE, Ordering::Relaxed);
    }
}

/// Sending ends of the trunks from one worker.
#[derive(Debug)]
pub(super) struct TrunkSender {
    shared: Arc<SharedTrunkState>,
    visited: VisitedVf,
    /// Trunk to each worker; none to the worker itself.
    rings: Vec<Option<BatchSender>>,
    /// Bit mask of the workers for which frames were put and not handed over.
    put: u8,
}

impl FrameTrunk for TrunkSender {
    fn batch(&mut self, port: PortIndex, bytes: usize) -> Option<&mut TrunkBatch> {
        let home = self.shared.homes[port.index::<MAX_VFS>()].load(Ordering::Relaxed);
        let share = self.visited.share(port);
        let batch = self.rings.get_mut(usize::from(home))?.as_mut()?.batch(share, bytes)?;
        self.put |= 1 << home;
        Some(batch)
    }

    fn flush(&mut self) -> bool {
        let mut put = self.put;
        while put != 0 {
            let home = put.trailing_zeros() as usize;
            put &= put - 1;
            let Some(ring) = &mut self.rings[home] else { continue };
            if ring.flush() {
                announce(&self.shared.bells[home]);
            }
            if !ring.holds_frames() {
                self.put &= !(1 << home);
            }
        }
        self.put != 0
    }
}

/// Sending end of the ring from a worker to the uplink, which the port's own thread serves.
#[derive(Debug)]
pub(super) struct WorkerUplink {
    shared: Arc<SharedTrunkState>,
    visited: VisitedVf,
    ring: BatchSender,
    /// True if the uplink takes TCP packets that are not segmented.
    pub(super) takes_uncut: bool,
}

impl WorkerUplink {
    fn put(&mut self, frame: &[u8], uncut: Option<UnsegmentedPacketLayout>) -> bool {
        let header = TrunkFrameHeader::to_uplink(uncut);
        let share = self.visited.share(header.port);
        self.ring.batch(share, frame.len()).is_some_and(|batch| batch.put(&header, frame))
    }

    /// Hands the frames for the uplink to the port's thread, and wakes it if it sleeps. Returns true if some have stayed
    /// ([`FrameTrunk::flush`]).
    pub(super) fn flush(&mut self) -> bool {
        if self.ring.flush() {
            announce(&self.shared.bells[0]);
        }
        self.ring.holds_frames()
    }
}

impl UplinkWire for WorkerUplink {
    fn transmit(&mut self, frame: &[u8]) -> bool {
        self.put(frame, None)
    }

    fn receive(&mut self, _into: &mut [u8]) -> Option<usize> {
        None
    }

    fn takes_uncut(&self) -> bool {
        self.takes_uncut
    }

    fn transmit_uncut(&mut self, packet: &[u8], uncut: &UnsegmentedPacketLayout) -> bool {
        self.put(packet, Some(*uncut))
    }
}

/// Receiving ends of the rings to one thread.
#[derive(Debug)]
pub(super) struct TrunkReceiver {
    shared: Arc<SharedTrunkState>,
    worker: usize,
    rings: Vec<BatchReceiver>,
}

impl TrunkReceiver {
    fn new(shared: &Arc<SharedTrunkState>, worker: usize) -> Self {
        Self { shared: shared.clone(), worker, rings: Vec::new() }
    }

    /// Takes the next batch from each ring. Returns true if a ring has more.
    pub(super) fn take(&mut self, mut deliver: impl FnMut(&mut TrunkBatch)) -> bool {
        let mut more = false;
        for ring in &mut self.rings {
            more |= ring.take(&mut deliver) && !ring.is_empty();
        }
        more
    }

    /// Prepares the receiving thread for sleep. Returns false if a ring has frames. Later frames ring the thread's bell.
    pub(super) fn may_sleep(&self) -> bool {
        may_sleep(self)
    }

    pub(super) fn are_empty(&self) -> bool {
        self.rings.iter().all(BatchReceiver::is_empty)
    }
}

impl RingWakeReceiver for TrunkReceiver {
    fn want(&self, wanted: bool) {
        self.shared.bells[self.worker].want(wanted);
    }

    fn is_empty(&self) -> bool {
        self.are_empty()
    }
}

/// Ends of all trunks of one worker.
#[derive(Debug)]
pub(super) struct WorkerTrunks {
    pub(super) sender: TrunkSender,
    pub(super) receiver: TrunkReceiver,
    /// Ring to the uplink; none for the port's own thread.
    pub(super) uplink: Option<WorkerUplink>,
    pub(super) visited: VisitedVf,
}

/// Creates the trunks between `count` workers. Also returns the receiver of frames for the uplink.
pub(super) fn connect(count: usize) -> std::io::Result<(Vec<WorkerTrunks>, TrunkReceiver)> {
    let bells = (0..count).map(|_| RingWakeFlag::new()).collect::<std::io::Result<_>>()?;
    let shared = Arc::new(SharedTrunkState { homes: [const { AtomicU8::new(0) }; MAX_VFS], bells });
    let mut to_uplink = TrunkReceiver::new(&shared, 0);
    let mut all: Vec<WorkerTrunks> = (0..count)
        .map(|worker| {
            let (shared, visited) = (shared.clone(), VisitedVf::new());
            WorkerTrunks {
                receiver: TrunkReceiver::new(&shared, worker),
                uplink: (worker > 0).then(|| {
                    let (ring, from_worker) = batches::connect();
                    to_uplink.rings.push(from_worker);
                    WorkerUplink {
                        shared: shared.clone(),
                        visited: visited.clone(),
                        ring,
                        takes_uncut: false,
                    }
                }),
                sender: TrunkSender { shared, visited: visited.clone(), rings: Vec::new(), put: 0 },
                visited,
            }
        })
        .collect();
    for from in 0..count {
        for to in 0..count {
            let ring = (from != to).then(batches::connect);
            let (sender, receiver) = ring.unzip();
            all[from].sender.rings.push(sender);
            all[to].receiver.rings.extend(receiver);
        }
    }
    Ok((all, to_uplink))
}

impl WorkerTrunks {
    /// Returns the state that all workers share.
    pub(super) fn shared(&self) -> &Arc<SharedTrunkState> {
        &self.receiver.shared
    }
}
