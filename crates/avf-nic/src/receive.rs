//! Delivers frames into the receive queues of VFs and counts them. Descriptors are written back together, with one interrupt.
//! `rx_ring` has the queues, `scaling` the choice of a queue.

use crate::card::Card;
use crate::function::Function;
use crate::rx_ring::Missed;
use avf::descriptor::rx::{Cast, WriteBack};
use avf::ids::FCS;
use pcie::{Bus, Function as BusFunction};

/// Description of a received frame for its receive descriptors.
#[derive(Debug, Clone, Copy, Default)]
pub struct Arrival {
    /// Descriptor fields of the frame: packet type, checksums, tag, hash, cast, loopback. The ring sets length and end
    /// of packet.
    pub said: WriteBack,
}

impl Function {
    /// Puts a frame into a receive queue and counts it. [`Card::give_back`] notifies the driver.
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

    /// Counts a burst of unicast frames that was put into a receive queue.
    #[inline]
    pub(crate) fn received(&mut self, queue: u8, frames: usize, bytes: u64) {
        if let Some(ring) = self.rx.get_mut(usize::from(queue)) {
            ring.advance(frames);
            self.rx_filled |= 1 << queue;
            self.statistics.rx_bytes += bytes;
            self.statistics.rx_unicast += frames as u64;
        }
    }

    #[cold]
    fn count_missed(&mut self, missed: Missed) -> Missed {
        self.statistics.rx_discards += 1;
        self.counters.dma_faults += u64::from(missed == Missed::Fault);
        missed
    }

    /// Writes back the descriptors of the filled queues, and raises their interrupts.
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
    /// Puts a frame into a receive queue of a VF, counts it, and raises the interrupt.
    ///
    /// # Errors
    /// [`Missed`]: the frame was dropped.
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

    /// Writes back the descriptors of all VFs with filled queues, and raises their interrupts.
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
