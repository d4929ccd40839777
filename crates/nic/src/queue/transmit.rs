//! A transmit queue: descriptors are fetched in bursts, a packet is taken only when all of it is there, and
//! its bytes are gathered into the port's staging buffer. Left out: what becomes of them.

mod saved;

use super::BURST;
use super::held::Held;
use super::ring::Ring;
use super::write_back::{Batch, Way};
use crate::file::RegisterFile;
use i82576::Queue;
use i82576::bits::tdwbal;
use i82576::descriptor::tx::{Context, Data, Transmit, buffer, parse};
use i82576::descriptor::{DD, SIZE, legacy};
use i82576::register::{tx, tx_block};
use pcie::{Bus, DmaFault, Function};
use saved::SavedTransmit;
use serde::{Deserialize, Serialize};

/// The most descriptors a packet may take, its context included. Linux igbvf needs about 40 for the largest
/// one; what goes beyond is dropped, in pieces of this size, up to its end.
pub const MAX_DESCRIPTORS: usize = 128;
/// What a frame of the budget pays for: descriptors read and bytes gathered. Honest packets make more frames
/// than that; only a guest that wants the card to work for nothing does not.
const DESCRIPTORS_A_FRAME: usize = 16;
const BYTES_A_FRAME: usize = 2048;

/// A packet, as its descriptors tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// The first data descriptor: it decides on VLAN, segmentation and checksums.
    pub first: Data,
    /// The context that it refers to. A legacy descriptor brings its own tag.
    pub context: Context,
    /// The checksum that a legacy descriptor asks for.
    pub checksum: Option<legacy::Checksum>,
    /// Bytes gathered.
    pub length: usize,
    /// Segments that have left.
    pub sent: u32,
}

/// What taking the next packet came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// Nothing, or nothing complete, is there.
    Nothing,
    /// A packet is in the staging buffer.
    Packet(Packet),
    /// Descriptors of the legacy format without a byte: they are given back, and that is all they are for.
    Empty,
    /// A packet was consumed and is dropped.
    Dropped(Invalid),
}

/// Why a packet was dropped before anything looked at its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invalid {
    /// More descriptors or bytes than a packet may have, or none.
    Size,
    /// Reserved descriptor type.
    Type,
    /// The ring or a buffer is not in the function's memory.
    Fault,
}

/// A place for the descriptors of the packet being taken.
pub(crate) type Descriptors = [[u8; SIZE]; MAX_DESCRIPTORS];

/// That place, empty.
pub(crate) const NO_DESCRIPTORS: Descriptors = [[0; SIZE]; MAX_DESCRIPTORS];

/// How far the descriptors of the next packet have been read.
enum Scan {
    /// `count` descriptors from the head make a packet; the number of its first buffer.
    Complete(usize, usize),
    /// `count` descriptors from the head are contexts only.
    Contexts(usize),
    /// The tail came first.
    Incomplete,
    /// `count` descriptors from the head are no packet.
    Invalid(usize, Invalid),
}

/// The private state of a transmit queue. Registers are in the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "SavedTransmit", try_from = "SavedTransmit")]
pub struct TransmitQueue {
    queue: Queue,
    contexts: [Context; 2],
    /// Descriptors fetched ahead: `fetched` of them from ring index `fetched_at` on. Never a whole ring, so that
    /// whoever goes round comes to one that has to be fetched, before those fetched the last time.
    burst: [[u8; SIZE]; BURST],
    fetched_at: u32,
    fetched: u32,
    /// Descriptors passed and not given back yet.
    done: Batch,
    /// What was begun is too long for a packet and is dropped up to its end.
    skipping: bool,
    /// Descriptors and bytes that the last packet took.
    effort: (usize, usize),
    /// A packet of which some segments wait. Its descriptors have been read and go back.
    pub held: Held,
}

impl TransmitQueue {
    /// Which queue it is.
    pub(crate) fn queue(&self) -> Queue {
        self.queue
    }

    /// A queue that holds nothing.
    #[must_use]
    pub fn new(queue: Queue) -> Self {
        Self {
            queue,
            contexts: [Context::default(); 2],
            burst: [[0; SIZE]; BURST],
            fetched_at: 0,
            fetched: 0,
            done: Batch::at(0),
            skipping: false,
            effort: (0, 0),
            held: Held::default(),
        }
    }

    /// Forgets what was fetched and starts over at the head register: the queue was enabled or given another
    /// ring. Contexts stay until they are overwritten.
    pub fn restart(&mut self, file: &RegisterFile) {
        self.fetched = 0;
        self.done = Batch::at(file.get(tx_block(self.queue) + tx::TDH));
        self.skipping = false;
        self.held.clear();
    }

    /// TXDCTL was written, and the queue that has sent segments of a packet is still enabled.
    #[must_use]
    pub fn goes_on(&self, file: &RegisterFile) -> bool {
        !self.held.is_empty() && Ring::transmit(file, self.queue).is_some()
    }

    /// The queue was reset: what its owner told it is forgotten as well.
    pub fn reset(&mut self, file: &RegisterFile) {
        self.contexts = [Context::default(); 2];
        self.restart(file);
    }

    /// Whether descriptors wait that have not been looked at, or segments.
    #[must_use]
    pub fn has_more(&self, file: &RegisterFile) -> bool {
        let ring = Ring::transmit(file, self.queue).filter(|_| !self.done.is_halted());
        let waiting = ring.filter(|ring| ring.contains(self.done.head()));
        !self.held.is_empty() || waiting.is_some_and(|ring| ring.available(self.next(&ring)) > 0)
    }

    /// What the last packet cost the card, in frames of the budget.
    #[must_use]
    pub fn effort(&self) -> usize {
        let (descriptors, bytes) = self.effort;
        (descriptors / DESCRIPTORS_A_FRAME).max(bytes / BYTES_A_FRAME)
    }

    /// Takes the next packet into `staging`, if there is a complete one, by way of its descriptors in `packet`.
    pub(crate) fn take<B: Bus>(
        &mut self,
        file: &mut RegisterFile,
        function: Function,
        bus: &mut B,
        packet: &mut Descriptors,
        staging: &mut [u8],
    ) -> Taken {
        self.effort = (0, 0);
        let Some(ring) = Ring::transmit(file, self.queue).filter(|_| !self.done.is_halted()) else {
            return Taken::Nothing;
        };
        if !ring.contains(self.done.head()) {
            return Taken::Nothing;
        }
        let taken = self.take_from(file, &ring, function, bus, packet, staging);
        taken.unwrap_or_else(|_| {
            self.done.halt();
            Taken::Dropped(Invalid::Fault)
        })
    }

    fn take_from<B: Bus>(
        &mut self,
        file: &mut RegisterFile,
        ring: &Ring,
        function: Function,
        bus: &mut B,
        packet: &mut Descriptors,
        staging: &mut [u8],
    ) -> Result<Taken, DmaFault> {
        loop {
            let (count, taken) = match self.scan(ring, function, bus, packet)? {
                Scan::Incomplete => return Ok(Taken::Nothing),
                Scan::Contexts(count) => (count, None),
                Scan::Invalid(count, why) => (count, Some(Taken::Dropped(why))),
                Scan::Complete(count, first) => {
                    (count, Some(self.gather(packet, count, first, function, bus, staging)))
                }
            };
            self.consume(file, ring, function, bus, packet, count)?;
            if let Some(taken) = taken {
                return Ok(taken);
            }
        }
    }

    /// The first descriptor that has not been consumed.
    fn next(&self, ring: &Ring) -> u32 {
        ring.advance(self.done.head(), self.done.waiting())
    }

    /// Reads descriptors up to the end of a packet. Contexts take effect at once: reading them again does no
    /// harm.
    fn scan<B: Bus>(
        &mut self,
        ring: &Ring,
        function: Function,
        bus: &mut B,
        packet: &mut Descriptors,
    ) -> Result<Scan, DmaFault> {
        let start = self.next(ring);
        let available = ring.available(start) as usize;
        let mut first = None;
        #[expect(clippy::needless_range_loop, reason = "an iterator takes ten instructions a frame more")]
        for count in 0..available.min(MAX_DESCRIPTORS) {
            let raw = self.descriptor(ring, ring.advance(start, count as u32), function, bus)?;
            packet[count] = raw;
            let Some(buffer) = buffer(&raw) else {
                let Transmit::Context(context) = parse(&raw) else {
                    return Ok(Scan::Invalid(count + 1, Invalid::Type));
                };
                self.contexts[usize::from(context.index & 1)] = context;
                continue;
            };
            let first = *first.get_or_insert(count);
            if buffer.end_of_packet && core::mem::take(&mut self.skipping) {
                return Ok(Scan::Invalid(count + 1, Invalid::Size));
            }
            if buffer.end_of_packet {
                return Ok(Scan::Complete(count + 1, first));
            }
        }
        // A packet that fills the ring will never be complete.
        let most = MAX_DESCRIPTORS.min(ring.most() as usize);
        self.skipping |= first.is_some() && available >= most;
        Ok(match first {
            _ if available == 0 => Scan::Incomplete,
            _ if self.skipping || available >= MAX_DESCRIPTORS => {
                Scan::Invalid(available.min(MAX_DESCRIPTORS), Invalid::Size)
            }
            Some(_) => Scan::Incomplete,
            None => Scan::Contexts(available),
        })
    }

    /// The descriptor at a ring index, fetching a burst if it is not at hand.
    fn descriptor<B: Bus>(
        &mut self,
        ring: &Ring,
        index: u32,
        function: Function,
        bus: &mut B,
    ) -> Result<[u8; SIZE], DmaFault> {
        let at_hand = |index: u32, from: u32, count: u32| index.checked_sub(from).filter(|i| *i < count);
        if at_hand(index, self.fetched_at, self.fetched).is_none() {
            let count = ring.contiguous(index, ring.available(index).min(BURST as u32));
            let burst = &mut self.burst.as_flattened_mut()[..count as usize * SIZE];
            bus.dma_read(function, ring.address(index), burst)?;
            (self.fetched_at, self.fetched) = (index, count);
        }
        Ok(self.burst[(index - self.fetched_at) as usize % BURST])
    }

    /// Copies the buffers of a packet together.
    fn gather<B: Bus>(
        &mut self,
        packet: &Descriptors,
        count: usize,
        first: usize,
        function: Function,
        bus: &mut B,
        staging: &mut [u8],
    ) -> Taken {
        let mut length = 0;
        for raw in &packet[..count] {
            let Some(buffer) = buffer(raw) else { continue };
            let end = length + usize::from(buffer.length);
            let Some(place) = staging.get_mut(length..end) else {
                return Taken::Dropped(Invalid::Size);
            };
            if !place.is_empty() && bus.dma_read(function, buffer.address, place).is_err() {
                return Taken::Dropped(Invalid::Fault);
            }
            length = end;
            self.effort.1 = length;
        }
        if length == 0 {
            let legacy = matches!(parse(&packet[first.min(MAX_DESCRIPTORS - 1)]), Transmit::Legacy(_));
            return if legacy { Taken::Empty } else { Taken::Dropped(Invalid::Size) };
        }
        Taken::Packet(self.packet(&packet[first.min(MAX_DESCRIPTORS - 1)], length))
    }

    /// The packet whose first buffer is that of descriptor `first`.
    #[inline]
    fn packet(&self, first: &[u8; SIZE], length: usize) -> Packet {
        let (first, context, checksum) = match parse(first) {
            Transmit::Data(data) => (data, self.contexts[usize::from(data.context & 1)], None),
            Transmit::Legacy(legacy) => {
                let vlan_tag = legacy.vlan_tag.unwrap_or(0);
                (legacy.as_data(), Context { vlan_tag, ..Context::default() }, legacy.checksum)
            }
            // A context names no buffer, nor does what is reserved.
            Transmit::Context(_) | Transmit::Other => Default::default(),
        };
        Packet { first, context, checksum, length, sent: 0 }
    }

    /// Passes `count` descriptors of a packet: those that ask for it will read as done.
    fn consume<B: Bus>(
        &mut self,
        file: &mut RegisterFile,
        ring: &Ring,
        function: Function,
        bus: &mut B,
        packet: &Descriptors,
        count: usize,
    ) -> Result<(), DmaFault> {
        for &raw in packet.iter().take(count) {
            if self.done.is_full() {
                self.done.flush(file, ring, self.way(file), function, bus)?;
            }
            let report = buffer(&raw).is_some_and(|buffer| buffer.report_status);
            self.effort.0 += 1;
            self.done.push(if report { with_dd(raw) } else { raw }, report);
        }
        Ok(())
    }

    /// Gives back what is done; answers whether an interrupt is due.
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
        let ring = Ring::transmit(file, self.queue);
        self.done.finish(file, ring, self.way(file), function, bus)
    }

    fn way(&self, file: &RegisterFile) -> Way {
        let block = tx_block(self.queue);
        let low = file.get(block + tx::TDWBAL);
        let address = u64::from(low & !3) | u64::from(file.get(block + tx::TDWBAH)) << 32;
        Way { register: block + tx::TDH, memory: (low & tdwbal::HEAD_WB_EN != 0).then_some(address) }
    }
}

fn with_dd(mut raw: [u8; SIZE]) -> [u8; SIZE] {
    raw[12] |= DD as u8;
    raw
}
