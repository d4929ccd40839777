//! Receive rings: a frame goes into as many posted buffers as it needs, or into none. Its descriptors go back together with
//! those of the frames that come with it (`burst`). Left out: who gets a frame and in
//! which queue, checksums and hashes, which come with the frame; the check sequence, which is put behind it before.

mod burst;

use crate::card::Card;
use crate::function::Function;
use alloc::boxed::Box;
use avf::control::RxContext;
use avf::descriptor::rx::{Cast, WriteBack};
use avf::ids::{FCS, MAX_FRAME, RING};
use burst::Burst;
use pcie::{Bus, DmaFault, Function as BusFunction};
use plane::tag::TAG;
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
    /// The longest frame that fits one buffer as it is, while the queue runs; 0 until [`RxQueue::fill`] has found out.
    #[serde(skip)]
    usual: usize,
    /// Descriptors at hand, once a frame has come. Between two calls of the card none of them waits to be given back, so nothing of
    /// it is saved.
    #[serde(skip)]
    burst: Option<Box<Burst>>,
}

/// What is said of a frame that arrives.
#[derive(Debug, Clone, Copy, Default)]
pub struct Arrival {
    /// Packet type, checksums, tag, hash, cast, loopback; length and end of packet are the ring's.
    pub said: WriteBack,
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
            (self.usual, self.burst) = (0, None);
        }
        self.running = on;
    }

    /// Whether a posted descriptor is at hand.
    #[inline(always)]
    pub(crate) fn has_buffer(&self) -> bool {
        self.burst.as_ref().is_some_and(|burst| burst.has_one())
    }

    /// Puts a frame into the buffer of a descriptor at hand. `None` if there is none, or the frame does not fit:
    /// [`RxQueue::fill`] knows more.
    #[inline(always)]
    fn fill_usual<B: Bus>(
        &mut self,
        own: BusFunction,
        frame: &[u8],
        said: WriteBack,
        bus: &mut B,
    ) -> Option<Result<(), Missed>> {
        let (Some(context), Some(burst)) = (&self.context, &mut self.burst) else { return None };
        let room = Room { head: self.head, tail: self.tail, slots: context.length.into() };
        if frame.len() + stripped(&said) > self.usual || !burst.has_one() || room.posted() == 0 {
            return None;
        }
        if burst.put(context.form, own, (frame, said), bus).is_err() {
            return Some(Err(self.stop()));
        }
        self.head = room.next();
        Some(Ok(()))
    }

    /// Memory could not be reached.
    #[cold]
    fn stop(&mut self) -> Missed {
        (self.running, self.usual) = (false, 0);
        Missed::Fault
    }

    /// Puts a frame into the ring. The driver is told by [`RxQueue::give_back`].
    fn fill<B: Bus>(
        &mut self,
        own: BusFunction,
        frame: &[u8],
        said: WriteBack,
        bus: &mut B,
    ) -> Result<(), Missed> {
        let Self { context: Some(context), running: true, .. } = self else { return Err(Missed::NotRunning) };
        let apart = stripped(&said) + if said.fcs { 0 } else { FCS };
        if frame.is_empty() || frame.len() + apart > context.max_frame as usize {
            return Err(Missed::TooLong);
        }
        let piece = context.buffer_bytes.max(1) as usize;
        let wanted = if frame.len() <= piece { 1 } else { frame.len().div_ceil(piece) };
        let room = Room { head: self.head, tail: self.tail, slots: context.length.into() };
        if wanted > room.posted() as usize {
            return Err(Missed::NoBuffer);
        }
        let longest = piece.min((context.max_frame as usize).saturating_sub(FCS));
        self.usual = if context.keep_fcs { 0 } else { longest };
        let burst = self.burst.get_or_insert_default();
        match Self::scatter(context, room, burst, own, (frame, said), bus) {
            Ok(head) => self.head = head,
            Err(_) => return Err(self.stop()),
        }
        Ok(())
    }

    /// Puts a frame into as many buffers as it needs; returns where the head is then.
    fn scatter<B: Bus>(
        context: &RxContext,
        mut room: Room,
        burst: &mut Burst,
        own: BusFunction,
        (frame, said): (&[u8], WriteBack),
        bus: &mut B,
    ) -> Result<u32, DmaFault> {
        let mut pieces = frame.chunks(context.buffer_bytes.max(1) as usize).peekable();
        while let Some(bytes) = pieces.next() {
            let said = WriteBack { end_of_packet: pieces.peek().is_none(), ..said };
            room.head = burst.fill(context, &room, own, (bytes, said), bus)?;
        }
        Ok(room.head)
    }

    /// Gives the driver the descriptors of the frames that were put into the ring; answers whether there were any. If memory
    /// cannot be reached, the queue is stopped.
    fn give_back<B: Bus>(&mut self, own: BusFunction, bus: &mut B) -> Result<bool, DmaFault> {
        let (Some(context), Some(burst)) = (&self.context, &mut self.burst) else { return Ok(false) };
        let given = burst.give_back(context, own, bus);
        if given.is_err() {
            self.stop();
        }
        given
    }
}

/// Bytes of the tag that was taken out of a frame into its descriptor. A queue's limit counts them, but not those of a port VLAN's
/// tag: i40e's PF driver gives a queue of such a VF 4 bytes more.
#[inline(always)]
fn stripped(said: &WriteBack) -> usize {
    if said.tag.is_some() { TAG } else { 0 }
}

/// Where a ring stands: what the driver has posted is from the head up to the tail.
struct Room {
    head: u32,
    tail: u32,
    slots: u32,
}

impl Room {
    /// Buffers that are posted. A tail beyond the ring posts none.
    #[inline]
    fn posted(&self) -> u32 {
        let Self { head, tail, slots } = *self;
        match () {
            () if tail >= slots || head >= slots => 0,
            () if tail >= head => tail - head,
            () => tail + slots - head,
        }
    }

    /// Of these, buffers before the ring's end.
    fn contiguous(&self) -> u32 {
        self.posted().min(self.slots.saturating_sub(self.head))
    }

    /// Where the head is when a buffer is used.
    #[inline]
    fn next(&self) -> u32 {
        if self.head + 1 < self.slots { self.head + 1 } else { 0 }
    }
}

impl Function {
    /// Puts a frame to this VF alone into a receive queue, and counts it, as [`Function::put`] does; `None` if the queue has no
    /// buffer at hand that takes it.
    #[inline(always)]
    pub(crate) fn put_usual<B: Bus>(
        &mut self,
        (own, queue): (BusFunction, u8),
        frame: &[u8],
        said: WriteBack,
        bus: &mut B,
    ) -> Option<Result<(), Missed>> {
        let filled = self.rx.get_mut(usize::from(queue))?.fill_usual(own, frame, said, bus)?;
        if let Err(missed) = filled {
            return Some(Err(self.count_missed(missed)));
        }
        self.rx_filled |= 1 << queue;
        self.statistics.rx_bytes += frame.len() as u64;
        self.statistics.rx_unicast += 1;
        Some(Ok(()))
    }

    /// Puts a frame into a receive queue, and counts it. The driver is told by [`Card::give_back`].
    pub(crate) fn put<B: Bus>(
        &mut self,
        (own, queue): (BusFunction, u8),
        frame: &[u8],
        said: WriteBack,
        bus: &mut B,
    ) -> Result<(), Missed> {
        let ring = self.rx.get_mut(usize::from(queue)).ok_or(Missed::NotRunning)?;
        if let Err(missed) = ring.fill(own, frame, said, bus) {
            return Err(self.count_missed(missed));
        }
        self.rx_filled |= 1 << queue;
        let statistics = &mut self.statistics;
        statistics.rx_bytes += frame.len().saturating_sub(if said.fcs { FCS } else { 0 }) as u64;
        *match said.cast {
            Cast::Unicast => &mut statistics.rx_unicast,
            Cast::Multicast => &mut statistics.rx_multicast,
            Cast::Broadcast => &mut statistics.rx_broadcast,
        } += 1;
        Ok(())
    }

    #[cold]
    fn count_missed(&mut self, missed: Missed) -> Missed {
        self.statistics.rx_discards += 1;
        self.counters.dma_faults += u64::from(missed == Missed::Fault);
        missed
    }

    /// Gives the driver what was put into its queues, and notes the interrupts.
    fn give_back<B: Bus>(&mut self, own: BusFunction, bus: &mut B) {
        let mut filled = core::mem::take(&mut self.rx_filled);
        while filled != 0 {
            let queue = filled.trailing_zeros() as usize;
            filled &= filled - 1;
            let given = self.rx[queue].give_back(own, bus);
            self.counters.dma_faults += u64::from(given.is_err());
            if let (Ok(true), Some(cause)) = (given, self.rx_causes[queue]) {
                self.interrupts.raise(cause.vector, cause.itr);
            }
        }
    }
}

impl Card {
    /// Puts a frame into a receive queue of a VF, counts it, and notes the interrupt.
    ///
    /// # Errors
    /// [`Missed`]: the frame is nowhere.
    pub fn receive<B: Bus>(
        &mut self,
        vf: u8,
        queue: u8,
        frame: &[u8],
        arrival: &Arrival,
        bus: &mut B,
    ) -> Result<(), Missed> {
        let function = self.functions.get_mut(usize::from(vf)).filter(|function| function.master);
        let function = function.ok_or(Missed::NoFunction)?;
        let own = BusFunction::Vf(vf);
        let said = WriteBack { end_of_packet: true, ..arrival.said };
        let put = function.put((own, queue), frame, said, bus);
        function.give_back(own, bus);
        put
    }

    /// Gives the drivers of VFs, a bit each, what was put into their queues.
    pub(crate) fn give_back<B: Bus>(&mut self, bus: &mut B) {
        let mut reached = core::mem::take(&mut self.reached);
        while reached != 0 {
            let vf = reached.trailing_zeros() as u8;
            reached &= reached - 1;
            if let Some(function) = self.functions.get_mut(usize::from(vf)) {
                function.give_back(BusFunction::Vf(vf), bus);
            }
        }
    }
}
