//! Trunks between the workers of a port: a ring of frames from each worker to each other one, and one from each worker to
//! the uplink. Each ring has one sender and one receiver, takes no lock, and is this process's own memory.

use crate::port::engine::bell::{RingWakeFlag, RingWakeReceiver, announce, may_sleep};
use crate::ring;
use pcie::MAX_VFS;
use plane::frame::HEADROOM;
use plane::{FrameTrunk, TRUNK_HEADER, TrunkFrameHeader, UnsegmentedPacketLayout, UplinkWire};
use rtrb::{Consumer, Producer, RingBuffer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Bytes of a trunk: room for 7 of the longest packets, 340 long frames or 5,900 of the shortest. The port's own thread
/// empties all trunks at once before a VF moves.
const CAPACITY: usize = 512 * 1024;
/// Bytes of the longest packet that is not segmented, with its Ethernet header.
const LONGEST: usize = 65_536 + 18;
/// Maximum number of frames that one look takes from each trunk.
const BUDGET: usize = 64;

/// State that the workers of a port share.
#[derive(Debug)]
pub(super) struct SharedTrunkState {
    /// Worker of each VF. It changes only while no frame is in a trunk.
    pub(super) homes: [AtomicU8; MAX_VFS],
    /// Bell of each worker.
    pub(super) bells: Vec<RingWakeFlag>,
}

/// Sending ends of the trunks from one worker.
#[derive(Debug)]
pub(super) struct TrunkSender {
    shared: Arc<SharedTrunkState>,
    /// Trunk to each worker; none to the worker itself.
    rings: Vec<Option<Producer<u8>>>,
    /// Bit mask of the workers for which frames were put since the last flush.
    put: u8,
}

impl FrameTrunk for TrunkSender {
    fn put(&mut self, header: &TrunkFrameHeader, frame: &[u8]) -> bool {
        let home = self.shared.homes[header.port.index::<MAX_VFS>()].load(Ordering::Relaxed);
        let Some(Some(ring)) = self.rings.get_mut(usize::from(home)) else { return false };
        let put = ring::put(ring, [&header.to_bytes(), frame]);
        self.put |= u8::from(put) << home;
        put
    }

    fn flush(&mut self) {
        let mut put = std::mem::take(&mut self.put);
        while put != 0 {
            announce(&self.shared.bells[put.trailing_zeros() as usize]);
            put &= put - 1;
        }
    }
}

/// Sending end of the ring from a worker to the uplink, which the port's own thread serves.
#[derive(Debug)]
pub(super) struct WorkerUplink {
    shared: Arc<SharedTrunkState>,
    ring: Producer<u8>,
    /// True if the uplink takes TCP packets that are not segmented.
    pub(super) takes_uncut: bool,
    put: bool,
}

impl WorkerUplink {
    fn put(&mut self, frame: &[u8], uncut: Option<UnsegmentedPacketLayout>) -> bool {
        let put = ring::put(&mut self.ring, [&TrunkFrameHeader::to_uplink(uncut).to_bytes(), frame]);
        self.put |= put;
        put
    }

    /// Wakes the port's thread if it sleeps, after frames for the uplink.
    pub(super) fn flush(&mut self) {
        if std::mem::take(&mut self.put) {
            announce(&self.shared.bells[0]);
        }
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
    rings: Vec<Consumer<u8>>,
    /// Memory for one header and its frame.
    place: Box<[u8]>,
}

impl TrunkReceiver {
    fn new(shared: &Arc<SharedTrunkState>, worker: usize) -> Self {
        let place = vec![0; TRUNK_HEADER + LONGEST].into();
        Self { shared: shared.clone(), worker, rings: Vec::new(), place }
    }

    /// Takes up to [`BUDGET`] frames from each ring. `deliver` gets each header, and the frame behind [`HEADROOM`]. Returns
    /// true if a ring may have more frames.
    pub(super) fn take(&mut self, mut deliver: impl FnMut(&TrunkFrameHeader, &mut [u8])) -> bool {
        let Self { rings, place, .. } = self;
        let mut more = false;
        for ring in rings {
            let mut taken = 0;
            while taken < BUDGET
                && let Some(length) = ring::take(ring, place)
            {
                taken += 1;
                if let Some(header) = place.first_chunk().map(TrunkFrameHeader::from_bytes) {
                    deliver(&header, &mut place[TRUNK_HEADER - HEADROOM..length]);
                }
            }
            more |= taken == BUDGET;
        }
        more
    }

    /// Prepares the receiving thread for sleep. Returns false if a ring has frames. Later frames ring the thread's bell.
    pub(super) fn may_sleep(&self) -> bool {
        may_sleep(self)
    }

    pub(super) fn are_empty(&self) -> bool {
        self.rings.iter().all(Consumer::is_empty)
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
}

/// Creates the trunks between `count` workers. Also returns the receiver of frames for the uplink.
pub(super) fn connect(count: usize) -> std::io::Result<(Vec<WorkerTrunks>, TrunkReceiver)> {
    let bells = (0..count).map(|_| RingWakeFlag::new()).collect::<std::io::Result<_>>()?;
    let shared = Arc::new(SharedTrunkState { homes: [const { AtomicU8::new(0) }; MAX_VFS], bells });
    let mut to_uplink = TrunkReceiver::new(&shared, 0);
    let mut all: Vec<WorkerTrunks> = (0..count)
        .map(|worker| WorkerTrunks {
            sender: TrunkSender { shared: shared.clone(), rings: Vec::new(), put: 0 },
            receiver: TrunkReceiver::new(&shared, worker),
            uplink: (worker > 0).then(|| {
                let (ring, from_worker) = RingBuffer::new(CAPACITY);
                to_uplink.rings.push(from_worker);
                WorkerUplink { shared: shared.clone(), ring, takes_uncut: false, put: false }
            }),
        })
        .collect();
    for from in 0..count {
        for to in 0..count {
            let ring = (from != to).then(|| RingBuffer::new(CAPACITY));
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
