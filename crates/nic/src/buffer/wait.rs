//! Frames that their receive queue has not taken: the choice between the packet buffer and a drop, and their delivery
//! once software has posted descriptors.

use super::{PacketBuffer, WaitingFrame};
use crate::counters::RQDPC_END;
use crate::queue::QueueIo;
use crate::queue::receive::{ReceiveError, RxDescriptorFields};
use crate::scratch::CachedReceiveQueue;
use crate::switch::{self, port};
use crate::work::FramePathState;
use i82576::QueueIndex;
use i82576::bits::{icr, srrctl};
use i82576::descriptor::rx::status;
use i82576::register::{self as r, rx, rx_block};
use pcie::Bus;
use plane::DeliveryError;
use plane::frame::AddressPair;

/// A frame that its receive queue has not taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UndeliveredFrame<'a> {
    pub(crate) queue: QueueIndex,
    /// Bytes of the undelivered frame as it will be delivered.
    pub(crate) bytes: &'a [u8],
    /// Number of bytes of the frame check sequence at the end of `bytes`.
    pub(crate) trailer: usize,
    pub(crate) from_uplink: bool,
    pub(crate) urgent: bool,
    /// Fields of the frame's receive descriptor, by value: a reference would force the description of every frame out
    /// of CPU registers.
    pub(crate) description: RxDescriptorFields,
}

impl<B: Bus> FramePathState<'_, B> {
    /// Handles a frame that its queue has not taken: it lacks descriptors, has other frames waiting, or is disabled. A queue
    /// that drops such frames (QDE, SRRCTL.DROP_EN) counts them in RQDPC. Otherwise the frame waits, or counts as missed by the
    /// port (MPC) if the buffer is full. RNBC counts all of these frames but those of a disabled queue.
    #[cold]
    #[inline(never)]
    pub(crate) fn wait_or_drop(&mut self, lost: ReceiveError, frame: &UndeliveredFrame<'_>) -> DeliveryError {
        let queue = frame.queue;
        if lost != ReceiveError::NoDescriptors && !(self.queues.buffer.has(queue) && self.is_running(queue)) {
            return DeliveryError::Disabled;
        }
        self.file.count(r::RNBC, 1);
        if self.drops(queue) {
            return self.drop_for_descriptors(queue);
        }
        if self.keep(frame) {
            // The queue has to be opened again, which it refuses while frames wait: later frames must not overtake this one.
            self.scratch.opened &= !(1 << queue.get());
            return DeliveryError::Waits;
        }
        self.miss(queue);
        DeliveryError::Full
    }

    /// Counts a frame that a queue drops for lack of descriptors.
    pub(crate) fn drop_for_descriptors(&mut self, queue: QueueIndex) -> DeliveryError {
        let counter = rx_block(queue) + rx::RQDPC;
        self.file.set(counter, self.file.get(counter).saturating_add(1).min(RQDPC_END));
        self.report_overrun(queue);
        DeliveryError::Dropped
    }

    /// Returns true if a queue drops frames that find no receive descriptors.
    fn drops(&self, queue: QueueIndex) -> bool {
        let file = &self.file;
        file.get(r::QDE) & 1 << queue.get() != 0
            || file.get(rx_block(queue) + rx::SRRCTL) & srrctl::DROP_EN != 0
    }

    /// Returns true if a queue may receive and has a valid ring, so that frames may wait for its descriptors.
    fn is_running(&self, queue: QueueIndex) -> bool {
        self.may_receive(queue) && self.queues.rx[queue.index()].open(self.file, false).is_some()
    }

    /// Puts a frame into the packet buffer. Returns `false` if the buffer is full, or if the frame would never fit the
    /// queue's ring and would block the queue for ever.
    fn keep(&mut self, frame: &UndeliveredFrame<'_>) -> bool {
        let UndeliveredFrame { queue, bytes, trailer, from_uplink, urgent, description } = *frame;
        let fits = self.queues.rx[queue.index()].may_fit(self.file, bytes.len(), &description);
        let description = RxDescriptorFields { status: description.status & !status::DYNINT, ..description };
        let waiting = WaitingFrame { queue, length: bytes.len(), trailer, from_uplink, urgent, description };
        fits && self.queues.buffer.keep(waiting, bytes, self.file)
    }

    /// Counts a frame that the port missed for want of receive descriptors.
    fn miss(&mut self, queue: QueueIndex) {
        self.file.count(r::MPC, 1);
        self.report_overrun(queue);
    }

    /// Raises the overrun cause RXO if the frame was for a queue of the PF. VFs have no such cause.
    fn report_overrun(&mut self, queue: QueueIndex) {
        if self.scratch.conditions.owners.vf_of(queue.pool()).is_none() {
            self.interrupts.raise_other(self.file, icr::RXO);
        }
    }

    /// Delivers at most `budget` frames from the packet buffer to queues that have descriptors now. Returns true if the
    /// budget ran out before the frames did.
    #[cold]
    #[inline(never)]
    pub(crate) fn give_waiting(&mut self, budget: usize, plane: &mut switch::PoolPlane) -> bool {
        let mut buffer = core::mem::take(&mut self.queues.buffer);
        let (mut left, mut stuck) = (budget, 0u16);
        buffer.sift(|frame, bytes| {
            let bit = 1 << frame.queue.get();
            if stuck & bit == 0 && left > 0 && self.give(frame, bytes, plane) {
                left -= 1;
                return false;
            }
            // A frame that stays stops the later frames of its queue, to keep their order.
            stuck |= if left > 0 { bit } else { 0 };
            true
        });
        self.queues.buffer = buffer;
        let waiting = self.queues.buffer.waiting();
        self.scratch.opened &= !waiting;
        left == 0 && waiting & !stuck != 0
    }

    /// Delivers a frame from the packet buffer to its queue, or drops it. Returns `false` if the frame has to wait
    /// further.
    fn give(&mut self, frame: &WaitingFrame, bytes: &[u8], plane: &mut switch::PoolPlane) -> bool {
        let (queue, mut description) = (frame.queue, frame.description);
        let port = port(queue.pool());
        self.open(queue);
        let rx = &mut self.queues.rx[queue.index()];
        let CachedReceiveQueue { opened: Some(opened), function } = &self.scratch.receiving[queue.index()]
        else {
            return false;
        };
        let urgent = frame.urgent && !opened.is_legacy();
        description.status |= if urgent { status::DYNINT } else { 0 };
        let mut io = QueueIo { file: &mut *self.file, function: *function, bus: &mut *self.bus };
        let outcome = rx.deliver(opened, &mut io, bytes, description);
        self.scratch.rx_urgent |= u16::from(urgent && outcome.is_ok()) << queue.get();
        match outcome {
            Ok(()) => {
                plane.came_late(port, frame.from_uplink, AddressPair::of(bytes), bytes.len() - frame.trailer);
            }
            Err(ReceiveError::Fault) => plane.ledger.of(port).dma_faults += 1,
            Err(ReceiveError::Disabled) => plane.ledger.of(port).rx_disabled += 1,
            Err(ReceiveError::NoDescriptors) => {
                let rx = &self.queues.rx[queue.index()];
                if rx.may_fit(self.file, bytes.len(), &description) {
                    return false;
                }
                // The driver has given the queue smaller buffers, and the frame no longer fits the ring.
                self.miss(queue);
                plane.ledger.of(port).rx_no_descriptors += 1;
            }
        }
        true
    }
}

impl PacketBuffer {
    /// Returns the receive queues for which frames wait in the packet buffer, a bit each.
    fn waiting(&self) -> u16 {
        QueueIndex::all().filter(|queue| self.has(*queue)).fold(0, |set, queue| set | 1 << queue.get())
    }
}
