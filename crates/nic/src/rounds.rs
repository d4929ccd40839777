//! The queues that a poll visits: the ready transmit queues in turn (`rings::visit`), and at its end the receive queues
//! that got frames, for the write-back of their descriptors.

use crate::interrupt::single::{InterruptMode, VECTOR_0};
use crate::interrupt::{QueueDirection, queue_vector};
use crate::queue::QueueIo;
use crate::switch::{self, port, sender};
use crate::work::FramePathState;
use i82576::bits::{icr, srrctl, tctl};
use i82576::register::{self as r, rx};
use i82576::{QueueIndex, Time};
use pcie::{Bus, DmaFault};
use plane::UplinkWire;

impl<B: Bus> FramePathState<'_, B> {
    /// Visits every ready transmit queue once. The next poll starts behind the queue that was served first in this one,
    /// so that none is always first. A queue that may not send now stays ready, and so does one whose next frame is
    /// delayed. Returns true if a queue has more frames that may leave now, and the time when the first delayed frame
    /// may leave.
    pub(crate) fn visit_ready<W: UplinkWire>(
        &mut self,
        budget: usize,
        plane: &mut switch::PoolPlane,
        wire: &mut W,
    ) -> (bool, Option<Time>) {
        let (mut more, mut due, mut served) = (false, None, None);
        plane.shares.begin_round();
        if self.queues.ready == 0 || self.file.get(r::TCTL) & tctl::EN == 0 {
            return (more, due);
        }
        let first = self.queues.first;
        for queue in QueueIndex::in_turn(self.queues.ready, first) {
            let bit = 1 << queue.get();
            let Some(visited) = plane.visit(sender(queue), budget, self, wire) else { continue };
            if visited.served {
                served.get_or_insert(queue.get());
            }
            due = [due, visited.due].into_iter().flatten().min();
            more |= visited.left && visited.due.is_none();
            let ready = self.queues.ready;
            self.queues.ready = if visited.left { ready | bit } else { ready & !bit };
        }
        self.queues.first = served.map_or(first, |queue| (queue + 1) & 15);
        (more, due)
    }

    /// Writes back the descriptors of received frames, and adds the frames to the counters.
    pub(crate) fn write_back_received(&mut self, plane: &mut switch::PoolPlane) {
        let touched = core::mem::take(&mut self.scratch.rx_touched);
        self.scratch.opened = 0;
        let urgent = core::mem::take(&mut self.scratch.rx_urgent);
        self.settle_received(plane);
        for queue in QueueIndex::in_turn(touched, 0) {
            let function = self.scratch.conditions.owners.of_queue(queue);
            let mut io = QueueIo { file: &mut *self.file, function, bus: &mut *self.bus };
            let announced = self.queues.rx[queue.index()].write_back(&mut io);
            let faulted = self.announce(queue, QueueDirection::Rx, announced);
            plane.ledger.of(port(queue.pool())).dma_faults += u64::from(faulted);
            if urgent & 1 << queue.get() != 0 {
                self.end_interval(queue, self.scratch.now);
            }
        }
    }
}

impl<B> FramePathState<'_, B> {
    /// Ends the throttling interval of a receive queue's interrupt vector, because an urgent frame interrupts at once.
    #[cold]
    fn end_interval(&mut self, queue: QueueIndex, now: Time) {
        let own = self.scratch.conditions.owners.vf_of(queue.pool()).is_some()
            || self.scratch.conditions.form == InterruptMode::Vectors;
        let vfs = self.scratch.conditions.owners.vfs;
        let named = || queue_vector(self.file, queue, QueueDirection::Rx, vfs);
        if let Some(vector) = if own { named() } else { Some(VECTOR_0) } {
            let (eitr, gpie) = (self.file.get(r::eitr(vector)), self.file.get(r::GPIE));
            self.throttle.hurry(vector, eitr, gpie, now);
        }
    }

    /// Raises a queue's interrupt if descriptors were written back (`announced`). Returns true if the ring faulted.
    pub(crate) fn announce(
        &mut self,
        queue: QueueIndex,
        direction: QueueDirection,
        announced: Result<bool, DmaFault>,
    ) -> bool {
        if announced == Ok(true) {
            let causes = match direction {
                QueueDirection::Tx => icr::TXDW,
                QueueDirection::Rx => icr::RXDW | self.few_descriptors(queue),
            };
            self.interrupts.raise_queue(
                self.file,
                queue,
                direction,
                causes,
                self.scratch.conditions.owners.vfs,
            );
        }
        announced.is_err()
    }

    /// Returns RXDMT0 and counts it (ICRXDMTC) if a receive queue has SRRCTL.RDMTS descriptors left or fewer, and 0 otherwise.
    fn few_descriptors(&mut self, queue: QueueIndex) -> u32 {
        let few = srrctl::low_threshold(self.file.get(r::rx_block(queue) + rx::SRRCTL));
        let left = self.queues.rx[queue.index()].available(self.file);
        if few == 0 || left > few {
            return 0;
        }
        self.file.count(r::ICRXDMTC, 1);
        icr::RXDMT0
    }
}
