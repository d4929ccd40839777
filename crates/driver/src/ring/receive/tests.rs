//! Tests bursts of received frames, with the test acting as the card: the ring's end in mid-burst, and a hostile card.
//! Each test runs with the descriptors of the 82576 and of the AVF.

use super::{MAX_PIECES, RawRxDescriptor, RxDescriptorLayout, RxError, RxFrame, RxRing};
use crate::desk::TestHal;
use crate::hal::{DmaHal, Hal};
use crate::ring::{BUFFER, after};
use crate::vf::receive::AdvancedRxLayout;
use ::avf::descriptor::rx::{self as adaptive, RxDescriptorFormat};
use alloc::vec;
use alloc::vec::Vec;
use i82576::descriptor::rx::{self as advanced, status};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

const SLOTS: u16 = 64;
const BATCH: u16 = 16;
/// Offset of the receive ring's tail register.
const TAIL: u32 = 0x818;

/// Layout of receive descriptors, of an 82576 or an AVF.
#[derive(Debug, Clone, Copy)]
enum AnyRxLayout {
    I82576,
    Avf(RxDescriptorFormat),
}

const LAYOUTS: [AnyRxLayout; 5] = [
    AnyRxLayout::I82576,
    AnyRxLayout::Avf(RxDescriptorFormat::Short),
    AnyRxLayout::Avf(RxDescriptorFormat::Legacy),
    AnyRxLayout::Avf(RxDescriptorFormat::Flex(2)),
    AnyRxLayout::Avf(RxDescriptorFormat::FlexLate),
];

impl RxDescriptorLayout for AnyRxLayout {
    type Received = usize;

    fn size(self) -> usize {
        match self {
            Self::I82576 => AdvancedRxLayout.size(),
            Self::Avf(form) => RxDescriptorLayout::size(form),
        }
    }

    fn posted(self, buffer: u64) -> RawRxDescriptor {
        match self {
            Self::I82576 => AdvancedRxLayout.posted(buffer),
            Self::Avf(form) => form.posted(buffer),
        }
    }

    fn filled(self, raw: &RawRxDescriptor) -> (usize, bool) {
        match self {
            Self::I82576 => AdvancedRxLayout.filled(raw),
            Self::Avf(form) => form.filled(raw),
        }
    }

    fn received(self, raw: &RawRxDescriptor, length: usize) -> usize {
        match self {
            Self::I82576 => AdvancedRxLayout.received(raw, length).length,
            Self::Avf(form) => form.received(raw, length).length,
        }
    }

    fn has_bad_checksum(self, raw: &RawRxDescriptor) -> bool {
        match self {
            Self::I82576 => AdvancedRxLayout.has_bad_checksum(raw),
            Self::Avf(form) => form.has_bad_checksum(raw),
        }
    }
}

impl AnyRxLayout {
    /// Returns a receive descriptor that the card has completed.
    fn completed(self, length: u16, last: bool) -> RawRxDescriptor {
        match self {
            Self::I82576 => {
                let bits = if last { status::EOP } else { 0 };
                let back = advanced::AdvancedRxWriteBack {
                    length,
                    status: bits,
                    ..advanced::AdvancedRxWriteBack::default()
                };
                let mut raw = RawRxDescriptor::default();
                raw[..16].copy_from_slice(&back.emit());
                raw
            }
            Self::Avf(form) => {
                let back =
                    adaptive::RxWriteBack { length, end_of_packet: last, ..adaptive::RxWriteBack::default() };
                back.emit(form)
            }
        }
    }
}

/// Receive ring with its memory and registers, and the slot that the test fills next as the card.
struct RxRingFixture {
    desk: TestHal,
    ring: RxRing<AnyRxLayout>,
    layout: AnyRxLayout,
    slots: u16,
    head: u32,
}

impl RxRingFixture {
    fn new(layout: AnyRxLayout, slots: u16, batch: u16) -> Self {
        let mut desk = TestHal::default();
        let mut ring = RxRing::new(&mut desk, layout, slots, batch, TAIL).unwrap();
        ring.start(&mut desk);
        Self { desk, ring, layout, slots, head: 0 }
    }

    fn write_back(&mut self, slot: u32, raw: &RawRxDescriptor) {
        let size = self.layout.size();
        self.desk.dma_write(self.ring.place().0 + u64::from(slot) * size as u64, &raw[..size]);
    }

    /// Puts `mark` at the front of the next slot's buffer, and completes the slot's descriptor with a length, as the
    /// card.
    fn complete(&mut self, mark: u8, length: u16, last: bool) {
        let mut buffer = [0; 8];
        let at = self.ring.place().0 + u64::from(self.head) * self.layout.size() as u64;
        self.desk.dma_read(at, &mut buffer);
        self.desk.dma_write(u64::from_le_bytes(buffer), &[mark; 60]);
        self.write_back(self.head, &self.layout.completed(length, last));
        self.head = after(self.head, 1, self.slots.into());
    }

    fn burst(&mut self, most: usize, take: impl FnMut(&mut RxFrame<'_, TestHal, AnyRxLayout>)) -> usize {
        self.ring.receive_burst(&mut self.desk, most, take)
    }

    /// Receives a burst of frames. Returns each frame's length and mark.
    fn take(&mut self, most: usize) -> Vec<Result<(usize, u8), RxError>> {
        let (mut frames, mut buffer) = (Vec::new(), vec![0; 20_000]);
        let found = self.burst(most, |frame| {
            frames.push(frame.copy_to(&mut buffer).map(|length| (length, buffer[0])));
        });
        assert_eq!(found, frames.len());
        frames
    }

    /// Returns the number of slots that the card may fill.
    fn posted(&mut self) -> u32 {
        (self.desk.read(TAIL) + u32::from(self.slots) - self.head) % u32::from(self.slots)
    }
}

#[test]
fn burst_of_received_frames_crosses_the_ring_end_in_order() {
    for layout in LAYOUTS {
        let mut receiver = RxRingFixture::new(layout, SLOTS, BATCH);
        let mut mark = 0_u8;
        for round in 0..50 {
            let count = [40, 32, 7][round % 3];
            let expected: Vec<_> = (0..count).map(|frame| Ok((60, mark.wrapping_add(frame)))).collect();
            (0..count).for_each(|frame| receiver.complete(mark.wrapping_add(frame), 60, true));
            assert_eq!(receiver.take(100), expected, "{layout:?}, round {round}");
            mark = mark.wrapping_add(count);
        }
        let counters = receiver.ring.counters();
        assert_eq!((counters.frames, counters.bytes, counters.errors), (1_336, 1_336 * 60, 0));
    }
}

#[test]
fn receive_burst_returns_no_more_frames_than_requested() {
    for layout in LAYOUTS {
        let mut receiver = RxRingFixture::new(layout, SLOTS, BATCH);
        (0..40).for_each(|mark| receiver.complete(mark, 60, true));
        for first in [0, 10, 20, 30] {
            let expected: Vec<_> = (first..first + 10).map(|mark| Ok((60, mark))).collect();
            assert_eq!(receiver.take(10), expected);
        }
        assert_eq!((receiver.take(10), receiver.take(0)), (vec![], vec![]));
    }
}

#[test]
fn receive_completion_of_a_slot_not_posted_is_ignored() {
    for layout in LAYOUTS {
        let mut receiver = RxRingFixture::new(layout, SLOTS, BATCH);
        for slot in 0..SLOTS.into() {
            receiver.write_back(slot, &layout.completed(60, true));
        }
        // The driver writes the last slot when it posts it, in mid-burst.
        assert_eq!(receiver.take(1_000).len(), usize::from(SLOTS) - 1, "{layout:?}");
    }
}

#[test]
fn receive_completion_waits_for_the_slots_before_it() {
    for layout in LAYOUTS {
        let mut receiver = RxRingFixture::new(layout, SLOTS, BATCH);
        receiver.write_back(3, &layout.completed(60, true));
        assert_eq!(receiver.take(32), []);
        (0..3).for_each(|mark| receiver.complete(mark, 60, true));
        assert_eq!(receiver.take(32).len(), 4);
    }
}

#[test]
fn frame_of_several_slots_keeps_its_order_in_a_receive_burst() {
    for layout in LAYOUTS {
        let mut receiver = RxRingFixture::new(layout, SLOTS, BATCH);
        // From the second round on, the frame crosses the ring's end at other slots.
        for round in 0..30 {
            receiver.complete(1, 60, true);
            receiver.complete(2, 2048, false);
            receiver.complete(3, 2048, false);
            assert_eq!(receiver.take(32), [Ok((60, 1))], "{layout:?}, round {round}");
            receiver.complete(4, 10, true);
            receiver.complete(5, 60, true);
            assert_eq!(receiver.take(32), [Ok((4_106, 2)), Ok((60, 5))], "{layout:?}, round {round}");
        }
    }
}

#[test]
fn malformed_frame_keeps_other_frames_of_its_receive_burst() {
    for layout in LAYOUTS {
        let mut receiver = RxRingFixture::new(layout, SLOTS, BATCH);
        receiver.complete(1, 60, true);
        receiver.complete(2, 2049, true);
        receiver.complete(3, 60, true);
        receiver.complete(4, 0x3fff, false);
        receiver.complete(5, 60, true);
        receiver.complete(6, 60, true);
        let lost = Err(RxError::Malformed);
        assert_eq!(receiver.take(32), [Ok((60, 1)), lost, Ok((60, 3)), lost, Ok((60, 6))], "{layout:?}");
        let counters = receiver.ring.counters();
        assert_eq!((counters.frames, counters.errors, counters.buffers), (3, 2, 6));
    }
}

#[test]
fn received_frame_without_an_end_descriptor_is_malformed() {
    for layout in LAYOUTS {
        let mut receiver = RxRingFixture::new(layout, 32, 32);
        (0..MAX_PIECES).for_each(|_| receiver.complete(1, 2048, false));
        receiver.complete(2, 60, true);
        assert_eq!(receiver.take(32), [Err(RxError::Malformed), Ok((60, 2))], "{layout:?}");
    }
}

#[test]
fn received_frame_that_is_not_copied_frees_its_slot() {
    for layout in LAYOUTS {
        let mut receiver = RxRingFixture::new(layout, SLOTS, BATCH);
        for _ in 0..10 {
            (0..30).for_each(|mark| receiver.complete(mark, 60, true));
            assert_eq!(receiver.burst(32, |_| {}), 30);
        }
        receiver.complete(1, 60, true);
        let mut short = [0; 59];
        receiver.burst(32, |frame| assert_eq!(frame.copy_to(&mut short), Err(RxError::TooLong(60))));
        assert_eq!((receiver.ring.counters().frames, receiver.ring.counters().errors), (300, 1));
    }
}

#[test]
fn smallest_receive_ring_is_refilled_while_bursts_are_received() {
    for layout in LAYOUTS {
        let mut receiver = RxRingFixture::new(layout, 32, 32);
        for round in 0..100 {
            assert!((15..32).contains(&receiver.posted()), "{layout:?}, round {round}");
            (0..receiver.posted()).for_each(|mark| receiver.complete(mark as u8, 60, true));
            assert!(receiver.take(32).len() >= 15);
        }
    }
}

/// Action of the hostile card, or of the driver's owner.
#[derive(Debug, Clone)]
enum RxRingAction {
    /// The card completes the descriptor of any slot, or writes noise to it.
    WriteBack {
        slot: u32,
        length: u16,
        last: bool,
        noise: Option<[u8; 32]>,
    },
    /// The driver's owner receives a burst into a buffer of `size` bytes, and copies one of every `of` frames.
    Receive {
        most: usize,
        size: usize,
        of: usize,
    },
    Refill,
}

fn act() -> impl Strategy<Value = RxRingAction> {
    let lie = prop_oneof![4 => Just(None), 1 => any::<[u8; 32]>().prop_map(Some)];
    let length = prop_oneof![4 => 0..=2048_u16, 1 => any::<u16>()];
    prop_oneof![
        20 => (0..64_u32, length, any::<bool>(), lie)
            .prop_map(|(slot, length, last, noise)| RxRingAction::WriteBack { slot, length, last, noise }),
        4 => (0..100_usize, 0..5_000_usize, 1..4_usize)
            .prop_map(|(most, size, of)| RxRingAction::Receive { most, size, of }),
        1 => Just(RxRingAction::Refill),
    ]
}

proptest! {
    /// Tests a hostile card: the test's memory panics at an access of the receive ring outside of an allocation.
    #[test]
    fn hostile_card_keeps_receive_ring_within_dma_memory(
        layout in 0..LAYOUTS.len(),
        batch in 1..=32_u16,
        acts in proptest::collection::vec(act(), 1..200),
    ) {
        let layout = LAYOUTS[layout];
        let mut receiver = RxRingFixture::new(layout, SLOTS, batch);
        for act in acts {
            match act {
                RxRingAction::WriteBack { slot, length, last, noise } => {
                    let back = noise.unwrap_or_else(|| layout.completed(length, last));
                    receiver.write_back(slot, &back);
                }
                RxRingAction::Receive { most, size, of } => {
                    let (mut buffer, mut frames) = (vec![0; size], 0);
                    let found = receiver.burst(most, |frame| {
                        frames += 1;
                        if frames % of == 0 && let Ok(length) = frame.copy_to(&mut buffer) {
                            assert!(length <= size && length == frame.length());
                            assert!(length <= MAX_PIECES * BUFFER);
                        }
                    });
                    assert!(found <= most && found == frames);
                }
                RxRingAction::Refill => receiver.ring.refill(&mut receiver.desk),
            }
            assert!(receiver.desk.read(TAIL) < u32::from(SLOTS));
            assert!(receiver.ring.posted() < u32::from(SLOTS));
        }
    }
}
