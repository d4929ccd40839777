//! Frames on their way through the service domain, in a store that does not grow: the beginning of each in memory
//! of the service domain, the rest in pages that a guest has granted. Left out: where they go.

use crate::{Offload, PIECES};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Bytes of a frame that the service domain holds itself: all of a frame from a card.
pub const BUFFER: usize = 2048;

/// A frame in the store.
#[derive(Debug, PartialEq, Eq)]
pub struct Key(u32);

/// Bytes in a page that is mapped.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Piece {
    /// The slot of the worker's that holds the mapping.
    pub(super) slot: u16,
    pub(super) offset: u16,
    pub(super) size: u16,
}

/// A frame.
#[derive(Debug)]
pub(super) struct Packet {
    pub(super) buffer: Box<[u8; BUFFER]>,
    /// Bytes in the buffer.
    pub(super) head: usize,
    pub(super) pieces: [Piece; PIECES],
    pub(super) count: usize,
    /// Whose worker's slots the pieces are in.
    pub(super) worker: usize,
    pub(super) offload: Offload,
    /// For whom it is queued.
    pub(super) to: super::Vif,
}

impl Packet {
    fn new() -> Self {
        Self {
            buffer: Box::new([0; BUFFER]),
            head: 0,
            pieces: [Piece::default(); PIECES],
            count: 0,
            worker: 0,
            offload: Offload::default(),
            to: super::Vif(0),
        }
    }

    /// Bytes of the whole frame.
    pub(super) fn length(&self) -> usize {
        self.head + self.pieces[..self.count].iter().map(|piece| usize::from(piece.size)).sum::<usize>()
    }
}

/// The store.
#[derive(Debug, Default)]
pub(super) struct Packets {
    packets: Vec<Packet>,
    free: Vec<u32>,
}

impl Packets {
    /// Makes room for so many more.
    pub(super) fn add(&mut self, count: usize) {
        let first = self.packets.len() as u32;
        self.packets.resize_with(self.packets.len() + count, Packet::new);
        // The lowest are used first, so that few frames stay in the cache.
        self.free.extend(first..first + count as u32);
        self.free.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// An empty frame; `None` if all are under way.
    pub(super) fn take(&mut self) -> Option<Key> {
        let key = Key(self.free.pop()?);
        let packet = self.at_mut(&key);
        (packet.head, packet.count, packet.offload) = (0, 0, Offload::default());
        Some(key)
    }

    /// Gives a frame back. A key is not copied, so it is given back once.
    pub(super) fn put(&mut self, Key(at): Key) {
        self.free.push(at);
    }

    pub(super) fn at(&self, key: &Key) -> &Packet {
        &self.packets[key.0 as usize]
    }

    pub(super) fn at_mut(&mut self, key: &Key) -> &mut Packet {
        &mut self.packets[key.0 as usize]
    }

    pub(super) fn used(&self) -> usize {
        self.packets.len() - self.free.len()
    }
}
