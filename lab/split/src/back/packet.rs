//! Frame store of the back end, of fixed size. The start of a frame is in the service domain's memory, the
//! rest in granted pages of guests.

use crate::{PIECES, PendingOffloads};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Bytes of a frame that are stored in the service domain: all of a frame from a card.
pub const BUFFER: usize = 2048;

/// Handle of a frame in the back end's frame store.
#[derive(Debug, PartialEq, Eq)]
pub struct FrameHandle(u32);

/// Piece of a stored frame that is still in a guest's page, which the back end has mapped.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MappedFramePiece {
    /// Index in the worker's `pending` list of the request with the piece's mapped page.
    pub(super) slot: u16,
    pub(super) offset: u16,
    pub(super) size: u16,
}

/// Frame in the back end's frame store.
#[derive(Debug)]
pub(super) struct StoredFrame {
    pub(super) buffer: Box<[u8; BUFFER]>,
    /// Number of the frame's bytes, from its start, that are in the service domain's buffer.
    pub(super) head: usize,
    pub(super) pieces: [MappedFramePiece; PIECES],
    pub(super) count: usize,
    /// Back-end worker thread that has mapped the frame's pieces.
    pub(super) worker: usize,
    pub(super) offload: PendingOffloads,
    /// Interface of the guest that the frame is queued for.
    pub(super) to: super::VifIndex,
}

impl StoredFrame {
    fn new() -> Self {
        Self {
            buffer: Box::new([0; BUFFER]),
            head: 0,
            pieces: [MappedFramePiece::default(); PIECES],
            count: 0,
            worker: 0,
            offload: PendingOffloads::default(),
            to: super::VifIndex(0),
        }
    }

    /// Returns the length of the stored frame in bytes: its buffered bytes and all pieces.
    pub(super) fn length(&self) -> usize {
        self.head + self.pieces[..self.count].iter().map(|piece| usize::from(piece.size)).sum::<usize>()
    }
}

/// The back end's store of a fixed number of frames.
#[derive(Debug, Default)]
pub(super) struct BackEndFrameStore {
    packets: Vec<StoredFrame>,
    free: Vec<u32>,
}

impl BackEndFrameStore {
    /// Adds `count` empty frames to the back end's frame store.
    pub(super) fn add(&mut self, count: usize) {
        let first = self.packets.len() as u32;
        self.packets.resize_with(self.packets.len() + count, StoredFrame::new);
        // The lowest numbers are used first, so that few frames stay in the cache.
        self.free.extend(first..first + count as u32);
        self.free.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Allocates a frame from the back end's fixed store of frames. Returns `None` if every frame is in use.
    pub(super) fn take(&mut self) -> Option<FrameHandle> {
        let key = FrameHandle(self.free.pop()?);
        let packet = self.at_mut(&key);
        (packet.head, packet.count, packet.offload) = (0, 0, PendingOffloads::default());
        Some(key)
    }

    /// Frees a frame of the store. A frame's handle cannot be copied, so a frame is freed once.
    pub(super) fn put(&mut self, FrameHandle(at): FrameHandle) {
        self.free.push(at);
    }

    pub(super) fn at(&self, key: &FrameHandle) -> &StoredFrame {
        &self.packets[key.0 as usize]
    }

    pub(super) fn at_mut(&mut self, key: &FrameHandle) -> &mut StoredFrame {
        &mut self.packets[key.0 as usize]
    }

    pub(super) fn used(&self) -> usize {
        self.packets.len() - self.free.len()
    }
}
