//! Tests the rules of section 2.8 for the device's side of a packed ring, on the bytes in memory.

use crate::driver::TestDriver;
use crate::memory::{DESCRIPTORS, DEVICE, DRIVER, GuestMemory, TABLES};
use crate::queue::{ADDRESSES, packed};
use virtio::chain::ChainBurst;
use virtio::descriptor::{PackedDescriptor, flag};
use virtio::layout::{LayoutError, RingAddresses, RingFeatures};
use virtio::packed::{PackedLayout, PackedPosition, PackedQueue};
use virtio::{ChainError, RingError, UsedChain};

const IN_ORDER: RingFeatures = RingFeatures { indirect: false, event_index: false, in_order: true };
const EVENTS: RingFeatures = RingFeatures { indirect: false, event_index: true, in_order: false };

/// Makes a chain available for each of `lengths`, with that number of buffers.
fn send(driver: &mut TestDriver, memory: &mut GuestMemory, lengths: &[usize], writable: bool) {
    for (token, length) in lengths.iter().enumerate() {
        let buffers = vec![(0x10_0000 + token as u64 * 0x1000, 1000, writable); *length];
        assert!(driver.add(memory, token as u32, &buffers, false));
    }
    driver.publish(memory);
}

fn used_at(memory: &mut GuestMemory, slot: u64) -> PackedDescriptor {
    PackedDescriptor::parse(&memory.load(DESCRIPTORS + 16 * slot))
}

#[test]
fn packed_ring_may_have_any_size_up_to_32768() {
    for size in [1, 3, 1000, 32_768] {
        assert!(PackedLayout::new(size, ADDRESSES).is_ok());
    }
    for size in [0, 32_769] {
        assert_eq!(PackedLayout::new(size, ADDRESSES), Err(LayoutError::Size { size }));
    }
    for wrong in [
        RingAddresses { descriptors: 8, ..ADDRESSES },
        RingAddresses { driver: 2, ..ADDRESSES },
        RingAddresses { device: 2, ..ADDRESSES },
    ] {
        assert!(matches!(PackedLayout::new(8, wrong), Err(LayoutError::Address { .. })));
    }
}

#[test]
fn position_outside_of_a_packed_ring_is_refused() {
    let layout = PackedLayout::new(5, ADDRESSES).unwrap();
    let made = PackedQueue::new(layout, EVENTS, PackedPosition::from_bits(0x8005)).map(|_| ());
    assert_eq!(made, Err(LayoutError::Position { index: 5, size: 5 }));
}

#[test]
fn burst_of_32_chains_takes_three_reads_and_two_writes() {
    let (mut memory, mut burst) = (GuestMemory::new(), ChainBurst::default());
    let (mut driver, mut queue) = (TestDriver::new(true, 64, false), packed(64, RingFeatures::default()));
    send(&mut driver, &mut memory, &[1; 32], false);
    assert_eq!(queue.fetch(&mut memory, &mut burst, 32), Ok(32));
    // The next descriptor's flags, all flags, and then the descriptors that they publish.
    assert_eq!((memory.reads, memory.read_bytes), (3, 2 + 2 * 16 * 32));
    let used: Vec<UsedChain> = burst.chains().iter().map(|chain| chain.used(0)).collect();
    queue.complete(&mut memory, &used).unwrap();
    // The first used descriptor is written last and publishes all (2.8.9).
    assert_eq!(memory.writes, [(DESCRIPTORS + 16, 16 * 31), (DESCRIPTORS + 8, 8)]);
}

#[test]
fn idle_packed_ring_is_polled_by_one_read_of_two_bytes() {
    let (mut memory, mut burst) = (GuestMemory::new(), ChainBurst::default());
    let mut queue = packed(64, RingFeatures::default());
    assert_eq!(queue.fetch(&mut memory, &mut burst, 32), Ok(0));
    assert_eq!((memory.reads, memory.read_bytes), (1, 2));
}

#[test]
fn used_packed_descriptor_has_buffer_id_and_skips_chain_slots() {
    let (mut memory, mut burst) = (GuestMemory::new(), ChainBurst::default());
    let (mut driver, mut queue) = (TestDriver::new(true, 8, false), packed(8, RingFeatures::default()));
    send(&mut driver, &mut memory, &[3, 1, 2], true);
    assert_eq!(queue.fetch(&mut memory, &mut burst, 32), Ok(3));
    let used: Vec<_> =
        burst.chains().iter().zip([1500, 0, 2000]).map(|(chain, bytes)| chain.used(bytes)).collect();
    queue.complete(&mut memory, &used).unwrap();
    let both = flag::AVAIL | flag::USED;
    for (slot, id, written, flags) in
        [(0, 7, 1500, both | flag::WRITE), (3, 6, 0, both), (4, 5, 2000, both | flag::WRITE)]
    {
        let used = used_at(&mut memory, slot);
        // The write flag says that the length counts (2.8.3).
        assert_eq!((used.id, used.length, used.flags), (id, written, flags), "slot {slot}");
    }
    assert_eq!(queue.base(), PackedPosition::START.after(6, 8));
}

#[test]
fn in_order_batch_uses_one_packed_descriptor_in_its_first_slot() {
    let (mut memory, mut burst) = (GuestMemory::new(), ChainBurst::default());
    let (mut driver, mut queue) = (TestDriver::new(true, 16, true), packed(16, IN_ORDER));
    send(&mut driver, &mut memory, &[1, 2, 1, 1], false);
    queue.fetch(&mut memory, &mut burst, 32).unwrap();
    let written = [0; 4];
    let used: Vec<_> = burst.chains().iter().zip(written).map(|(chain, bytes)| chain.used(bytes)).collect();
    queue.complete(&mut memory, &used).unwrap();
    assert_eq!(memory.writes, [(DESCRIPTORS + 8, 8)]);
    assert_eq!(used_at(&mut memory, 0).id, 3);
    let collected: Vec<_> = driver.collect(&mut memory).into_iter().map(|(_, bytes)| bytes).collect();
    assert_eq!(collected, written);
}

#[test]
fn only_the_first_descriptor_of_a_list_needs_available_flags() {
    // Drivers set the flags of all descriptors (2.8.6); the head alone publishes the list.
    let (mut memory, mut burst) = (GuestMemory::new(), ChainBurst::default());
    let (mut driver, mut queue) = (TestDriver::new(true, 8, false), packed(8, RingFeatures::default()));
    send(&mut driver, &mut memory, &[3], false);
    for slot in [1, 2] {
        let plain =
            PackedDescriptor { flags: if slot == 1 { flag::NEXT } else { 0 }, ..used_at(&mut memory, slot) };
        memory.store(DESCRIPTORS + 16 * slot, &plain.emit());
    }
    assert_eq!(queue.fetch(&mut memory, &mut burst, 32), Ok(1));
    let chain = burst.chains()[0];
    assert_eq!((chain.id(), chain.slots(), burst.readable(&chain).len()), (7, 3, 3));
}

#[test]
fn driver_event_of_a_packed_ring_includes_the_wrap_counter() {
    let (mut memory, mut burst) = (GuestMemory::new(), ChainBurst::default());
    let (mut driver, mut queue) = (TestDriver::new(true, 4, false), packed(4, EVENTS));
    let mut pass = |memory: &mut GuestMemory, count: usize| {
        send(&mut driver, memory, &vec![1; count], false);
        let mut left = count;
        while left > 0 {
            left -= queue.fetch(memory, &mut burst, 32).unwrap();
            let used: Vec<UsedChain> = burst.chains().iter().map(|chain| chain.used(0)).collect();
            queue.complete(memory, &used).unwrap();
        }
        driver.collect(memory);
        queue.needs_interrupt(memory).unwrap()
    };
    let event = |memory: &mut GuestMemory, position: u16| {
        memory.store(DRIVER, &(u32::from(position) | 2 << 16).to_le_bytes());
    };
    event(&mut memory, 0x8003);
    assert!(pass(&mut memory, 1), "the first decision");
    assert!(!pass(&mut memory, 2), "slots 1 and 2");
    assert!(pass(&mut memory, 1), "slot 3");
    // Slot 1 of the second round; its wrap counter is 0.
    event(&mut memory, 0x0001);
    assert!(!pass(&mut memory, 1));
    assert!(pass(&mut memory, 2), "slots 1 and 2 of the second round");
    // Across the end of the ring.
    event(&mut memory, 0x0003);
    assert!(pass(&mut memory, 2), "slot 3, and slot 0 of the third round");
    event(&mut memory, 0x0003);
    assert!(!pass(&mut memory, 2), "the event is of a round that has passed");
    memory.store(DRIVER, &[0, 0, 1, 0]);
    assert!(!pass(&mut memory, 4), "disabled");
    memory.store(DRIVER, &[0, 0, 0, 0]);
    assert!(pass(&mut memory, 1), "enabled");
}

#[test]
fn device_event_of_a_packed_ring_is_written_as_one_word() {
    let (mut memory, mut queue) = (GuestMemory::new(), packed(4, EVENTS));
    assert_eq!(queue.enable_notifications(&mut memory), Ok(false));
    assert_eq!(memory.load::<4>(DEVICE), [0, 0x80, 2, 0]);
    queue.disable_notifications(&mut memory).unwrap();
    // Drivers ignore the position, by which a used ring differs from a new one.
    assert_eq!(memory.load::<4>(DEVICE), [0xff, 0xff, 1, 0]);
    assert_eq!(memory.writes, [(DEVICE, 4), (DEVICE, 4)]);
    let mut queue = packed(4, RingFeatures::default());
    queue.enable_notifications(&mut memory).unwrap();
    assert_eq!(memory.load::<4>(DEVICE), [0xff, 0xff, 0, 0]);
}

#[test]
fn returning_more_packed_slots_than_fetched_is_refused() {
    let (mut memory, mut burst) = (GuestMemory::new(), ChainBurst::default());
    let (mut driver, mut queue) = (TestDriver::new(true, 8, false), packed(8, RingFeatures::default()));
    send(&mut driver, &mut memory, &[2], false);
    queue.fetch(&mut memory, &mut burst, 4).unwrap();
    let used = [burst.chains()[0].used(0); 2];
    assert_eq!(queue.complete(&mut memory, &used), Err(RingError::NotFetched { returned: 4, fetched: 2 }));
    assert!(memory.writes.is_empty());
}

/// Fetches one indirect table whose entries have these flags. Returns the chain's fault, and its numbers of readable and
/// writable buffers.
fn fetch_table(mut queue: PackedQueue, flags: &[u16]) -> (Option<ChainError>, usize, usize) {
    let (mut memory, mut burst) = (GuestMemory::new(), ChainBurst::default());
    for (entry, &flags) in flags.iter().enumerate() {
        let buffer = PackedDescriptor { address: 0x9000, length: 60, id: 0, flags };
        memory.store(TABLES + 16 * entry as u64, &buffer.emit());
    }
    let (length, flags) = (16 * flags.len() as u32, flag::INDIRECT | flag::AVAIL);
    memory.store(DESCRIPTORS, &PackedDescriptor { address: TABLES, length, id: 0, flags }.emit());
    assert_eq!(queue.fetch(&mut memory, &mut burst, 32), Ok(1));
    let chain = burst.chains()[0];
    (chain.fault(), burst.readable(&chain).len(), burst.writable(&chain).len())
}

#[test]
fn write_flags_in_tables_of_a_read_only_ring_are_ignored() {
    // DPDK 22.11 presets the write flag in all entries, and clears it in some, by the number of the ring's slot.
    let (write, more, last) = (flag::WRITE, flag::AVAIL | flag::NEXT, flag::AVAIL);
    let features = RingFeatures { indirect: true, ..RingFeatures::default() };
    for table in [
        &[write, more, more, more, last][..],
        &[write, more, write, more, last],
        &[write, more, more, more, write],
        &[write, write],
    ] {
        let fetched = fetch_table(packed(8, features).read_only(), table);
        assert_eq!(fetched, (None, table.len(), 0), "{table:x?}");
    }
    // In other rings the flag counts: no buffer to read follows one to write.
    assert_eq!(fetch_table(packed(8, features), &[write, more, last]).0, Some(ChainError::Order));
    assert_eq!(fetch_table(packed(8, features), &[write, write]), (None, 0, 2));
}
