//! Tests that shared memory is sealed, visible to both of its users, and allocated without overlap.

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::sample::Index;
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::memory::MemoryProtection;

#[test]
fn writes_to_shared_memory_show_through_its_descriptor() {
    let shared = SharedMemory::new(8192).unwrap();
    let other = MappedFile::map(&shared, 4096, 4096, MemoryProtection::ReadOnly).unwrap();
    shared.memory().write(4096, b"doorbell").unwrap();
    let mut seen = [0; 8];
    other.read(0, &mut seen).unwrap();
    assert_eq!(&seen, b"doorbell");
}

#[test]
fn shared_memory_dwords_are_loaded_singly_or_together() {
    let shared = SharedMemory::new(4096).unwrap();
    let memory = shared.memory();
    (0..4).for_each(|n| memory.store_dword(4080 + 4 * n, 7 + n as u32).unwrap());
    let mut four = [0; 4];
    memory.load_dwords(4080, &mut four).unwrap();
    assert_eq!(four, [7, 8, 9, 10]);
    assert_eq!(memory.load_dword(4092), Ok(10));
    for beyond_or_unaligned in [4084, 4096, u64::MAX, 2] {
        assert!(memory.load_dwords(beyond_or_unaligned, &mut four).is_err());
    }
    assert_eq!(four, [7, 8, 9, 10], "no dword is loaded");
}

#[test]
fn shared_memory_cannot_be_resized_by_its_peer() {
    let shared = SharedMemory::new(8192).unwrap();
    for len in [0, 4096, 16_384] {
        assert_eq!(ftruncate(&shared, len), Err(rustix::io::Errno::PERM));
    }
    assert_eq!(fcntl_add_seals(&shared, SealFlags::WRITE), Err(rustix::io::Errno::PERM));
}

#[test]
fn empty_or_oversized_shared_memory_is_refused() {
    assert!(matches!(SharedMemory::new(0), Err(SharedMemoryError::Map(FileMapError::BadRange))));
    assert!(matches!(SharedMemory::new(u64::MAX), Err(SharedMemoryError::Create { .. })));
}

#[test]
fn shared_memory_blocks_are_aligned_and_gaps_are_reused() {
    let mut shared = SharedMemory::new(64 << 10).unwrap();
    let small = shared.allocate(100, 16).unwrap();
    let ring = shared.allocate(4096, 4096).unwrap();
    assert_eq!((small.offset(), ring.offset(), ring.len()), (0, 4096, 4096));
    let between = shared.allocate(3000, 128).unwrap();
    assert_eq!(between.offset(), 128);
    shared.free(between);
    assert_eq!(shared.allocate(3000, 128).unwrap().offset(), 128);
    assert_eq!(shared.allocate(64 << 10, 1), None);
    assert_eq!(shared.allocate(0, 1), None);
    assert_eq!(shared.allocate(8, 3), None);
    assert_eq!(shared.allocate(8, 1 << 63), None);
}

fn end(piece: &SharedMemoryBlock) -> u64 {
    piece.offset() + piece.len()
}

proptest! {
    /// Checks in any order of allocations and frees that no two blocks overlap and no byte is lost.
    #[test]
    fn shared_memory_blocks_never_overlap_and_no_byte_is_lost(
        steps in vec((1u64..600, 0u32..8, any::<bool>(), any::<Index>()), 1..200),
    ) {
        let mut allocator = SharedMemoryAllocator::new(8192);
        let mut held: Vec<SharedMemoryBlock> = Vec::new();
        for (len, align, free, which) in steps {
            if free && !held.is_empty() {
                allocator.free(held.swap_remove(which.index(held.len())));
            } else if let Some(piece) = allocator.allocate(len, 1 << align) {
                prop_assert!(piece.offset().is_multiple_of(1 << align) && end(&piece) <= 8192);
                let apart = |other: &SharedMemoryBlock| end(&piece) <= other.offset() || end(other) <= piece.offset();
                prop_assert!(held.iter().all(apart));
                held.push(piece);
            }
            prop_assert_eq!(allocator.free_bytes() + held.iter().map(SharedMemoryBlock::len).sum::<u64>(), 8192);
        }
        held.into_iter().for_each(|piece| allocator.free(piece));
        prop_assert_eq!(allocator.allocate(8192, 4096).map(|piece| piece.offset()), Some(0));
    }
}
