//! Tests packed rings of which the front end has returned a chain between two devices, as QEMU does with a transmit ring
//! when a connection ends.

use crate::crash::{
    CheckedDriver, CrashMoments, CrashScenario, DroppingFrontEnd, MortalMemory, NEVER, OWNER, START, crash,
    open, serve,
};
use crate::memory::{DESCRIPTORS, DEVICE, DRIVER, GuestMemory};
use crate::queue::ADDRESSES;
use crate::record::scenarios;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::{collection, option};
use virtio::layout::{RingAddresses, RingFeatures};
use virtio::packed::dropped::MOST_DROPPED_SLOTS;
use virtio::packed::record::{FirstPosition, WORDS};
use virtio::packed::{PackedLayout, PackedPosition, PackedQueue};

const SINGLE: CrashScenario = CrashScenario {
    size: 6,
    features: RingFeatures { indirect: false, event_index: false, in_order: false },
    chains: (&[1], false),
    batches: &[5],
    drops: 1,
};

/// Returns the memory of a device that has returned ten chains of a ring of six, and whose driver has filled the ring again.
fn wrapped(driver: &mut CheckedDriver) -> MortalMemory<'_> {
    let (memory, record) = (GuestMemory::new(), [0; WORDS]);
    let mut memory = MortalMemory { memory, record, driver, dies: NEVER, acts: NEVER, accesses: 0 };
    let (mut queue, _) = open(&SINGLE, &mut memory, (START, OWNER));
    for _ in 0..2 {
        memory.driver.add(&mut memory.memory, 5);
        serve(&mut queue, &mut memory, &SINGLE);
        memory.driver.collect(&mut memory.memory);
    }
    assert_eq!(queue.base(), PackedPosition::from_bits(4));
    memory.driver.fill(&mut memory.memory);
    memory
}

#[test]
fn chain_returned_by_the_front_end_strands_no_other() {
    let mut driver = CheckedDriver::new(6, false, SINGLE.chains);
    let mut memory = wrapped(&mut driver);
    let mut front_end = DroppingFrontEnd { position: PackedPosition::START, drops: 1 };
    front_end.lose_device(&mut memory.memory, 6);
    assert_eq!(front_end.position, PackedPosition::from_bits(0x8001));
    let told = FirstPosition::GivenForTransmit(front_end.position);
    let (mut queue, resumed) = open(&SINGLE, &mut memory, (told, OWNER));
    assert!(resumed);
    assert_eq!(queue.base(), front_end.position);
    serve(&mut queue, &mut memory, &SINGLE);
    memory.driver.collect(&mut memory.memory);
    assert_eq!((driver.back, driver.next), (16, 16));
}

/// Another device has moved the ring, such as that of another host, and the record of this one is older. A position that is up to
/// two slots behind the first one could be QEMU's.
#[test]
fn position_of_another_device_is_not_overruled() {
    let mut driver = CheckedDriver::new(6, false, SINGLE.chains);
    let mut memory = wrapped(&mut driver);
    let record = memory.record;
    for told in [0x8003, 0x8004, 0x8005] {
        memory.record = record;
        // The first slot is marked used, as in any ring that has been used. Nothing shows a list of several slots.
        memory.memory.store(DESCRIPTORS + 14, &0x8080_u16.to_le_bytes());
        let told = PackedPosition::from_bits(told);
        let first = FirstPosition::GivenForTransmit(told);
        let (queue, resumed) = open(&SINGLE, &mut memory, (first, OWNER));
        assert_eq!((queue.base(), resumed), (told, false));
    }
}

/// No front end returns a buffer of a receive ring.
#[test]
fn receive_ring_with_another_first_position_starts_as_told() {
    let mut driver = CheckedDriver::new(6, false, SINGLE.chains);
    let mut memory = wrapped(&mut driver);
    let mut front_end = DroppingFrontEnd { position: PackedPosition::START, drops: 1 };
    front_end.lose_device(&mut memory.memory, 6);
    let told = FirstPosition::Given(front_end.position);
    let (queue, resumed) = open(&SINGLE, &mut memory, (told, OWNER));
    assert_eq!((queue.base(), resumed), (front_end.position, false));
}

/// The chains are returned without a pause, so a hostile ring may not have tens of thousands of them.
#[test]
fn more_slots_than_qemu_has_in_a_ring_are_not_returned() {
    const RING: u64 = 0x1_0000;
    let (addresses, told) =
        (RingAddresses { descriptors: RING, ..ADDRESSES }, PackedPosition::from_bits(0x8001));
    let layout = PackedLayout::new(2_000, addresses).unwrap();
    for (at, is_continued) in [(2_000 - MOST_DROPPED_SLOTS + 1, true), (2_000 - MOST_DROPPED_SLOTS, false)] {
        let mut driver = CheckedDriver::new(6, false, SINGLE.chains);
        let (memory, mut record) = (GuestMemory::new(), [0; WORDS]);
        let position = u64::from(at);
        record[0] = position | position << 16 | 3 << 48;
        let start = u64::from(PackedPosition::START.bits());
        record[1..8].copy_from_slice(&[start, 2_000, OWNER.memory, OWNER.features, RING, DRIVER, DEVICE]);
        let mut memory =
            MortalMemory { memory, record, driver: &mut driver, dies: NEVER, acts: NEVER, accesses: 0 };
        // The first slot is used in the second round, and those from the device's position on are available in the first.
        memory.memory.store(RING + 14, &0x8080_u16.to_le_bytes());
        (position..2_000)
            .for_each(|slot| memory.memory.store(RING + 16 * slot + 14, &0x8000_u16.to_le_bytes()));
        memory.memory.store(DEVICE, &[1, 0, 1, 0]);
        let first = FirstPosition::GivenForTransmit(told);
        let (queue, continued) =
            PackedQueue::open(layout, SINGLE.features, (first, OWNER), &mut memory).unwrap();
        assert_eq!((queue.base(), continued), (told, is_continued));
        assert_eq!(memory.memory.writes.is_empty(), !is_continued);
    }
}

/// Transmit rings of different shapes whose front end returns a chain: QEMU once, another one after each death.
fn dropped_scenarios() -> impl Iterator<Item = CrashScenario> {
    let read = |scenario: &CrashScenario| !scenario.chains.1;
    let single = scenarios().into_iter().filter(|scenario| scenario.size == 4);
    let single = single.map(|scenario| CrashScenario { chains: (&[1], false), drops: 9, ..scenario });
    scenarios().into_iter().filter(read).map(|scenario| CrashScenario { drops: 1, ..scenario }).chain(single)
}

#[test]
fn dropped_ring_survives_a_crash_at_any_access() {
    let mut crashes = 0;
    for scenario in dropped_scenarios() {
        for dies in 0_usize.. {
            let acts = (dies.saturating_sub(24)..dies).chain([NEVER]);
            let died = acts.fold(false, |died, acts| {
                crashes += 2;
                [false, true].iter().fold(died, |died, between| {
                    let moments =
                        CrashMoments { dies: [dies, NEVER], acts: [acts, NEVER], between: *between };
                    crash(&scenario, moments) | died
                })
            });
            if !died {
                break;
            }
        }
    }
    assert!(crashes > 40_000, "{crashes}");
}

#[test]
fn dropped_ring_survives_a_crash_of_the_successor() {
    for scenario in dropped_scenarios() {
        for first in 0.. {
            let moments = (0..60).flat_map(|second| {
                [NEVER, second / 2, second].into_iter().map(move |acts| CrashMoments {
                    dies: [first, second],
                    acts: [NEVER, acts],
                    between: second % 2 == 0,
                })
            });
            if !moments.fold(false, |died, moments| crash(&scenario, moments) | died) {
                break;
            }
        }
    }
}

proptest! {
    #[test]
    fn hostile_dropped_ring_costs_at_most_one_ring(
        changes in collection::vec((0..6_u64, select(vec![0, 1, 0x80, 0x81, 0x8000, 0x8001, 0x8080_u16])), 0..5),
        told in (0..7_u16, any::<bool>()),
        damage in option::of(any::<u64>()),
    ) {
        let mut driver = CheckedDriver::new(6, false, SINGLE.chains);
        let mut memory = wrapped(&mut driver);
        DroppingFrontEnd { position: PackedPosition::START, drops: 1 }.lose_device(&mut memory.memory, 6);
        // The guest changes flags, and the front end gives any position.
        for (slot, flags) in changes {
            memory.memory.store(DESCRIPTORS + 16 * slot + 14, &flags.to_le_bytes());
        }
        memory.record[0] = damage.map_or(memory.record[0], |state| state | 1 << 48);
        let told = FirstPosition::GivenForTransmit(PackedPosition::from_bits(told.0 | u16::from(told.1) << 15));
        memory.memory.forget();
        let layout = PackedLayout::new(6, ADDRESSES).unwrap();
        if let Ok((queue, _)) = PackedQueue::open(layout, SINGLE.features, (told, OWNER), &mut memory) {
            prop_assert!(queue.base().index() < 6 && queue.fetched() <= 6);
        }
        prop_assert!(memory.memory.reads <= 30 && memory.memory.writes.len() <= 12);
    }
}
