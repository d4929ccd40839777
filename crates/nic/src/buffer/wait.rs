//! Who waits in the receive packet buffer and who is lost, and the way from there into a queue when software has given
//! descriptors. Left out: the buffer itself.

use super::{PacketBuffer, Waiting};
use crate::counters::RQDPC_END;
use crate::policy::{self, port};
use crate::queue::QueueIo;
use crate::queue::receive::{Description, Lost};
use crate::scratch::Receiving;
use crate::work::Work;
use i82576::Queue;
use i82576::bits::{icr, srrctl};
use i82576::descriptor::rx::status;
use i82576::register::{self as r, rx, rx_block};
use pcie::Bus;
use plane::Missed;
use plane::frame::Ends;

/// A frame that its queue has not taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Late<'a> {
    pub(crate) queue: Queue,
    /// Its bytes as they are delivered, of which so many at the end are the check sequence.
    pub(crate) bytes: &'a [u8],
    pub(crate) trailer: usize,
    pub(crate) from_uplink: bool,
    pub(crate) urgent: bool,
    /// A copy: a pointer to it would keep it in memory for every frame, and not in registers.
    pub(crate) description: Description,
}

impl<B: Bus> Work<'_, B> {
    /// A queue has not taken a frame for want of descriptors, or because others wait before it, or because it is disabled. If
    /// the queue drops such frames (QDE, SRRCTL.DROP_EN) that is counted in RQDPC; otherwise the frame waits, or if there is no
    /// room for it is missed by the port (MPC). RNBC counts all of them.
    #[cold]
    #[inline(never)]
    pub(crate) fn come_too_late(&mut self, lost: Lost, frame: &Late<'_>) -> Missed {
        let queue = frame.queue;
        if lost != Lost::NoDescriptors && !(self.queues.buffer.has(queue) && self.is_running(queue)) {
            return Missed::Disabled;
        }
        self.file.count(r::RNBC, 1);
        if self.drops(queue) {
            let counter = rx_block(queue) + rx::RQDPC;
            self.file.set(counter, self.file.get(counter).saturating_add(1).min(RQDPC_END));
            self.report_overrun(queue);
            return Missed::Dropped;
        }
        if self.keep(frame) {
            // From now on frames for the queue come here first.
            self.scratch.opened &= !(1 << queue.get());
            return Missed::Waits;
        }
        self.miss(queue);
        Missed::Full
    }

    /// A queue drops what it has no descriptors for.
    fn drops(&self, queue: Queue) -> bool {
        let file = &self.file;
        file.get(r::QDE) & 1 << queue.get() != 0
            || file.get(rx_block(queue) + rx::SRRCTL) & srrctl::DROP_EN != 0
    }

    /// A queue can take frames now, if it has descriptors.
    fn is_running(&self, queue: Queue) -> bool {
        self.may_receive(queue) && self.queues.rx[queue.index()].open(self.file, false).is_some()
    }

    /// Puts a frame into the buffer, unless it would never fit the queue's ring.
    fn keep(&mut self, frame: &Late<'_>) -> bool {
        let Late { queue, bytes, trailer, from_uplink, urgent, description } = *frame;
        let fits = self.queues.rx[queue.index()].may_fit(self.file, bytes.len(), &description);
        let description = Description { status: description.status & !status::DYNINT, ..description };
        let waiting = Waiting { queue, length: bytes.len(), trailer, from_uplink, urgent, description };
        fits && self.queues.buffer.keep(waiting, bytes, self.file)
    }

    /// The port has missed a frame of a queue.
    fn miss(&mut self, queue: Queue) {
        self.file.count(r::MPC, 1);
        self.report_overrun(queue);
    }

    /// The PF is told of frames that it has not got.
    fn report_overrun(&mut self, queue: Queue) {
        if self.scratch.conditions.owners.vf_of(queue.pool()).is_none() {
            self.interrupts.raise_other(self.file, icr::RXO);
        }
    }

    /// Puts frames that wait into their queues, as far as these have descriptors now and so many frames at the most. Answers
    /// whether that was too few.
    #[cold]
    #[inline(never)]
    pub(crate) fn give_waiting(&mut self, budget: usize, plane: &mut policy::Plane) -> bool {
        let mut buffer = core::mem::take(&mut self.queues.buffer);
        let (mut left, mut stuck) = (budget, 0u16);
        buffer.sift(|frame, bytes| {
            let bit = 1 << frame.queue.get();
            if stuck & bit == 0 && left > 0 && self.give(frame, bytes, plane) {
                left -= 1;
                return false;
            }
            stuck |= if left > 0 { bit } else { 0 };
            true
        });
        self.queues.buffer = buffer;
        let waiting = self.queues.buffer.waiting();
        self.scratch.opened &= !waiting;
        left == 0 && waiting & !stuck != 0
    }

    /// Puts a frame that waits into its queue; `false` if it has to go on waiting.
    fn give(&mut self, frame: &Waiting, bytes: &[u8], plane: &mut policy::Plane) -> bool {
        let (queue, mut description) = (frame.queue, frame.description);
        let port = port(queue.pool());
        self.open(queue);
        let rx = &mut self.queues.rx[queue.index()];
        let Receiving { opened: Some(opened), function } = &self.scratch.receiving[queue.index()] else {
            return false;
        };
        let urgent = frame.urgent && !opened.is_legacy();
        description.status |= if urgent { status::DYNINT } else { 0 };
        let mut io = QueueIo { file: &mut *self.file, function: *function, bus: &mut *self.bus };
        let outcome = rx.deliver(opened, &mut io, bytes, description);
        self.scratch.rx_urgent |= u16::from(urgent && outcome.is_ok()) << queue.get();
        match outcome {
            Ok(()) => {
                plane.came_late(port, frame.from_uplink, Ends::of(bytes), bytes.len() - frame.trailer);
            }
            Err(Lost::Fault) => plane.ledger.of(port).dma_faults += 1,
            Err(Lost::Disabled) => plane.ledger.of(port).rx_disabled += 1,
            Err(Lost::NoDescriptors) => {
                let rx = &self.queues.rx[queue.index()];
                if rx.may_fit(self.file, bytes.len(), &description) {
                    return false;
                }
                // The queue has got smaller buffers.
                self.miss(queue);
                plane.ledger.of(port).rx_no_descriptors += 1;
            }
        }
        true
    }
}

impl PacketBuffer {
    /// Queues that frames wait for, a bit each.
    fn waiting(&self) -> u16 {
        Queue::all().filter(|queue| self.has(*queue)).fold(0, |set, queue| set | 1 << queue.get())
    }
}
