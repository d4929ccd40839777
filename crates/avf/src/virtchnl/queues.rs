//! Messages about rings, the vectors that they raise, and sets of queues. The card's own view of a ring is in
//! [`crate::control`].

use super::list::MessageListElement;
use crate::bytes::{MessageFieldReader, MessageFieldWriter};
use alloc::vec::Vec;

/// Description of a transmit queue in CONFIG_VSI_QUEUES.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TxQueueInfo {
    /// Number of the VSI that the transmit queue belongs to.
    pub vsi: u16,
    /// Number of the transmit queue.
    pub queue: u16,
    /// Number of the queue's descriptors; 0 keeps the queue unchanged (DPDK).
    pub length: u16,
    /// True if the card writes the transmit queue's head to memory.
    pub head_write_back: bool,
    /// DMA address of the transmit queue's ring.
    pub base: u64,
    /// Address to which the card writes the queue's head.
    pub head_address: u64,
}

/// Description of a receive queue in CONFIG_VSI_QUEUES.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RxQueueInfo {
    /// Number of the VSI that the receive queue belongs to.
    pub vsi: u16,
    /// Number of the receive queue.
    pub queue: u16,
    /// Number of the queue's descriptors; 0 keeps the queue unchanged (DPDK).
    pub length: u32,
    /// Size of a header buffer in bytes.
    pub header_bytes: u16,
    /// True if headers of received frames have buffers of their own: deprecated.
    pub split: bool,
    /// Size of a receive buffer in bytes.
    pub buffer_bytes: u32,
    /// Longest frame that the VF requests, in bytes.
    pub max_frame: u32,
    /// True if received frames keep their frame check sequence.
    pub keep_fcs: bool,
    /// Number of the receive descriptors' format (RXDID).
    pub rxdid: u8,
    /// Flags of the receive queue in CONFIG_VSI_QUEUES: time stamps and others.
    pub flags: u8,
    /// DMA address of the receive queue's ring.
    pub base: u64,
    /// Kind of header at which the card splits frames.
    pub split_at: u32,
}

/// Description of a queue pair in CONFIG_VSI_QUEUES.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueuePairInfo {
    /// Transmit queue of the queue pair.
    pub tx: TxQueueInfo,
    /// Receive queue of the queue pair.
    pub rx: RxQueueInfo,
}

impl MessageListElement for QueuePairInfo {
    const SIZE: usize = 64;

    fn read(from: &mut MessageFieldReader<'_>) -> Self {
        let tx = TxQueueInfo {
            vsi: from.u16(),
            queue: from.u16(),
            length: from.u16(),
            head_write_back: from.u16() != 0,
            base: from.u64(),
            head_address: from.u64(),
        };
        let mut rx = RxQueueInfo {
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
            ..RxQueueInfo::default()
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

/// Interrupt vector, and the queues that raise it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VectorMap {
    /// Number of the queues' VSI.
    pub vsi: u16,
    /// Number of the interrupt vector that the queues raise.
    pub vector: u16,
    /// Receive queues that raise the interrupt vector, a bit each.
    pub rx: u16,
    /// Transmit queues that raise the interrupt vector, a bit each.
    pub tx: u16,
    /// Index of the interrupt interval of the receive queues.
    pub rx_itr: u16,
    /// Index of the interrupt interval of the transmit queues.
    pub tx_itr: u16,
}

impl MessageListElement for VectorMap {
    const SIZE: usize = 12;

    fn read(from: &mut MessageFieldReader<'_>) -> Self {
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

/// Set of a VSI's queues, a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueSet {
    /// Number of the queues' VSI.
    pub vsi: u16,
    /// Receive queues in the set, a bit each.
    pub rx: u32,
    /// Transmit queues in the set, a bit each.
    pub tx: u32,
}

impl MessageListElement for QueueSet {
    const SIZE: usize = 12;

    fn read(from: &mut MessageFieldReader<'_>) -> Self {
        let vsi = from.u16();
        let _pad = from.u16();
        Self { vsi, rx: from.u32(), tx: from.u32() }
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.u16(self.vsi).u16(0).u32(self.rx).u32(self.tx);
    }
}

/// Direction of the frames in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueType {
    /// Direction from the VF: a transmit queue.
    Transmit,
    /// Direction to the VF: a receive queue.
    Receive,
    /// The queue's direction is an undefined number.
    Other(u32),
}

/// Range of queues of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueChunk {
    /// Direction of the queues in the range: transmit or receive.
    pub direction: QueueType,
    /// Number of the first queue in the range.
    pub start: u16,
    /// Number of queues in the range.
    pub count: u16,
}

impl MessageListElement for QueueChunk {
    const SIZE: usize = 8;

    fn read(from: &mut MessageFieldReader<'_>) -> Self {
        let direction = match from.u32() {
            0 => QueueType::Transmit,
            1 => QueueType::Receive,
            other => QueueType::Other(other),
        };
        Self { direction, start: from.u16(), count: from.u16() }
    }

    fn write(&self, to: &mut Vec<u8>) {
        let direction = match self.direction {
            QueueType::Transmit => 0,
            QueueType::Receive => 1,
            QueueType::Other(other) => other,
        };
        to.u32(direction).u16(self.start).u16(self.count);
    }
}
