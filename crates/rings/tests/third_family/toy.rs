//! Toy card of a third device family, in few lines: a ring of 16-byte descriptors in each direction. A transmit
//! descriptor is an address, and a length with bits for "plain", "report" and "done"; a receive descriptor says tag and
//! contents, length and "done".

use crate::memory::{DONE, PLAIN, REPORT, RINGS, SLOTS, ToyMemory};
use core::ops::RangeInclusive;
use offload::plain::PlainFrameKind;
use pcie::{Bus, Function, HintedMemory, MemoryHint};
use plane::switch::SwitchDropReason;
use plane::{PortIndex, TransmitQueueId};
use rings::{
    BurstCard, FrameMemory, FrameRunProperties, PlainReceiver, PostedDescriptors, Ring, RxFormat, TxFormat,
};

pub(crate) struct ToyQueue {
    pub(crate) head: u32,
    pub(crate) tail: u32,
    pub(crate) posted: PostedDescriptors,
    pub(crate) rx_tail: u32,
    pub(crate) hints: [MemoryHint; 2],
}

pub(crate) struct ToyCard {
    pub(crate) queues: Vec<ToyQueue>,
    pub(crate) memory: ToyMemory,
    pub(crate) careful: bool,
    pub(crate) places: Option<Box<FrameMemory>>,
    pub(crate) at_hand: [[u8; 16]; 32],
    pub(crate) refused: usize,
}

pub(crate) struct ToyTxFormat;

impl TxFormat for ToyTxFormat {
    const LENGTHS: RangeInclusive<u32> = 14..=4000;
    fn plain(second: u64) -> Option<u32> {
        (second & PLAIN != 0).then_some(second as u32)
    }
}

/// Receive descriptor format of the toy card, with the VLAN tag that all descriptors of a run of frames report.
#[derive(Clone, Copy)]
pub(crate) struct ToyRxFormat(Option<u16>);

impl RxFormat for ToyRxFormat {
    fn words(self, found: PlainFrameKind, _hash: Option<u32>, length: u32) -> [u64; 4] {
        let tag = self.0.map_or(0, |tag| u64::from(tag) << 16 | 1 << 8);
        [tag | found.index() as u64, DONE | u64::from(length), 0, 0]
    }
}

impl ToyCard {
    fn ring(&self, port: PortIndex) -> Option<(usize, Ring)> {
        let n = usize::from(port.get());
        self.queues.get(n).and_then(|queue| Some((n, Ring::new(RINGS[1], SLOTS, 16, queue.rx_tail)?)))
    }
}

impl BurstCard for ToyCard {
    type Bus = ToyMemory;
    type TxFormat = ToyTxFormat;
    type RxFormat = ToyRxFormat;
    fn places(&mut self) -> &mut Option<Box<FrameMemory>> {
        &mut self.places
    }
    fn is_careful(&self) -> bool {
        self.careful
    }
    fn judges(&self) -> bool {
        !self.careful
    }
    fn next(&mut self, sender: TransmitQueueId, most: usize) -> &[[u8; 16]] {
        let (n, queue) = (sender.port.get(), &mut self.queues[usize::from(sender.port.get())]);
        let Some(ring) = Ring::new(RINGS[0], SLOTS, 16, queue.tail) else { return &[] };
        let count = ring.contiguous(queue.head, ring.available(queue.head)) as usize;
        let raw = &mut self.at_hand[..count.min(most).min(32)];
        let space = HintedMemory { function: Function::Vf(n), hint: &mut queue.hints[0] };
        let read = self.memory.read_descriptors(space, ring.address(queue.head), raw.as_flattened_mut());
        if read.is_ok() { raw } else { &[] }
    }
    fn pass(&mut self, sender: TransmitQueueId, count: usize) {
        let (n, queue) = (sender.port.get(), &mut self.queues[usize::from(sender.port.get())]);
        for raw in &mut self.at_hand[..count] {
            raw[15] |= if raw[15] & (REPORT >> 56) as u8 != 0 { (DONE >> 56) as u8 } else { 0 };
        }
        let (space, at) = (HintedMemory { function: Function::Vf(n), hint: &mut queue.hints[0] }, queue.head);
        let raw = self.at_hand[..count].as_flattened();
        self.memory.write_descriptors(space, RINGS[0] + 16 * u64::from(at), raw, 16).unwrap();
        queue.head = (queue.head + count as u32) % SLOTS;
    }
    fn source(&mut self, sender: TransmitQueueId) -> (Function, &mut MemoryHint, &mut ToyMemory) {
        let n = sender.port.get();
        (Function::Vf(n), &mut self.queues[usize::from(n)].hints[1], &mut self.memory)
    }
    fn refused(&mut self, _sender: TransmitQueueId, _reason: SwitchDropReason) {
        self.refused += 1;
    }
    fn receiver(
        &mut self,
        port: PortIndex,
        _: u8,
        terms: FrameRunProperties,
    ) -> Option<PlainReceiver<'_, ToyMemory, ToyRxFormat>> {
        let (n, ring) = self.ring(port)?;
        let (posted, bus, format) = (&mut self.queues[n].posted, &mut self.memory, ToyRxFormat(terms.tag));
        Some(PlainReceiver {
            posted,
            ring,
            room: 32,
            longest: 2048,
            function: Function::Vf(n as u8),
            bus,
            format,
        })
    }
}
