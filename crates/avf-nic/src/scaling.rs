//! Receive side scaling: hashes the addresses and ports of a received frame with the VF's key, and looks its queue up in the VF's
//! table. Messages or registers set key, table, types and function. Frames of other types go to queue 0. The crate `offload`
//! computes the hash, `contents` finds the hashed bytes.

use crate::contents::FrameContentFields;
use crate::plain;
use alloc::boxed::Box;
use avf::control::RssHashFunction;
use avf::ids::{HASH_KEY, LOOKUP_TABLE};
use offload::plain::PlainFrame;
use offload::toeplitz::Toeplitz;
use serde::{Deserialize, Serialize};

/// Settings of the receive hash: key, table, types and function.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename = "Scaling")]
pub(crate) struct RssSettings {
    key: [[u8; 4]; HASH_KEY / 4],
    table: [[u8; 4]; LOOKUP_TABLE / 4],
    pub(crate) types: [u32; 2],
    function: RssHashFunction,
    /// Hash key in the form that the hash function uses, and recent hashes; `None` before the first hashed frame.
    #[serde(skip)]
    derived: Option<Box<RssHashCache>>,
}

/// Hash key in the form that the hash function uses, and the hashes of recent flows.
#[derive(Debug, Clone)]
struct RssHashCache {
    toeplitz: Toeplitz,
    recent: [FlowHash; RECENT],
}

/// Addresses and ports of a flow, and their hash. The empty entry is correct: the hash of zeros is zero.
#[derive(Debug, Clone, Copy, Default)]
struct FlowHash {
    ends: [u64; 2],
    hash: u32,
}

/// Number of flows whose hash is kept. Computing a hash takes 24 table look-ups.
const RECENT: usize = 64;

impl FlowHash {
    /// Returns the index of a flow's entry among the kept hashes, by Fibonacci hashing.
    #[inline(always)]
    fn place([first, second]: [u64; 2]) -> usize {
        ((first ^ second.rotate_left(20)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % RECENT
    }
}

impl RssSettings {
    pub(crate) fn key_word(&self, at: usize) -> u32 {
        self.key.get(at).map_or(0, |word| u32::from_le_bytes(*word))
    }

    pub(crate) fn set_key_word(&mut self, at: usize, value: u32) {
        if let Some(word) = self.key.get_mut(at) {
            *word = value.to_le_bytes();
            self.derived = None;
        }
    }

    /// Sets the RSS hash key, or its first bytes.
    pub(crate) fn set_key(&mut self, key: &[u8]) {
        copy(self.key.as_flattened_mut(), key);
        self.derived = None;
    }

    pub(crate) fn table_word(&self, at: usize) -> u32 {
        self.table.get(at).map_or(0, |word| u32::from_le_bytes(*word))
    }

    pub(crate) fn set_table_word(&mut self, at: usize, value: u32) {
        if let Some(word) = self.table.get_mut(at) {
            *word = value.to_le_bytes();
        }
    }

    /// Sets the table that maps hashes to queues, or its first entries.
    pub(crate) fn set_table(&mut self, table: &[u8]) {
        copy(self.table.as_flattened_mut(), table);
    }

    pub(crate) fn set_function(&mut self, function: RssHashFunction) {
        self.function = function;
        self.derived = None;
    }

    #[inline(always)]
    fn types(&self) -> u64 {
        u64::from(self.types[1]) << 32 | u64::from(self.types[0])
    }

    /// Returns the receive queue that the table names for a hash.
    fn queue(&self, hash: u32) -> u8 {
        self.table.as_flattened()[(hash as usize) % LOOKUP_TABLE]
    }

    /// Returns the hash of a frame, if its type is hashed, and the frame's receive queue.
    #[inline]
    pub(crate) fn spread(&mut self, frame: &[u8], contents: FrameContentFields) -> (Option<u32>, u8) {
        if self.types() & contents.hash_type() == 0 {
            return (None, 0);
        }
        let hash = self.hash(contents.ends(frame));
        (Some(hash), self.queue(hash))
    }

    /// Returns the hash of a plain frame, from the kept hashes if its flow is there, and the frame's receive queue.
    #[inline(always)]
    pub(crate) fn spread_plain(&mut self, plain: &PlainFrame<'_>) -> (Option<u32>, u8) {
        if self.types() & plain::hash_type(plain.is_udp()) == 0 {
            return (None, 0);
        }
        let (ends, place) = (plain.ends(), FlowHash::place(plain.ends()));
        let hash = match self.derived.as_ref().map(|derived| derived.recent[place]) {
            Some(recent) if recent.ends == ends => recent.hash,
            _ => self.hash_anew(plain, place),
        };
        (Some(hash), self.queue(hash))
    }

    #[cold]
    fn hash_anew(&mut self, plain: &PlainFrame<'_>, place: usize) -> u32 {
        let hash = self.hash(plain.end_bytes());
        if let Some(derived) = &mut self.derived {
            derived.recent[place] = FlowHash { ends: plain.ends(), hash };
        }
        hash
    }

    /// Returns true if at least one packet type is hashed.
    #[inline]
    pub(crate) fn hashes(&self) -> bool {
        self.types() != 0
    }

    /// Computes the receive hash of addresses and ports by the VF's hash function.
    fn hash(&mut self, (addresses, ports): (&[u8], &[u8])) -> u32 {
        let Self { key, derived, .. } = self;
        let derived = derived.get_or_insert_with(|| {
            let toeplitz = Toeplitz::new(key.as_flattened());
            Box::new(RssHashCache { toeplitz, recent: [FlowHash::default(); RECENT] })
        });
        match self.function {
            RssHashFunction::Toeplitz => derived.toeplitz.hash(addresses, ports),
            RssHashFunction::Symmetric => derived.toeplitz.hash_symmetric(addresses, ports),
        }
    }
}

fn copy(into: &mut [u8], from: &[u8]) {
    into.iter_mut().zip(from).for_each(|(into, from)| *into = *from);
}
