//! The network back end: the service domain's half of a split network driver. Each interface belongs to one
//! worker, and each worker has its own queues, so workers share nothing. One worker is the stock driver.
//!
//! - `packet`: frames in the service domain;
//! - `transmit`: from guests: takes requests, maps pages, and responds when the pages are released;
//! - `receive`: to guests: queues frames and copies them into the pages that guests have posted;
//! - `moving`: moves an interface to another worker.
//!
//! The caller bounds each turn of a worker; nothing a front end writes prolongs it. An interface with an
//! invalid ring is ignored from then on. A frame to a guest with too few posted pages is dropped before it is
//! queued, so a queue never exceeds the pages posted.
//!
//! There are no threads here: a worker is a number, used by one caller at a time.

mod moving;
mod packet;
mod receive;
mod transmit;

pub use packet::{BUFFER, FrameHandle};
pub use transmit::TransmitPollOutcome;

use crate::InterfaceRings;
use crate::ring::{BackRing, SLOTS};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt::Debug;
use packet::BackEndFrameStore;
use transmit::PendingTransmitRequest;

/// Index of a virtual interface, the back end's counterpart of a guest's network device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VifIndex(pub u16);

/// Byte address in a page that a guest has granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantedAddress {
    /// Network interface of the guest that granted the page.
    pub vif: VifIndex,
    /// Grant reference of the page with the address.
    pub reference: u32,
    /// Offset of the address from the start of the page, in bytes.
    pub offset: u16,
}

/// Error of an access that the grant does not permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the grant does not permit the back end's access to the page")]
pub struct NotGranted;

/// Machine operations that the network back end needs. The implementer accounts for the costs.
pub trait NetworkBackendHal {
    /// Handle of a guest's page that the back end has mapped.
    type Mapping: Copy + Debug;

    /// Returns the transmit and receive rings of a guest's interface.
    fn rings(&mut self, vif: VifIndex) -> &mut InterfaceRings;

    /// Maps a granted page for reading.
    ///
    /// # Errors
    /// [`NotGranted`] if the grant does not permit it.
    fn map(&mut self, vif: VifIndex, reference: u32) -> Result<Self::Mapping, NotGranted>;

    /// Unmaps a guest's page that the back end has mapped.
    fn unmap(&mut self, vif: VifIndex, mapping: Self::Mapping);

    /// Reads bytes of a mapped page into `into`.
    ///
    /// # Errors
    /// [`NotGranted`] if the range exceeds the page.
    fn read(
        &mut self,
        vif: VifIndex,
        mapping: Self::Mapping,
        offset: u16,
        into: &mut [u8],
    ) -> Result<(), NotGranted>;

    /// Copies bytes into a granted page.
    ///
    /// # Errors
    /// [`NotGranted`] if the grant does not permit it.
    fn copy_to(&mut self, to: GrantedAddress, bytes: &[u8]) -> Result<(), NotGranted>;

    /// Copies bytes from one guest's granted page to another granted page.
    ///
    /// # Errors
    /// [`NotGranted`] if a grant does not permit it.
    fn copy(&mut self, from: GrantedAddress, to: GrantedAddress, length: usize) -> Result<(), NotGranted>;

    /// Sends an event to the front end of an interface.
    fn notify(&mut self, vif: VifIndex);
}

/// Frame counters of a guest's interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VifCounters {
    /// Number of frames taken from the guest.
    pub transmitted: u64,
    /// Number of malformed transmit requests of the guest.
    pub malformed: u64,
    /// Number of frames copied to the guest.
    pub received: u64,
    /// Number of frames to the guest dropped because too few pages were posted.
    pub no_room: u64,
    /// Number of frames to the guest dropped because a posted page could not be written.
    pub unwritable: u64,
}

/// State of a guest's interface in the back end.
#[derive(Debug)]
struct VifState {
    worker: usize,
    transmit: BackRing,
    receive: BackRing,
    /// Slots of the interface's receive ring that are reserved for queued frames.
    promised: u32,
    /// True if the interface is in its worker's queue of interfaces with frames to send.
    is_ready: bool,
    /// True if the interface's receive ring has unpublished responses.
    to_publish: bool,
    /// True if the guest requested an event for received frames, and the back end has not sent the event.
    event_due: bool,
    /// True if the interface is in its worker thread's list of interfaces with a delayed event.
    event_withheld: bool,
    /// Number of frames given to the guest since its last event.
    unnotified: u32,
    /// Number of frames in the worker's queue for this interface.
    queued: u32,
    /// Number of the guest's transmit requests without a response.
    unanswered: u32,
    /// Worker that the interface moves to, during a move.
    target: Option<usize>,
    /// True if an event of the guest arrived while the interface moved to another worker.
    event_arrived: bool,
    /// Frames for the guest that arrived while the interface moved to another worker.
    waiting: VecDeque<FrameHandle>,
    /// True if the guest's ring had an invalid index, so that the back end ignores the interface.
    broken: bool,
    counters: VifCounters,
}

/// Work queues of a back-end worker thread for its interfaces. Other workers only append to `released`.
#[derive(Debug)]
struct BackendWorker<M> {
    /// Interfaces with frames to send, in the order in which the worker thread serves them.
    ready: VecDeque<VifIndex>,
    /// Frames that the worker thread has to copy to guests.
    queue: VecDeque<FrameHandle>,
    /// Transmit requests without a response, by the worker's index for them.
    pending: Vec<Option<PendingTransmitRequest<M>>>,
    free: Vec<u16>,
    /// Indices of transmit requests in `pending` whose pages are no longer needed.
    released: VecDeque<u16>,
    /// Interfaces with unpublished responses on their rings.
    to_publish: Vec<VifIndex>,
    /// Interfaces with a delayed event, whose guests are notified later.
    withheld: Vec<VifIndex>,
}

impl<M> BackendWorker<M> {
    fn new() -> Self {
        let slots = SLOTS as usize;
        let mut pending = Vec::new();
        pending.resize_with(slots, || None);
        Self {
            ready: VecDeque::new(),
            queue: VecDeque::new(),
            pending,
            free: (0..slots as u16).rev().collect(),
            released: VecDeque::with_capacity(slots),
            to_publish: Vec::new(),
            withheld: Vec::new(),
        }
    }
}

/// Network back end of all guests' interfaces.
#[derive(Debug)]
pub struct NetworkBackend<M> {
    interfaces: Vec<VifState>,
    workers: Vec<BackendWorker<M>>,
    packets: BackEndFrameStore,
    /// Number of frames after which a guest gets its event without delay.
    batch: u32,
}

impl<M: Copy + Debug> NetworkBackend<M> {
    /// Creates a network back end with `workers` workers (at least one) and no interface.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        let workers: Vec<_> = (0..workers.max(1)).map(|_| BackendWorker::new()).collect();
        let mut packets = BackEndFrameStore::default();
        // Frames the workers may have mapped at once.
        packets.add(workers.len() * SLOTS as usize);
        Self { interfaces: Vec::new(), workers, packets, batch: 1 }
    }

    /// Adds a guest's network interface to the back end, and assigns the interface to the next worker thread in turn.
    pub fn connect(&mut self) -> VifIndex {
        let vif = VifIndex(self.interfaces.len() as u16);
        let worker = self.interfaces.len() % self.workers.len();
        // Reserve all that the guest may post at once, so that no later frame allocates.
        self.packets.add(SLOTS as usize);
        let count = self.interfaces.len() + 1;
        for worker in &mut self.workers {
            worker.queue.reserve(count * SLOTS as usize);
            worker.ready.reserve(count);
            worker.to_publish.reserve(count);
            worker.withheld.reserve(count);
        }
        self.interfaces.push(VifState {
            worker,
            transmit: BackRing::default(),
            receive: BackRing::default(),
            promised: 0,
            is_ready: false,
            to_publish: false,
            event_due: false,
            event_withheld: false,
            unnotified: 0,
            queued: 0,
            unanswered: 0,
            target: None,
            event_arrived: false,
            waiting: VecDeque::with_capacity(SLOTS as usize),
            broken: false,
            counters: VifCounters::default(),
        });
        vif
    }

    /// Sets the event delay: a guest gets an event after `frames` frames, or on
    /// [`NetworkBackend::notify_withheld`].
    pub fn notify_every(&mut self, frames: u32) {
        self.batch = frames.max(1);
    }

    /// Returns the number of back-end workers.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Returns the back-end worker thread that serves an interface.
    ///
    /// # Panics
    /// If there is no such interface.
    #[must_use]
    pub fn worker_of(&self, vif: VifIndex) -> usize {
        self.interfaces[usize::from(vif.0)].worker
    }

    /// Returns the frame counters of an interface.
    ///
    /// # Panics
    /// If there is no such interface.
    #[must_use]
    pub fn counters(&self, vif: VifIndex) -> &VifCounters {
        &self.interfaces[usize::from(vif.0)].counters
    }

    /// Returns `true` if the back end ignores the interface, because the guest's ring had an invalid index.
    ///
    /// # Panics
    /// If there is no such interface.
    #[must_use]
    pub fn is_broken(&self, vif: VifIndex) -> bool {
        self.interfaces[usize::from(vif.0)].broken
    }

    /// Returns the number of frames in the back end's store.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.packets.used()
    }

    fn interface(&mut self, vif: VifIndex) -> &mut VifState {
        &mut self.interfaces[usize::from(vif.0)]
    }
}
