//! A receive queue: frames are scattered into the buffers of posted descriptors, which are read and given back in bursts
//! (`rings`). Left out: which bytes go to header buffers (`buffers`).

mod saved;

use super::buffers::{Buffers, Layout};
use super::io::QueueIo;
use super::ring;
use crate::file::RegisterFile;
use crate::offload::split::Split;
use i82576::Queue;
use i82576::descriptor::rx::{self as descriptor, WriteBack, status};
use i82576::descriptor::{SIZE, legacy};
use i82576::register::{rx, rx_block};
use pcie::{Bus, DmaFault, Function, Iova};
use rings::{Posted, Receiver, Ring};
use serde::{Deserialize, Serialize};

/// What the descriptor of a frame says about it, beside lengths.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
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

/// A queue as its registers have it, looked at once for many frames: until they are written again it stays so.
#[derive(Debug, Clone, Copy)]
pub struct Opened {
    ring: Ring,
    buffers: Buffers,
    /// The longest frame that is written to one buffer, without a look at its headers, bytes; 0 without shortcuts.
    one_buffer: usize,
}

impl Opened {
    /// Descriptors are in the legacy format.
    #[must_use]
    pub fn is_legacy(&self) -> bool {
        self.buffers.is_legacy()
    }
}

/// A frame, and how it is laid into descriptors.
struct Delivery<'a> {
    frame: &'a [u8],
    description: &'a Description,
    buffers: &'a Buffers,
    layout: Layout,
}

/// Why a frame was not received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// The queue is disabled, or its registers make no ring.
    Disabled,
    /// Not enough descriptors for the whole frame.
    NoDescriptors,
    /// The ring or a buffer is not in the function's memory.
    Fault,
}

/// The private state of a receive queue. Registers are in the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "saved::Saved", try_from = "saved::Saved")]
pub struct ReceiveQueue {
    queue: Queue,
    /// Descriptors read ahead, and those filled and not given back yet.
    posted: Posted,
    /// The ring itself has faulted; it stays silent until it is set up anew.
    halted: bool,
    /// The ring, as its registers have it; `None` if the queue receives nothing. It follows from them and is not saved.
    ring: Option<Ring>,
}

impl ReceiveQueue {
    /// Which queue it is.
    pub(crate) fn queue(&self) -> Queue {
        self.queue
    }

    /// A queue that holds nothing.
    #[must_use]
    pub fn new(queue: Queue) -> Self {
        Self { queue, posted: Posted::at(0), halted: false, ring: None }
    }

    /// A register of the ring was written, or the queue goes on from a saved state.
    pub fn decode(&mut self, file: &RegisterFile) {
        self.ring = ring::receive(file, self.queue);
    }

    /// Forgets what was fetched or not yet written back and starts over at the head register: the queue was
    /// reset, enabled or given another ring.
    pub fn restart(&mut self, file: &RegisterFile) {
        let head = file.get(rx_block(self.queue) + rx::RDH);
        *self = Self { posted: Posted::at(head), ..Self::new(self.queue) };
        self.decode(file);
    }

    /// The ring and buffers as the registers have them now; `None` if the queue receives nothing. With `shortcuts` a frame
    /// that fits one buffer is not looked at any closer.
    #[must_use]
    pub fn open(&self, file: &RegisterFile, shortcuts: bool) -> Option<Opened> {
        debug_assert_eq!(self.ring, ring::receive(file, self.queue));
        let ring = self.ring?;
        let buffers = Buffers::of(file, self.queue);
        let one_buffer = if shortcuts { buffers.whole() } else { 0 };
        let known = ring.contains(self.posted.fetch_at()) && ring.contains(self.posted.head());
        known.then_some(Opened { ring, buffers, one_buffer })
    }

    /// The queue as bursts use it, with what its descriptors say; `None` if the ring has faulted.
    #[inline(always)]
    pub(crate) fn receiver<'a, B, S>(
        &'a mut self,
        opened: &Opened,
        function: Function,
        bus: &'a mut B,
        format: S,
    ) -> Option<Receiver<'a, B, S>> {
        let Opened { ring, one_buffer: longest, .. } = *opened;
        let room = (ring.most() as usize).saturating_sub(self.posted.used());
        let posted = &mut self.posted;
        (!self.halted).then_some(Receiver { posted, ring, room, longest, function, bus, format })
    }

    /// Puts a frame into as many buffers as it needs, or into none. No register was written since the queue was opened.
    ///
    /// # Errors
    /// [`Lost`]: nothing of the frame will be seen by software.
    pub fn deliver<B: Bus>(
        &mut self,
        opened: &Opened,
        io: &mut QueueIo<'_, B>,
        frame: &[u8],
        description: Description,
    ) -> Result<(), Lost> {
        if self.halted {
            return Err(Lost::Disabled);
        }
        let delivery = Delivery::new(frame, &description, &opened.buffers);
        if self.left(&opened.ring) < delivery.needed() {
            return Err(Lost::NoDescriptors);
        }
        match self.fill(&opened.ring, io, &delivery) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Lost::Fault),
            Err(_) => Err(self.halt()),
        }
    }

    /// Whether a frame of so many bytes finds descriptors if software posts as many as the ring can have.
    pub(crate) fn may_fit(&self, file: &RegisterFile, length: usize, description: &Description) -> bool {
        let buffers = Buffers::of(file, self.queue);
        let layout = buffers.lay(length, description.split.length(buffers.split));
        self.ring.is_some_and(|ring| buffers.needed(length - layout.header) <= ring.most() as usize)
    }

    /// The ring has faulted and stays silent.
    #[cold]
    fn halt(&mut self) -> Lost {
        self.halted = true;
        self.posted.drop_filled();
        Lost::Fault
    }

    /// Descriptors that may be filled: never so many that the ring goes round before any is given back, which
    /// software could otherwise bring about by moving the tail back behind what was fetched.
    fn left(&self, ring: &Ring) -> usize {
        let posted = self.posted.ready() + ring.available(self.posted.fetch_at()) as usize;
        posted.min((ring.most() as usize).saturating_sub(self.posted.used()))
    }

    /// Fills descriptors with a frame; answers whether all of it reached memory. What did not is lost, as a
    /// posted write is that the bus refuses, and the descriptor says so: the ring goes on.
    fn fill<B: Bus>(
        &mut self,
        ring: &Ring,
        io: &mut QueueIo<'_, B>,
        delivery: &Delivery<'_>,
    ) -> Result<bool, DmaFault> {
        let (header, mut rest) = delivery.frame.split_at(delivery.layout.header);
        let mut posted = self.take(ring, io)?;
        let mut whole = write(io, posted.header, header);
        let mut back = WriteBack::default();
        delivery.layout.tell(&mut back);
        loop {
            let (part, later) = rest.split_at(rest.len().min(delivery.buffers.packet));
            whole &= write(io, posted.packet, part);
            back.length = part.len() as u16;
            if later.is_empty() {
                break;
            }
            self.finish(ring, delivery.raw(&back, &posted));
            (rest, back) = (later, WriteBack::default());
            posted = self.take(ring, io)?;
        }
        delivery.description.tell(&mut back);
        back.status |= if whole { 0 } else { status::RXE };
        self.finish(ring, delivery.raw(&back, &posted));
        Ok(whole)
    }

    /// The next posted descriptor, reading a burst if none is ready.
    fn take<B: Bus>(&mut self, ring: &Ring, io: &mut QueueIo<'_, B>) -> Result<descriptor::Posted, DmaFault> {
        self.posted.prepare(ring, io.function, io.bus)?;
        let raw = self.posted.next(ring).and_then(|raw| raw.first_chunk());
        Ok(raw.map(descriptor::Posted::parse).unwrap_or_default())
    }

    /// The next descriptor is filled.
    fn finish(&mut self, ring: &Ring, raw: [u8; SIZE]) {
        let words = u128::from_le_bytes(raw);
        self.posted.fill(ring, [words as u64, (words >> 64) as u64, 0, 0]);
    }

    /// Descriptors that software has posted and the card has not given back.
    #[must_use]
    pub fn available(&self, file: &RegisterFile) -> u32 {
        let head = file.get(rx_block(self.queue) + rx::RDH);
        self.ring.map_or(0, |ring| ring.available(head))
    }

    /// Gives back what is done; answers whether there was anything, so that an interrupt is due.
    ///
    /// # Errors
    /// [`DmaFault`] if the ring is not in the function's memory; the queue then stays silent until it is set up
    /// anew.
    pub fn write_back<B: Bus>(&mut self, io: &mut QueueIo<'_, B>) -> Result<bool, DmaFault> {
        if let Some(ring) = self.ring {
            let given =
                if self.halted { Ok(false) } else { self.posted.give_back(&ring, io.function, io.bus) };
            io.file.set(rx_block(self.queue) + rx::RDH, self.posted.head());
            if let Err(fault) = given {
                self.halt();
                return Err(fault);
            }
        }
        Ok(self.posted.take_spoke())
    }
}

/// Writes to a buffer, if there is anything to write.
fn write<B: Bus>(io: &mut QueueIo<'_, B>, iova: Iova, bytes: &[u8]) -> bool {
    bytes.is_empty() || io.bus.dma_write(io.function, iova, bytes).is_ok()
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

impl<'a> Delivery<'a> {
    fn new(frame: &'a [u8], description: &'a Description, buffers: &'a Buffers) -> Self {
        let layout = buffers.lay(frame.len(), description.split.length(buffers.split));
        Self { frame, description, buffers, layout }
    }

    /// Descriptors that it takes.
    fn needed(&self) -> usize {
        self.buffers.needed(self.frame.len() - self.layout.header)
    }

    /// A descriptor as the queue's format has it.
    fn raw(&self, back: &WriteBack, posted: &descriptor::Posted) -> [u8; SIZE] {
        if !self.buffers.is_legacy() {
            return back.emit();
        }
        let WriteBack { length, status, vlan_tag, .. } = *back;
        let checksum = if back.end_of_packet() { self.description.checksum } else { 0 };
        legacy::WriteBack { address: posted.packet, length, checksum, status, vlan_tag }.emit()
    }
}
