//! Receive rings: a frame goes into as many posted buffers as it needs, or into none. Left out: who gets a frame and in
//! which queue, checksums and hashes, which come with the frame; the check sequence, which is put behind it before.

use crate::card::Card;
use avf::control::RxContext;
use avf::descriptor::rx::{self, Cast, WriteBack};
use avf::ids::{FCS, MAX_FRAME, RING};
use pcie::{Bus, DmaFault, Function as BusFunction};
use serde::{Deserialize, Serialize};

/// A receive queue.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct RxQueue {
    context: Option<RxContext>,
    /// What the card fills next.
    head: u32,
    /// The register, as the driver wrote it: setting the queue up keeps it, since DPDK writes it before.
    pub(crate) tail: u32,
    pub(crate) running: bool,
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
        *self = Self { context: Some(context), head: 0, tail: self.tail, running: false };
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

    /// Buffers that are posted; a tail beyond the ring posts none.
    fn posted(&self, length: u32) -> u32 {
        match (self.head, self.tail) {
            (head, tail) if tail >= length || head >= length => 0,
            (head, tail) if tail >= head => tail - head,
            (head, tail) => tail + length - head,
        }
    }

    /// Puts a frame into the ring.
    fn fill<B: Bus>(
        &mut self,
        own: BusFunction,
        frame: &[u8],
        said: &WriteBack,
        bus: &mut B,
    ) -> Result<(), Missed> {
        let context = self.context.filter(|_| self.running).ok_or(Missed::NotRunning)?;
        let fcs = if said.fcs { 0 } else { FCS };
        if frame.is_empty() || frame.len() + fcs > context.max_frame as usize {
            return Err(Missed::TooLong);
        }
        let (length, piece) = (u32::from(context.length), context.buffer_bytes.max(1) as usize);
        let wanted = frame.len().div_ceil(piece) as u32;
        if wanted > self.posted(length) {
            return Err(Missed::NoBuffer);
        }
        for (bytes, step) in frame.chunks(piece).zip(1..) {
            let back = WriteBack { length: bytes.len() as u16, end_of_packet: step == wanted, ..*said };
            if Self::fill_one(&context, self.head, own, bytes, &back, bus).is_err() {
                self.running = false;
                return Err(Missed::Fault);
            }
            self.head = (self.head + 1) % length;
        }
        Ok(())
    }

    fn fill_one<B: Bus>(
        context: &RxContext,
        slot: u32,
        own: BusFunction,
        bytes: &[u8],
        back: &WriteBack,
        bus: &mut B,
    ) -> Result<(), DmaFault> {
        let size = context.form.size();
        let at = context.base.wrapping_add(u64::from(slot) * size as u64);
        let mut posted = [0; 8];
        bus.dma_read(own, at, &mut posted)?;
        bus.dma_write(own, rx::buffer(&posted), bytes)?;
        let raw = back.emit(context.form);
        // The word with the done bit comes last.
        bus.dma_write(own, at.wrapping_add(16), &raw[16..size.max(16)])?;
        bus.dma_write(own, at, &raw[..8])?;
        bus.dma_write(own, at.wrapping_add(8), &raw[8..16])
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
        let ring = function.rx.get_mut(usize::from(queue)).ok_or(Missed::NotRunning)?;
        match ring.fill(BusFunction::Vf(vf), frame, &arrival.said, bus) {
            Ok(()) => {}
            Err(missed) => {
                function.statistics.rx_discards += 1;
                function.counters.dma_faults += u64::from(missed == Missed::Fault);
                return Err(missed);
            }
        }
        let statistics = &mut function.statistics;
        statistics.rx_bytes += frame.len() as u64;
        *match arrival.said.cast {
            Cast::Unicast => &mut statistics.rx_unicast,
            Cast::Multicast => &mut statistics.rx_multicast,
            Cast::Broadcast => &mut statistics.rx_broadcast,
        } += 1;
        if let Some(cause) = function.rx_causes[usize::from(queue) % function.rx_causes.len()] {
            function.interrupts.raise(cause.vector, cause.itr);
        }
        Ok(())
    }
}
