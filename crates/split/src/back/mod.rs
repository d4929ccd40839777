//! The back end: the service domain's half of the driver. Each interface belongs to one worker, and a worker has
//! queues of its own, so that workers need not know of each other; with one worker it is the stock driver.
//!
//! - `packet`: frames on their way through the service domain;
//! - `transmit`: from guests: taking requests, mapping pages, answering when they are released;
//! - `receive`: to guests: queues, and copying into the pages that guests have posted;
//! - `moving`: an interface goes to another worker.
//!
//! A turn of a worker is bounded by whoever gives it the turn, and nothing a front end says makes it longer. A
//! front end whose ring cannot be is heard no more. Frames to a guest that has posted too few pages are dropped
//! before they are queued: a queue never holds more than its guest has asked for.
//!
//! Left out: threads: a worker is a number that one caller at a time uses.

mod moving;
mod packet;
mod receive;
mod transmit;

pub use packet::{BUFFER, Key};
pub use transmit::Taken;

use crate::Rings;
use crate::ring::{BackRing, SLOTS};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt::Debug;
use packet::Packets;
use transmit::Pending;

/// An interface: the place in the back end of a guest's network device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vif(pub u16);

/// A place in a page that a guest has granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Granted {
    /// Whose.
    pub vif: Vif,
    /// The grant.
    pub reference: u32,
    /// Bytes from the page's beginning.
    pub offset: u16,
}

/// A grant cannot be used so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the page is not granted so")]
pub struct NotGranted;

/// What a back end needs of the machine it runs on.
pub trait Host {
    /// A mapped page.
    type Mapping: Copy + Debug;

    /// The rings of an interface.
    fn rings(&mut self, vif: Vif) -> &mut Rings;

    /// Maps a page for reading.
    ///
    /// # Errors
    /// [`NotGranted`].
    fn map(&mut self, vif: Vif, reference: u32) -> Result<Self::Mapping, NotGranted>;

    /// Ends a mapping.
    fn unmap(&mut self, vif: Vif, mapping: Self::Mapping);

    /// Reads a mapped page.
    ///
    /// # Errors
    /// [`NotGranted`] if the bytes do not lie in it.
    fn read(
        &mut self,
        vif: Vif,
        mapping: Self::Mapping,
        offset: u16,
        into: &mut [u8],
    ) -> Result<(), NotGranted>;

    /// Has bytes copied into a granted page.
    ///
    /// # Errors
    /// [`NotGranted`].
    fn copy_to(&mut self, to: Granted, bytes: &[u8]) -> Result<(), NotGranted>;

    /// Has bytes copied from one granted page to another.
    ///
    /// # Errors
    /// [`NotGranted`].
    fn copy(&mut self, from: Granted, to: Granted, length: usize) -> Result<(), NotGranted>;

    /// Sends a front end an event.
    fn notify(&mut self, vif: Vif);
}

/// What became of an interface's frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames taken from the guest.
    pub transmitted: u64,
    /// Requests of the guest that made no sense.
    pub malformed: u64,
    /// Frames copied to the guest.
    pub received: u64,
    /// Frames to it that were dropped because it has too few pages posted.
    pub no_room: u64,
    /// Frames to it that were dropped because its pages are not what it says.
    pub unwritable: u64,
}

/// What the back end knows of an interface.
#[derive(Debug)]
struct Interface {
    worker: usize,
    transmit: BackRing,
    receive: BackRing,
    /// Slots of the receive ring that queued frames will need.
    promised: u32,
    /// It is in its worker's line.
    in_line: bool,
    /// Its receive ring has responses to publish.
    to_publish: bool,
    /// Its guest is to hear of frames, and is on its worker's list for that; how many it was given since it was told.
    owes_event: bool,
    is_withheld: bool,
    untold: u32,
    /// Frames in its worker's queue, and requests that its worker has not answered.
    queued: u32,
    unanswered: u32,
    /// The worker that it goes to, and what has come meanwhile: an event, and frames.
    target: Option<usize>,
    heard: bool,
    held: VecDeque<Key>,
    /// Its rings made no sense; nothing is heard of it any more.
    broken: bool,
    counters: Counters,
}

/// A worker's queues: nobody else touches them, except to leave what it has to release.
#[derive(Debug)]
struct Worker<M> {
    /// Interfaces with frames to send.
    line: VecDeque<Vif>,
    /// Frames to be copied to guests.
    queue: VecDeque<Key>,
    /// Requests without an answer, by slot.
    pending: Vec<Option<Pending<M>>>,
    free: Vec<u16>,
    /// Slots whose pages nobody needs any more.
    released: VecDeque<u16>,
    /// Interfaces with responses to publish.
    to_publish: Vec<Vif>,
    /// Interfaces whose guests are to hear of frames later.
    withheld: Vec<Vif>,
}

impl<M> Worker<M> {
    fn new() -> Self {
        let slots = SLOTS as usize;
        let mut pending = Vec::new();
        pending.resize_with(slots, || None);
        Self {
            line: VecDeque::new(),
            queue: VecDeque::new(),
            pending,
            free: (0..slots as u16).rev().collect(),
            released: VecDeque::with_capacity(slots),
            to_publish: Vec::new(),
            withheld: Vec::new(),
        }
    }
}

/// The back end of all interfaces.
#[derive(Debug)]
pub struct Backend<M> {
    interfaces: Vec<Interface>,
    workers: Vec<Worker<M>>,
    packets: Packets,
    /// Frames after which a guest hears of them at once.
    batch: u32,
}

impl<M: Copy + Debug> Backend<M> {
    /// A back end with so many workers (at least one) and no interface.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        let workers: Vec<_> = (0..workers.max(1)).map(|_| Worker::new()).collect();
        let mut packets = Packets::default();
        // What workers may have mapped at once.
        packets.add(workers.len() * SLOTS as usize);
        Self { interfaces: Vec::new(), workers, packets, batch: 1 }
    }

    /// Adds an interface. Interfaces go to the workers in turn.
    pub fn connect(&mut self) -> Vif {
        let vif = Vif(self.interfaces.len() as u16);
        let worker = self.interfaces.len() % self.workers.len();
        // What its guest may have posted at once; nothing needs to grow later.
        self.packets.add(SLOTS as usize);
        let count = self.interfaces.len() + 1;
        for worker in &mut self.workers {
            worker.queue.reserve(count * SLOTS as usize);
            worker.line.reserve(count);
            worker.to_publish.reserve(count);
            worker.withheld.reserve(count);
        }
        self.interfaces.push(Interface {
            worker,
            transmit: BackRing::default(),
            receive: BackRing::default(),
            promised: 0,
            in_line: false,
            to_publish: false,
            owes_event: false,
            is_withheld: false,
            untold: 0,
            queued: 0,
            unanswered: 0,
            target: None,
            heard: false,
            held: VecDeque::with_capacity(SLOTS as usize),
            broken: false,
            counters: Counters::default(),
        });
        vif
    }

    /// Lets a guest hear of frames once it was given so many since it heard last, or when [`Backend::tell`] says so.
    pub fn tell_every(&mut self, frames: u32) {
        self.batch = frames.max(1);
    }

    /// How many workers there are.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Whose interface it is.
    ///
    /// # Panics
    /// If there is no such interface.
    #[must_use]
    pub fn worker_of(&self, vif: Vif) -> usize {
        self.interfaces[usize::from(vif.0)].worker
    }

    /// What became of an interface's frames.
    ///
    /// # Panics
    /// If there is no such interface.
    #[must_use]
    pub fn counters(&self, vif: Vif) -> &Counters {
        &self.interfaces[usize::from(vif.0)].counters
    }

    /// Whether an interface is heard no more.
    ///
    /// # Panics
    /// If there is no such interface.
    #[must_use]
    pub fn is_broken(&self, vif: Vif) -> bool {
        self.interfaces[usize::from(vif.0)].broken
    }

    /// Frames that are on their way through the back end.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.packets.used()
    }

    fn interface(&mut self, vif: Vif) -> &mut Interface {
        &mut self.interfaces[usize::from(vif.0)]
    }
}
