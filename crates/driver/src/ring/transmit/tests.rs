//! Tests bursts of frames to send, with the test acting as the card: the ring's end in mid-burst, full rings, and a
//! hostile card. Each test runs with the descriptors of the 82576 and of the AVF.

use super::burst::FamilyTxQueue;
use super::{SIZE, TxError, TxPartDescriptor, TxRing};
use crate::desk::TestHal;
use crate::hal::{DmaHal, Hal};
use crate::offload::TxOffload;
use crate::ring::after;
use crate::vf::transmit::VfTxRing as I82576Ring;
use ::avf::descriptor::tx as adaptive;
use alloc::vec;
use alloc::vec::Vec;
use i82576::descriptor::tx::{self as advanced, AnyTxDescriptor};
use i82576::register::{tx, vf};
use proptest::prelude::{any, prop_oneof, proptest};
use proptest::strategy::{Just, Strategy};

const SLOTS: u16 = 64;
const BATCH: u16 = 16;
/// Longest frame in bytes without segmentation.
const LONGEST: usize = 9_000;
const PLAIN: TxOffload = TxOffload { ip_checksum: false, l4_checksum: false, tso: None, vlan: None };

/// Transmit queue of a family under test, and its descriptors as the card reads them.
trait TestedTxQueue: FamilyTxQueue + Sized {
    /// Offset of the transmit ring's tail register.
    const TAIL: u32;

    fn create(desk: &mut TestHal, batch: u16) -> Self;

    /// Returns a data descriptor's address, length and end-of-packet bit, or `None` if the descriptor is a context.
    fn read(raw: &[u8; SIZE]) -> Option<(u64, u16, bool)>;

    /// Returns a transmit descriptor as a card that has sent its frame writes it back: marked as done.
    fn done(raw: [u8; SIZE]) -> [u8; SIZE];
}

impl TestedTxQueue for I82576Ring {
    const TAIL: u32 = vf::TX_BLOCK + tx::TDT;

    fn create(desk: &mut TestHal, batch: u16) -> Self {
        let mut queue = Self::new(desk, SLOTS, batch).unwrap();
        queue.start(desk);
        queue
    }

    fn read(raw: &[u8; SIZE]) -> Option<(u64, u16, bool)> {
        match advanced::parse(raw) {
            AnyTxDescriptor::Data(data) => Some((data.address, data.length, data.end_of_packet)),
            _ => None,
        }
    }

    fn done(mut raw: [u8; SIZE]) -> [u8; SIZE] {
        raw[12] |= 1;
        raw
    }
}

impl TestedTxQueue for TxRing<adaptive::TxDataDescriptor> {
    const TAIL: u32 = 0x40;

    fn create(desk: &mut TestHal, batch: u16) -> Self {
        let mut queue = Self::new(desk, SLOTS, batch, Self::TAIL).unwrap();
        queue.start(desk);
        queue
    }

    fn read(raw: &[u8; SIZE]) -> Option<(u64, u16, bool)> {
        match adaptive::parse(raw) {
            adaptive::ParsedTxDescriptor::Data(data) => Some((data.address, data.length, data.end_of_packet)),
            _ => None,
        }
    }

    fn done(mut raw: [u8; SIZE]) -> [u8; SIZE] {
        raw[8..].copy_from_slice(&adaptive::done());
        raw
    }
}

/// Transmit queue with its memory and registers, and the slot that the test sends next as the card.
struct TxRingFixture<Q> {
    desk: TestHal,
    queue: Q,
    head: u32,
}

impl<Q: TestedTxQueue> TxRingFixture<Q> {
    fn new(batch: u16) -> Self {
        let mut desk = TestHal::default();
        let queue = Q::create(&mut desk, batch);
        Self { desk, queue, head: 0 }
    }

    fn ring(&mut self) -> &mut TxRing<Q::Piece> {
        self.queue.ring()
    }

    /// Queues frames of `length` bytes, each filled with its mark.
    fn send(&mut self, marks: &[u8], length: usize) -> (usize, Result<(), TxError>) {
        let frames: Vec<_> = marks.iter().map(|mark| vec![*mark; length]).collect();
        let frames: Vec<_> = frames.iter().map(Vec::as_slice).collect();
        self.queue.transmit_burst(&mut self.desk, &frames, &PLAIN, LONGEST)
    }

    fn flush(&mut self) {
        self.queue.ring().flush(&mut self.desk);
    }

    fn clean(&mut self) -> usize {
        self.queue.ring().clean(&mut self.desk)
    }

    fn descriptor(&mut self, slot: u32) -> (u64, [u8; SIZE]) {
        let at = self.ring().place().0 + u64::from(slot) * SIZE as u64;
        let mut raw = [0; SIZE];
        self.desk.dma_read(at, &mut raw);
        (at, raw)
    }

    /// Sends the published frames as the card, and writes the requested reports. Returns the frames' marks and lengths.
    fn complete(&mut self) -> Vec<(u8, usize)> {
        let (mut sent, mut length) = (Vec::new(), 0);
        while self.head != self.desk.read(Q::TAIL) {
            let (at, raw) = self.descriptor(self.head);
            if let Some((address, bytes, last)) = Q::read(&raw) {
                let mut frame = vec![0; bytes.into()];
                self.desk.dma_read(address, &mut frame);
                assert!(frame.iter().all(|byte| *byte == frame[0]), "a frame was overwritten");
                length += usize::from(bytes);
                if last {
                    sent.push((frame[0], length));
                    length = 0;
                }
            }
            if u128::from_le_bytes(raw) >> 64 & u128::from(Q::Piece::REPORT) != 0 {
                self.desk.dma_write(at, &Q::done(raw));
            }
            self.head = after(self.head, 1, SLOTS.into());
        }
        sent
    }
}

fn marks(first: u8, count: u8) -> Vec<u8> {
    (0..count).map(|at| first.wrapping_add(at)).collect()
}

fn sent(marks: &[u8], length: usize) -> Vec<(u8, usize)> {
    marks.iter().map(|mark| (*mark, length)).collect()
}

fn check_burst_across_the_ring_end<Q: TestedTxQueue>() {
    let mut sender = TxRingFixture::<Q>::new(BATCH);
    let mut first = 0_u8;
    for round in 0..50 {
        let burst = marks(first, [40, 32, 7][round % 3]);
        assert_eq!(sender.send(&burst, 60), (burst.len(), Ok(())));
        sender.flush();
        assert_eq!(sender.complete(), sent(&burst, 60), "round {round}");
        first = first.wrapping_add(burst.len() as u8);
    }
    sender.clean();
    assert_eq!(sender.ring().pending(), 0);
    let counters = sender.ring().counters();
    assert_eq!((counters.frames, counters.bytes, counters.full), (1_336, 1_336 * 60, 0));
}

#[test]
fn burst_of_sent_frames_crosses_the_ring_end_in_order() {
    check_burst_across_the_ring_end::<I82576Ring>();
    check_burst_across_the_ring_end::<TxRing<adaptive::TxDataDescriptor>>();
}

fn check_burst_beyond_the_free_slots<Q: TestedTxQueue>() {
    let mut sender = TxRingFixture::<Q>::new(BATCH);
    let (all, room) = (marks(0, 100), usize::from(SLOTS) - 1 - Q::RESERVE);
    assert_eq!(sender.send(&all, 60), (room, Err(TxError::Full)));
    assert_eq!(sender.ring().counters().full, 1);
    // The doorbell was rung for all of them, else the ring would stay full.
    assert_eq!(sender.complete(), sent(&all[..room], 60));
    assert_eq!(sender.send(&all[room..], 60), (100 - room, Ok(())));
    sender.flush();
    assert_eq!(sender.complete(), sent(&all[room..], 60));
}

#[test]
fn transmit_burst_beyond_free_slots_queues_frames_that_fit() {
    check_burst_beyond_the_free_slots::<I82576Ring>();
    check_burst_beyond_the_free_slots::<TxRing<adaptive::TxDataDescriptor>>();
}

fn check_mixed_burst<Q: TestedTxQueue>() {
    let mut sender = TxRingFixture::<Q>::new(BATCH);
    for round in 0..30 {
        let (long, short) = (vec![2; 4_100], [1; 60]);
        let frames: [&[u8]; 6] = [&short, &long, &short, &[3; 2_048], &[4; 13], &short];
        let queued = sender.queue.transmit_burst(&mut sender.desk, &frames, &PLAIN, LONGEST);
        assert_eq!(queued, (4, Err(TxError::Length(13))), "round {round}");
        sender.flush();
        assert_eq!(sender.complete(), [(1, 60), (2, 4_100), (1, 60), (3, 2_048)], "round {round}");
    }
}

#[test]
fn sending_a_burst_keeps_order_and_stops_at_a_refused_frame() {
    check_mixed_burst::<I82576Ring>();
    check_mixed_burst::<TxRing<adaptive::TxDataDescriptor>>();
}

fn check_tagged_frame<Q: TestedTxQueue>() {
    let mut sender = TxRingFixture::<Q>::new(BATCH);
    let mut tagged = [0; 1_518];
    tagged[12..14].copy_from_slice(&[0x81, 0]);
    let mut burst = |frames: &[&[u8]]| sender.queue.transmit_burst(&mut sender.desk, frames, &PLAIN, 1_514);
    assert_eq!(burst(&[&tagged[..60], &tagged, &tagged]), (3, Ok(())));
    assert_eq!(burst(&[&tagged, &[0; 1_515]]), (1, Err(TxError::Length(1_515))));
}

#[test]
fn tx_length_limit_excludes_a_vlan_tag_in_the_frame() {
    check_tagged_frame::<I82576Ring>();
    check_tagged_frame::<TxRing<adaptive::TxDataDescriptor>>();
}

fn check_unpublished_report<Q: TestedTxQueue>() {
    let mut sender = TxRingFixture::<Q>::new(BATCH);
    // Every slot's descriptor is marked as done from now on.
    for _ in 0..8 {
        assert_eq!(sender.send(&marks(0, 8), 60).0, 8);
        sender.flush();
        sender.complete();
        assert_eq!(sender.clean(), 8);
    }
    assert_eq!(sender.send(&marks(0, 8), 60).0, 8);
    assert_eq!((sender.clean(), sender.ring().pending()), (0, 8));
    sender.flush();
    assert_eq!((sender.clean(), sender.ring().pending()), (0, 8));
    sender.complete();
    assert_eq!((sender.clean(), sender.ring().pending()), (8, 0));
}

#[test]
fn sent_frame_without_doorbell_is_not_reclaimed() {
    check_unpublished_report::<I82576Ring>();
    check_unpublished_report::<TxRing<adaptive::TxDataDescriptor>>();
}

/// Action of the hostile card, or of the driver's owner.
#[derive(Debug, Clone)]
enum TxRingAction {
    /// The owner sends frames of these lengths.
    Send(Vec<usize>, TxOffload),
    Flush,
    Clean,
    /// The card writes these bytes to the descriptor of a slot.
    WriteBack(u32, [u8; SIZE]),
    /// The card marks a slot as done.
    Done(u32),
}

fn act() -> impl Strategy<Value = TxRingAction> {
    let length = prop_oneof![6 => 14..=2_048_usize, 1 => 0..10_000_usize];
    let vlan = prop_oneof![3 => Just(None), 1 => any::<u16>().prop_map(Some)];
    let offload = vlan.prop_map(|vlan| TxOffload { vlan, ..PLAIN });
    prop_oneof![
        4 => (proptest::collection::vec(length, 0..70), offload).prop_map(|(of, offload)| TxRingAction::Send(of, offload)),
        2 => Just(TxRingAction::Flush),
        2 => Just(TxRingAction::Clean),
        4 => (0..64_u32, any::<[u8; SIZE]>()).prop_map(|(slot, raw)| TxRingAction::WriteBack(slot, raw)),
        8 => (0..64_u32).prop_map(TxRingAction::Done),
    ]
}

fn check_hostile_card<Q: TestedTxQueue>(batch: u16, acts: &[TxRingAction]) {
    let (mut sender, bytes) = (TxRingFixture::<Q>::new(batch), vec![0; 10_000]);
    for act in acts {
        match act {
            TxRingAction::Send(lengths, offload) => {
                let frames: Vec<_> = lengths.iter().map(|length| &bytes[..*length]).collect();
                let (queued, refused) =
                    sender.queue.transmit_burst(&mut sender.desk, &frames, offload, LONGEST);
                assert_eq!(refused.is_ok(), queued == frames.len());
            }
            TxRingAction::Flush => sender.flush(),
            TxRingAction::Clean => drop(sender.clean()),
            TxRingAction::WriteBack(slot, raw) => {
                let (at, _) = sender.descriptor(*slot);
                sender.desk.dma_write(at, raw);
            }
            TxRingAction::Done(slot) => {
                let (at, raw) = sender.descriptor(*slot);
                sender.desk.dma_write(at, &Q::done(raw));
            }
        }
        assert!(sender.desk.read(Q::TAIL) < u32::from(SLOTS));
        assert_eq!(sender.ring().free() + sender.ring().pending(), usize::from(SLOTS) - 1);
        let unpublished = sender.ring().staged.len();
        assert!(unpublished <= sender.ring().pending(), "an unpublished frame was reclaimed");
    }
}

proptest! {
    /// Tests a hostile card: the test's memory panics at an access of the transmit ring outside of an allocation.
    #[test]
    fn hostile_card_keeps_transmit_ring_within_dma_memory(batch in 1..=32_u16, acts in proptest::collection::vec(act(), 1..100)) {
        check_hostile_card::<I82576Ring>(batch, &acts);
        check_hostile_card::<TxRing<adaptive::TxDataDescriptor>>(batch, &acts);
    }
}
