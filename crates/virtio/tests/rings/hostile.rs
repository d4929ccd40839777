//! Tests drivers that break the standard: each gets an error at a bounded cost, and causes no panic.

use crate::memory::{DESCRIPTORS, DEVICE, DRIVER, GuestMemory, TABLES};
use crate::queue::{EitherQueue, packed, split};
use proptest::prelude::*;
use virtio::chain::{ChainBurst, MAX_CHAIN};
use virtio::descriptor::{PackedDescriptor, SplitDescriptor, flag};
use virtio::layout::RingFeatures;
use virtio::{ChainError, MemoryFault, RingError};

const SIZE: u16 = 8;
const INDIRECT: RingFeatures = RingFeatures { indirect: true, event_index: false, in_order: false };

/// Descriptor as a test writes it: address, length, flags, and `next` of a split ring.
type Raw = (u64, u32, u16, u16);

const fn buffer(length: u32, flags: u16, next: u16) -> Raw {
    (0x9000, length, flags, next)
}

fn store_split(memory: &mut GuestMemory, address: u64, descriptors: &[Raw]) {
    for (at, &(buffer, length, flags, next)) in descriptors.iter().enumerate() {
        let descriptor = SplitDescriptor { address: buffer, length, flags, next };
        memory.store(address + 16 * at as u64, &descriptor.emit());
    }
}

/// Returns the fault of a chain that begins with the first of these descriptors. Asserts that a valid chain behind it
/// is fetched.
fn split_fault(features: RingFeatures, descriptors: &[Raw], table: &[Raw]) -> Option<ChainError> {
    let (mut memory, mut burst, mut queue) =
        (GuestMemory::new(), ChainBurst::default(), split(SIZE, features));
    store_split(&mut memory, DESCRIPTORS, descriptors);
    store_split(&mut memory, TABLES, table);
    let good = SIZE - 1;
    store_split(&mut memory, DESCRIPTORS + 16 * u64::from(good), &[buffer(60, 0, 0)]);
    memory.store(DRIVER + 2, &[2, 0, 0, 0, good as u8, 0]);
    let count = queue.fetch(&mut memory, &mut burst, 32).unwrap();
    let first = burst.chains()[0];
    assert_eq!((first.id(), first.slots()), (0, 1));
    if first.fault().is_some() {
        assert_eq!(count, 1, "a malformed chain ends its burst");
        assert!(burst.readable(&first).is_empty() && burst.writable(&first).is_empty());
        queue.complete(&mut memory, &[first.used(100)]).unwrap();
        assert_eq!(queue.fetch(&mut memory, &mut burst, 32), Ok(1));
    }
    let last = burst.chains().last().unwrap();
    assert_eq!((last.id(), last.fault()), (good, None), "the ring continues");
    first.fault()
}

#[test]
fn malformed_chain_of_a_split_ring_is_returned_with_its_fault() {
    use flag::{INDIRECT as TABLE, NEXT, WRITE};
    let half = 1 << 31;
    for (descriptors, fault) in [
        (vec![buffer(60, NEXT, 0)], ChainError::TooLong),
        (vec![buffer(60, NEXT, 1), buffer(60, NEXT, 0)], ChainError::TooLong),
        (vec![buffer(60, NEXT, SIZE)], ChainError::NextOutside),
        (vec![buffer(60, NEXT, u16::MAX)], ChainError::NextOutside),
        (vec![buffer(0, 0, 0)], ChainError::EmptyBuffer),
        (vec![buffer(60, NEXT, 1), buffer(0, 0, 0)], ChainError::EmptyBuffer),
        (vec![(u64::MAX - 9, 60, 0, 0)], ChainError::Address),
        (vec![buffer(half, NEXT, 1), buffer(half, 0, 0)], ChainError::Bytes),
        (vec![buffer(60, NEXT | WRITE, 1), buffer(60, 0, 0)], ChainError::Order),
        (vec![(TABLES, 16, TABLE | NEXT, 1), buffer(60, 0, 0)], ChainError::IndirectInList),
        (vec![(TABLES, 0, TABLE, 0)], ChainError::TableLength),
        (vec![(TABLES, 17, TABLE, 0)], ChainError::TableLength),
        (vec![(u64::MAX - 15, 32, TABLE, 0)], ChainError::Address),
        (vec![(1 << 40, 16, TABLE, 0)], ChainError::TableUnreadable),
    ] {
        assert_eq!(split_fault(INDIRECT, &descriptors, &[]), Some(fault), "{descriptors:x?}");
    }
    let table = [(TABLES, 16, TABLE, 0)];
    let none = RingFeatures::default();
    assert_eq!(split_fault(none, &table, &[buffer(60, 0, 0)]), Some(ChainError::IndirectNotNegotiated));
}

#[test]
fn malformed_indirect_table_is_returned_with_its_fault() {
    use flag::{INDIRECT as TABLE, NEXT, WRITE};
    let descriptors = [(TABLES, 32, TABLE, 0)];
    for (table, fault) in [
        ([buffer(60, TABLE, 0), buffer(60, 0, 0)], ChainError::NestedTable),
        ([buffer(60, NEXT, 1), buffer(60, TABLE, 0)], ChainError::NestedTable),
        ([buffer(60, NEXT, 2), buffer(60, 0, 0)], ChainError::NextOutside),
        ([buffer(60, NEXT, 1), buffer(60, NEXT, 0)], ChainError::TooLong),
        ([buffer(60, NEXT | WRITE, 1), buffer(60, 0, 0)], ChainError::Order),
    ] {
        assert_eq!(split_fault(INDIRECT, &descriptors, &table), Some(fault), "{table:x?}");
    }
}

#[test]
fn split_chain_may_end_in_an_indirect_table_or_fill_the_ring() {
    use flag::{INDIRECT as TABLE, NEXT, WRITE};
    // The device must handle chained descriptors followed by a table, whose own write flag it ignores (2.7.5.3.2).
    let list = [buffer(12, NEXT, 1), (TABLES, 32, TABLE | WRITE, 0)];
    assert_eq!(split_fault(INDIRECT, &list, &[buffer(60, NEXT, 1), buffer(60, 0, 0)]), None);
    let whole: Vec<Raw> = (1..SIZE).map(|next| buffer(60, NEXT, next)).collect();
    assert_eq!(split_fault(INDIRECT, &whole, &[]), None);
}

#[test]
fn descriptor_loop_in_a_split_ring_ends_after_the_ring_size() {
    let (mut memory, mut burst, mut queue) =
        (GuestMemory::new(), ChainBurst::default(), split(SIZE, INDIRECT));
    store_split(&mut memory, DESCRIPTORS, &[buffer(60, flag::NEXT, 4)]);
    store_split(&mut memory, DESCRIPTORS + 16 * 4, &[buffer(60, flag::NEXT, 0)]);
    memory.store(DRIVER + 2, &[1, 0]);
    queue.fetch(&mut memory, &mut burst, 32).unwrap();
    assert_eq!(burst.chains()[0].fault(), Some(ChainError::TooLong));
    assert!(memory.reads <= 3 + usize::from(SIZE), "{} reads", memory.reads);
}

#[test]
fn chain_of_a_split_ring_has_at_most_128_buffers() {
    let most = MAX_CHAIN as u16;
    let table: Vec<Raw> =
        (1..=most + 1).map(|next| buffer(60, if next > most { 0 } else { flag::NEXT }, next)).collect();
    let length = 16 * table.len() as u32;
    let descriptors = [(TABLES, length, flag::INDIRECT, 0)];
    assert_eq!(split_fault(INDIRECT, &descriptors, &table), Some(ChainError::TooLong));
    let shorter = [&table[..MAX_CHAIN - 1], &[buffer(60, 0, 0)]].concat();
    assert_eq!(split_fault(INDIRECT, &descriptors, &shorter), None);
}

#[test]
fn indirect_table_may_lie_at_any_address() {
    // This one overlaps descriptors that were read for the list before it.
    let (mut memory, mut burst, mut queue) =
        (GuestMemory::new(), ChainBurst::default(), split(SIZE, INDIRECT));
    let table = DESCRIPTORS + 16 * 2 + 8;
    store_split(&mut memory, DESCRIPTORS, &[buffer(60, flag::NEXT, 1), (table, 16, flag::INDIRECT, 0)]);
    store_split(&mut memory, table, &[buffer(77, 0, 0)]);
    memory.store(DRIVER + 2, &[1, 0]);
    queue.fetch(&mut memory, &mut burst, 32).unwrap();
    let chain = burst.chains()[0];
    assert_eq!((chain.fault(), chain.readable_bytes()), (None, 60 + 77));
}

/// Returns the fault of a list at the start of a packed ring, and the number of its slots. Asserts that a valid chain
/// behind it is fetched.
fn packed_fault(features: RingFeatures, list: &[Raw], table: &[Raw]) -> (Option<ChainError>, u16) {
    let (mut memory, mut burst, mut queue) =
        (GuestMemory::new(), ChainBurst::default(), packed(SIZE, features));
    store_packed(&mut memory, TABLES, table);
    store_packed(&mut memory, DESCRIPTORS, &[list, &[buffer(60, 0, 0)]].concat());
    let count = queue.fetch(&mut memory, &mut burst, 32).unwrap();
    let first = burst.chains()[0];
    if first.fault().is_some() {
        assert_eq!(count, 1, "a malformed chain ends its burst");
        queue.complete(&mut memory, &[first.used(100)]).unwrap();
        assert_eq!(queue.fetch(&mut memory, &mut burst, 32), Ok(1));
    }
    let last = burst.chains().last().unwrap();
    assert_eq!((last.readable_bytes(), last.fault()), (60, None), "the ring continues");
    (first.fault(), first.slots())
}

fn store_packed(memory: &mut GuestMemory, address: u64, descriptors: &[Raw]) {
    for (at, &(buffer, length, flags, id)) in descriptors.iter().enumerate() {
        let flags = flags | flag::AVAIL;
        let descriptor = PackedDescriptor { address: buffer, length, id, flags };
        memory.store(address + 16 * at as u64, &descriptor.emit());
    }
}

#[test]
fn malformed_chain_of_a_packed_ring_is_returned_with_its_fault() {
    use flag::{INDIRECT as TABLE, NEXT, WRITE};
    let half = 1 << 31;
    for (list, fault) in [
        (vec![buffer(0, 0, 0)], ChainError::EmptyBuffer),
        (vec![buffer(60, NEXT, 0), buffer(0, NEXT, 0), buffer(60, 0, 0)], ChainError::EmptyBuffer),
        (vec![(u64::MAX - 9, 60, 0, 0)], ChainError::Address),
        (vec![buffer(half, NEXT, 0), buffer(half, 0, 0)], ChainError::Bytes),
        (vec![buffer(60, NEXT | WRITE, 0), buffer(60, 0, 0)], ChainError::Order),
        (vec![(TABLES, 16, TABLE | NEXT, 0), buffer(60, 0, 0)], ChainError::IndirectInList),
        (vec![buffer(60, NEXT, 0), (TABLES, 16, TABLE, 0)], ChainError::IndirectInList),
        (vec![(TABLES, 0, TABLE, 0)], ChainError::TableLength),
        (vec![(TABLES, 8, TABLE, 0)], ChainError::TableLength),
        (vec![(TABLES, 16 * (MAX_CHAIN as u32 + 1), TABLE, 0)], ChainError::TooLong),
        (vec![(1 << 40, 16, TABLE, 0)], ChainError::TableUnreadable),
    ] {
        assert_eq!(packed_fault(INDIRECT, &list, &[]), (Some(fault), list.len() as u16), "{list:x?}");
    }
    let refused = (Some(ChainError::IndirectNotNegotiated), 1);
    assert_eq!(packed_fault(RingFeatures::default(), &[(TABLES, 16, TABLE, 0)], &[]), refused);
}

#[test]
fn indirect_table_of_a_packed_ring_ignores_all_flags_but_write() {
    // Other flags and the id are reserved there, and the device ignores them (2.8.7): a table in a table too.
    let table = [buffer(60, flag::NEXT | flag::INDIRECT | flag::USED, 7), buffer(60, flag::WRITE, 7)];
    assert_eq!(packed_fault(INDIRECT, &[(TABLES, 32, flag::INDIRECT, 3)], &table), (None, 1));
}

#[test]
fn chain_without_an_end_stops_a_packed_ring() {
    let (mut memory, mut burst) = (GuestMemory::new(), ChainBurst::default());
    let mut queue = packed(SIZE, INDIRECT);
    let endless = [buffer(60, flag::NEXT, 0); SIZE as usize];
    store_packed(&mut memory, DESCRIPTORS, &endless);
    let error = Err(RingError::EndlessList { free: SIZE });
    assert_eq!(queue.fetch(&mut memory, &mut burst, 32), error);
    // Good chains before the list are fetched first, and their slots are not free.
    store_packed(&mut memory, DESCRIPTORS, &[buffer(60, 0, 0); 3]);
    assert_eq!(queue.fetch(&mut memory, &mut burst, 32), Ok(3));
    assert_eq!(queue.fetch(&mut memory, &mut burst, 32), Err(RingError::EndlessList { free: SIZE - 3 }));
}

#[test]
fn fully_fetched_packed_ring_has_no_available_chain() {
    // A device that believed these flags would stay awake and fetch nothing.
    let (mut memory, mut burst) = (GuestMemory::new(), ChainBurst::default());
    let mut queue = packed(SIZE, INDIRECT);
    store_packed(&mut memory, DESCRIPTORS, &[buffer(60, 0, 0); SIZE as usize]);
    assert_eq!(queue.fetch(&mut memory, &mut burst, 32), Ok(SIZE.into()));
    memory.store(DESCRIPTORS + 14, &flag::USED.to_le_bytes());
    assert_eq!(queue.enable_notifications(&mut memory), Ok(false));
    assert_eq!(queue.fetch(&mut memory, &mut burst, 32), Ok(0));
}

#[test]
fn malformed_chain_is_never_skipped_by_an_in_order_batch() {
    // A skipped chain counts as used completely (2.7.9), and nothing was written into this one.
    let features = RingFeatures { in_order: true, ..INDIRECT };
    for is_packed in [false, true] {
        let (mut memory, mut burst) = (GuestMemory::new(), ChainBurst::default());
        let mut queue = EitherQueue::new(is_packed, SIZE, features);
        let chains = [buffer(0, flag::WRITE, 0), buffer(60, 0, 1)];
        if is_packed {
            store_packed(&mut memory, DESCRIPTORS, &chains);
        } else {
            store_split(&mut memory, DESCRIPTORS, &chains);
            memory.store(DRIVER + 2, &[2, 0, 0, 0, 1, 0]);
        }
        let mut used = Vec::new();
        while queue.fetch(&mut memory, &mut burst, 32).unwrap() > 0 {
            used.extend(burst.chains().iter().map(|chain| chain.used(60)));
        }
        queue.complete(&mut memory, &used).unwrap();
        let elements = if is_packed {
            [(DESCRIPTORS + 24, 8), (DESCRIPTORS + 8, 8)]
        } else {
            [(DEVICE + 4, 8), (DEVICE + 12, 8)]
        };
        assert_eq!(memory.writes[..2], elements, "packed {is_packed}");
    }
}

#[test]
fn available_index_beyond_the_ring_stops_the_ring() {
    let (mut memory, mut burst, mut queue) =
        (GuestMemory::new(), ChainBurst::default(), split(SIZE, INDIRECT));
    store_split(&mut memory, DESCRIPTORS, &[buffer(60, 0, 0); SIZE as usize]);
    let mut fetch = |memory: &mut GuestMemory, index: u16, most: usize| {
        memory.store(DRIVER + 2, &index.to_le_bytes());
        queue.fetch(memory, &mut burst, most)
    };
    let error = |pending| Err(RingError::AvailableIndex { pending, size: SIZE });
    assert_eq!(fetch(&mut memory, SIZE + 1, 32), error(SIZE + 1));
    assert_eq!(fetch(&mut memory, u16::MAX, 32), error(u16::MAX));
    assert_eq!(fetch(&mut memory, 5, 2), Ok(2));
    // Two chains are not returned: with them there would be nine in a ring of eight.
    assert_eq!(fetch(&mut memory, SIZE + 1, 32), error(SIZE - 1));
    // The driver must not decrement the index (2.7.6).
    assert_eq!(fetch(&mut memory, 4, 32), error(2));
    assert_eq!(fetch(&mut memory, 1, 32), error(u16::MAX));
    assert_eq!(fetch(&mut memory, SIZE, 32), Ok(6));
}

#[test]
fn chain_head_outside_the_table_stops_ring_after_valid_chains() {
    let (mut memory, mut burst, mut queue) =
        (GuestMemory::new(), ChainBurst::default(), split(SIZE, INDIRECT));
    store_split(&mut memory, DESCRIPTORS, &[buffer(60, 0, 0); 2]);
    memory.store(DRIVER + 2, &[3, 0, 0, 0, 1, 0, SIZE as u8, 0]);
    assert_eq!(queue.fetch(&mut memory, &mut burst, 32), Ok(2));
    let error = Err(RingError::Head { head: SIZE, size: SIZE });
    assert_eq!(queue.fetch(&mut memory, &mut burst, 32), error);
    memory.store(DRIVER + 8, &u16::MAX.to_le_bytes());
    let error = Err(RingError::Head { head: u16::MAX, size: SIZE });
    assert_eq!(queue.fetch(&mut memory, &mut burst, 32), error);
}

#[test]
fn ring_in_unmapped_memory_fails_with_the_address() {
    for is_packed in [false, true] {
        let (mut memory, mut burst) = (GuestMemory::new(), ChainBurst::default());
        let mut queue = EitherQueue::new(is_packed, SIZE, INDIRECT);
        memory.bytes.clear();
        let error = queue.fetch(&mut memory, &mut burst, 32).unwrap_err();
        let first = if is_packed { DESCRIPTORS + 14 } else { DRIVER + 2 };
        assert_eq!(error, RingError::Memory(MemoryFault { address: first }));
        assert!(queue.enable_notifications(&mut memory).is_err());
    }
}

/// Maximum cost of one fetch: reads of a burst's descriptors, and of tables in blocks of 16.
const MOST_READS: usize = 4 + 32 + 3 * MAX_CHAIN;

proptest! {
    #[test]
    fn fetch_from_arbitrary_memory_takes_bounded_reads(
        is_packed: bool,
        size in prop_oneof![Just(1_u16), Just(8), Just(64)],
        (indirect, event_index, in_order) in any::<(bool, bool, bool)>(),
        seeds in proptest::collection::vec((0_usize..0x2_0000, any::<u16>()), 0..400),
        near in proptest::collection::vec((0_u16..64, 0_u64..0x3000, 0_u32..100, 0_u16..8, 0_u16..70), 0..64),
        turmoil: u64,
        moves in proptest::collection::vec(0_u8..6, 1..40),
    ) {
        let mut memory = GuestMemory::new();
        for (place, value) in seeds {
            memory.bytes[place & !1..][..2].copy_from_slice(&value.to_le_bytes());
        }
        // Descriptors that are nearly right reach the code behind the first checks.
        for (place, address, length, flags, next) in near {
            let flags = flags | if is_packed { flag::AVAIL } else { 0 };
            let (third, fourth) = if is_packed { (next, flags) } else { (flags, next) };
            let raw = SplitDescriptor { address: 0x7000 + address, length: 16 * length, flags: third, next: fourth };
            memory.store(DESCRIPTORS + 16 * u64::from(place), &raw.emit());
            memory.store(DRIVER + 2, &place.to_le_bytes());
        }
        memory.turmoil = turmoil;
        let mut burst = ChainBurst::default();
        let mut queue = EitherQueue::new(is_packed, size, RingFeatures { indirect, event_index, in_order });
        let mut fetched = Vec::new();
        for step in moves {
            memory.forget();
            match step {
                0..=2 => if queue.fetch(&mut memory, &mut burst, 32).is_ok() {
                    for chain in burst.chains() {
                        let bytes = |part: &[virtio::chain::ChainBuffer]| part.iter().map(|one| one.length).sum::<u32>();
                        prop_assert_eq!(bytes(burst.readable(chain)), chain.readable_bytes());
                        prop_assert_eq!(bytes(burst.writable(chain)), chain.writable_bytes());
                        fetched.push(*chain);
                    }
                },
                3 => {
                    let used: Vec<_> = fetched.drain(..).map(|chain| chain.used(100)).collect();
                    prop_assert_eq!(queue.complete(&mut memory, &used), Ok(()));
                }
                4 => queue.unfetch(&std::mem::take(&mut fetched)),
                _ => {
                    let _ = queue.needs_interrupt(&mut memory);
                    let _ = queue.enable_notifications(&mut memory);
                }
            }
            prop_assert!(memory.reads <= MOST_READS, "{} reads", memory.reads);
            prop_assert!(memory.writes.len() <= 64 + 3);
        }
    }
}
