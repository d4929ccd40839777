//! A receive queue: it scatters frames into the buffers of posted descriptors, which it reads and writes back in bursts
//! (`rings`). `buffers` chooses the bytes for header buffers.

mod saved;

use super::buffers::{BufferSettings, FrameLayout};
use super::io::QueueIo;
use super::ring;
use crate::file::RegisterFile;
use crate::offload::split::HeaderSplitOffsets;
use i82576::QueueIndex;
use i82576::descriptor::rx::{self as descriptor, AdvancedRxWriteBack, status};
use i82576::descriptor::{SIZE, legacy};
use i82576::register::{rx, rx_block};
use pcie::{Bus, DmaFault, Function, Iova};
use rings::{PlainReceiver, PostedDescriptors, Ring};
use serde::{Deserialize, Serialize};

/// Fields of a frame's receive descriptor, except its lengths.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename = "Description")]
pub(crate) struct RxDescriptorFields {
    /// RSS type and RSS hash of the received frame.
    pub rss: (u8, u32),
    /// Headers found in the frame (PKTTYPE).
    pub packet_type: u16,
    /// Status and error bits of the received frame.
    pub status: u32,
    /// VLAN tag that was stripped from the frame.
    pub vlan_tag: u16,
    /// Offsets at which the frame's headers may be split from its payload.
    pub split: HeaderSplitOffsets,
    /// Packet checksum of the frame, for descriptors in the legacy format.
    pub checksum: u16,
}

/// Ring and buffer settings of a receive queue, decoded from its registers. They are valid until the next write of a
/// register.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceiveQueueSetup {
    ring: Ring,
    buffers: BufferSettings,
    /// Length in bytes of the longest frame that is written to one buffer without a look at its headers; 0 if every
    /// header is parsed.
    one_buffer: usize,
}

impl ReceiveQueueSetup {
    /// Returns true if descriptors are in the legacy format.
    #[must_use]
    pub(crate) fn is_legacy(&self) -> bool {
        self.buffers.is_legacy()
    }
}

/// A frame with its descriptor fields, and its division between the buffers of receive descriptors.
struct DeliverableFrame<'a> {
    frame: &'a [u8],
    description: &'a RxDescriptorFields,
    buffers: &'a BufferSettings,
    layout: FrameLayout,
}

/// Reason why a queue did not receive a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReceiveError {
    /// The receive queue is disabled, or the registers of its ring are invalid.
    Disabled,
    /// The receive queue has too few descriptors for the whole frame.
    NoDescriptors,
    /// The receive ring or a buffer is not in the function's memory.
    Fault,
}

/// State of a receive queue that is not in the queue's registers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "saved::SavedReceiveQueue", try_from = "saved::SavedReceiveQueue")]
pub(crate) struct ReceiveQueue {
    queue: QueueIndex,
    /// Receive descriptors fetched ahead, and those filled and not written back.
    posted: PostedDescriptors,
    /// True if an access to the receive ring has failed. The queue stops until software sets the ring up again.
    halted: bool,
    /// Ring decoded from the registers, or `None` if the queue receives nothing. It is not saved.
    ring: Option<Ring>,
}

impl ReceiveQueue {
    /// Returns the number of the receive queue.
    pub(crate) fn queue(&self) -> QueueIndex {
        self.queue
    }

    /// Creates a receive queue without descriptors.
    #[must_use]
    pub(crate) fn new(queue: QueueIndex) -> Self {
        Self { queue, posted: PostedDescriptors::at(0), halted: false, ring: None }
    }

    /// Decodes the receive queue's ring, after a write to one of its registers or from a saved state.
    pub(crate) fn decode(&mut self, file: &RegisterFile) {
        self.ring = ring::receive(file, self.queue);
    }

    /// Discards the receive queue's fetched and unwritten descriptors, and restarts at the head register: the queue was
    /// reset, enabled or got another ring.
    pub(crate) fn restart(&mut self, file: &RegisterFile) {
        let head = file.get(rx_block(self.queue) + rx::RDH);
        *self = Self { posted: PostedDescriptors::at(head), ..Self::new(self.queue) };
        self.decode(file);
    }

    /// Returns the queue's ring and buffer settings, or `None` if the queue receives nothing. With `shortcuts` a frame
    /// that fits one buffer is written without a look at its headers.
    #[must_use]
    pub(crate) fn open(&self, file: &RegisterFile, shortcuts: bool) -> Option<ReceiveQueueSetup> {
        debug_assert_eq!(self.ring, ring::receive(file, self.queue));
        let ring = self.ring?;
        let buffers = BufferSettings::of(file, self.queue);
        let one_buffer = if shortcuts { buffers.whole() } else { 0 };
        // A queue at positions beyond a ring that has become shorter waits for a restart.
        let known = ring.contains(self.posted.fetch_at()) && ring.contains(self.posted.head());
        known.then_some(ReceiveQueueSetup { ring, buffers, one_buffer })
    }

    /// Returns the queue's receiver for bursts in a descriptor `format`, or `None` if the ring has faulted.
    #[inline(always)]
    pub(crate) fn receiver<'a, B, S>(
        &'a mut self,
        opened: &ReceiveQueueSetup,
        function: Function,
        bus: &'a mut B,
        format: S,
    ) -> Option<PlainReceiver<'a, B, S>> {
        let ReceiveQueueSetup { ring, one_buffer: longest, .. } = *opened;
        let room = (ring.most() as usize).saturating_sub(self.posted.used());
        let posted = &mut self.posted;
        (!self.halted).then_some(PlainReceiver { posted, ring, room, longest, function, bus, format })
    }

    /// Writes a frame to as many receive buffers as it needs, or to none if there are too few. The caller has `opened`
    /// the queue since the last write of a register.
    ///
    /// # Errors
    /// [`ReceiveError`]: software does not receive the frame.
    pub(crate) fn deliver<B: Bus>(
        &mut self,
        opened: &ReceiveQueueSetup,
        io: &mut QueueIo<'_, B>,
        frame: &[u8],
        description: RxDescriptorFields,
    ) -> Result<(), ReceiveError> {
        if self.halted {
            return Err(ReceiveError::Disabled);
        }
        let delivery = DeliverableFrame::new(frame, &description, &opened.buffers);
        if self.left(&opened.ring) < delivery.needed() {
            return Err(ReceiveError::NoDescriptors);
        }
        match self.fill(&opened.ring, io, &delivery) {
            Ok(true) => Ok(()),
            Ok(false) => Err(ReceiveError::Fault),
            Err(_) => Err(self.halt()),
        }
    }

    /// Returns true if a ring full of posted descriptors would hold a frame of `length` bytes.
    pub(crate) fn may_fit(
        &self,
        file: &RegisterFile,
        length: usize,
        description: &RxDescriptorFields,
    ) -> bool {
        let buffers = BufferSettings::of(file, self.queue);
        let layout = buffers.lay(length, description.split.length(buffers.split));
        self.ring.is_some_and(|ring| buffers.needed(length - layout.header) <= ring.most() as usize)
    }

    /// Returns true if the queue has only the descriptors that a flood of broadcasts has to leave free.
    pub(crate) fn has_only_reserve(&self) -> bool {
        self.ring.is_some_and(|ring| (1..=ring.reserve() as usize).contains(&self.left(&ring)))
    }

    /// Stops the queue after a fault of its ring, and returns the fault as the reason of the frame's loss.
    #[cold]
    fn halt(&mut self) -> ReceiveError {
        self.halted = true;
        self.posted.drop_filled();
        ReceiveError::Fault
    }

    /// Returns the number of posted descriptors that the card may still fill. They and the filled ones never exceed the
    /// ring: software could otherwise make the card lap the ring by moving the tail back behind fetched descriptors.
    fn left(&self, ring: &Ring) -> usize {
        let posted = self.posted.ready() + ring.available(self.posted.fetch_at()) as usize;
        posted.min((ring.most() as usize).saturating_sub(self.posted.used()))
    }

    /// Writes a frame to the buffers of posted descriptors and fills the descriptors. Returns true if the whole frame
    /// reached memory. A write that faults is lost like a posted write that the bus refuses: the descriptor reports
    /// RXE, and the queue continues.
    fn fill<B: Bus>(
        &mut self,
        ring: &Ring,
        io: &mut QueueIo<'_, B>,
        delivery: &DeliverableFrame<'_>,
    ) -> Result<bool, DmaFault> {
        let (header, mut rest) = delivery.frame.split_at(delivery.layout.header);
        let mut posted = self.take(ring, io)?;
        let mut whole = write(io, posted.header, header);
        let mut back = AdvancedRxWriteBack::default();
        delivery.layout.tell(&mut back);
        loop {
            let (part, later) = rest.split_at(rest.len().min(delivery.buffers.packet));
            whole &= write(io, posted.packet, part);
            back.length = part.len() as u16;
            if later.is_empty() {
                break;
            }
            self.finish(ring, delivery.raw(&back, &posted));
            (rest, back) = (later, AdvancedRxWriteBack::default());
            posted = self.take(ring, io)?;
        }
        delivery.description.tell(&mut back);
        back.status |= if whole { 0 } else { status::RXE };
        self.finish(ring, delivery.raw(&back, &posted));
        Ok(whole)
    }

    /// Returns the next posted descriptor, and fetches a burst if none is ready.
    fn take<B: Bus>(
        &mut self,
        ring: &Ring,
        io: &mut QueueIo<'_, B>,
    ) -> Result<descriptor::PostedRxDescriptor, DmaFault> {
        self.posted.prepare(ring, io.function, io.bus)?;
        let raw = self.posted.next(ring).and_then(|raw| raw.first_chunk());
        Ok(raw.map(descriptor::PostedRxDescriptor::parse).unwrap_or_default())
    }

    /// Marks the next descriptor as filled with the written-back form `raw`.
    fn finish(&mut self, ring: &Ring, raw: [u8; SIZE]) {
        let words = u128::from_le_bytes(raw);
        self.posted.fill(ring, [words as u64, (words >> 64) as u64, 0, 0]);
    }

    /// Returns the number of descriptors that software has posted and the card has not written back.
    #[must_use]
    pub(crate) fn available(&self, file: &RegisterFile) -> u32 {
        let head = file.get(rx_block(self.queue) + rx::RDH);
        self.ring.map_or(0, |ring| ring.available(head))
    }

    /// Writes back filled descriptors. Returns true if there were any, so that an interrupt is due.
    ///
    /// # Errors
    /// [`DmaFault`] if the ring is not in the function's memory. The queue stops until software sets the ring up again.
    pub(crate) fn write_back<B: Bus>(&mut self, io: &mut QueueIo<'_, B>) -> Result<bool, DmaFault> {
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

/// Writes `bytes` to a receive buffer, and returns true if that succeeded. An empty part of a frame is not written: its
/// address may be invalid.
fn write<B: Bus>(io: &mut QueueIo<'_, B>, iova: Iova, bytes: &[u8]) -> bool {
    bytes.is_empty() || io.bus.dma_write(io.function, iova, bytes).is_ok()
}

impl RxDescriptorFields {
    /// Sets the frame's status, length and offload fields in the frame's last receive descriptor.
    fn tell(&self, back: &mut AdvancedRxWriteBack) {
        (back.rss_type, back.hash) = self.rss;
        back.packet_type = self.packet_type;
        back.status |= self.status | status::EOP;
        back.vlan_tag = self.vlan_tag;
    }
}

impl FrameLayout {
    /// Sets the header fields of a frame in the frame's first descriptor.
    fn tell(&self, back: &mut AdvancedRxWriteBack) {
        (back.header_length, back.split) = (self.header_length, self.split);
        back.status |= if self.overflow { status::HBO } else { 0 };
    }
}

impl<'a> DeliverableFrame<'a> {
    fn new(frame: &'a [u8], description: &'a RxDescriptorFields, buffers: &'a BufferSettings) -> Self {
        let layout = buffers.lay(frame.len(), description.split.length(buffers.split));
        Self { frame, description, buffers, layout }
    }

    /// Returns the number of descriptors that the frame needs.
    fn needed(&self) -> usize {
        self.buffers.needed(self.frame.len() - self.layout.header)
    }

    /// Returns the written-back form of a descriptor in the queue's format.
    fn raw(&self, back: &AdvancedRxWriteBack, posted: &descriptor::PostedRxDescriptor) -> [u8; SIZE] {
        if !self.buffers.is_legacy() {
            return back.emit();
        }
        let AdvancedRxWriteBack { length, status, vlan_tag, .. } = *back;
        let checksum = if back.end_of_packet() { self.description.checksum } else { 0 };
        legacy::LegacyRxWriteBack { address: posted.packet, length, checksum, status, vlan_tag }.emit()
    }
}
