//! Tests a driver that publishes a chain in the middle of any of the device's reads, at any byte: the device sees the
//! whole chain or no part of it. Another processor's stores may interrupt a copy of many bytes in the same way.

use crate::driver::TestDriver;
use crate::memory::GuestMemory;
use crate::queue::EitherQueue;
use virtio::chain::{ChainBuffer, ChainBurst};
use virtio::layout::RingFeatures;
use virtio::memory::{MemoryFault, RingMemory};

/// Memory whose contents change to those of `after` when the device has read a given number of bytes.
struct TornMemory<'a> {
    now: &'a [u8],
    after: &'a [u8],
    /// Number of bytes that the device still reads before the memory changes. Numbers of two bytes are read at once, so
    /// the number is even.
    left: usize,
}

impl RingMemory for TornMemory<'_> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        let start = address as usize;
        let early = into.len().min(self.left);
        into[..early].copy_from_slice(&self.now[start..start + early]);
        self.left -= early;
        if self.left == 0 {
            self.now = self.after;
        }
        let late = early..into.len();
        into[late.clone()].copy_from_slice(&self.after[start + late.start..start + late.end]);
        Ok(())
    }

    fn write(&mut self, _: u64, _: &[u8]) -> Result<(), MemoryFault> {
        unreachable!("a fetch writes nothing")
    }
}

/// Publishes lists of the given lengths during a fetch, once at each byte of the device's reads, after `before` chains
/// of one buffer. Returns the number of bytes at which it did so.
fn tear(is_packed: bool, before: u32, lists: &[u64]) -> usize {
    let (mut memory, mut driver) = (GuestMemory::new(), TestDriver::new(is_packed, 8, false));
    // A round of other chains fills the ring with descriptors of old contents.
    let features = RingFeatures::default();
    let (mut queue, mut burst) = (EitherQueue::new(is_packed, 8, features), ChainBurst::default());
    for token in 0..8 {
        assert!(driver.add(&mut memory, token, &[(0xbad_0000, 13, false)], false));
    }
    driver.publish(&mut memory);
    assert_eq!(queue.fetch(&mut memory, &mut burst, 32), Ok(8));
    let used: Vec<_> = burst.chains().iter().map(|chain| chain.used(0)).collect();
    queue.complete(&mut memory, &used).unwrap();
    driver.collect(&mut memory);
    for token in 0..before {
        driver.add(&mut memory, token, &[(0x9000, 60, false)], false);
    }
    driver.publish(&mut memory);
    let now = memory.bytes.clone();
    for (token, length) in lists.iter().enumerate() {
        let buffers: Vec<_> = (0..*length).map(|at| (0xa000 + at, 61, false)).collect();
        assert!(driver.add(&mut memory, token as u32, &buffers, false));
    }
    driver.publish(&mut memory);
    let mut places = 0;
    for left in (2..).step_by(2) {
        let mut torn = TornMemory { now: &now, after: &memory.bytes, left };
        let mut queue = queue.clone();
        let mut seen = Vec::new();
        while queue.fetch(&mut torn, &mut burst, 32).unwrap() > 0 {
            for chain in burst.chains() {
                assert_eq!(chain.fault(), None);
                seen.push(burst.readable(chain).to_vec());
            }
        }
        let single = vec![vec![ChainBuffer { address: 0x9000, length: 60 }]; before as usize];
        let list = |length: &u64| -> Vec<_> {
            (0..*length).map(|at| ChainBuffer { address: 0xa000 + at, length: 61 }).collect()
        };
        let whole = [single, lists.iter().map(list).collect()].concat();
        assert_eq!(seen, whole[..seen.len()], "torn after {left} bytes");
        assert!(seen.len() >= before as usize);
        places += 1;
        if torn.left > 0 {
            break;
        }
    }
    places
}

#[test]
fn chain_published_during_a_read_is_seen_whole_or_not_at_all() {
    for is_packed in [false, true] {
        for before in 0..5 {
            for lists in [&[1][..], &[1, 1, 1], &[3], &[1, 2]] {
                assert!(tear(is_packed, before, lists) > 1);
            }
        }
    }
}
