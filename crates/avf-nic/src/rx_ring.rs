//! Receive rings. A frame goes into as many posted buffers as it needs, or is dropped as a whole. Descriptors of a
//! burst are written back together (`rings`). The caller provides the frame's description, and the check sequence
//! behind its bytes.

use alloc::boxed::Box;
use avf::control::RxQueueContext;
use avf::descriptor::rx::{RxDescriptorFormat, RxWriteBack};
use avf::ids::{FCS, MAX_FRAME, RING};
use pcie::{Bus, DmaFault, Function as BusFunction};
use plane::tag::TAG;
use rings::{PlainReceiver, PostedDescriptors, Ring};
use serde::{Deserialize, Serialize};
use units::ExcessPieces;

/// A receive queue of a VF.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename = "RxQueue")]
pub(crate) struct ReceiveQueue {
    context: Option<RxQueueContext>,
    /// Index of the next receive descriptor to fill.
    head: u32,
    /// Value of QRX_TAIL as the driver wrote it. The message CONFIG_VSI_QUEUES keeps this value, since DPDK writes the
    /// tail before that message.
    pub(crate) tail: u32,
    pub(crate) running: bool,
    /// Posted descriptors that were read; `None` before the first frame. The saved state does not have them, because
    /// every call of the card writes back all filled descriptors before it returns.
    #[serde(skip)]
    posted: Option<Box<PostedDescriptors>>,
}

/// Reason why a frame did not reach a receive queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveError {
    /// The VF does not exist, or may not use the bus.
    NoFunction,
    /// The receive queue is not set up, or is stopped.
    NotRunning,
    /// The frame is longer than the receive queue's limit.
    TooLong,
    /// Too few receive buffers are posted for the frame.
    NoBuffer,
    /// The bus refused access to memory; the queue is stopped.
    Fault,
}

impl ReceiveQueue {
    /// Sets up the receive queue with the ring and buffers of `context`, and leaves the queue stopped.
    pub(crate) fn configure(&mut self, context: RxQueueContext) {
        *self = Self { context: Some(context), tail: self.tail, ..Self::default() };
    }

    /// Clears the tail of a receive queue that is not set up.
    pub(crate) fn forget_early_tail(&mut self) {
        if self.context.is_none() {
            *self = Self::default();
        }
    }

    /// Returns `true` if a PF driver could have set up the receive queue with these values.
    pub(crate) fn is_sound(&self) -> bool {
        let fits = |context: RxQueueContext| {
            RING.contains(&context.length.into())
                && self.head < context.length.into()
                && context.buffer_bytes > 0
                && context.max_frame as usize <= MAX_FRAME
        };
        self.context.map_or(self.head == 0, fits)
    }

    /// Returns `true` if frames are delivered with their check sequence (crc_disable).
    pub(crate) fn keeps_check_sequence(&self) -> bool {
        self.context.is_some_and(|context| context.keep_fcs)
    }

    /// Returns the number of descriptors in the receive ring, if the queue is set up.
    pub(crate) fn length(&self) -> Option<u16> {
        self.context.map(|context| context.length)
    }

    /// Starts or stops the receive queue. After a stop, descriptors are read again: the driver may have posted other
    /// buffers.
    pub(crate) fn run(&mut self, on: bool) {
        if !(on && self.running) {
            self.posted = None;
        }
        self.running = on;
    }

    /// Returns the receive ring, if the queue is set up and its tail is within the ring.
    #[inline]
    fn ring(&self) -> Option<Ring> {
        self.ring_up_to(self.tail)
    }

    #[inline]
    fn ring_up_to(&self, tail: u32) -> Option<Ring> {
        let context = self.context.as_ref()?;
        Ring::new(context.base, context.length.into(), context.form.size(), tail)
    }

    /// Returns the receive queue as a receiver of bursts, with its descriptor format; `tag` is the VLAN tag that its
    /// descriptors report. Returns `None` if the queue is stopped, or keeps check sequences.
    #[inline(always)]
    pub(crate) fn receiver<'a, B, S>(
        &'a mut self,
        function: BusFunction,
        bus: &'a mut B,
        (tag, format): (Option<u16>, impl FnOnce(RxDescriptorFormat) -> S),
    ) -> Option<PlainReceiver<'a, B, S>> {
        let ring = self.ring().filter(|_| self.running)?;
        let Self { context: Some(context), head, posted, .. } = self else { return None };
        let most = (context.max_frame as usize).saturating_sub(FCS + stripped(tag));
        let longest = most.min(context.buffer_bytes as usize);
        let (room, format) = (ring.available(*head) as usize, format(context.form));
        let posted = posted.get_or_insert_with(|| Box::new(PostedDescriptors::at(*head)));
        (!context.keep_fcs).then_some(PlainReceiver { posted, ring, room, longest, function, bus, format })
    }

    /// Moves the head of the receive ring past `buffers` filled buffers.
    #[inline]
    pub(crate) fn advance(&mut self, buffers: usize) {
        let slots = self.context.map_or(1, |context| context.length.into());
        let head = self.head + buffers as u32;
        self.head = if head >= slots { head - slots } else { head };
    }

    /// Returns true if the queue has no more descriptors than a flood of broadcasts has to leave free.
    pub(crate) fn has_only_reserve(&self) -> bool {
        self.ring().is_some_and(|ring| ring.available(self.head) <= ring.reserve())
    }

    /// Stops the receive queue after a memory fault.
    #[cold]
    fn stop(&mut self) -> ReceiveError {
        self.running = false;
        ReceiveError::Fault
    }

    /// Puts a frame into the receive ring. [`ReceiveQueue::give_back`] notifies the driver.
    pub(crate) fn fill<B: Bus>(
        &mut self,
        own: BusFunction,
        frame: &[u8],
        said: RxWriteBack,
        (pieces, bus): (&mut ExcessPieces, &mut B),
    ) -> Result<(), ReceiveError> {
        let Self { context: Some(context), running: true, .. } = self else {
            return Err(ReceiveError::NotRunning);
        };
        let apart = stripped(said.tag) + if said.fcs { 0 } else { FCS };
        if frame.is_empty() || frame.len() + apart > context.max_frame as usize {
            return Err(ReceiveError::TooLong);
        }
        let piece = context.buffer_bytes.max(1) as usize;
        let wanted = if frame.len() <= piece { 1 } else { frame.len().div_ceil(piece) };
        let context = *context;
        let most = pieces.limit(frame.len());
        let Some(ring) = self.ring().filter(|ring| wanted <= most.min(ring.available(self.head) as usize))
        else {
            return Err(ReceiveError::NoBuffer);
        };
        pieces.add(wanted, frame.len());
        let posted = self.posted.get_or_insert_with(|| Box::new(PostedDescriptors::at(self.head)));
        match Self::scatter(&context, &ring, posted, own, (frame, said), bus) {
            Ok(()) => self.advance(wanted),
            Err(_) => return Err(self.stop()),
        }
        Ok(())
    }

    /// Splits a frame over as many receive buffers as it needs.
    fn scatter<B: Bus>(
        context: &RxQueueContext,
        ring: &Ring,
        posted: &mut PostedDescriptors,
        own: BusFunction,
        (frame, said): (&[u8], RxWriteBack),
        bus: &mut B,
    ) -> Result<(), DmaFault> {
        let mut pieces = frame.chunks(context.buffer_bytes.max(1) as usize).peekable();
        while let Some(bytes) = pieces.next() {
            posted.prepare(ring, own, bus)?;
            bus.dma_write(own, posted.word(ring, 0, 0), bytes)?;
            let said =
                RxWriteBack { length: bytes.len() as u16, end_of_packet: pieces.peek().is_none(), ..said };
            let raw = said.emit(context.form);
            let words = raw.as_chunks::<8>().0;
            posted.fill(ring, core::array::from_fn(|word| u64::from_le_bytes(words[word])));
        }
        Ok(())
    }

    /// Writes back the descriptors of the frames that were put into the receive ring. Returns `true` if there were any.
    /// A memory fault stops the queue.
    pub(crate) fn give_back<B: Bus>(&mut self, own: BusFunction, bus: &mut B) -> Result<bool, DmaFault> {
        // The tail of 0 is always within the ring: the guest may have written an invalid one meanwhile.
        let Some(ring) = self.ring_up_to(0) else { return Ok(false) };
        let Some(posted) = &mut self.posted else { return Ok(false) };
        let given = posted.give_back(&ring, own, bus);
        let told = posted.take_spoke();
        if given.is_err() {
            self.stop();
        }
        given.map(|_| told)
    }
}

/// Returns the number of bytes by which stripping shortened a received frame: 4 with a stripped VLAN `tag`, otherwise
/// 0. A queue's length limit includes a stripped tag, but not the tag of a port VLAN: i40e's PF driver raises the limit
/// of a VF on a port VLAN by 4 bytes.
#[inline(always)]
fn stripped(tag: Option<u16>) -> usize {
    if tag.is_some() { TAG } else { 0 }
}
