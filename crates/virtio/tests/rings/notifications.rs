//! Tests that no order of events loses a notification: device or driver sleeps only if its peer is going to notify it
//! (sections 2.7.10, 2.7.7 and 2.8.10).

use crate::driver::TestDriver;
use crate::interleaving::{DriverMemoryOperation, explore};
use crate::memory::{DESCRIPTORS, DEVICE, DRIVER};
use crate::queue::EitherQueue;
use virtio::chain::ChainBurst;
use virtio::layout::RingFeatures;

/// Number of bytes from address 0 of the test memory that include the whole ring.
const RINGS: usize = 0x5100;
/// Number of ring entries, which exceeds the number of chains of a run.
const SIZE: u16 = 4;

/// Returns the combinations of ring format and notification mode, as (packed, with event index).
fn kinds() -> [(bool, bool); 4] {
    [(false, false), (false, true), (true, false), (true, true)]
}

/// Returns true if the last `count` entries before index `new` include the event index `event`, modulo 2^16.
fn passed(event: u16, new: u16, count: u16) -> bool {
    new.wrapping_sub(event).wrapping_sub(1) < count
}

/// Returns the driver's step that decides if a chain needs a notification. `nth` is the chain's number after the first
/// chain, which the tests pass beforehand.
fn kick(is_packed: bool, event_index: bool, nth: u16) -> DriverMemoryOperation {
    match (is_packed, event_index) {
        (false, false) => DriverMemoryOperation::Decide(DEVICE, |bytes, _| bytes[0] & 1 == 0, 0),
        (false, true) => {
            let event = DEVICE + 4 + 8 * u64::from(SIZE);
            DriverMemoryOperation::Decide(
                event,
                |bytes, new| passed(u16::from_le_bytes([bytes[0], bytes[1]]), new, 1),
                nth + 2,
            )
        }
        (true, _) => DriverMemoryOperation::Decide(
            DEVICE,
            |bytes, new| match bytes[2] {
                0 => true,
                1 => false,
                _ => passed(u16::from_le_bytes([bytes[0], bytes[1]]) & 0x7fff, new, 1),
            },
            nth + 2,
        ),
    }
}

/// Returns memory, driver and device after one chain has passed, so that the device has already made its first decision
/// about an interrupt.
fn warm(is_packed: bool, event_index: bool) -> (crate::memory::GuestMemory, TestDriver, EitherQueue) {
    let features = RingFeatures { indirect: false, event_index, in_order: false };
    let mut memory = crate::memory::GuestMemory::new();
    let (mut driver, mut queue) =
        (TestDriver::new(is_packed, SIZE, false), EitherQueue::new(is_packed, SIZE, features));
    let mut burst = ChainBurst::default();
    driver.add(&mut memory, 0, &[(0x9000, 60, false)], false);
    driver.publish(&mut memory);
    queue.fetch(&mut memory, &mut burst, 1).unwrap();
    queue.complete(&mut memory, &[burst.chains()[0].used(0)]).unwrap();
    queue.needs_interrupt(&mut memory).unwrap();
    driver.collect(&mut memory);
    (memory, driver, queue)
}

/// Explores a device that wants to sleep while the driver makes two chains available, each with its own decision about
/// a notification. Returns two numbers: of all orders, and of those in which the device sleeps without a notification.
fn device_sleeps(is_packed: bool, event_index: bool, fenced: bool) -> (usize, usize) {
    let (mut memory, mut driver, mut queue) = warm(is_packed, event_index);
    queue.disable_notifications(&mut memory).unwrap();
    let mut steps = Vec::new();
    for nth in 0..2_u16 {
        let before = memory.bytes.clone();
        driver.add(&mut memory, u32::from(nth), &[(0x9000, 60, false)], false);
        driver.publish(&mut memory);
        // The bytes that publish the chain are stored later, as a step; the rest of the chain is there.
        let place = if is_packed { DESCRIPTORS + 16 * u64::from(nth + 1) + 14 } else { DRIVER + 2 };
        let bytes: [u8; 2] = memory.load(place);
        let old = [before[place as usize], before[place as usize + 1]];
        memory.store(place, &old);
        steps.extend([
            DriverMemoryOperation::Store(place, bytes.to_vec()),
            DriverMemoryOperation::Fence,
            kick(is_packed, event_index, nth),
        ]);
    }
    explore(&memory.bytes[..RINGS], &steps, fenced, |memory| {
        let mut queue = queue.clone();
        let awake = queue.enable_notifications(memory).unwrap();
        // A device that sleeps needs a notification: the driver makes two chains available.
        Box::new(move |kicked| awake || kicked)
    })
}

#[test]
fn device_never_sleeps_while_a_chain_is_available() {
    for (is_packed, event_index) in kinds() {
        let (orders, lost) = device_sleeps(is_packed, event_index, true);
        assert_eq!(lost, 0, "packed {is_packed}, event index {event_index}");
        assert!(orders > 100, "{orders} orders");
    }
}

#[test]
fn notification_is_lost_without_the_devices_fence() {
    // The model finds the fault that the fence prevents.
    for (is_packed, event_index) in kinds() {
        let (_, lost) = device_sleeps(is_packed, event_index, false);
        assert!(lost > 0, "packed {is_packed}, event index {event_index}");
    }
}

/// Explores a driver that wants to sleep while the device returns a chain and decides about an interrupt. Returns two
/// numbers: of all orders, and of those in which the driver sleeps without an interrupt.
fn driver_sleeps(is_packed: bool, event_index: bool, fenced: bool) -> (usize, usize) {
    let (mut memory, mut driver, mut queue) = warm(is_packed, event_index);
    let mut burst = ChainBurst::default();
    driver.add(&mut memory, 1, &[(0x9000, 60, false)], false);
    driver.publish(&mut memory);
    queue.fetch(&mut memory, &mut burst, 1).unwrap();
    // Interrupts are off: by a flag, or by an event far away.
    let off_packed = [0, 0, 1, 0];
    let (place, off, on) = match (is_packed, event_index) {
        (false, false) => (DRIVER, vec![1, 0], vec![0, 0]),
        (false, true) => (DRIVER + 4 + 2 * u64::from(SIZE), vec![0, 0], vec![1, 0]),
        (true, false) => (DRIVER, off_packed.to_vec(), vec![0, 0, 0, 0]),
        (true, true) => (DRIVER, off_packed.to_vec(), vec![1, 0x80, 2, 0]),
    };
    memory.store(place, &off);
    // The driver has seen one used chain; another is in the index, or in the second descriptor's flags.
    let seen: DriverMemoryOperation = if is_packed {
        DriverMemoryOperation::Decide(
            DESCRIPTORS + 16 + 14,
            |bytes, _| bytes[0] & 0x80 != 0 && bytes[1] & 0x80 != 0,
            0,
        )
    } else {
        DriverMemoryOperation::Decide(DEVICE + 2, |bytes, _| bytes[0] == 2, 0)
    };
    let steps = [DriverMemoryOperation::Store(place, on), DriverMemoryOperation::Fence, seen];
    let used = [burst.chains()[0].used(0)];
    explore(&memory.bytes[..RINGS], &steps, fenced, |memory| {
        let mut queue = queue.clone();
        queue.complete(memory, &used).unwrap();
        let interrupted = queue.needs_interrupt(memory).unwrap();
        Box::new(move |awake| awake || interrupted)
    })
}

#[test]
fn driver_never_sleeps_while_a_used_chain_is_pending() {
    for (is_packed, event_index) in kinds() {
        let (orders, lost) = driver_sleeps(is_packed, event_index, true);
        assert_eq!(lost, 0, "packed {is_packed}, event index {event_index}");
        assert!(orders > 50, "{orders} orders");
    }
}

#[test]
fn interrupt_is_lost_without_the_devices_fence() {
    for (is_packed, event_index) in kinds() {
        let (_, lost) = driver_sleeps(is_packed, event_index, false);
        assert!(lost > 0, "packed {is_packed}, event index {event_index}");
    }
}

#[test]
fn polling_device_gets_no_notification() {
    for (is_packed, event_index) in kinds() {
        let (mut memory, _, mut queue) = warm(is_packed, event_index);
        queue.disable_notifications(&mut memory).unwrap();
        for nth in 0..2 {
            let DriverMemoryOperation::Decide(place, decide, new) = kick(is_packed, event_index, nth) else {
                unreachable!()
            };
            assert!(!decide(&memory.load(place), new), "packed {is_packed}, event index {event_index}");
        }
    }
}
