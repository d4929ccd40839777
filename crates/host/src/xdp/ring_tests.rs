//! Tests a ring whose other user may publish any index.

use super::entries::XdpDescriptor;
use super::memory::XdpMemoryMapping;
use super::ring::{BrokenXdpRing, RingConsumerSide, RingProducerSide, XdpRing, XdpRingLayout};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const LAYOUT: XdpRingLayout = XdpRingLayout { producer: 0, consumer: 64, flags: 128, entries: 192, size: 8 };

fn memory() -> Arc<XdpMemoryMapping> {
    XdpMemoryMapping::anonymous(LAYOUT.len::<u64>()).unwrap()
}

fn set(memory: &XdpMemoryMapping, offset: usize, value: u32) {
    memory.word(offset).unwrap().store(value, Ordering::Release);
}

fn get(memory: &XdpMemoryMapping, offset: usize) -> u32 {
    memory.word(offset).unwrap().load(Ordering::Acquire)
}

#[test]
fn xdp_ring_entries_are_read_in_order_across_wraps() {
    let memory = memory();
    let mut from = XdpRing::<u64, RingProducerSide>::new(memory.clone(), LAYOUT).unwrap();
    let mut to = XdpRing::<u64, RingConsumerSide>::new(memory, LAYOUT).unwrap();
    let (mut next, mut expected) = (0, 0);
    for burst in (0..1000).map(|round| round % 9) {
        assert_eq!(from.room(), Ok(8), "everything was read");
        let pushed = (0..burst).filter(|n| from.push(next + n)).count() as u64;
        assert_eq!(pushed, burst.min(8));
        assert_eq!(to.available(), Ok(0), "no entry is visible before it is published");
        from.publish();
        assert_eq!(to.available(), Ok(pushed as u32));
        while let Some(entry) = to.pop() {
            assert_eq!(entry, expected);
            expected += 1;
        }
        assert_eq!(from.unread(), Ok(pushed as u32), "no entry was released yet");
        to.release();
        next += pushed;
    }
}

#[test]
fn full_xdp_ring_refuses_entries_and_loses_none() {
    let memory = memory();
    let mut ring = XdpRing::<u64, RingProducerSide>::new(memory.clone(), LAYOUT).unwrap();
    assert_eq!((0..20).filter(|n| ring.push(*n)).count(), 8);
    ring.publish();
    assert_eq!((ring.room(), ring.push(99), get(&memory, LAYOUT.producer)), (Ok(0), false, 8));
    set(&memory, LAYOUT.consumer, 3);
    assert_eq!((ring.room(), ring.unread()), (Ok(3), Ok(5)));
}

#[test]
fn xdp_ring_outside_its_memory_is_refused() {
    let with =
        |layout: XdpRingLayout| XdpRing::<XdpDescriptor, RingConsumerSide>::new(memory(), layout).is_some();
    assert!(with(XdpRingLayout { size: 4, ..LAYOUT }));
    let bad = [
        XdpRingLayout { size: 8, ..LAYOUT },
        XdpRingLayout { size: 3, ..LAYOUT },
        XdpRingLayout { size: 0, ..LAYOUT },
        XdpRingLayout { size: 1 << 31, ..LAYOUT },
        XdpRingLayout { size: 4, entries: 196, ..LAYOUT },
        XdpRingLayout { size: 4, entries: usize::MAX - 7, ..LAYOUT },
        XdpRingLayout { size: 4, producer: 4096, ..LAYOUT },
        XdpRingLayout { size: 4, consumer: 3, ..LAYOUT },
        XdpRingLayout { size: 4, flags: usize::MAX, ..LAYOUT },
    ];
    assert!(bad.into_iter().all(|layout| !with(layout)));
}

proptest! {
    /// Checks a ring with any index that the kernel publishes: the index is within the ring, or the ring is
    /// broken and returns no entry.
    #[test]
    fn producer_index_beyond_an_xdp_ring_is_detected(
        steps in proptest::collection::vec((any::<u32>(), 0_u32..9), 1..50),
    ) {
        let memory = memory();
        let mut reader = XdpRing::<u64, RingConsumerSide>::new(memory.clone(), LAYOUT).unwrap();
        let mut at = 0_u32;
        for (lie, honest) in steps {
            set(&memory, LAYOUT.producer, lie);
            match reader.available() {
                Ok(count) => prop_assert!(count <= 8 && lie == at.wrapping_add(count)),
                Err(BrokenXdpRing) => {
                    prop_assert!(lie.wrapping_sub(at) > 8);
                    prop_assert_eq!(reader.pop(), None);
                    set(&memory, LAYOUT.producer, at.wrapping_add(honest));
                    prop_assert_eq!(reader.available(), Ok(honest));
                }
            }
            let mut taken = 0;
            while reader.pop().is_some() {
                taken += 1;
            }
            prop_assert!(taken <= 8);
            reader.release();
            at = get(&memory, LAYOUT.consumer);
        }
    }

    #[test]
    fn xdp_consumer_index_ahead_of_the_producer_is_detected(
        lies in proptest::collection::vec(any::<u32>(), 1..50),
    ) {
        let memory = memory();
        let mut writer = XdpRing::<u64, RingProducerSide>::new(memory.clone(), LAYOUT).unwrap();
        for lie in lies {
            set(&memory, LAYOUT.consumer, lie);
            let at = get(&memory, LAYOUT.producer);
            match writer.room() {
                Ok(room) => prop_assert_eq!(room, 8 - at.wrapping_sub(lie)),
                Err(BrokenXdpRing) => prop_assert!(at.wrapping_sub(lie) > 8),
            }
            let pushed = (0..20).filter(|n| writer.push(*n)).count();
            prop_assert!(pushed <= 8);
            writer.publish();
        }
    }
}
