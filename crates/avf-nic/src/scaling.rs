//! Which queue a received frame goes to: the hash of its ends, by the key, types and function that messages or registers have
//! set, looked up in the VF's table. What is not hashed goes to queue 0.
//!
//! Left out: the hash itself (crate `offload`), and what of a frame is hashed (`contents`).

use crate::contents::Contents;
use alloc::boxed::Box;
use avf::control::HashFunction;
use avf::ids::{HASH_KEY, LOOKUP_TABLE};
use offload::toeplitz::Toeplitz;
use serde::{Deserialize, Serialize};

/// Key, table, types and function of the hash. Registers and messages set the same.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Scaling {
    key: [[u8; 4]; HASH_KEY / 4],
    table: [[u8; 4]; LOOKUP_TABLE / 4],
    pub(crate) types: [u32; 2],
    pub(crate) function: HashFunction,
    /// What follows from the key, once a frame has asked for it.
    #[serde(skip)]
    toeplitz: Option<Box<Toeplitz>>,
}

impl Scaling {
    pub(crate) fn key_word(&self, at: usize) -> u32 {
        self.key.get(at).map_or(0, |word| u32::from_le_bytes(*word))
    }

    pub(crate) fn set_key_word(&mut self, at: usize, value: u32) {
        if let Some(word) = self.key.get_mut(at) {
            *word = value.to_le_bytes();
            self.toeplitz = None;
        }
    }

    /// The key, as far as it goes.
    pub(crate) fn set_key(&mut self, key: &[u8]) {
        copy(self.key.as_flattened_mut(), key);
        self.toeplitz = None;
    }

    pub(crate) fn table_word(&self, at: usize) -> u32 {
        self.table.get(at).map_or(0, |word| u32::from_le_bytes(*word))
    }

    pub(crate) fn set_table_word(&mut self, at: usize, value: u32) {
        if let Some(word) = self.table.get_mut(at) {
            *word = value.to_le_bytes();
        }
    }

    /// The table, as far as it goes.
    pub(crate) fn set_table(&mut self, table: &[u8]) {
        copy(self.table.as_flattened_mut(), table);
    }

    /// The queue of a hash.
    fn queue(&self, hash: u32) -> u8 {
        self.table.as_flattened()[(hash as usize) % LOOKUP_TABLE]
    }

    /// The hash of a frame, if its packet type is one that is hashed; and its queue.
    #[inline]
    pub(crate) fn spread(&mut self, frame: &[u8], contents: Contents) -> (Option<u32>, u8) {
        let types = u64::from(self.types[1]) << 32 | u64::from(self.types[0]);
        if types & contents.hash_type() == 0 {
            return (None, 0);
        }
        let hash = self.hash(frame, contents);
        (Some(hash), self.queue(hash))
    }

    #[inline(never)]
    fn hash(&mut self, frame: &[u8], contents: Contents) -> u32 {
        let Self { key, toeplitz, .. } = self;
        let toeplitz = toeplitz.get_or_insert_with(|| Box::new(Toeplitz::new(key.as_flattened())));
        let (addresses, ports) = contents.ends(frame);
        match self.function {
            HashFunction::Toeplitz => toeplitz.hash(addresses, ports),
            HashFunction::Symmetric => toeplitz.hash_symmetric(addresses, ports),
        }
    }
}

fn copy(into: &mut [u8], from: &[u8]) {
    into.iter_mut().zip(from).for_each(|(into, from)| *into = *from);
}
