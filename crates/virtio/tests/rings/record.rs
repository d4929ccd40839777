//! Tests the record of a packed ring: a device that dies at any of its accesses, and a successor that continues the ring.

use crate::crash::{
    CheckedDriver, CrashMoments, CrashScenario, MortalMemory, NEVER, OWNER, START, crash, open, serve,
};
use crate::memory::{DEVICE, GuestMemory, SIZE};
use crate::queue::ADDRESSES;
use virtio::layout::{RingAddresses, RingFeatures};
use virtio::packed::record::{self, FirstPosition, RingOwner, WORDS};
use virtio::packed::{PackedLayout, PackedPosition, PackedQueue};

/// Word of a record that holds the state.
const STATE: usize = 0;
/// Flag of the state: the device writes a position that is not zero to its event structure.
const WRITES_POSITION: u64 = 1 << 49;

/// Rings of different shapes.
pub(crate) fn scenarios() -> Vec<CrashScenario> {
    let features = |in_order, event_index| RingFeatures { indirect: false, event_index, in_order };
    let mut all = Vec::new();
    for (shapes, size, writable) in
        [(&[1][..], 4, true), (&[1, 2], 5, false), (&[1, 2], 5, true), (&[3, 1, 1], 7, false)]
    {
        for (in_order, event_index) in [(false, false), (false, true), (true, false)] {
            for batches in [&[32][..], &[1, 2]] {
                let (features, chains) = (features(in_order, event_index), (shapes, writable));
                all.push(CrashScenario { size, features, chains, batches, drops: 0 });
            }
        }
    }
    all
}

#[test]
fn ring_survives_a_crash_at_any_access() {
    let mut crashes = 0;
    for scenario in scenarios() {
        for dies in 0_usize.. {
            let acts = (dies.saturating_sub(24)..dies).chain([NEVER]);
            let mut died = false;
            for acts in acts {
                for between in [false, true] {
                    died |=
                        crash(&scenario, CrashMoments { dies: [dies, NEVER], acts: [acts, NEVER], between });
                    crashes += 1;
                }
            }
            if !died {
                break;
            }
        }
    }
    assert!(crashes > 50_000, "{crashes}");
}

#[test]
fn ring_survives_a_crash_of_the_successor_at_any_access() {
    for scenario in scenarios() {
        for first in 0.. {
            let died = (0..40).fold(false, |died, second| {
                let moments = CrashMoments { dies: [first, second], acts: [NEVER; 2], between: false };
                crash(&scenario, moments) | died
            });
            if !died {
                break;
            }
        }
    }
}

/// Returns a scenario, and the memory and record of a device that has returned one round and a half.
fn half_used<'a>(driver: &'a mut CheckedDriver, scenario: &CrashScenario) -> (PackedQueue, MortalMemory<'a>) {
    let (memory, record) = (GuestMemory::new(), [0; WORDS]);
    let mut memory = MortalMemory { memory, record, driver, dies: NEVER, acts: NEVER, accesses: 0 };
    let (mut queue, resumed) = open(scenario, &mut memory, (START, OWNER));
    assert!(!resumed);
    for _ in 0..2 {
        memory.driver.fill(&mut memory.memory);
        serve(&mut queue, &mut memory, scenario);
        memory.driver.collect(&mut memory.memory);
    }
    (queue, memory)
}

const USUAL: CrashScenario = CrashScenario {
    size: 6,
    features: RingFeatures { indirect: false, event_index: false, in_order: false },
    chains: (&[4], false),
    batches: &[32],
    drops: 0,
};

#[test]
fn record_of_another_ring_is_not_used() {
    let mut driver = CheckedDriver::new(6, false, USUAL.chains);
    let (queue, mut memory) = half_used(&mut driver, &USUAL);
    let position = queue.base();
    assert_eq!((position.index(), position.wrap()), (2, false));
    let record = memory.record;
    let other = PackedPosition::from_bits(0x8001);
    let elsewhere = RingAddresses { driver: ADDRESSES.driver + 16, ..ADDRESSES };
    let layout = |size, addresses| PackedLayout::new(size, addresses).unwrap();
    for (layout, first, owner, same) in [
        (layout(6, ADDRESSES), START, OWNER, true),
        (layout(6, ADDRESSES), FirstPosition::Paused(other), OWNER, true),
        (layout(7, ADDRESSES), START, OWNER, false),
        (layout(6, elsewhere), START, OWNER, false),
        (layout(6, ADDRESSES), FirstPosition::Given(other), OWNER, false),
        (layout(6, ADDRESSES), FirstPosition::GivenForTransmit(PackedPosition::START), OWNER, true),
        (layout(6, ADDRESSES), FirstPosition::GivenForTransmit(other), OWNER, false),
        (layout(6, ADDRESSES), START, RingOwner { memory: 8, ..OWNER }, false),
        (layout(6, ADDRESSES), START, RingOwner { features: 0, ..OWNER }, false),
    ] {
        memory.record = record;
        let opened = PackedQueue::open(layout, USUAL.features, (first, owner), &mut memory).unwrap();
        let (FirstPosition::Given(given)
        | FirstPosition::GivenForTransmit(given)
        | FirstPosition::Paused(given)) = first;
        assert_eq!((opened.0.base(), opened.1), (if same { position } else { given }, same));
    }
    memory.record = record;
    record::forget(&mut memory);
    assert!(!open(&USUAL, &mut memory, (START, OWNER)).1);
}

#[test]
fn ring_that_its_driver_created_anew_starts_as_told() {
    // QEMU asks for no notifications of a transmit ring that starts while QEMU has no back end.
    for event in [[0; 4], [0, 0, 1, 0]] {
        let mut driver = CheckedDriver::new(6, false, USUAL.chains);
        let (_, mut memory) = half_used(&mut driver, &USUAL);
        *memory.driver = CheckedDriver::new(6, false, USUAL.chains);
        memory.memory.bytes = vec![0; SIZE];
        memory.memory.store(DEVICE, &event);
        memory.driver.fill(&mut memory.memory);
        let (mut queue, resumed) = open(&USUAL, &mut memory, (START, OWNER));
        assert!(!resumed);
        serve(&mut queue, &mut memory, &USUAL);
        memory.driver.collect(&mut memory.memory);
        assert_eq!(driver.back, 1);
    }
}

#[test]
fn event_position_of_a_used_ring_is_never_zero() {
    for event_index in [false, true] {
        let scenario = CrashScenario {
            features: RingFeatures { event_index, ..USUAL.features },
            chains: (&[1], false),
            ..USUAL
        };
        let mut driver = CheckedDriver::new(6, false, scenario.chains);
        let (mut queue, mut memory) = half_used(&mut driver, &scenario);
        for _ in 0..12 {
            queue.enable_notifications(&mut memory).unwrap();
            assert_ne!(memory.memory.load_u16(DEVICE), 0);
            queue.disable_notifications(&mut memory).unwrap();
            assert_ne!(memory.memory.load_u16(DEVICE), 0);
            memory.driver.add(&mut memory.memory, 1);
            serve(&mut queue, &mut memory, &scenario);
            memory.driver.collect(&mut memory.memory);
        }
    }
}

/// Earlier versions wrote flags to their event structure, and left the position at zero.
#[test]
fn ring_of_an_earlier_version_outlives_a_crash() {
    let mut driver = CheckedDriver::new(6, false, USUAL.chains);
    let (queue, mut memory) = half_used(&mut driver, &USUAL);
    memory.memory.store(DEVICE, &[0, 0, 1, 0]);
    memory.record[STATE] &= !WRITES_POSITION;
    let (continued, resumed) = open(&USUAL, &mut memory, (START, OWNER));
    assert_eq!((continued.base(), resumed), (queue.base(), true));
    assert_ne!(memory.memory.load_u16(DEVICE), 0, "the next crash finds a position");
    assert_ne!(memory.record[STATE] & WRITES_POSITION, 0);
    // The driver creates its ring anew while no host runs, and QEMU asks for no notifications.
    memory.memory.bytes = vec![0; SIZE];
    memory.memory.store(DEVICE, &[0, 0, 1, 0]);
    assert!(!open(&USUAL, &mut memory, (START, OWNER)).1);
}

#[test]
fn paused_ring_needs_no_event_position() {
    // An earlier version has left the position at zero.
    let mut driver = CheckedDriver::new(6, false, USUAL.chains);
    let (queue, mut memory) = half_used(&mut driver, &USUAL);
    memory.memory.store(DEVICE, &[0, 0, 1, 0]);
    let (continued, resumed) = open(&USUAL, &mut memory, (FirstPosition::Paused(queue.base()), OWNER));
    assert_eq!((continued.base(), resumed), (queue.base(), true));
}

#[test]
fn damaged_record_starts_the_ring_at_the_given_position() {
    let mut driver = CheckedDriver::new(6, false, USUAL.chains);
    let (_, mut memory) = half_used(&mut driver, &USUAL);
    let record = memory.record;
    for state in [u64::MAX, 0x1_0000_7fff_8000, 0x1_0002_0000_8002, record[STATE] | 0x7f << 32] {
        memory.record = record;
        memory.record[STATE] = state;
        let _ = open(&USUAL, &mut memory, (START, OWNER));
    }
}
