//! Receive rings: a frame goes into as many posted buffers as it needs, or into none. Its descriptors go back together with
//! those of the frames that come with it (`rings`). Left out: who gets a frame and in which queue, checksums and hashes, which come
//! with the frame; the check sequence, which is put behind it before.

use alloc::boxed::Box;
use avf::control::RxContext;
use avf::descriptor::rx::{Form, WriteBack};
use avf::ids::{FCS, MAX_FRAME, RING};
use pcie::{Bus, DmaFault, Function as BusFunction};
use plane::tag::TAG;
use rings::{Posted, Receiver, Ring};
use serde::{Deserialize, Serialize};

/// A receive queue.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct RxQueue {
    context: Option<RxContext>,
    /// What the card fills next.
    head: u32,
    /// The register, as the driver wrote it: setting the queue up keeps it, since DPDK writes it before.
    pub(crate) tail: u32,
    pub(crate) running: bool,
    /// Descriptors at hand, once a frame has come. Between two calls of the card none of them waits to be given back, so nothing of
    /// it is saved.
    #[serde(skip)]
    posted: Option<Box<Posted>>,
}

/// Why a frame is not in the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// There is no such VF, or it may not use the bus.
    NoFunction,
    /// The queue is not set up, or does not run.
    NotRunning,
    /// Longer than the queue takes.
    TooLong,
    /// Too few buffers.
    NoBuffer,
    /// Memory could not be reached: the queue is stopped.
    Fault,
}

impl RxQueue {
    /// Sets the queue up, stopped.
    pub(crate) fn configure(&mut self, context: RxContext) {
        *self = Self { context: Some(context), tail: self.tail, ..Self::default() };
    }

    /// Whether a PF driver could have set it up so.
    pub(crate) fn is_sound(&self) -> bool {
        let fits = |context: RxContext| {
            RING.contains(&context.length.into())
                && self.head < context.length.into()
                && context.buffer_bytes > 0
                && context.max_frame as usize <= MAX_FRAME
        };
        self.context.map_or(self.head == 0, fits)
    }

    /// Whether the frame check sequence stays.
    pub(crate) fn keeps_check_sequence(&self) -> bool {
        self.context.is_some_and(|context| context.keep_fcs)
    }

    /// Descriptors, if the queue is set up.
    pub(crate) fn length(&self) -> Option<u16> {
        self.context.map(|context| context.length)
    }

    /// Starts or stops the queue. What was read ahead is read again after a stop: the driver may have posted other buffers.
    pub(crate) fn run(&mut self, on: bool) {
        if !(on && self.running) {
            self.posted = None;
        }
        self.running = on;
    }

    /// The ring, if it is set up and its tail is in it.
    #[inline]
    fn ring(&self) -> Option<Ring> {
        self.ring_up_to(self.tail)
    }

    #[inline]
    fn ring_up_to(&self, tail: u32) -> Option<Ring> {
        let context = self.context.as_ref()?;
        Ring::new(context.base, context.length.into(), context.form.size(), tail)
    }

    /// Returns the queue as bursts use it, with its descriptor format; `tag` is the tag that its descriptors name. `None` if it does
    /// not run, or keeps check sequences.
    #[inline(always)]
    pub(crate) fn receiver<'a, B, S>(
        &'a mut self,
        function: BusFunction,
        bus: &'a mut B,
        (tag, format): (Option<u16>, impl FnOnce(Form) -> S),
    ) -> Option<Receiver<'a, B, S>> {
        let ring = self.ring().filter(|_| self.running)?;
        let Self { context: Some(context), head, posted, .. } = self else { return None };
        let most = (context.max_frame as usize).saturating_sub(FCS + stripped(tag));
        let longest = most.min(context.buffer_bytes as usize);
        let (room, format) = (ring.available(*head) as usize, format(context.form));
        let posted = posted.get_or_insert_with(|| Box::new(Posted::at(*head)));
        (!context.keep_fcs).then_some(Receiver { posted, ring, room, longest, function, bus, format })
    }

    /// A burst has filled buffers.
    #[inline]
    pub(crate) fn advance(&mut self, buffers: usize) {
        let slots = self.context.map_or(1, |context| context.length.into());
        let head = self.head + buffers as u32;
        self.head = if head >= slots { head - slots } else { head };
    }

    /// Memory could not be reached.
    #[cold]
    fn stop(&mut self) -> Missed {
        self.running = false;
        Missed::Fault
    }

    /// Puts a frame into the ring. The driver is told by [`RxQueue::give_back`].
    pub(crate) fn fill<B: Bus>(
        &mut self,
        own: BusFunction,
        frame: &[u8],
        said: WriteBack,
        bus: &mut B,
    ) -> Result<(), Missed> {
        let Self { context: Some(context), running: true, .. } = self else { return Err(Missed::NotRunning) };
        let apart = stripped(said.tag) + if said.fcs { 0 } else { FCS };
        if frame.is_empty() || frame.len() + apart > context.max_frame as usize {
            return Err(Missed::TooLong);
        }
        let piece = context.buffer_bytes.max(1) as usize;
        let wanted = if frame.len() <= piece { 1 } else { frame.len().div_ceil(piece) };
        let context = *context;
        let Some(ring) = self.ring().filter(|ring| wanted <= ring.available(self.head) as usize) else {
            return Err(Missed::NoBuffer);
        };
        let posted = self.posted.get_or_insert_with(|| Box::new(Posted::at(self.head)));
        match Self::scatter(&context, &ring, posted, own, (frame, said), bus) {
            Ok(()) => self.advance(wanted),
            Err(_) => return Err(self.stop()),
        }
        Ok(())
    }

    /// Puts a frame into as many buffers as it needs.
    fn scatter<B: Bus>(
        context: &RxContext,
        ring: &Ring,
        posted: &mut Posted,
        own: BusFunction,
        (frame, said): (&[u8], WriteBack),
        bus: &mut B,
    ) -> Result<(), DmaFault> {
        let mut pieces = frame.chunks(context.buffer_bytes.max(1) as usize).peekable();
        while let Some(bytes) = pieces.next() {
            posted.prepare(ring, own, bus)?;
            bus.dma_write(own, posted.word(ring, 0, 0), bytes)?;
            let said =
                WriteBack { length: bytes.len() as u16, end_of_packet: pieces.peek().is_none(), ..said };
            let raw = said.emit(context.form);
            let words = raw.as_chunks::<8>().0;
            posted.fill(ring, core::array::from_fn(|word| u64::from_le_bytes(words[word])));
        }
        Ok(())
    }

    /// Gives the driver the descriptors of the frames that were put into the ring; answers whether there were any. If memory
    /// cannot be reached, the queue is stopped.
    pub(crate) fn give_back<B: Bus>(&mut self, own: BusFunction, bus: &mut B) -> Result<bool, DmaFault> {
        // Whatever the tail is by now.
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

/// Bytes of the tag that was taken out of a frame into its descriptor. A queue's limit counts them, but not those of a port VLAN's
/// tag: i40e's PF driver gives a queue of such a VF 4 bytes more.
#[inline(always)]
fn stripped(tag: Option<u16>) -> usize {
    if tag.is_some() { TAG } else { 0 }
}
