//! Transmit rings: read descriptors up to the end of a packet, and write them back in order. A packet without an end
//! stays in the ring. Malformed packets are dropped and counted; many of them stop the queue, where a real card stops
//! the queue at the first.
//!
//! `rings` reads a packet's bytes, inserts checksums and cuts segments.

use crate::packet::DescriptorOffloads;
use crate::plain::BurstDescriptors;
use avf::control::TxQueueContext;
use avf::descriptor::tx::{self, ParsedTxDescriptor, SIZE, TxContextDescriptor, TxDataDescriptor};
use avf::ids::{MAX_BUFFERS, MIN_FRAME, RING};
use pcie::{Bus, DmaFault, Function as BusFunction, HintedMemory, MemoryHint};
use rings::{BufferChain, NextPacketResult, PacketDropReason, PacketOffloads};
use serde::{Deserialize, Serialize};

/// Maximum number of descriptors of a packet, contexts included: 64 for 256 KB in pages of 4 KB, and some more.
const MOST_DESCRIPTORS: u32 = 80;
/// Number of transmit descriptors whose reading is charged as one frame to a queue's frame budget.
const DESCRIPTORS_A_FRAME: u32 = 8;
/// Maximum number of bytes in a packet that requests segmentation.
pub(crate) const MOST_BYTES: usize = 1 << 18;
/// Maximum cost of a malformed packet, in frames of a queue's frame budget.
const COSTLIEST: usize = (MOST_DESCRIPTORS / DESCRIPTORS_A_FRAME) as usize;
/// Number of malformed packets at which a queue is stopped.
const PATIENCE: u32 = 64;
/// Maximum count of a queue's malformed packets.
const MOST_MALFORMED: u32 = PATIENCE + 1;
/// Minimum number of payload bytes in a segment.
const LEAST_MSS: u16 = 64;

/// A transmit queue of a VF.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename = "TxQueue")]
pub(crate) struct TransmitQueue {
    context: Option<TxQueueContext>,
    /// Index of the descriptor that the card reads next.
    head: u32,
    /// Value of the tail register as the driver wrote it.
    pub(crate) tail: u32,
    pub(crate) running: bool,
    /// True if the tail was written since the card last found no complete packet in the ring.
    rung: bool,
    /// Number of the queue's malformed packets so far.
    malformed: u32,
    /// Hint by which the bus finds the memory of the transmit ring; `buffers` is the hint for the memory of the ring's
    /// buffers.
    #[serde(skip)]
    pub(crate) hint: MemoryHint,
    #[serde(skip)]
    pub(crate) buffers: MemoryHint,
}

/// Descriptors of a packet that have been read so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PacketDescriptors {
    packet: DescriptorOffloads,
    /// Number of buffers of the packet.
    count: usize,
    /// First defect found in the packet's descriptors.
    defect: Option<PacketDropReason>,
    /// Descriptors of the packet that the driver wants reported as done (RS), a bit each.
    reports: u128,
}

impl TransmitQueue {
    /// Sets up the transmit queue, stopped. After a reset the queue begins with the tail that its driver has stored
    /// since it enabled its mailbox: Linux sends before the PF has set the queue up. A queue that is set up again
    /// without a reset begins empty: Linux leaves the tail as it was when the interface went down, and begins at 0
    /// again, so the descriptors between are old ones.
    pub(crate) fn configure(&mut self, context: TxQueueContext) {
        let stored = if self.context.is_none() { *self } else { Self::default() };
        *self = Self { context: Some(context), tail: stored.tail, rung: stored.rung, ..Self::default() };
    }

    /// Clears the tail of a transmit queue that is not set up.
    pub(crate) fn forget_early_tail(&mut self) {
        if self.context.is_none() {
            *self = Self::default();
        }
    }

    /// Applies a write of the transmit tail register.
    pub(crate) fn ring(&mut self, tail: u32) {
        (self.tail, self.rung) = (tail, true);
    }

    /// Returns true if a PF driver could have set up the transmit queue with these values.
    pub(crate) fn is_sound(&self) -> bool {
        let fits = |context: TxQueueContext| {
            RING.contains(&context.length.into()) && self.head < context.length.into()
        };
        self.context.map_or(self.head == 0, fits) && self.malformed <= MOST_MALFORMED
    }

    /// Returns the number of descriptors in the transmit ring, if the queue is set up.
    pub(crate) fn length(&self) -> Option<u16> {
        self.context.map(|context| context.length)
    }

    fn left(&self, length: u32) -> u32 {
        match (self.head, self.tail) {
            (head, tail) if tail >= length || head >= length => 0,
            (head, tail) if tail >= head => tail - head,
            (head, tail) => tail + length - head,
        }
    }

    /// Reads the descriptors of the next packet, and puts the buffers that they name into `buffers`. Returns the packet
    /// with its cost in frames. The descriptors of a malformed packet are written back at once, those of a valid packet
    /// by [`TransmitQueue::end_take`].
    pub(crate) fn take<B: Bus>(
        &mut self,
        own: BusFunction,
        gathered: &mut PacketDescriptors,
        buffers: &mut BufferChain,
        bus: &mut B,
    ) -> Result<(NextPacketResult<DescriptorOffloads>, usize), DmaFault> {
        let Some(context) = self.context.filter(|_| self.running && self.rung) else {
            return Ok((NextPacketResult::Nothing, 0));
        };
        *gathered = PacketDescriptors::default();
        buffers.clear();
        if !self.gather(&context, own, gathered, buffers, bus)? {
            self.rung = false;
            return Ok((NextPacketResult::Nothing, 0));
        }
        if let Some(defect) = gathered.defect(buffers.bytes()) {
            self.give_back(&context, gathered, own, bus)?;
            return Ok((NextPacketResult::Dropped(defect), COSTLIEST));
        }
        let cost = (gathered.packet.descriptors / DESCRIPTORS_A_FRAME) as usize;
        Ok((NextPacketResult::Packet(gathered.packet), cost))
    }

    /// Writes back the descriptors of the packet that was taken last, which returns them to the driver.
    pub(crate) fn end_take<B: Bus>(
        &mut self,
        own: BusFunction,
        gathered: &PacketDescriptors,
        bus: &mut B,
    ) -> Result<(), DmaFault> {
        self.context.map_or(Ok(()), |context| self.give_back(&context, gathered, own, bus))
    }

    /// Counts a malformed packet of the transmit queue. Returns true if the queue is stopped because of it.
    pub(crate) fn spoil(&mut self) -> bool {
        self.malformed = (self.malformed + 1).min(MOST_MALFORMED);
        self.running &= self.malformed < PATIENCE;
        self.malformed == PATIENCE
    }

    /// Returns true if the queue may have descriptors that the card has not read.
    pub(crate) fn has_more(&self) -> bool {
        self.rung && self.context.is_some_and(|context| self.left(context.length.into()) > 0)
    }

    /// Returns the address of the next transmit descriptor, and the number of descriptors before the tail or the ring's
    /// end. There are 0 descriptors while the queue is stopped.
    pub(crate) fn ready(&self) -> (u64, usize) {
        let Some(context) = self.context.filter(|_| self.running && self.rung) else { return (0, 0) };
        let length = u32::from(context.length);
        let left = self.left(length).min(length.saturating_sub(self.head));
        (context.base.wrapping_add(u64::from(self.head) * SIZE as u64), left as usize)
    }

    /// Writes back the descriptors of a burst's first frames, which have been sent.
    pub(crate) fn pass<B: Bus>(
        &mut self,
        plain: &mut BurstDescriptors,
        count: usize,
        own: BusFunction,
        bus: &mut B,
    ) -> Result<(), DmaFault> {
        let Some(context) = self.context else { return Ok(()) };
        plain.report(count, HintedMemory { function: own, hint: &mut self.hint }, bus)?;
        self.advance(&context, count as u32, own, bus)
    }

    /// Writes back `descriptors` transmit descriptors from the head on, which returns them to the driver. Leaves the
    /// head unchanged if the write fails.
    fn advance<B: Bus>(
        &mut self,
        context: &TxQueueContext,
        descriptors: u32,
        own: BusFunction,
        bus: &mut B,
    ) -> Result<(), DmaFault> {
        // `descriptors` is at most the ring's length.
        let (length, next) = (u32::from(context.length), self.head + descriptors);
        let head = if next >= length { next - length } else { next };
        if let Some(address) = context.head_address {
            bus.dma_write(own, address, &head.to_le_bytes())?;
        }
        self.head = head;
        Ok(())
    }

    /// Reads the descriptors of the next packet into `gathered`. Returns `false` if the packet's end is not in the ring
    /// yet.
    fn gather<B: Bus>(
        &self,
        context: &TxQueueContext,
        own: BusFunction,
        gathered: &mut PacketDescriptors,
        buffers: &mut BufferChain,
        bus: &mut B,
    ) -> Result<bool, DmaFault> {
        let length = u32::from(context.length);
        let left = self.left(length);
        for step in 0..left.min(MOST_DESCRIPTORS) {
            let slot = (self.head + step) % length;
            let mut raw = [0; SIZE];
            bus.dma_read(own, context.base.wrapping_add(u64::from(slot) * SIZE as u64), &mut raw)?;
            gathered.packet.descriptors = step + 1;
            match tx::parse(&raw) {
                ParsedTxDescriptor::Context(context) => gathered.take_context(context),
                ParsedTxDescriptor::Other(_) => gathered.spoil(PacketDropReason::Descriptor),
                ParsedTxDescriptor::Data(data) => {
                    gathered.take_data(&data, buffers);
                    if data.end_of_packet {
                        return Ok(true);
                    }
                }
            }
        }
        // No driver makes a packet of this number of descriptors.
        gathered.spoil(PacketDropReason::Size);
        Ok(left >= MOST_DESCRIPTORS)
    }

    fn give_back<B: Bus>(
        &mut self,
        context: &TxQueueContext,
        gathered: &PacketDescriptors,
        own: BusFunction,
        bus: &mut B,
    ) -> Result<(), DmaFault> {
        let length = u32::from(context.length);
        for step in (0..gathered.packet.descriptors).filter(|step| gathered.reports >> step & 1 == 1) {
            let slot = u64::from((self.head + step) % length);
            bus.dma_write(own, context.base.wrapping_add(slot * SIZE as u64 + 8), &tx::done())?;
        }
        self.advance(context, gathered.packet.descriptors, own, bus)
    }
}

impl PacketDescriptors {
    /// Records a defect of the packet, unless the packet has an earlier one.
    fn spoil(&mut self, defect: PacketDropReason) {
        self.defect = self.defect.or(Some(defect));
    }

    /// Takes the context descriptor that stands before the packet's first buffer. Offloads for tunnels are not
    /// supported.
    fn take_context(&mut self, context: TxContextDescriptor) {
        if self.count > 0 || self.packet.context.is_some() {
            self.spoil(PacketDropReason::Descriptor);
        }
        if context.tunnel != 0 {
            self.spoil(PacketDropReason::Offload);
        }
        self.packet.context = Some(context);
    }

    fn take_data(&mut self, data: &TxDataDescriptor, buffers: &mut BufferChain) {
        if self.count == 0 {
            self.packet.first = *data;
        }
        if data.length == 0 {
            self.spoil(PacketDropReason::Size);
        }
        if data.dummy {
            self.spoil(PacketDropReason::Descriptor);
        }
        buffers.push(data.address, data.length.into());
        self.count += 1;
        self.reports |= u128::from(data.report_status) << (self.packet.descriptors - 1);
    }

    /// Returns the reason why a real card could not send the packet, or `None` if it could. `bytes` is the packet's
    /// length.
    fn defect(&self, bytes: usize) -> Option<PacketDropReason> {
        if self.defect.is_some() {
            return self.defect;
        }
        let context = self.packet.context;
        // There is no place for a second tag.
        if self.packet.first.tag.and(context.and_then(|context| context.tag2)).is_some() {
            return Some(PacketDropReason::Descriptor);
        }
        let fits = match context.filter(|context| context.segment) {
            Some(context) if context.mss < LEAST_MSS => return Some(PacketDropReason::Offload),
            Some(context) => context.payload as usize <= bytes,
            None => self.count <= MAX_BUFFERS && self.packet.fits(bytes),
        };
        let sound = fits && (MIN_FRAME..=MOST_BYTES).contains(&bytes);
        (!sound).then_some(PacketDropReason::Size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: TxContextDescriptor = TxContextDescriptor {
        segment: true,
        time_stamp: false,
        tag2: None,
        payload: 100,
        mss: LEAST_MSS,
        tunnel: 0,
    };
    /// Returns the reason to drop a packet that consists of the given context descriptors and one data descriptor.
    fn defect(contexts: &[TxContextDescriptor], data: TxDataDescriptor) -> Option<PacketDropReason> {
        let (mut gathered, mut buffers) = (PacketDescriptors::default(), BufferChain::default());
        gathered.packet.descriptors = 1;
        contexts.iter().for_each(|context| gathered.take_context(*context));
        gathered.take_data(&data, &mut buffers);
        gathered.defect(buffers.bytes())
    }

    #[test]
    fn drop_reason_names_the_defect_of_a_packet() {
        use PacketDropReason::{Descriptor, Offload, Size};
        let (data, tunnel) = (
            TxDataDescriptor { length: 154, ..TxDataDescriptor::default() },
            TxContextDescriptor { tunnel: 2, ..CONTEXT },
        );
        let cases: [(&str, &[TxContextDescriptor], TxDataDescriptor, _); 9] = [
            ("sound", &[CONTEXT], data, None),
            ("tunnel", &[tunnel], data, Some(Offload)),
            (
                "tunnel without segments",
                &[TxContextDescriptor { segment: false, ..tunnel }],
                data,
                Some(Offload),
            ),
            ("small MSS", &[TxContextDescriptor { mss: LEAST_MSS - 1, ..CONTEXT }], data, Some(Offload)),
            ("two contexts", &[CONTEXT, CONTEXT], data, Some(Descriptor)),
            (
                "two tags",
                &[TxContextDescriptor { tag2: Some(5), ..CONTEXT }],
                TxDataDescriptor { tag: Some(6), ..data },
                Some(Descriptor),
            ),
            ("dummy", &[], TxDataDescriptor { dummy: true, ..data }, Some(Descriptor)),
            ("empty buffer", &[], TxDataDescriptor { length: 0, ..data }, Some(Size)),
            (
                "payload beyond the packet",
                &[TxContextDescriptor { payload: 155, ..CONTEXT }],
                data,
                Some(Size),
            ),
        ];
        for (case, contexts, data, reason) in cases {
            assert_eq!(defect(contexts, data), reason, "{case}");
        }
    }
}
