//! Effects of writes to registers of queues and of their rates, and the drop of waiting frames and segments when a
//! queue stops.

use crate::Nic;
use crate::sizes::PACKET;
use crate::switch::port;
use i82576::register::{rx, tx};
use i82576::{PoolIndex, QueueIndex};
use pcie::Function;

/// Offset of the receive queues' first register block: 16 blocks of 64 bytes.
const RX_BLOCKS: u32 = 0xc000;
/// Offset of the transmit queues' first register block: 16 blocks of 64 bytes.
const TX_BLOCKS: u32 = 0xe000;

impl Nic {
    /// Applies the effect of a write to a register of a queue. A doorbell makes a transmit queue ready, and a queue
    /// whose ring changes discards its fetched descriptors.
    pub(crate) fn queue_written(&mut self, offset: u32) {
        let queue = usize::from((offset >> 6) as u8 & 0xf);
        match (offset & !0x3ff, offset & 0x3f) {
            (RX_BLOCKS, rx::RDBAL | rx::RDBAH | rx::RDLEN | rx::RDH | rx::RXDCTL) => {
                self.restart_receive(QueueIndex::of_field(queue as u32));
            }
            (RX_BLOCKS, rx::RDT) => self.state.queues.rx[queue].decode(&self.state.file),
            // Drivers write TXDCTL of an enabled queue, for its thresholds. The queue resumes at its unfinished packet.
            (TX_BLOCKS, tx::TXDCTL) if self.state.queues.tx[queue].goes_on(&self.state.file) => {}
            (TX_BLOCKS, tx::TDBAL | tx::TDBAH | tx::TDLEN | tx::TDH | tx::TXDCTL) => {
                self.count_unfinished(QueueIndex::of_field(queue as u32));
                self.state.queues.tx[queue].restart(&self.state.file);
                self.state.queues.ready |= 1 << queue;
                self.prepare_to_hold();
            }
            (TX_BLOCKS, tx::TDT) => {
                self.state.queues.tx[queue].decode(&self.state.file);
                self.state.queues.ready |= 1 << queue;
            }
            _ => {}
        }
    }

    /// Applies the effect of a write to a rate register.
    pub(crate) fn pacing_written(&mut self, offset: u32) {
        self.state.rates.written(&mut self.state.file, &mut self.plane, offset);
    }

    /// Reserves memory for an unfinished packet in each transmit queue that has a ring, since its packet may have to stop
    /// between two segments: the frame path does not allocate.
    pub(crate) fn prepare_to_hold(&mut self) {
        for tx in self.state.queues.tx.iter_mut() {
            if !tx.held.is_empty() || tx.open(&self.state.file).is_some() {
                tx.held.reserve(PACKET);
            }
        }
    }

    /// Resets a transmit queue, and drops the packet that waits between two of its segments.
    pub(crate) fn reset_transmit(&mut self, queue: QueueIndex) {
        self.count_unfinished(queue);
        self.state.queues.tx[queue.index()].reset(&self.state.file);
    }

    /// Counts the packet of a transmit queue that is dropped after some of its segments have left.
    fn count_unfinished(&mut self, queue: QueueIndex) {
        let waits = !self.state.queues.tx[queue.index()].held.is_empty();
        self.plane.ledger.of(port(queue.pool())).tx_unclaimed += u64::from(waits);
    }

    /// Restarts a receive queue at its head register, and drops the frames that wait for it.
    pub(crate) fn restart_receive(&mut self, queue: QueueIndex) {
        self.drop_waiting(queue);
        self.state.queues.rx[queue.index()].restart(&self.state.file);
    }

    /// Drops the frames that wait for queues of a function, which may no longer master the bus.
    pub(crate) fn drop_waiting_of(&mut self, function: Function) {
        let owners = self.state.owners;
        QueueIndex::all()
            .filter(|queue| owners.of_queue(*queue) == function)
            .for_each(|queue| self.drop_waiting(queue));
    }

    fn drop_waiting(&mut self, queue: QueueIndex) {
        let dropped = self.state.queues.buffer.drop_of(queue) as u64;
        self.plane.ledger.of(port(queue.pool())).rx_disabled += dropped;
    }

    /// Returns the number and the bytes of frames that wait in the receive packet buffer for a pool's queues.
    #[must_use]
    pub fn waiting(&self, pool: PoolIndex) -> (usize, usize) {
        let [(frames, bytes), (more_frames, more_bytes)] =
            [0, 1].map(|which| self.state.queues.buffer.of(pool.queue(which)));
        (frames + more_frames, bytes + more_bytes)
    }
}
