//! AF_XDP ring: one thread writes entries and the other reads them. The kernel's part is the product's other side, whose orderings
//! are those of the kernel (`xsk_queue.h`).

mod entries;
mod memory;
#[path = "../../../../crates/host/src/xdp/ring.rs"]
mod ring;

use memory::{CONSUMER, FLAGS, PRODUCER, Weakness, XdpMemoryMapping};
use ring::{RingConsumerSide, RingProducerSide, XdpRing, XdpRingLayout};

/// Sends entries through a ring, whose producer waits while it is full. loom ends with an error if a side accesses an entry that
/// belongs to the other one.
fn send_entries(count: u64, size: u32, weakness: Option<Weakness>) {
    let layout = XdpRingLayout { producer: PRODUCER, consumer: CONSUMER, flags: FLAGS, entries: 0, size };
    let memory = XdpMemoryMapping::new(layout.len::<u64>() / size_of::<u64>(), weakness);
    let mut from = XdpRing::<u64, RingProducerSide>::new(memory.clone(), layout).unwrap();
    let mut to = XdpRing::<u64, RingConsumerSide>::new(memory, layout).unwrap();
    let producer = loom::thread::spawn(move || {
        for entry in 0..count {
            while !from.push(entry) {
                loom::thread::yield_now();
                from.room().unwrap();
            }
            from.publish();
        }
        assert!(!from.wants_waking() && from.unread().unwrap() <= size);
    });
    let mut expected = 0;
    while expected < count {
        if to.available().unwrap() == 0 {
            loom::thread::yield_now();
        }
        while let Some(entry) = to.pop() {
            assert_eq!(entry, expected);
            expected += 1;
        }
        to.release();
    }
    producer.join().unwrap();
}

/// Runs the orders with a number of preemptions at most: the sides wait for each other in loops, so all orders take minutes.
fn check_preemptions(preemptions: usize, count: u64, size: u32) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || send_entries(count, size, None));
}

#[test]
fn xdp_ring_of_one_entry_passes_two_entries_in_order() {
    check_preemptions(3, 2, 1);
}

#[test]
fn xdp_ring_of_two_entries_passes_three_entries_in_order() {
    check_preemptions(2, 3, 2);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn control_producer_index_with_relaxed_stores() {
    loom::model(|| send_entries(2, 1, Some(Weakness::Stores(PRODUCER))));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn control_producer_index_with_relaxed_loads() {
    loom::model(|| send_entries(2, 1, Some(Weakness::Loads(PRODUCER))));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn control_consumer_index_with_relaxed_stores() {
    loom::model(|| send_entries(2, 1, Some(Weakness::Stores(CONSUMER))));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn control_consumer_index_with_relaxed_loads() {
    loom::model(|| send_entries(2, 1, Some(Weakness::Loads(CONSUMER))));
}
