//! A hostile guest with a split and a packed ring in its memory, which it writes between and during the device's accesses.
//!
//! The first byte of the input selects the ring, its size and its features. The rest is a list of moves, each a byte with
//! the kind and then its parameters. Checked: no panic, a bounded number of accesses for each call, and chains whose sums of
//! bytes are those of their buffers.
#![cfg_attr(not(test), no_main)]

use memory::{DESCRIPTORS, DRIVER, GuestMemory};
use queue::EitherQueue;
use softiov_fuzz::FuzzerInput;
use virtio::chain::{Chain, ChainBuffer, ChainBurst};
use virtio::descriptor::flag;
use virtio::layout::RingFeatures;

#[path = "../../crates/virtio/tests/rings/memory.rs"]
mod memory;
#[path = "../../crates/virtio/tests/rings/queue.rs"]
mod queue;

/// Maximum number of guest memory accesses in one call of the device: descriptors of a burst, and lists in blocks.
const MOST_ACCESSES: usize = 500;

/// Virtio device with the descriptor chains that it has fetched.
struct RingDevice {
    queue: EitherQueue,
    features: RingFeatures,
    burst: ChainBurst,
    fetched: Vec<Chain>,
}

impl RingDevice {
    fn fetch(&mut self, memory: &mut GuestMemory, most: usize) {
        if self.queue.fetch(memory, &mut self.burst, most).is_err() {
            return;
        }
        for chain in self.burst.chains() {
            let bytes =
                |part: &[ChainBuffer]| part.iter().map(|buffer| u64::from(buffer.length)).sum::<u64>();
            assert_eq!(bytes(self.burst.readable(chain)), chain.readable_bytes().into());
            assert_eq!(bytes(self.burst.writable(chain)), chain.writable_bytes().into());
        }
        self.fetched.extend(self.burst.chains());
    }
}

/// Makes the hostile guest's next move. Returns `None` at the end of the fuzzer's input.
fn make_move(
    memory: &mut GuestMemory,
    device: &mut RingDevice,
    input: &mut FuzzerInput<'_>,
    packed: bool,
) -> Option<()> {
    let [kind, parameter] = input.array()?;
    match kind % 8 {
        // Descriptors near the ring, with flags that mean something.
        0 | 1 => {
            let [address, length, flags, next] = input.array()?;
            let wrap = if flags & 0x80 != 0 { flag::USED } else { flag::AVAIL };
            let flags = u16::from(flags & 7) | if packed { wrap } else { 0 };
            let (third, fourth) = if packed { (u16::from(next), flags) } else { (flags, u16::from(next)) };
            let place = DESCRIPTORS + 16 * u64::from(parameter);
            memory.store(place, &(u64::from(address) << 8).to_le_bytes());
            memory.store(place + 8, &(u32::from(length) * 8).to_le_bytes());
            memory.store(place + 12, &third.to_le_bytes());
            memory.store(place + 14, &fourth.to_le_bytes());
        }
        2 => {
            let [index] = input.array()?;
            memory.store(DRIVER + 2 + 2 * u64::from(parameter % 70), &u16::from(index).to_le_bytes());
        }
        3 => {
            let [low, high, value] = input.array()?;
            memory.bytes[usize::from(u16::from_le_bytes([low, high]))] = value;
        }
        4 => device.fetch(memory, parameter.into()),
        5 => {
            let written = u32::from(parameter) * 100;
            let used: Vec<_> = device.fetched.drain(..).map(|chain| chain.used(written)).collect();
            device.queue.complete(memory, &used).expect("the ring is in memory, and the chains were fetched");
        }
        6 => {
            let kept = device.fetched.len().saturating_sub(parameter.into());
            let back = device.fetched.split_off(kept);
            device.queue.unfetch(&back);
            if device.fetched.is_empty() {
                device.queue.restart(device.features);
            }
        }
        _ => {
            let _ = device.queue.needs_interrupt(memory);
            let _ = device.queue.enable_notifications(memory);
            memory.turmoil = parameter.into();
        }
    }
    Some(())
}

softiov_fuzz::target!(run);

/// Runs the target on one input.
fn run(data: &[u8]) {
    let mut input = FuzzerInput(data);
    let [first] = input.array().unwrap_or_default();
    let packed = first & 1 != 0;
    let features =
        RingFeatures { indirect: first & 2 != 0, event_index: first & 4 != 0, in_order: first & 8 != 0 };
    let size = 1 << (first >> 5);
    let mut memory = GuestMemory::new();
    let mut device = RingDevice {
        queue: EitherQueue::new(packed, size, features),
        features,
        burst: ChainBurst::default(),
        fetched: Vec::new(),
    };
    loop {
        memory.forget();
        if make_move(&mut memory, &mut device, &mut input, packed).is_none() {
            break;
        }
        let accesses = memory.reads + memory.writes.len();
        assert!(accesses <= MOST_ACCESSES, "{accesses} accesses");
    }
}
