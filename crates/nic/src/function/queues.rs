//! Registers of queues and of their rates, and what becomes of waiting frames when a queue stops. Left out: the queues (`queue`).

use crate::Nic;
use crate::policy::port;
use crate::sizes::PACKET;
use i82576::register::{self as r, rx, tx};
use i82576::{Pool, Queue};
use pcie::Function;

/// Where the queues' register blocks start; there are 16 of 64 bytes in either kind.
const RX_BLOCKS: u32 = 0xc000;
const TX_BLOCKS: u32 = 0xe000;

impl Nic {
    /// A register of a queue was written: a doorbell makes a transmit queue ready, and a queue whose ring
    /// changes forgets what it has fetched.
    pub(crate) fn queue_written(&mut self, offset: u32) {
        let queue = usize::from((offset >> 6) as u8 & 0xf);
        match (offset & !0x3ff, offset & 0x3f) {
            (RX_BLOCKS, rx::RDBAL | rx::RDBAH | rx::RDLEN | rx::RDH | rx::RXDCTL) => {
                self.restart_receive(Queue::of_field(queue as u32));
            }
            (RX_BLOCKS, rx::RDT) => self.state.queues.rx[queue].decode(&self.state.file),
            // A queue that goes on, goes on with the packet that it is in.
            (TX_BLOCKS, tx::TXDCTL) if self.state.queues.tx[queue].goes_on(&self.state.file) => {}
            (TX_BLOCKS, tx::TDBAL | tx::TDBAH | tx::TDLEN | tx::TDH | tx::TXDCTL) => {
                self.state.queues.tx[queue].restart(&self.state.file);
                self.state.queues.ready |= 1 << queue;
            }
            (TX_BLOCKS, tx::TDT) => {
                self.state.queues.tx[queue].decode(&self.state.file);
                self.state.queues.ready |= 1 << queue;
            }
            _ => {}
        }
    }

    /// A register was written that may be about rates.
    pub(crate) fn pacing_written(&mut self, offset: u32) {
        self.state.rates.written(&mut self.state.file, &mut self.plane, offset);
        if offset == r::RTTBCNRC {
            self.prepare_to_hold();
        }
    }

    /// Queues that may have to stop between the segments of a packet get a place to keep it, now rather than when
    /// a frame passes.
    pub(crate) fn prepare_to_hold(&mut self) {
        for (tx, queue) in self.state.queues.tx.iter_mut().zip(Queue::all()) {
            if !tx.held.is_empty() || self.plane.pacing.may_delay(port(queue.pool())) {
                tx.held.reserve(PACKET);
            }
        }
    }

    /// A receive queue starts over. What waits for it is dropped.
    pub(crate) fn restart_receive(&mut self, queue: Queue) {
        self.drop_waiting(queue);
        self.state.queues.rx[queue.index()].restart(&self.state.file);
    }

    /// A function may no longer master the bus: what waits for its queues is dropped.
    pub(crate) fn drop_waiting_of(&mut self, function: Function) {
        let owners = self.state.owners;
        Queue::all()
            .filter(|queue| owners.of_queue(*queue) == function)
            .for_each(|queue| self.drop_waiting(queue));
    }

    fn drop_waiting(&mut self, queue: Queue) {
        let dropped = self.state.queues.buffer.drop_of(queue) as u64;
        self.plane.ledger.of(port(queue.pool())).rx_disabled += dropped;
    }

    /// Frames that wait in the receive packet buffer for queues of a pool, and their bytes.
    #[must_use]
    pub fn waiting(&self, pool: Pool) -> (usize, usize) {
        let [(frames, bytes), (more_frames, more_bytes)] =
            [0, 1].map(|which| self.state.queues.buffer.of(pool.queue(which)));
        (frames + more_frames, bytes + more_bytes)
    }
}
