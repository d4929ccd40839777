//! Tests the rules of section 2.7 for the device's side of a split ring, on the bytes in memory.

use crate::driver::TestDriver;
use crate::memory::{DESCRIPTORS, DEVICE, DRIVER, GuestMemory};
use crate::queue::{ADDRESSES, split};
use virtio::chain::{ChainBuffer, ChainBurst};
use virtio::layout::{LayoutError, RingAddresses, RingFeatures, RingPart};
use virtio::split::SplitLayout;
use virtio::{RingError, UsedChain};

const IN_ORDER: RingFeatures = RingFeatures { indirect: false, event_index: false, in_order: true };

/// Makes `count` chains of one buffer each available.
fn send(driver: &mut TestDriver, memory: &mut GuestMemory, count: u32, writable: bool) {
    for token in 0..count {
        let buffer = (0x10_0000 + u64::from(token) * 0x1000, 1000, writable);
        assert!(driver.add(memory, token, &[buffer], false));
    }
    driver.publish(memory);
}

#[test]
fn split_ring_size_is_a_power_of_two_up_to_32768() {
    for size in [1, 2, 256, 32_768] {
        assert!(
            SplitLayout::new(size, RingAddresses { driver: 0x80_0000, device: 0x90_0000, ..ADDRESSES })
                .is_ok()
        );
    }
    for size in [0, 3, 255, 65_536, u32::MAX] {
        assert_eq!(SplitLayout::new(size, ADDRESSES), Err(LayoutError::Size { size }));
    }
}

#[test]
fn parts_of_a_split_ring_are_aligned_to_16_2_and_4_bytes() {
    let refused = |part, address, alignment| Err(LayoutError::Address { part, address, alignment });
    let at = |addresses| SplitLayout::new(256, addresses);
    assert_eq!(at(RingAddresses { descriptors: 8, ..ADDRESSES }), refused(RingPart::Descriptors, 8, 16));
    assert_eq!(at(RingAddresses { driver: 0x1001, ..ADDRESSES }), refused(RingPart::Driver, 0x1001, 2));
    assert_eq!(at(RingAddresses { device: 0x1002, ..ADDRESSES }), refused(RingPart::Device, 0x1002, 4));
    let end = u64::MAX - 15;
    assert_eq!(at(RingAddresses { descriptors: end, ..ADDRESSES }), refused(RingPart::Descriptors, end, 16));
}

#[test]
fn burst_of_32_chains_takes_three_reads_and_two_writes() {
    let (mut memory, mut burst) = (GuestMemory::new(), ChainBurst::default());
    let (mut driver, mut queue) = (TestDriver::new(false, 64, false), split(64, RingFeatures::default()));
    send(&mut driver, &mut memory, 40, false);
    assert_eq!(queue.fetch(&mut memory, &mut burst, 32), Ok(32));
    // Index, entries of the available ring, descriptors.
    assert_eq!((memory.reads, memory.read_bytes), (3, 2 + 2 * 32 + 16 * 32));
    let used: Vec<UsedChain> = burst.chains().iter().map(|chain| chain.used(0)).collect();
    queue.complete(&mut memory, &used).unwrap();
    // Elements first, then the index that publishes them (2.7.14).
    assert_eq!(memory.writes, [(DEVICE + 4, 8 * 32), (DEVICE + 2, 2)]);
    // Eight more are known already: the index is not read again.
    memory.forget();
    assert_eq!(queue.fetch(&mut memory, &mut burst, 8), Ok(8));
    assert_eq!(memory.reads, 2);
}

#[test]
fn used_ring_element_has_chain_head_and_written_bytes() {
    let (mut memory, mut burst) = (GuestMemory::new(), ChainBurst::default());
    let (mut driver, mut queue) = (TestDriver::new(false, 4, false), split(4, RingFeatures::default()));
    send(&mut driver, &mut memory, 2, true);
    queue.fetch(&mut memory, &mut burst, 32).unwrap();
    let [first, second] = burst.chains() else { panic!("two chains") };
    assert_eq!(burst.writable(second), [ChainBuffer { address: 0x10_1000, length: 1000 }]);
    // More than the buffers hold cannot have been written.
    queue.complete(&mut memory, &[first.used(999), second.used(5000)]).unwrap();
    assert_eq!(memory.load::<16>(DEVICE + 4), [0, 0, 0, 0, 0xe7, 3, 0, 0, 1, 0, 0, 0, 0xe8, 3, 0, 0]);
    assert_eq!(memory.load_u16(DEVICE + 2), 2);
}

#[test]
fn buffers_of_a_merged_frame_are_published_together() {
    // The driver reads num_buffers in the first buffer and expects the others at once (5.1.6.4).
    let (mut memory, mut burst) = (GuestMemory::new(), ChainBurst::default());
    let (mut driver, mut queue) = (TestDriver::new(false, 4, false), split(4, RingFeatures::default()));
    for round in 0..5_u16 {
        send(&mut driver, &mut memory, 3, true);
        queue.fetch(&mut memory, &mut burst, 32).unwrap();
        let used: Vec<_> =
            burst.chains().iter().zip([1000, 1000, 500]).map(|(chain, bytes)| chain.used(bytes)).collect();
        memory.forget();
        queue.complete(&mut memory, &used).unwrap();
        // Across the end of the ring there are two pieces, and still one publication.
        let indices = memory.writes.iter().filter(|write| write.0 == DEVICE + 2).count();
        assert_eq!((indices, memory.writes.last()), (1, Some(&(DEVICE + 2, 2))), "round {round}");
        let collected: Vec<_> = driver.collect(&mut memory).into_iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(collected, [1000, 1000, 500]);
    }
}

#[test]
fn in_order_batch_writes_one_used_element_at_its_first_index() {
    let (mut memory, mut burst) = (GuestMemory::new(), ChainBurst::default());
    let (mut driver, mut queue) = (TestDriver::new(false, 8, true), split(8, IN_ORDER));
    send(&mut driver, &mut memory, 5, false);
    queue.fetch(&mut memory, &mut burst, 32).unwrap();
    let written = [0; 5];
    let used: Vec<_> = burst.chains().iter().zip(written).map(|(chain, bytes)| chain.used(bytes)).collect();
    queue.complete(&mut memory, &used).unwrap();
    let place = |place: u64| DEVICE + 4 + 8 * place;
    assert_eq!(memory.writes, [(place(0), 8), (DEVICE + 2, 2)]);
    let collected: Vec<_> = driver.collect(&mut memory).into_iter().map(|(_, bytes)| bytes).collect();
    assert_eq!(collected, written);
}

#[test]
fn each_in_order_receive_buffer_gets_its_own_used_element() {
    let (mut memory, mut burst) = (GuestMemory::new(), ChainBurst::default());
    let (mut driver, mut queue) = (TestDriver::new(false, 8, true), split(8, IN_ORDER));
    send(&mut driver, &mut memory, 3, true);
    queue.fetch(&mut memory, &mut burst, 32).unwrap();
    // A batch could skip buffers that are written completely (2.7.9). DPDK's driver then takes stale lengths for theirs.
    let written = [1000, 1000, 10];
    let used: Vec<_> = burst.chains().iter().zip(written).map(|(chain, bytes)| chain.used(bytes)).collect();
    queue.complete(&mut memory, &used).unwrap();
    for (place, bytes) in (0..).zip(written) {
        assert_eq!(memory.load(DEVICE + 4 + 8 * place + 4), bytes.to_le_bytes());
    }
    let collected: Vec<_> = driver.collect(&mut memory).into_iter().map(|(_, bytes)| bytes).collect();
    assert_eq!(collected, written);
}

#[test]
fn event_index_fields_lie_behind_used_and_available_ring() {
    let features = RingFeatures { event_index: true, ..RingFeatures::default() };
    let (mut memory, mut queue) = (GuestMemory::new(), split(4, features));
    memory.store(DRIVER + 2, &3_u16.to_le_bytes());
    let mut burst = ChainBurst::default();
    memory.store(DESCRIPTORS, &[0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(queue.fetch(&mut memory, &mut burst, 3), Ok(3));
    queue.enable_notifications(&mut memory).unwrap();
    // avail_event: the index at which the device wants a notification (2.7.10).
    assert_eq!(memory.load_u16(DEVICE + 4 + 8 * 4), 3);
    // used_event (2.7.7).
    let used: Vec<_> = burst.chains().iter().map(|chain| chain.used(0)).collect();
    queue.complete(&mut memory, &used[..1]).unwrap();
    assert_eq!(queue.needs_interrupt(&mut memory), Ok(true), "the first decision");
    memory.store(DRIVER + 4 + 2 * 4, &2_u16.to_le_bytes());
    queue.complete(&mut memory, &used[1..2]).unwrap();
    assert_eq!(queue.needs_interrupt(&mut memory), Ok(false));
    queue.complete(&mut memory, &used[2..]).unwrap();
    assert_eq!(queue.needs_interrupt(&mut memory), Ok(true), "entry 2 is used");
    assert_eq!(queue.needs_interrupt(&mut memory), Ok(false), "nothing was returned since");
}

#[test]
fn chains_put_back_into_a_split_ring_are_fetched_again() {
    let (mut memory, mut burst) = (GuestMemory::new(), ChainBurst::default());
    let (mut driver, mut queue) = (TestDriver::new(false, 8, false), split(8, RingFeatures::default()));
    send(&mut driver, &mut memory, 6, false);
    queue.fetch(&mut memory, &mut burst, 4).unwrap();
    let chains = burst.chains().to_vec();
    queue.unfetch(&chains[1..]);
    queue.complete(&mut memory, &[chains[0].used(0)]).unwrap();
    assert_eq!((queue.base(), queue.fetched()), (1, 0));
    queue.fetch(&mut memory, &mut burst, 32).unwrap();
    let heads: Vec<u16> = burst.chains().iter().map(virtio::Chain::id).collect();
    assert_eq!(heads, [1, 2, 3, 4, 5]);
}

#[test]
fn returning_more_split_chains_than_fetched_is_refused() {
    let (mut memory, mut burst) = (GuestMemory::new(), ChainBurst::default());
    let (mut driver, mut queue) = (TestDriver::new(false, 8, false), split(8, RingFeatures::default()));
    send(&mut driver, &mut memory, 1, false);
    queue.fetch(&mut memory, &mut burst, 4).unwrap();
    let used = [burst.chains()[0].used(0); 2];
    assert_eq!(queue.complete(&mut memory, &used), Err(RingError::NotFetched { returned: 2, fetched: 1 }));
    assert!(memory.writes.is_empty());
}
