//! A receive queue: posted descriptors are fetched ahead in bursts, frames are scattered into their buffers,
//! and the descriptors go back in bursts. Left out: legacy descriptors and the replication formats.

use super::BURST;
use super::ring::Ring;
use super::write_back::Batch;
use crate::file::RegisterFile;
use i82576::Queue;
use i82576::bits::{rctl, srrctl};
use i82576::descriptor::rx::{Posted, WriteBack, status};
use i82576::descriptor::{DD, SIZE};
use i82576::register::{RCTL, rx, rx_block};
use pcie::{Bus, DmaFault, Function, Iova};

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
    /// Bytes of headers that may be split off; 0 if they were not understood.
    pub header_length: usize,
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
#[derive(Debug)]
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
    /// The ring itself faulted; it stays silent until it is set up anew.
    halted: bool,
}

impl ReceiveQueue {
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
            halted: false,
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
        if self.halted || !ring.contains(self.fetch_at) || !ring.contains(self.done.head()) {
            return Err(Missed::Disabled);
        }
        let buffers = Buffers::of(file, self.queue);
        let split = buffers.split(frame.len(), description.header_length);
        let needed = (frame.len() - split).div_ceil(buffers.packet).max(1);
        if self.left(&ring) < needed {
            return Err(Missed::NoDescriptors);
        }
        let outcome = self.scatter(file, &ring, function, bus, frame, split, buffers.packet, description);
        self.halted |= outcome.is_err();
        if outcome? { Ok(()) } else { Err(Missed::Fault) }
    }

    /// Descriptors that may be filled: never so many that the ring goes round before any is given back, which
    /// software could otherwise bring about by moving the tail back behind what was fetched.
    fn left(&self, ring: &Ring) -> usize {
        let posted = self.fetched - self.next + ring.available(self.fetch_at) as usize;
        posted.min(ring.most().saturating_sub(self.done.waiting()) as usize)
    }

    /// Fills descriptors with a frame; answers whether all of it reached memory. What did not is lost, as a
    /// posted write is that the bus refuses, and the descriptor says so: the ring goes on.
    #[expect(clippy::too_many_arguments, reason = "one frame's journey into one ring")]
    fn scatter<B: Bus>(
        &mut self,
        file: &mut RegisterFile,
        ring: &Ring,
        function: Function,
        bus: &mut B,
        frame: &[u8],
        split: usize,
        buffer: usize,
        description: &Description,
    ) -> Result<bool, DmaFault> {
        let (header, mut rest) = frame.split_at(split);
        let (mut first, mut whole) = (true, true);
        while first || !rest.is_empty() {
            let posted = self.take(ring, function, bus)?;
            if first {
                whole &= write(bus, function, posted.header, header);
            }
            let (part, later) = rest.split_at(rest.len().min(buffer));
            whole &= write(bus, function, posted.packet, part);
            rest = later;
            let mut back = WriteBack { length: part.len() as u16, status: DD, ..WriteBack::default() };
            if first && split > 0 {
                (back.header_length, back.split) = (split as u16, true);
            }
            if rest.is_empty() {
                back = description.fill(back);
                back.status |= if whole { 0 } else { status::RXE };
            }
            self.finish(file, ring, function, bus, back.emit())?;
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
        if self.done.is_full() { self.flush(file, ring, function, bus) } else { Ok(()) }
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
        if let Some(ring) = Ring::receive(file, self.queue).filter(|_| !self.halted) {
            let flushed = self.flush(file, &ring, function, bus);
            self.halted |= flushed.is_err();
            flushed?;
        }
        Ok(self.done.announce())
    }

    fn flush<B: Bus>(
        &mut self,
        file: &mut RegisterFile,
        ring: &Ring,
        function: Function,
        bus: &mut B,
    ) -> Result<(), DmaFault> {
        self.done.flush(ring, function, bus)?;
        file.set(rx_block(self.queue) + rx::RDH, self.done.head());
        Ok(())
    }
}

/// Writes to a buffer, if there is anything to write.
fn write<B: Bus>(bus: &mut B, function: Function, iova: Iova, bytes: &[u8]) -> bool {
    bytes.is_empty() || bus.dma_write(function, iova, bytes).is_ok()
}

impl Description {
    fn fill(&self, back: WriteBack) -> WriteBack {
        WriteBack {
            rss_type: self.rss.0,
            hash: self.rss.1,
            packet_type: self.packet_type,
            status: self.status | status::EOP,
            vlan_tag: self.vlan_tag,
            ..back
        }
    }
}

/// The buffer sizes of a queue.
#[derive(Debug, Clone, Copy)]
struct Buffers {
    /// Packet buffer, never 0.
    packet: usize,
    /// Header buffer; 0 if headers are not split off.
    header: usize,
    /// Split whatever the frame is, at the size of the header buffer if no header is understood.
    always: bool,
}

/// The longest header that HDRLEN can tell of.
const MAX_HEADER: usize = 0x3ff;
/// SRRCTL.DESCTYPE: split headers that are understood.
const HEADER_SPLIT: u32 = 2;
/// SRRCTL.DESCTYPE: split always.
const ALWAYS_SPLIT: u32 = 5;

impl Buffers {
    fn of(file: &RegisterFile, queue: Queue) -> Self {
        let control = file.get(rx_block(queue) + rx::SRRCTL);
        let packet = match srrctl::packet_buffer(control) {
            0 => rctl::buffer_size(file.get(RCTL)),
            bytes => bytes,
        };
        let kind = srrctl::descriptor_type(control);
        let splits = matches!(kind, HEADER_SPLIT | ALWAYS_SPLIT);
        let header = if splits { srrctl::header_buffer(control).min(MAX_HEADER) } else { 0 };
        Self { packet, header, always: kind == ALWAYS_SPLIT }
    }

    /// How many bytes of a frame go to the header buffer.
    fn split(&self, frame: usize, header: usize) -> usize {
        let fits = header > 0 && header <= self.header;
        match (fits, self.always) {
            (true, _) => header.min(frame),
            (false, true) => self.header.min(frame),
            (false, false) => 0,
        }
    }
}
