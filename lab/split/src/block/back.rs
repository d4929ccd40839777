//! The block back end: the service domain's half of a split disk driver. A request is copied once, then
//! refused or turned into a disk command; its pages stay mapped until the disk completes it. Each call takes
//! one request, and nothing a guest writes prolongs the call. A guest with an invalid ring is ignored from
//! then on.

use super::{BlockRequestHeader, BlockRequestSegment, BlockResponse, READ, SEGMENTS, WRITE};
use crate::back::NotGranted;
use crate::message::status;
use crate::ring::{BackRing, RingPage};
use alloc::vec::Vec;
use core::fmt::Debug;

/// Maximum number of block requests that the disk processes at once.
pub const REQUESTS: usize = 32;

/// Machine operations that the block back end needs. The implementer accounts for the costs.
pub trait BlockBackendHal {
    /// Handle of a guest's page that the back end has mapped.
    type Mapping: Copy + Debug;

    /// Returns the ring that front end and back end share.
    fn ring(&mut self) -> &mut RingPage;

    /// Maps a granted page: for writing if the block request reads from the disk.
    ///
    /// # Errors
    /// [`NotGranted`] if the grant does not permit it.
    fn map(&mut self, reference: u32, write: bool) -> Result<Self::Mapping, NotGranted>;

    /// Unmaps a guest's page that the block back end has mapped.
    fn unmap(&mut self, mapping: Self::Mapping);

    /// Sends an event to the guest's front end.
    fn notify(&mut self);
}

/// Command that the block back end gives to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockCommand {
    /// Tag that identifies the disk command to [`BlockBackend::complete`].
    pub tag: u8,
    /// True if the command writes to the disk; false if it reads.
    pub write: bool,
    /// First sector that the command reads or writes.
    pub sector: u64,
    /// Number of sectors that the command reads or writes.
    pub sectors: u32,
}

/// Outcome of polling the ring for a block request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockRequestOutcome {
    /// Polling the ring gave this command for the disk.
    Command(BlockCommand),
    /// The block request was invalid and was answered with an error.
    Refused,
    /// No block request is pending, or the disk already processes the maximum number.
    Idle,
}

/// Counters of a guest's disk requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlockRequestCounters {
    /// Number of block requests given to the disk.
    pub taken: u64,
    /// Number of block requests completed by the disk and answered.
    pub done: u64,
    /// Number of invalid block requests, answered with an error.
    pub refused: u64,
}

/// Block request that the disk has not completed.
#[derive(Debug)]
struct PendingBlockRequest<M> {
    id: u16,
    pages: Vec<M>,
}

/// Block back end of one disk.
#[derive(Debug)]
pub struct BlockBackend<M> {
    ring: BackRing,
    /// Number of sectors of the block back end's disk.
    sectors: u64,
    /// True if the guest may write to the disk, not only read it.
    writable: bool,
    pending: [Option<PendingBlockRequest<M>>; REQUESTS],
    broken: bool,
    counters: BlockRequestCounters,
}

impl<M: Copy + Debug> BlockBackend<M> {
    /// Creates the back end of a disk of `sectors` sectors.
    #[must_use]
    pub fn new(sectors: u64, writable: bool) -> Self {
        Self {
            ring: BackRing::default(),
            sectors,
            writable,
            pending: [const { None }; REQUESTS],
            broken: false,
            counters: BlockRequestCounters::default(),
        }
    }

    /// Returns `true` if the back end ignores the guest's ring, because the ring had an invalid index.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Returns the counters of the guest's disk requests.
    #[must_use]
    pub fn counters(&self) -> BlockRequestCounters {
        self.counters
    }

    /// Returns the number of block requests that the disk has not completed.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.pending.iter().flatten().count()
    }

    /// Takes the next block request, or requests an event if none is pending.
    pub fn take<H: BlockBackendHal<Mapping = M>>(&mut self, host: &mut H) -> BlockRequestOutcome {
        let Some(tag) = self.pending.iter().position(Option::is_none).filter(|_| !self.broken) else {
            return BlockRequestOutcome::Idle;
        };
        let Some((header, segments)) = self.next(host) else { return BlockRequestOutcome::Idle };
        let Some((command, pages)) = self.check(tag as u8, &header, &segments, host) else {
            self.counters.refused += 1;
            self.answer(header.id, status::ERROR, segments.len(), host);
            return BlockRequestOutcome::Refused;
        };
        self.counters.taken += 1;
        self.pending[tag] = Some(PendingBlockRequest { id: header.id, pages });
        BlockRequestOutcome::Command(command)
    }

    /// Answers the block request of a completed disk command. Returns `false` if no command has that tag.
    pub fn complete<H: BlockBackendHal<Mapping = M>>(
        &mut self,
        tag: u8,
        succeeded: bool,
        host: &mut H,
    ) -> bool {
        let Some(PendingBlockRequest { id, pages }) =
            self.pending.get_mut(usize::from(tag)).and_then(Option::take)
        else {
            return false;
        };
        pages.iter().for_each(|page| host.unmap(*page));
        self.counters.done += 1;
        let status = if succeeded { status::OKAY } else { status::ERROR };
        self.answer(id, status, pages.len(), host);
        true
    }

    /// Takes the next block request with its segments from the ring. Guests publish whole requests, so an
    /// incomplete one makes the ring invalid.
    fn next<H: BlockBackendHal<Mapping = M>>(
        &mut self,
        host: &mut H,
    ) -> Option<(BlockRequestHeader, Vec<BlockRequestSegment>)> {
        if self.ring.pending(host.ring()) == Ok(0) {
            self.ring.arm_event(host.ring());
        }
        let slots = match self.ring.pending(host.ring()) {
            Ok(0) => return None,
            Ok(slots) => slots,
            Err(_) => return self.breaks(),
        };
        let header = BlockRequestHeader::parse(&self.ring.take(host.ring())?);
        if header.segments > SEGMENTS || slots <= u32::from(header.segments) {
            return self.breaks();
        }
        let mut segments = Vec::with_capacity(SEGMENTS.into());
        for _ in 0..header.segments {
            match self.ring.take(host.ring()) {
                Some(slot) => segments.push(BlockRequestSegment::parse(&slot)),
                None => return self.breaks(),
            }
        }
        Some((header, segments))
    }

    fn breaks<T>(&mut self) -> Option<T> {
        self.broken = true;
        None
    }

    /// Checks a block request and maps its pages. Returns the request's disk command, or `None` with no page
    /// mapped if the request is invalid.
    fn check<H: BlockBackendHal<Mapping = M>>(
        &self,
        tag: u8,
        header: &BlockRequestHeader,
        segments: &[BlockRequestSegment],
        host: &mut H,
    ) -> Option<(BlockCommand, Vec<M>)> {
        let write = match header.operation {
            READ => false,
            WRITE if self.writable => true,
            _ => return None,
        };
        let sectors: u64 = segments.iter().map(|segment| segment.sectors()).sum::<Option<u64>>()?;
        let end = header.sector.checked_add(sectors)?;
        if sectors == 0 || end > self.sectors {
            return None;
        }
        let mut pages = Vec::with_capacity(segments.len());
        for segment in segments {
            match host.map(segment.reference, !write) {
                Ok(page) => pages.push(page),
                Err(NotGranted) => {
                    pages.iter().for_each(|page| host.unmap(*page));
                    return None;
                }
            }
        }
        Some((BlockCommand { tag, write, sector: header.sector, sectors: sectors as u32 }, pages))
    }

    /// Puts a block request's response on the ring, in all slots of the request, and publishes the response.
    fn answer<H: BlockBackendHal<Mapping = M>>(
        &mut self,
        id: u16,
        status: i16,
        segments: usize,
        host: &mut H,
    ) {
        self.ring.put(host.ring(), &BlockResponse { id, status }.emit());
        for _ in 0..segments {
            self.ring.put(host.ring(), &BlockResponse::PIECE.emit());
        }
        if self.ring.publish(host.ring()) {
            host.notify();
        }
    }
}
