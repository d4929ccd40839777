//! Tests that driver and device exchange every chain exactly once and in order, across wraps of small rings.

use crate::driver::Buffer;
use crate::driver::TestDriver;
use crate::memory::GuestMemory;
use crate::queue::EitherQueue;
use proptest::prelude::*;
use std::collections::VecDeque;
use virtio::chain::{Chain, ChainBurst};
use virtio::layout::RingFeatures;

/// Step of a random exchange between driver and device.
#[derive(Debug, Clone)]
enum RingExchangeStep {
    /// The driver adds a chain. Fields: lengths of its buffers, number of buffers that the device only reads, and true
    /// for an indirect table.
    Add(Vec<u32>, usize, bool),
    Publish,
    Collect,
    Fetch(usize),
    /// The device returns chains. Fields: number of chains, and number of sixteenths of each chain's writable bytes
    /// that the device writes.
    Complete(usize, u32),
    /// The device puts this many fetched chains back into the ring.
    Unfetch(usize),
    /// The device is replaced by a successor, which resumes at the device's position in the ring.
    Restart,
}

fn moves() -> impl Strategy<Value = Vec<RingExchangeStep>> {
    let add = (proptest::collection::vec(1_u32..3000, 1..5), 0_usize..5, any::<bool>());
    let one = prop_oneof![
        6 => add.prop_map(|(lengths, readable, indirect)| RingExchangeStep::Add(lengths, readable, indirect)),
        3 => Just(RingExchangeStep::Publish),
        3 => Just(RingExchangeStep::Collect),
        4 => (1_usize..40).prop_map(RingExchangeStep::Fetch),
        4 => (1_usize..9, prop_oneof![Just(16), 0_u32..17]).prop_map(|(count, share)| RingExchangeStep::Complete(count, share)),
        1 => (1_usize..4).prop_map(RingExchangeStep::Unfetch),
        1 => Just(RingExchangeStep::Restart),
    ];
    proptest::collection::vec(one, 1..200)
}

/// Driver and device, with the chains that the device must fetch next and those that the driver must collect
/// next.
struct RingExchange {
    memory: GuestMemory,
    driver: TestDriver,
    queue: EitherQueue,
    features: RingFeatures,
    burst: ChainBurst,
    token: u32,
    /// Chains that the driver has added and the device has not fetched.
    added: VecDeque<(u32, Vec<Buffer>)>,
    /// Chains that the device has fetched and not returned.
    fetched: VecDeque<(Chain, (u32, Vec<Buffer>))>,
    /// Chains that the device has returned and the driver has not collected, with the bytes written.
    returned: VecDeque<(u32, u32)>,
}

impl RingExchange {
    fn new(is_packed: bool, size: u16, features: RingFeatures) -> Self {
        Self {
            memory: GuestMemory::new(),
            driver: TestDriver::new(is_packed, size, features.in_order),
            queue: EitherQueue::new(is_packed, size, features),
            features,
            burst: ChainBurst::default(),
            token: 0,
            added: VecDeque::new(),
            fetched: VecDeque::new(),
            returned: VecDeque::new(),
        }
    }

    fn make(&mut self, step: RingExchangeStep) {
        match step {
            RingExchangeStep::Add(lengths, readable, indirect) => self.add(&lengths, readable, indirect),
            RingExchangeStep::Publish => self.driver.publish(&mut self.memory),
            RingExchangeStep::Collect => self.collect(),
            RingExchangeStep::Fetch(most) => self.fetch(most),
            RingExchangeStep::Complete(count, share) => self.complete(count, share),
            RingExchangeStep::Unfetch(count) => self.unfetch(count),
            RingExchangeStep::Restart => {
                self.unfetch(usize::MAX);
                self.queue.restart(self.features);
            }
        }
    }

    fn add(&mut self, lengths: &[u32], readable: usize, indirect: bool) {
        let base = 0x1_0000_0000 + u64::from(self.token) * 0x1_0000;
        let buffer = |(at, length): (usize, &u32)| (base + at as u64 * 0x1000, *length, at >= readable);
        let buffers: Vec<Buffer> = lengths.iter().enumerate().map(buffer).collect();
        if self.driver.add(&mut self.memory, self.token, &buffers, indirect && self.features.indirect) {
            self.added.push_back((self.token, buffers));
            self.token += 1;
        }
    }

    fn fetch(&mut self, most: usize) {
        let count = self.queue.fetch(&mut self.memory, &mut self.burst, most).unwrap();
        assert!(count <= most);
        assert_eq!(count, self.burst.chains().len());
        for chain in self.burst.chains() {
            let sent = self.added.pop_front().expect("no chain is fetched twice");
            let buffers = |part: &[virtio::chain::ChainBuffer], writable| -> Vec<Buffer> {
                part.iter().map(|buffer| (buffer.address, buffer.length, writable)).collect()
            };
            let readable = buffers(self.burst.readable(chain), false);
            let found = [readable, buffers(self.burst.writable(chain), true)].concat();
            assert_eq!((chain.fault(), &found), (None, &sent.1));
            let bytes: u32 = found.iter().map(|buffer| buffer.1).sum();
            assert_eq!(chain.readable_bytes() + chain.writable_bytes(), bytes);
            self.fetched.push_back((*chain, sent));
        }
    }

    fn complete(&mut self, count: usize, share: u32) {
        let these: Vec<_> = self.fetched.drain(..count.min(self.fetched.len())).collect();
        let written = |chain: &Chain| chain.writable_bytes() * share / 16;
        let used: Vec<_> = these.iter().map(|(chain, _)| chain.used(written(chain))).collect();
        self.queue.complete(&mut self.memory, &used).unwrap();
        self.returned.extend(these.iter().map(|(chain, sent)| (sent.0, written(chain))));
    }

    fn unfetch(&mut self, count: usize) {
        let kept = self.fetched.len().saturating_sub(count);
        let back: Vec<_> = self.fetched.drain(kept..).collect();
        self.queue.unfetch(&back.iter().map(|(chain, _)| *chain).collect::<Vec<_>>());
        back.into_iter().rev().for_each(|(_, sent)| self.added.push_front(sent));
    }

    fn collect(&mut self) {
        for (chain, written) in self.driver.collect(&mut self.memory) {
            let expected = self.returned.pop_front().expect("no chain is returned twice");
            assert_eq!((chain.token, written), expected);
        }
    }

    /// Makes device and driver complete all chains: the device fetches and returns them, and the driver collects them.
    fn finish(&mut self) {
        self.driver.publish(&mut self.memory);
        let work = |exchange: &Self| 2 * exchange.added.len() + exchange.fetched.len();
        while work(self) > 0 {
            let before = work(self);
            self.complete(usize::MAX, 16);
            self.fetch(32);
            self.collect();
            assert!(work(self) < before, "the exchange stands still");
        }
        self.collect();
        assert!(self.returned.is_empty(), "a chain did not come back");
    }
}

fn features() -> impl Strategy<Value = RingFeatures> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(indirect, event_index, in_order)| RingFeatures {
        indirect,
        event_index,
        in_order,
    })
}

fn exchange(is_packed: bool, size: u16, features: RingFeatures, moves: Vec<RingExchangeStep>) {
    let mut exchange = RingExchange::new(is_packed, size, features);
    moves.into_iter().for_each(|step| exchange.make(step));
    exchange.finish();
}

proptest! {
    #[test]
    fn split_ring_passes_each_chain_once_and_in_order(
        size in prop_oneof![Just(1_u16), Just(4), Just(8), Just(64)],
        features in features(),
        moves in moves(),
    ) {
        exchange(false, size, features, moves);
    }

    #[test]
    fn packed_ring_passes_each_chain_once_and_in_order(
        size in prop_oneof![Just(1_u16), Just(3), Just(5), Just(8), Just(64)],
        features in features(),
        moves in moves(),
    ) {
        exchange(true, size, features, moves);
    }
}

/// Passes 70,000 chains through a ring in bursts, so that running indices of 16 bits wrap too.
fn run_long(is_packed: bool) {
    let features = RingFeatures::default();
    let mut exchange = RingExchange::new(is_packed, 64, features);
    while exchange.token < 70_000 {
        for _ in 0..48 {
            exchange.add(&[64], 1, false);
        }
        exchange.finish();
    }
}

#[test]
fn split_ring_survives_the_wrap_of_its_16_bit_indices() {
    run_long(false);
}

#[test]
fn packed_ring_survives_a_thousand_wraps() {
    run_long(true);
}
