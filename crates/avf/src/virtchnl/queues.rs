//! Rings, which vectors they raise, and sets of queues. Left out: what a card makes of a ring (`control`).

use super::list::Item;
use crate::bytes::{Put, Reader};
use alloc::vec::Vec;

/// A transmit queue, as CONFIG_VSI_QUEUES describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TxQueue {
    /// The VSI.
    pub vsi: u16,
    /// The queue.
    pub queue: u16,
    /// Descriptors; 0 leaves the queue as it is (DPDK).
    pub length: u16,
    /// The card writes its head to memory.
    pub head_write_back: bool,
    /// Where the ring is.
    pub base: u64,
    /// Where the head is written.
    pub head_address: u64,
}

/// A receive queue, as CONFIG_VSI_QUEUES describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RxQueue {
    /// The VSI.
    pub vsi: u16,
    /// The queue.
    pub queue: u16,
    /// Descriptors; 0 leaves the queue as it is (DPDK).
    pub length: u32,
    /// Bytes of a header buffer.
    pub header_bytes: u16,
    /// Headers have buffers of their own: deprecated.
    pub split: bool,
    /// Bytes of a buffer.
    pub buffer_bytes: u32,
    /// The longest frame that the VF wants.
    pub max_frame: u32,
    /// The frame check sequence stays.
    pub keep_fcs: bool,
    /// The form of its descriptors.
    pub rxdid: u8,
    /// Time stamps and others.
    pub flags: u8,
    /// Where the ring is.
    pub base: u64,
    /// Where headers are split.
    pub split_at: u32,
}

/// A pair of queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueuePair {
    /// Its transmit queue.
    pub tx: TxQueue,
    /// Its receive queue.
    pub rx: RxQueue,
}

impl Item for QueuePair {
    const SIZE: usize = 64;

    fn read(from: &mut Reader<'_>) -> Self {
        let tx = TxQueue {
            vsi: from.u16(),
            queue: from.u16(),
            length: from.u16(),
            head_write_back: from.u16() != 0,
            base: from.u64(),
            head_address: from.u64(),
        };
        let mut rx = RxQueue {
            vsi: from.u16(),
            queue: from.u16(),
            length: from.u32(),
            header_bytes: from.u16(),
            split: from.u16() != 0,
            buffer_bytes: from.u32(),
            max_frame: from.u32(),
            keep_fcs: from.u8() != 0,
            rxdid: from.u8(),
            flags: from.u8(),
            ..RxQueue::default()
        };
        let _pad = from.u8();
        rx.base = from.u64();
        rx.split_at = from.u32();
        Self { tx, rx }
    }

    fn write(&self, to: &mut Vec<u8>) {
        let (tx, rx) = (&self.tx, &self.rx);
        to.u16(tx.vsi).u16(tx.queue).u16(tx.length).u16(tx.head_write_back.into());
        to.u64(tx.base).u64(tx.head_address);
        to.u16(rx.vsi).u16(rx.queue).u32(rx.length).u16(rx.header_bytes).u16(rx.split.into());
        to.u32(rx.buffer_bytes).u32(rx.max_frame).u8(rx.keep_fcs.into()).u8(rx.rxdid).u8(rx.flags).u8(0);
        to.u64(rx.base).u32(rx.split_at).u32(0);
    }
}

/// The queues that raise a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VectorMap {
    /// The VSI.
    pub vsi: u16,
    /// The vector.
    pub vector: u16,
    /// Receive queues, a bit each.
    pub rx: u16,
    /// Transmit queues, a bit each.
    pub tx: u16,
    /// The interval of receive queues.
    pub rx_itr: u16,
    /// The interval of transmit queues.
    pub tx_itr: u16,
}

impl Item for VectorMap {
    const SIZE: usize = 12;

    fn read(from: &mut Reader<'_>) -> Self {
        Self {
            vsi: from.u16(),
            vector: from.u16(),
            rx: from.u16(),
            tx: from.u16(),
            rx_itr: from.u16(),
            tx_itr: from.u16(),
        }
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.u16(self.vsi).u16(self.vector).u16(self.rx).u16(self.tx).u16(self.rx_itr).u16(self.tx_itr);
    }
}

/// Queues of a VSI, a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueSet {
    /// The VSI.
    pub vsi: u16,
    /// Receive queues.
    pub rx: u32,
    /// Transmit queues.
    pub tx: u32,
}

impl Item for QueueSet {
    const SIZE: usize = 12;

    fn read(from: &mut Reader<'_>) -> Self {
        let vsi = from.u16();
        let _pad = from.u16();
        Self { vsi, rx: from.u32(), tx: from.u32() }
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.u16(self.vsi).u16(0).u32(self.rx).u32(self.tx);
    }
}

/// Which way a queue goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the VF.
    Transmit,
    /// To the VF.
    Receive,
    /// A kind that there is not.
    Other(u32),
}

/// A range of queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Which.
    pub direction: Direction,
    /// The first.
    pub start: u16,
    /// How many.
    pub count: u16,
}

impl Item for Chunk {
    const SIZE: usize = 8;

    fn read(from: &mut Reader<'_>) -> Self {
        let direction = match from.u32() {
            0 => Direction::Transmit,
            1 => Direction::Receive,
            other => Direction::Other(other),
        };
        Self { direction, start: from.u16(), count: from.u16() }
    }

    fn write(&self, to: &mut Vec<u8>) {
        let direction = match self.direction {
            Direction::Transmit => 0,
            Direction::Receive => 1,
            Direction::Other(other) => other,
        };
        to.u32(direction).u16(self.start).u16(self.count);
    }
}
