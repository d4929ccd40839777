//! The rounds of a poll: ready transmit queues are visited in turn, and at the end everybody hears what was received. Left
//! out: the visit itself (`rings::visit`).

use crate::interrupt::single::{Form, VECTOR_0};
use crate::interrupt::{Direction, queue_vector};
use crate::policy::{self, port, sender};
use crate::queue::QueueIo;
use crate::work::Work;
use i82576::bits::{icr, srrctl, tctl};
use i82576::register::{self as r, rx};
use i82576::{Queue, Time};
use pcie::{Bus, DmaFault};
use plane::Wire;

impl<B: Bus> Work<'_, B> {
    /// Visits every ready transmit queue once, and next time first those behind the one that came first now.
    /// A queue behind a closed gate stays ready, and so does one whose next frame has to wait. Answers whether one
    /// of the others has more, and when the first frame that waits may leave.
    pub(crate) fn transmit<W: Wire>(
        &mut self,
        budget: usize,
        plane: &mut policy::Plane,
        wire: &mut W,
    ) -> (bool, Option<Time>) {
        let (mut more, mut due, mut served) = (false, None, None);
        if self.queues.ready == 0 || self.file.get(r::TCTL) & tctl::EN == 0 {
            return (more, due);
        }
        let first = self.queues.first;
        for queue in Queue::in_turn(self.queues.ready, first) {
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

    /// Gives back the descriptors of what was received, and adds it to the counters.
    pub(crate) fn write_back_received(&mut self, plane: &mut policy::Plane) {
        let touched = core::mem::take(&mut self.scratch.rx_touched);
        self.scratch.opened = 0;
        let urgent = core::mem::take(&mut self.scratch.rx_urgent);
        self.settle_received(plane);
        for queue in Queue::in_turn(touched, 0) {
            let function = self.scratch.conditions.owners.of_queue(queue);
            let mut io = QueueIo { file: &mut *self.file, function, bus: &mut *self.bus };
            let announced = self.queues.rx[queue.index()].write_back(&mut io);
            let faulted = self.announce(queue, Direction::Rx, announced);
            plane.ledger.of(port(queue.pool())).dma_faults += u64::from(faulted);
            if urgent & 1 << queue.get() != 0 {
                self.hurry(queue, self.scratch.now);
            }
        }
    }
}

impl<B> Work<'_, B> {
    /// What a receive queue has to tell does not wait for its throttle.
    #[cold]
    fn hurry(&mut self, queue: Queue, now: Time) {
        let own = self.scratch.conditions.owners.vf_of(queue.pool()).is_some()
            || self.scratch.conditions.form == Form::Vectors;
        let vfs = self.scratch.conditions.owners.vfs;
        let named = || queue_vector(self.file, queue, Direction::Rx, vfs);
        if let Some(vector) = if own { named() } else { Some(VECTOR_0) } {
            let (eitr, gpie) = (self.file.get(r::eitr(vector)), self.file.get(r::GPIE));
            self.throttle.hurry(vector, eitr, gpie, now);
        }
    }

    /// Raises a queue's interrupt if something was given back; answers whether its ring could not be written.
    pub(crate) fn announce(
        &mut self,
        queue: Queue,
        direction: Direction,
        announced: Result<bool, DmaFault>,
    ) -> bool {
        if announced == Ok(true) {
            let causes = match direction {
                Direction::Tx => icr::TXDW,
                Direction::Rx => icr::RXDW | self.few_descriptors(queue),
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

    /// RXDMT0, if a receive queue has no more descriptors left than SRRCTL.RDMTS asks for, which is counted.
    fn few_descriptors(&mut self, queue: Queue) -> u32 {
        let few = srrctl::low_threshold(self.file.get(r::rx_block(queue) + rx::SRRCTL));
        let left = self.queues.rx[queue.index()].available(self.file);
        if few == 0 || left > few {
            return 0;
        }
        self.file.count(r::ICRXDMTC, 1);
        icr::RXDMT0
    }
}
