//! Tests the rules for the driver's side of both rings: on the bytes in memory, and against devices at fault.

use crate::driver::{DriverMemory, TestDriver};
use crate::memory::{DESCRIPTORS, DEVICE, DRIVER, GuestMemory};
use crate::queue::{ADDRESSES, EitherQueue};
use proptest::prelude::*;
use virtio::chain::ChainBurst;
use virtio::descriptor::{PackedDescriptor, flag};
use virtio::driver::{DriverBuffer, DriverRing, DriverRingError, InterruptRequest, ReturnedChain};
use virtio::layout::RingFeatures;

const SIZE: u16 = 8;
const BUFFER: DriverBuffer = DriverBuffer { address: 0x9000, length: 60, writable: false };

fn ring(is_packed: bool, features: RingFeatures) -> DriverRing {
    DriverRing::new(is_packed, SIZE, ADDRESSES, features).unwrap()
}

/// Adds `count` chains of one buffer and publishes them.
fn send(ring: &mut DriverRing, memory: &mut GuestMemory, count: u16) {
    for _ in 0..count {
        let next = ring.next_id();
        assert!(next.is_some());
        assert_eq!(ring.add(&mut DriverMemory(memory), &[BUFFER]), Ok(next));
    }
    ring.publish(&mut DriverMemory(memory)).unwrap();
}

/// Makes a device fetch and return all available chains, with `written` bytes each.
fn return_all(queue: &mut EitherQueue, memory: &mut GuestMemory, written: u32) {
    let mut burst = ChainBurst::default();
    while queue.fetch(memory, &mut burst, 32).unwrap() > 0 {
        let used: Vec<_> = burst.chains().iter().map(|chain| chain.used(written)).collect();
        queue.complete(memory, &used).unwrap();
    }
}

fn collect(ring: &mut DriverRing, memory: &mut GuestMemory) -> Result<Vec<u16>, DriverRingError> {
    let mut returned = [ReturnedChain::default(); 32];
    let count = ring.collect(&mut DriverMemory(memory), &mut returned)?;
    Ok(returned[..count].iter().map(|chain| chain.id).collect())
}

#[test]
fn added_chains_are_invisible_until_they_are_published() {
    for is_packed in [false, true] {
        let (mut memory, mut burst) = (GuestMemory::new(), ChainBurst::default());
        let (mut driver, mut queue) = (
            TestDriver::new(is_packed, SIZE, false),
            EitherQueue::new(is_packed, SIZE, RingFeatures::default()),
        );
        for lap in 0..5 {
            for token in 0..3 {
                assert!(driver.add(&mut memory, token, &[(0x9000, 60, false); 2], false));
                assert_eq!(queue.fetch(&mut memory, &mut burst, 32), Ok(0), "packed {is_packed}, lap {lap}");
            }
            driver.publish(&mut memory);
            return_all(&mut queue, &mut memory, 0);
            assert_eq!(driver.collect(&mut memory).len(), 3);
        }
    }
}

#[test]
fn full_ring_takes_no_chain_and_a_chain_needs_buffers() {
    for is_packed in [false, true] {
        let (mut memory, mut ring) = (GuestMemory::new(), ring(is_packed, RingFeatures::default()));
        assert_eq!(ring.add(&mut DriverMemory(&mut memory), &[]), Ok(None));
        send(&mut ring, &mut memory, SIZE - 1);
        assert_eq!((ring.free(), ring.outstanding()), (1, SIZE - 1));
        assert_eq!(ring.add(&mut DriverMemory(&mut memory), &[BUFFER; 2]), Ok(None));
        send(&mut ring, &mut memory, 1);
        assert_eq!(ring.add(&mut DriverMemory(&mut memory), &[BUFFER]), Ok(None));
        assert_eq!(ring.next_id(), None);
    }
}

#[test]
fn driver_publishes_a_burst_of_packed_chains_by_its_first_flags() {
    let (mut memory, mut ring) = (GuestMemory::new(), ring(true, RingFeatures::default()));
    for _ in 0..3 {
        ring.add(&mut DriverMemory(&mut memory), &[BUFFER]).unwrap();
    }
    let flags = |memory: &mut GuestMemory, slot: u64| memory.load_u16(DESCRIPTORS + 16 * slot + 14);
    assert_eq!([0, 1, 2].map(|slot| flags(&mut memory, slot)), [0, flag::AVAIL, flag::AVAIL]);
    ring.publish(&mut DriverMemory(&mut memory)).unwrap();
    assert_eq!(flags(&mut memory, 0), flag::AVAIL);
}

#[test]
fn collect_returns_no_more_chains_than_it_has_room_for() {
    for (is_packed, in_order) in [(false, false), (false, true), (true, false), (true, true)] {
        let features = RingFeatures { in_order, ..RingFeatures::default() };
        let (mut memory, mut ring) = (GuestMemory::new(), ring(is_packed, features));
        let mut queue = EitherQueue::new(is_packed, SIZE, features);
        for lap in 0..4 {
            send(&mut ring, &mut memory, 7);
            return_all(&mut queue, &mut memory, 0);
            let mut found = Vec::new();
            let mut room = [ReturnedChain::default(); 3];
            loop {
                let count = ring.collect(&mut DriverMemory(&mut memory), &mut room).unwrap();
                found.extend(room[..count].iter().map(|chain| chain.id));
                if count == 0 {
                    break;
                }
            }
            let wanted: Vec<u16> = (0..7).map(|nth| (7 * lap + nth) % SIZE).collect();
            assert_eq!(found, wanted, "packed {is_packed}, in order {in_order}, lap {lap}");
        }
    }
}

#[test]
fn device_gets_a_kick_only_if_it_wants_one() {
    for (is_packed, event_index) in [(false, false), (false, true), (true, false), (true, true)] {
        let features = RingFeatures { event_index, ..RingFeatures::default() };
        let (mut memory, mut ring) = (GuestMemory::new(), ring(is_packed, features));
        let mut queue = EitherQueue::new(is_packed, SIZE, features);
        for lap in 0..9 {
            let context = format!("packed {is_packed}, event index {event_index}, lap {lap}");
            let needs = |memory: &mut GuestMemory, ring: &mut DriverRing| {
                ring.needs_kick(&mut DriverMemory(memory)).unwrap()
            };
            queue.enable_notifications(&mut memory).unwrap();
            assert!(!needs(&mut memory, &mut ring), "nothing was published: {context}");
            send(&mut ring, &mut memory, 3);
            assert!(needs(&mut memory, &mut ring), "{context}");
            return_all(&mut queue, &mut memory, 0);
            assert_eq!(collect(&mut ring, &mut memory).unwrap().len(), 3);
            queue.disable_notifications(&mut memory).unwrap();
            send(&mut ring, &mut memory, 2);
            assert!(!needs(&mut memory, &mut ring), "{context}");
            return_all(&mut queue, &mut memory, 0);
            collect(&mut ring, &mut memory).unwrap();
        }
    }
}

#[test]
fn device_interrupts_a_driver_as_it_requests() {
    for (is_packed, event_index) in [(false, false), (false, true), (true, false), (true, true)] {
        let features = RingFeatures { event_index, ..RingFeatures::default() };
        let (mut memory, mut ring) = (GuestMemory::new(), ring(is_packed, features));
        let mut queue = EitherQueue::new(is_packed, SIZE, features);
        let mut pass = |ring: &mut DriverRing, memory: &mut GuestMemory, count, request| {
            ring.request_interrupts(&mut DriverMemory(memory), request).unwrap();
            send(ring, memory, count);
            return_all(&mut queue, memory, 0);
            let interrupts = queue.needs_interrupt(memory).unwrap();
            collect(ring, memory).unwrap();
            interrupts
        };
        // The first decision is always an interrupt.
        pass(&mut ring, &mut memory, 1, InterruptRequest::None);
        for lap in 0..9 {
            let context = format!("packed {is_packed}, event index {event_index}, lap {lap}");
            assert!(!pass(&mut ring, &mut memory, 3, InterruptRequest::None), "{context}");
            assert!(pass(&mut ring, &mut memory, 1, InterruptRequest::Next), "{context}");
            assert_eq!(
                pass(&mut ring, &mut memory, 2, InterruptRequest::After(2)),
                !event_index,
                "{context}"
            );
            assert!(pass(&mut ring, &mut memory, 3, InterruptRequest::After(2)), "{context}");
        }
    }
}

#[test]
fn chain_that_the_device_does_not_have_is_an_error() {
    let (mut memory, mut split) = (GuestMemory::new(), ring(false, RingFeatures::default()));
    send(&mut split, &mut memory, 2);
    memory.store(DEVICE + 2, &[3, 0]);
    let error = DriverRingError::UsedIndex { returned: 3, outstanding: 2 };
    assert_eq!(collect(&mut split, &mut memory), Err(error));
    for id in [5_u32, 0x1_0000] {
        memory.store(DEVICE + 2, &[1, 0]);
        memory.store(DEVICE + 4, &id.to_le_bytes());
        assert_eq!(collect(&mut split, &mut memory), Err(DriverRingError::UnknownChain { id }));
    }
    let (mut memory, mut packed) = (GuestMemory::new(), ring(true, RingFeatures::default()));
    send(&mut packed, &mut memory, 2);
    let used = PackedDescriptor { address: 0, length: 0, id: 5, flags: flag::AVAIL | flag::USED };
    memory.store(DESCRIPTORS, &used.emit());
    assert_eq!(collect(&mut packed, &mut memory), Err(DriverRingError::UnknownChain { id: 5 }));
}

proptest! {
    /// A device may write anything at any time: the driver returns an error, or chains that the device had.
    #[test]
    fn driver_survives_any_bytes_of_its_device(
        is_packed: bool, in_order: bool, stores in proptest::collection::vec((0_u64..160, any::<u16>()), 1..200),
    ) {
        let features = RingFeatures { in_order, ..RingFeatures::default() };
        let (mut memory, mut ring) = (GuestMemory::new(), ring(is_packed, features));
        let mut sent = Vec::new();
        for (place, value) in stores {
            let address = if place < 128 { DESCRIPTORS + place / 2 * 2 } else { DEVICE + (place - 128) * 2 };
            memory.store(address, &value.to_le_bytes());
            if let Some(id) = ring.add(&mut DriverMemory(&mut memory), &[BUFFER]).unwrap() {
                sent.push(id);
            }
            ring.publish(&mut DriverMemory(&mut memory)).unwrap();
            let Ok(returned) = collect(&mut ring, &mut memory) else { break };
            for id in returned {
                let place = sent.iter().position(|sent| *sent == id);
                prop_assert!(place.is_some(), "{id} was not sent");
                sent.swap_remove(place.unwrap_or_default());
            }
        }
    }
}

#[test]
fn polling_split_driver_sets_the_no_interrupt_flag() {
    let mut memory = GuestMemory::new();
    let ring = ring(false, RingFeatures::default());
    ring.request_interrupts(&mut DriverMemory(&mut memory), InterruptRequest::None).unwrap();
    assert_eq!(memory.load_u16(DRIVER), 1);
}
