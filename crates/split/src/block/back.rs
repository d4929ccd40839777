//! The service domain's half. A request is taken as a whole, looked at once in a copy, and refused or made a command for
//! the disk; its pages are mapped from then until the disk is done. A turn takes one request, and nothing that a guest
//! says makes it longer. A guest whose ring cannot be is heard no more.

use super::{Header, READ, Response, SEGMENTS, Segment, WRITE};
use crate::back::NotGranted;
use crate::message::status;
use crate::ring::{BackRing, Page};
use alloc::vec::Vec;
use core::fmt::Debug;

/// Requests that the disk may have at once.
pub const REQUESTS: usize = 32;

/// What a back end needs of the machine it runs on.
pub trait Host {
    /// A mapped page.
    type Mapping: Copy + Debug;

    /// The ring.
    fn ring(&mut self) -> &mut Page;

    /// Maps a page, for writing if the disk is read.
    ///
    /// # Errors
    /// [`NotGranted`].
    fn map(&mut self, reference: u32, write: bool) -> Result<Self::Mapping, NotGranted>;

    /// Ends a mapping.
    fn unmap(&mut self, mapping: Self::Mapping);

    /// Sends the front end an event.
    fn notify(&mut self);
}

/// What the disk is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// Which of its requests, for [`Back::complete`].
    pub tag: u8,
    /// To write, not to read.
    pub write: bool,
    /// From which sector on.
    pub sector: u64,
    /// How many.
    pub sectors: u32,
}

/// What a turn has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// A command for the disk.
    Command(Command),
    /// A request that was answered with an error.
    Refused,
    /// Nothing: no request, or no room for more.
    Idle,
}

/// What became of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Given to the disk.
    pub taken: u64,
    /// Answered, after the disk was done.
    pub done: u64,
    /// Answered with an error at once.
    pub refused: u64,
}

/// A request that the disk has.
#[derive(Debug)]
struct Pending<M> {
    id: u16,
    pages: Vec<M>,
}

/// The back end of a disk.
#[derive(Debug)]
pub struct Back<M> {
    ring: BackRing,
    /// Sectors of the disk, and whether they may be written.
    sectors: u64,
    writable: bool,
    pending: [Option<Pending<M>>; REQUESTS],
    broken: bool,
    counters: Counters,
}

impl<M: Copy + Debug> Back<M> {
    /// The back end of a disk of so many sectors.
    #[must_use]
    pub fn new(sectors: u64, writable: bool) -> Self {
        Self {
            ring: BackRing::default(),
            sectors,
            writable,
            pending: [const { None }; REQUESTS],
            broken: false,
            counters: Counters::default(),
        }
    }

    /// Whether its guest is heard no more.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// What became of requests.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Requests that the disk has.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.pending.iter().flatten().count()
    }

    /// Takes the next request, and asks for an event if there is none.
    pub fn take<H: Host<Mapping = M>>(&mut self, host: &mut H) -> Taken {
        let Some(tag) = self.pending.iter().position(Option::is_none).filter(|_| !self.broken) else {
            return Taken::Idle;
        };
        let Some((header, segments)) = self.next(host) else { return Taken::Idle };
        let Some((command, pages)) = self.check(tag as u8, &header, &segments, host) else {
            self.counters.refused += 1;
            self.answer(header.id, status::ERROR, segments.len(), host);
            return Taken::Refused;
        };
        self.counters.taken += 1;
        self.pending[tag] = Some(Pending { id: header.id, pages });
        Taken::Command(command)
    }

    /// The disk is done with a command. `false` if it has none of that tag.
    pub fn complete<H: Host<Mapping = M>>(&mut self, tag: u8, good: bool, host: &mut H) -> bool {
        let Some(Pending { id, pages }) = self.pending.get_mut(usize::from(tag)).and_then(Option::take)
        else {
            return false;
        };
        pages.iter().for_each(|page| host.unmap(*page));
        self.counters.done += 1;
        let status = if good { status::OKAY } else { status::ERROR };
        self.answer(id, status, pages.len(), host);
        true
    }

    /// The next request with its pieces, as a copy. One without an end makes no sense: guests publish whole requests.
    fn next<H: Host<Mapping = M>>(&mut self, host: &mut H) -> Option<(Header, Vec<Segment>)> {
        if self.ring.pending(host.ring()) == Ok(0) {
            self.ring.ask(host.ring());
        }
        let slots = match self.ring.pending(host.ring()) {
            Ok(0) => return None,
            Ok(slots) => slots,
            Err(_) => return self.breaks(),
        };
        let header = Header::parse(&self.ring.take(host.ring())?);
        if header.segments > SEGMENTS || slots <= u32::from(header.segments) {
            return self.breaks();
        }
        let mut segments = Vec::with_capacity(SEGMENTS.into());
        for _ in 0..header.segments {
            match self.ring.take(host.ring()) {
                Some(slot) => segments.push(Segment::parse(&slot)),
                None => return self.breaks(),
            }
        }
        Some((header, segments))
    }

    fn breaks<T>(&mut self) -> Option<T> {
        self.broken = true;
        None
    }

    /// The command that a request is, with its pages mapped; `None` if it is not what it should be, and then nothing is
    /// mapped.
    fn check<H: Host<Mapping = M>>(
        &self,
        tag: u8,
        header: &Header,
        segments: &[Segment],
        host: &mut H,
    ) -> Option<(Command, Vec<M>)> {
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
        Some((Command { tag, write, sector: header.sector, sectors: sectors as u32 }, pages))
    }

    /// Answers a request in all of its slots.
    fn answer<H: Host<Mapping = M>>(&mut self, id: u16, status: i16, segments: usize, host: &mut H) {
        self.ring.put(host.ring(), &Response { id, status }.emit());
        for _ in 0..segments {
            self.ring.put(host.ring(), &Response::PIECE.emit());
        }
        if self.ring.publish(host.ring()) {
            host.notify();
        }
    }
}
