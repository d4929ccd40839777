//! A receive queue: posted descriptors are fetched ahead in bursts, frames are scattered into their buffers,
//! and the descriptors go back in bursts. Left out: which bytes go to header buffers (`buffers`).

use super::BURST;
use super::buffers::{Buffers, Layout};
use super::ring::Ring;
use super::write_back::{Batch, Way, burst};
use crate::file::RegisterFile;
use crate::offload::split::Split;
use crate::state::Damaged;
use alloc::vec::Vec;
use i82576::Queue;
use i82576::descriptor::rx::{Posted, WriteBack, status};
use i82576::descriptor::{SIZE, legacy};
use i82576::register::{rx, rx_block};
use pcie::{Bus, DmaFault, Function, Iova};
use serde::{Deserialize, Serialize};

/// What the descriptor of a frame says about it, beside lengths.
#[derive(Debug, Clone, Copy, Default)]
pub struct Description {
    /// RSS type and hash.
    pub rss: (u8, u32),
    /// Headers found.
    pub packet_type: u16,
    /// Status and error bits.
    pub status: u32,
    /// The tag that was stripped.
    pub vlan_tag: u16,
    /// Headers that may be split off.
    pub split: Split,
    /// The packet checksum, for descriptors in the legacy format.
    pub checksum: u16,
}

/// A frame, and how it is laid into descriptors.
struct Delivery<'a> {
    frame: &'a [u8],
    description: &'a Description,
    buffers: Buffers,
    layout: Layout,
}

/// Why a frame was not received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// The queue is disabled, or its registers make no ring.
    Disabled,
    /// Not enough descriptors for the whole frame.
    NoDescriptors,
    /// The ring or a buffer is not in the function's memory.
    Fault,
}

impl From<DmaFault> for Missed {
    fn from(_: DmaFault) -> Self {
        Self::Fault
    }
}

/// The private state of a receive queue. Registers are in the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "SavedReceive", try_from = "SavedReceive")]
pub struct ReceiveQueue {
    queue: Queue,
    /// Descriptors fetched ahead.
    posted: [Posted; BURST],
    next: usize,
    fetched: usize,
    /// The next descriptor to fetch.
    fetch_at: u32,
    /// Descriptors filled and not written back yet.
    done: Batch,
}

/// A queue as it is saved: the descriptors that have not been used yet.
#[derive(Serialize, Deserialize)]
struct SavedReceive {
    queue: Queue,
    posted: Vec<Posted>,
    fetch_at: u32,
    done: Batch,
}

impl From<ReceiveQueue> for SavedReceive {
    fn from(from: ReceiveQueue) -> Self {
        let ReceiveQueue { queue, posted, next, fetched, fetch_at, done } = from;
        Self { queue, posted: posted[next..fetched].to_vec(), fetch_at, done }
    }
}

impl TryFrom<SavedReceive> for ReceiveQueue {
    type Error = Damaged;

    fn try_from(saved: SavedReceive) -> Result<Self, Damaged> {
        let (posted, fetched) = burst(&saved.posted, Posted::default())?;
        let SavedReceive { queue, fetch_at, done, .. } = saved;
        Ok(Self { queue, posted, next: 0, fetched, fetch_at, done })
    }
}

impl ReceiveQueue {
    /// Which queue it is.
    pub(crate) fn queue(&self) -> Queue {
        self.queue
    }

    /// A queue that holds nothing.
    #[must_use]
    pub fn new(queue: Queue) -> Self {
        Self {
            queue,
            posted: [Posted::default(); BURST],
            next: 0,
            fetched: 0,
            fetch_at: 0,
            done: Batch::at(0),
        }
    }

    /// Forgets what was fetched or not yet written back and starts over at the head register: the queue was
    /// reset, enabled or given another ring.
    pub fn restart(&mut self, file: &RegisterFile) {
        let head = file.get(rx_block(self.queue) + rx::RDH);
        *self = Self { fetch_at: head, done: Batch::at(head), ..Self::new(self.queue) };
    }

    /// Scatters a frame into as many buffers as it needs, or into none.
    ///
    /// # Errors
    /// [`Missed`]: nothing of the frame will be seen by software.
    pub fn deliver<B: Bus>(
        &mut self,
        file: &mut RegisterFile,
        function: Function,
        bus: &mut B,
        frame: &[u8],
        description: &Description,
    ) -> Result<(), Missed> {
        let ring = Ring::receive(file, self.queue).ok_or(Missed::Disabled)?;
        if self.done.is_halted() || !ring.contains(self.fetch_at) || !ring.contains(self.done.head()) {
            return Err(Missed::Disabled);
        }
        let buffers = Buffers::of(file, self.queue);
        let layout = buffers.lay(frame.len(), description.split.length(buffers.split));
        let needed = buffers.needed(frame.len() - layout.header);
        if self.left(&ring) < needed {
            return Err(Missed::NoDescriptors);
        }
        let delivery = Delivery { frame, description, buffers, layout };
        match self.scatter(file, &ring, function, bus, &delivery) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Missed::Fault),
            Err(fault) => {
                self.done.halt();
                Err(fault.into())
            }
        }
    }

    /// Descriptors that may be filled: never so many that the ring goes round before any is given back, which
    /// software could otherwise bring about by moving the tail back behind what was fetched.
    fn left(&self, ring: &Ring) -> usize {
        let posted = self.fetched - self.next + ring.available(self.fetch_at) as usize;
        posted.min(ring.most().saturating_sub(self.done.waiting()) as usize)
    }

    /// Fills descriptors with a frame; answers whether all of it reached memory. What did not is lost, as a
    /// posted write is that the bus refuses, and the descriptor says so: the ring goes on.
    fn scatter<B: Bus>(
        &mut self,
        file: &mut RegisterFile,
        ring: &Ring,
        function: Function,
        bus: &mut B,
        delivery: &Delivery<'_>,
    ) -> Result<bool, DmaFault> {
        let (header, mut rest) = delivery.frame.split_at(delivery.layout.header);
        let (mut first, mut whole) = (true, true);
        while first || !rest.is_empty() {
            let posted = self.take(ring, function, bus)?;
            if first {
                whole &= write(bus, function, posted.header, header);
            }
            let (part, later) = rest.split_at(rest.len().min(delivery.buffers.packet));
            whole &= write(bus, function, posted.packet, part);
            rest = later;
            let mut back = WriteBack { length: part.len() as u16, ..WriteBack::default() };
            if first {
                delivery.layout.tell(&mut back);
            }
            if rest.is_empty() {
                delivery.description.tell(&mut back);
                back.status |= if whole { 0 } else { status::RXE };
            }
            self.finish(file, ring, function, bus, delivery.raw(&back, &posted))?;
            first = false;
        }
        Ok(whole)
    }

    /// The next posted descriptor, fetching a burst if none is at hand.
    fn take<B: Bus>(&mut self, ring: &Ring, function: Function, bus: &mut B) -> Result<Posted, DmaFault> {
        if self.next == self.fetched {
            self.fetch(ring, function, bus)?;
        }
        let posted = self.posted[self.next.min(BURST - 1)];
        self.next += 1;
        Ok(posted)
    }

    fn fetch<B: Bus>(&mut self, ring: &Ring, function: Function, bus: &mut B) -> Result<(), DmaFault> {
        let count = ring.contiguous(self.fetch_at, ring.available(self.fetch_at).min(BURST as u32));
        let mut raw = [0; BURST * SIZE];
        bus.dma_read(function, ring.address(self.fetch_at), &mut raw[..count as usize * SIZE])?;
        for (posted, raw) in self.posted.iter_mut().zip(raw.as_chunks().0).take(count as usize) {
            *posted = Posted::parse(raw);
        }
        (self.next, self.fetched) = (0, count as usize);
        self.fetch_at = ring.advance(self.fetch_at, count);
        Ok(())
    }

    fn finish<B: Bus>(
        &mut self,
        file: &mut RegisterFile,
        ring: &Ring,
        function: Function,
        bus: &mut B,
        raw: [u8; SIZE],
    ) -> Result<(), DmaFault> {
        self.done.push(raw, true);
        if self.done.is_full() { self.done.flush(file, ring, self.way(), function, bus) } else { Ok(()) }
    }

    fn way(&self) -> Way {
        Way { register: rx_block(self.queue) + rx::RDH, memory: None }
    }

    /// Gives back what is done; answers whether there was anything, so that an interrupt is due.
    ///
    /// # Errors
    /// [`DmaFault`] if the ring is not in the function's memory; the queue then stays silent until it is set up
    /// anew.
    pub fn write_back<B: Bus>(
        &mut self,
        file: &mut RegisterFile,
        function: Function,
        bus: &mut B,
    ) -> Result<bool, DmaFault> {
        let ring = Ring::receive(file, self.queue);
        self.done.finish(file, ring, self.way(), function, bus)
    }
}

/// Writes to a buffer, if there is anything to write.
fn write<B: Bus>(bus: &mut B, function: Function, iova: Iova, bytes: &[u8]) -> bool {
    bytes.is_empty() || bus.dma_write(function, iova, bytes).is_ok()
}

impl Description {
    /// What the last descriptor of a frame says.
    fn tell(&self, back: &mut WriteBack) {
        (back.rss_type, back.hash) = self.rss;
        back.packet_type = self.packet_type;
        back.status |= self.status | status::EOP;
        back.vlan_tag = self.vlan_tag;
    }
}

impl Layout {
    /// What the first descriptor of a frame says.
    fn tell(&self, back: &mut WriteBack) {
        (back.header_length, back.split) = (self.told, self.found);
        back.status |= if self.overflow { status::HBO } else { 0 };
    }
}

impl Delivery<'_> {
    /// A descriptor as the queue's format has it.
    fn raw(&self, back: &WriteBack, posted: &Posted) -> [u8; SIZE] {
        if !self.buffers.is_legacy() {
            return back.emit();
        }
        let WriteBack { length, status, vlan_tag, .. } = *back;
        let checksum = if back.end_of_packet() { self.description.checksum } else { 0 };
        legacy::WriteBack { address: posted.packet, length, checksum, status, vlan_tag }.emit()
    }
}
