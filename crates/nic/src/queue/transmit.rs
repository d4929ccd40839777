//! A transmit queue: it fetches descriptors in bursts, and takes a packet when all of its descriptors are there. `rings` reads the
//! packet's bytes.

mod plain;
mod saved;
mod upcoming;

pub(crate) use upcoming::BurstDescriptors;

use super::BURST;
use super::io::QueueIo;
use super::packet::{DescriptorOffloads, of_legacy};
use super::ring;
use super::write_back::{WriteBackBatch, WriteBackMethod};
use crate::file::RegisterFile;
use crate::sizes::PACKET;
use i82576::QueueIndex;
use i82576::bits::tdwbal;
use i82576::descriptor::orders::RawDataDescriptor;
use i82576::descriptor::tx::{AdvancedContextDescriptor, AnyTxDescriptor, buffer, parse};
use i82576::descriptor::{DD, SIZE};
use i82576::register::{tx, tx_block};
use pcie::{Bus, DmaFault, HintedMemory, MemoryHint};
use plane::frame::HEADROOM;
use rings::{BufferChain, MAX_BUFFERS, NextPacketResult, PacketDropReason, PausedPacketMemory, Ring};
use serde::{Deserialize, Serialize};

/// Maximum number of descriptors of a packet, its context included. Linux igbvf needs about 40 for the largest packet. A longer one
/// is dropped, in pieces of this size, up to its end.
pub(crate) const MAX_DESCRIPTORS: usize = MAX_BUFFERS;
/// Number of descriptors that count as one frame of the poll's budget; `BYTES_A_FRAME` is the number of bytes. An
/// honest packet needs fewer for each of its frames; a hostile guest could otherwise make the card read without end for
/// nothing.
const DESCRIPTORS_A_FRAME: usize = 16;
const BYTES_A_FRAME: usize = 2048;

/// Descriptors of the packet that was last taken from a transmit queue.
#[derive(Debug, Clone)]
pub(crate) struct PacketDescriptors {
    raw: [[u8; SIZE]; MAX_DESCRIPTORS],
    count: usize,
}

impl Default for PacketDescriptors {
    fn default() -> Self {
        Self { raw: [[0; SIZE]; MAX_DESCRIPTORS], count: 0 }
    }
}

/// Result of reading the descriptors of the next packet of a transmit queue.
enum PacketScanResult {
    /// A whole packet: its number of descriptors, and the index of the one with its first buffer.
    Complete(usize, usize),
    /// The transmit queue has only context descriptors before the tail, this number of them, and no data descriptor.
    Contexts(usize),
    /// The packet is incomplete: its last descriptor (EOP) is not before the tail yet.
    Incomplete,
    /// The next descriptors make no valid packet: the number of these descriptors, and the reason to drop them.
    Invalid(usize, PacketDropReason),
}

/// State of a transmit queue that is not in the queue's registers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "saved::SavedTransmitQueue", try_from = "saved::SavedTransmitQueue")]
pub(crate) struct TransmitQueue {
    queue: QueueIndex,
    contexts: [AdvancedContextDescriptor; 2],
    /// Transmit descriptors fetched ahead: `fetched` of them from ring index `fetched_at` on. They are never a whole
    /// ring. So the head meets a descriptor that has to be fetched before it meets one of the ring's previous turn.
    burst: [[u8; SIZE]; BURST],
    fetched_at: u32,
    fetched: u32,
    /// Descriptors that the card has processed and not yet written back.
    done: WriteBackBatch,
    /// True if a packet with too many descriptors is being dropped, up to its end.
    skipping: bool,
    /// Number of descriptors and number of bytes of the packet that was last taken from the queue.
    effort: (usize, usize),
    /// Packet of which some segments have left and others wait. The card has already processed its descriptors.
    pub held: PausedPacketMemory<DescriptorOffloads>,
    /// Ring decoded from the registers; `None` if the queue is disabled or the registers are invalid. It is not saved.
    ring: Option<Ring>,
    /// Hint by which the bus finds the memory of the transmit ring; `buffers` is the hint for the memory of the ring's
    /// buffers.
    hint: MemoryHint,
    buffers: MemoryHint,
}

impl TransmitQueue {
    /// Returns the number of the transmit queue.
    pub(crate) fn queue(&self) -> QueueIndex {
        self.queue
    }

    /// Creates a transmit queue without descriptors.
    #[must_use]
    pub(crate) fn new(queue: QueueIndex) -> Self {
        Self {
            queue,
            contexts: [AdvancedContextDescriptor::default(); 2],
            burst: [[0; SIZE]; BURST],
            fetched_at: 0,
            fetched: 0,
            done: WriteBackBatch::at(0),
            skipping: false,
            effort: (0, 0),
            held: PausedPacketMemory::default(),
            ring: None,
            hint: MemoryHint(0),
            buffers: MemoryHint(0),
        }
    }

    /// Returns true if the queue has no ring, or if the queue's head is in the ring.
    pub(crate) fn is_in_its_ring(&self, file: &RegisterFile) -> bool {
        ring::transmit(file, self.queue).is_none_or(|ring| ring.contains(self.done.head()))
    }

    /// Decodes the transmit ring's registers again, after one was written or the queue was restored.
    pub(crate) fn decode(&mut self, file: &RegisterFile) {
        self.ring = ring::transmit(file, self.queue);
    }

    /// Drops the transmit queue's fetched descriptors and starts at the head register, after the queue was enabled or
    /// got another ring. Contexts stay until they are overwritten.
    pub(crate) fn restart(&mut self, file: &RegisterFile) {
        self.fetched = 0;
        self.done = WriteBackBatch::at(file.get(tx_block(self.queue) + tx::TDH));
        self.skipping = false;
        self.held.clear();
        self.decode(file);
    }

    /// Decodes the transmit ring again after a write of TXDCTL. Returns true if the queue is still enabled and keeps a
    /// packet that waits between two segments.
    #[must_use]
    pub(crate) fn goes_on(&mut self, file: &RegisterFile) -> bool {
        self.decode(file);
        !self.held.is_empty() && self.ring.is_some()
    }

    /// Resets the transmit queue, its offload contexts included.
    pub(crate) fn reset(&mut self, file: &RegisterFile) {
        self.contexts = [AdvancedContextDescriptor::default(); 2];
        self.restart(file);
    }

    /// Returns true if the queue has something to send: descriptors, or waiting segments of a packet.
    #[must_use]
    pub(crate) fn has_more(&self, file: &RegisterFile) -> bool {
        let waiting = self.open(file).filter(|_| !self.done.is_halted());
        !self.held.is_empty() || waiting.is_some_and(|ring| ring.available(self.next(&ring)) > 0)
    }

    /// Returns the cost of the transmit queue's last packet, in frames of the poll's budget.
    #[must_use]
    pub(crate) fn effort(&self) -> usize {
        let (descriptors, bytes) = self.effort;
        (descriptors / DESCRIPTORS_A_FRAME).max(bytes / BYTES_A_FRAME)
    }

    /// Returns the transmit ring that the registers describe, or `None` if the queue sends nothing.
    #[must_use]
    pub(crate) fn open(&self, file: &RegisterFile) -> Option<Ring> {
        debug_assert_eq!(self.ring, ring::transmit(file, self.queue));
        self.ring.filter(|ring| ring.contains(self.done.head()))
    }

    /// Reads the descriptors of the next packet in `ring` into `packet` if all of them are posted, and replaces
    /// `buffers` by the buffers that the descriptors name. The caller opened the ring after the last write of the
    /// queue's registers.
    #[inline(never)]
    pub(crate) fn take<B: Bus>(
        &mut self,
        io: &mut QueueIo<'_, B>,
        ring: &Ring,
        packet: &mut PacketDescriptors,
        buffers: &mut BufferChain,
    ) -> NextPacketResult<DescriptorOffloads> {
        self.effort = (0, 0);
        if self.done.is_halted() {
            return NextPacketResult::Nothing;
        }
        self.take_from(io, ring, packet, buffers).unwrap_or_else(|_| self.halt())
    }

    /// Stops the transmit queue after a fault of its ring.
    #[cold]
    fn halt(&mut self) -> NextPacketResult<DescriptorOffloads> {
        self.done.halt();
        NextPacketResult::Dropped(PacketDropReason::Fault)
    }

    fn take_from<B: Bus>(
        &mut self,
        io: &mut QueueIo<'_, B>,
        ring: &Ring,
        packet: &mut PacketDescriptors,
        buffers: &mut BufferChain,
    ) -> Result<NextPacketResult<DescriptorOffloads>, DmaFault> {
        loop {
            let (count, taken) = match self.scan(io, ring, packet)? {
                PacketScanResult::Incomplete => return Ok(NextPacketResult::Nothing),
                PacketScanResult::Contexts(count) => (count, None),
                PacketScanResult::Invalid(count, why) => (count, Some(NextPacketResult::Dropped(why))),
                PacketScanResult::Complete(count, first) => {
                    (count, Some(self.describe(&packet.raw[..count], first, buffers)))
                }
            };
            packet.count = count;
            if let Some(packet @ NextPacketResult::Packet(_)) = taken {
                self.effort = (self.effort.0 + count, buffers.bytes());
                return Ok(packet);
            }
            self.pass_all(io, ring, packet)?;
            self.effort.0 += count;
            if let Some(taken) = taken {
                return Ok(taken);
            }
        }
    }

    /// Adds the descriptors of the packet that was taken last to the write-back batch. Returns `false` if the ring has
    /// faulted.
    pub(crate) fn end_take<B: Bus>(&mut self, io: &mut QueueIo<'_, B>, packet: &PacketDescriptors) -> bool {
        let Some(ring) = self.open(io.file) else { return false };
        let passed = self.pass_all(io, &ring, packet).is_ok();
        if !passed {
            self.halt();
        }
        passed
    }

    fn pass_all<B: Bus>(
        &mut self,
        io: &mut QueueIo<'_, B>,
        ring: &Ring,
        packet: &PacketDescriptors,
    ) -> Result<(), DmaFault> {
        packet.raw[..packet.count].iter().try_for_each(|raw| {
            let report = buffer(raw).is_some_and(|buffer| buffer.report_status);
            self.pass(io, ring, *raw, report)
        })
    }

    /// Returns the ring index of the first descriptor that the card has not processed.
    fn next(&self, ring: &Ring) -> u32 {
        ring.advance(self.done.head(), self.done.waiting())
    }

    /// Reads transmit descriptors into `packet` up to the end of a packet. Contexts take effect at once: reading them
    /// again does no harm.
    fn scan<B: Bus>(
        &mut self,
        io: &mut QueueIo<'_, B>,
        ring: &Ring,
        packet: &mut PacketDescriptors,
    ) -> Result<PacketScanResult, DmaFault> {
        let start = self.next(ring);
        let available = ring.available(start) as usize;
        let mut first = None;
        for count in 0..available.min(MAX_DESCRIPTORS) {
            let raw = self.burst[self.fetch(io, ring, ring.advance(start, count as u32))?];
            packet.raw[count] = raw;
            let Some(buffer) = buffer(&raw) else {
                let AnyTxDescriptor::Context(context) = parse(&raw) else {
                    return Ok(PacketScanResult::Invalid(count + 1, PacketDropReason::Descriptor));
                };
                self.contexts[usize::from(context.index & 1)] = context;
                continue;
            };
            let first = *first.get_or_insert(count);
            if buffer.end_of_packet && core::mem::take(&mut self.skipping) {
                return Ok(PacketScanResult::Invalid(count + 1, PacketDropReason::Size));
            }
            if buffer.end_of_packet {
                return Ok(PacketScanResult::Complete(count + 1, first));
            }
        }
        // A packet that fills the ring will never be complete.
        let most = MAX_DESCRIPTORS.min(ring.most() as usize);
        self.skipping |= first.is_some() && available >= most;
        Ok(match first {
            _ if available == 0 => PacketScanResult::Incomplete,
            _ if self.skipping || available >= MAX_DESCRIPTORS => {
                PacketScanResult::Invalid(available.min(MAX_DESCRIPTORS), PacketDropReason::Size)
            }
            Some(_) => PacketScanResult::Incomplete,
            None => PacketScanResult::Contexts(available),
        })
    }

    /// Returns the index within the fetched burst of the transmit descriptor at a ring index. Fetches a burst that
    /// starts with the descriptor if it was not fetched yet.
    fn fetch<B: Bus>(&mut self, io: &mut QueueIo<'_, B>, ring: &Ring, index: u32) -> Result<usize, DmaFault> {
        let at = index.wrapping_sub(self.fetched_at);
        if at < self.fetched {
            return Ok(at as usize % BURST);
        }
        let count = ring.contiguous(index, ring.available(index).min(BURST as u32));
        let burst = &mut self.burst.as_flattened_mut()[..count as usize * SIZE];
        let space = HintedMemory { function: io.function, hint: &mut self.hint };
        io.bus.read_descriptors(space, ring.address(index), burst)?;
        (self.fetched_at, self.fetched) = (index, count);
        Ok(0)
    }

    /// Lists a packet's buffers in `buffers`, and returns the packet. Descriptor `first` names its first buffer.
    fn describe(
        &self,
        packet: &[[u8; SIZE]],
        first: usize,
        buffers: &mut BufferChain,
    ) -> NextPacketResult<DescriptorOffloads> {
        buffers.clear();
        for buffer in packet.iter().filter_map(buffer) {
            buffers.push(buffer.address, buffer.length.into());
        }
        if buffers.bytes() > PACKET - HEADROOM {
            return NextPacketResult::Dropped(PacketDropReason::Size);
        }
        packet.get(first).map_or(NextPacketResult::Dropped(PacketDropReason::Size), |first| {
            self.taken(first, buffers.bytes())
        })
    }

    /// Returns the packet of `length` bytes whose offload requests are in the descriptor `first`.
    #[inline]
    fn taken(&self, first: &[u8; SIZE], length: usize) -> NextPacketResult<DescriptorOffloads> {
        match RawDataDescriptor::of(first) {
            Some(first) if length > 0 => {
                let context = self.contexts[usize::from(first.context() & 1)];
                NextPacketResult::Packet(DescriptorOffloads { first, context, checksum: None })
            }
            Some(_) => NextPacketResult::Dropped(PacketDropReason::Size),
            None => of_legacy(first, length),
        }
    }

    /// Adds a processed descriptor to the write-back batch. With `report` it gets the done bit (DD).
    #[inline]
    fn pass<B: Bus>(
        &mut self,
        io: &mut QueueIo<'_, B>,
        ring: &Ring,
        raw: [u8; SIZE],
        report: bool,
    ) -> Result<(), DmaFault> {
        if self.done.is_full() {
            self.done.flush(io, ring, self.way(io.file))?;
        }
        self.done.push(if report { with_dd(raw) } else { raw }, report);
        Ok(())
    }

    /// Writes back the processed descriptors. Returns true if an interrupt is due.
    ///
    /// # Errors
    /// [`DmaFault`] if the ring is not in the function's memory; the queue then stays silent until it is set up
    /// anew.
    pub(crate) fn write_back<B: Bus>(&mut self, io: &mut QueueIo<'_, B>) -> Result<bool, DmaFault> {
        self.done.finish(io, self.ring, self.way(io.file))
    }

    fn way(&self, file: &RegisterFile) -> WriteBackMethod {
        let block = tx_block(self.queue);
        let low = file.get(block + tx::TDWBAL);
        let address = u64::from(low & !3) | u64::from(file.get(block + tx::TDWBAH)) << 32;
        WriteBackMethod {
            register: block + tx::TDH,
            memory: (low & tdwbal::HEAD_WB_EN != 0).then_some(address),
        }
    }
}

fn with_dd(raw: [u8; SIZE]) -> [u8; SIZE] {
    (u128::from_le_bytes(raw) | u128::from(DD) << 96).to_le_bytes()
}
