//! The guest's half. A request's pages are granted while it is under way. What the back end says of a request that there
//! is not is passed over.

use super::{Header, PER_PAGE, READ, REQUESTS, Response, SEGMENTS, Segment, WRITE};
use crate::message::status;
use crate::ring::{FrontRing, Page};
use alloc::vec::Vec;

/// What a front end needs of the machine it runs on.
pub trait Hal {
    /// The ring.
    fn ring(&mut self) -> &mut Page;

    /// Grants a page of the guest to the service domain; `None` if there is no grant left.
    fn grant(&mut self, page: u32, write: bool) -> Option<u32>;

    /// Ends a grant.
    fn end(&mut self, reference: u32);

    /// Sends the back end an event.
    fn notify(&mut self);
}

/// A request cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Ring or grants are used up; later.
    #[error("there is no room for another request")]
    Full,
    /// It has no sector, or more than a request can have.
    #[error("a request has from 1 to 88 sectors")]
    Length,
}

/// A request that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// As [`Front::submit`] said.
    pub id: u16,
    /// Whether it was carried out.
    pub good: bool,
}

/// The front end of a disk.
#[derive(Debug)]
pub struct Front {
    ring: FrontRing,
    /// Grants of requests under way, by their id.
    requests: [Option<Vec<u32>>; REQUESTS],
}

impl Default for Front {
    fn default() -> Self {
        Self { ring: FrontRing::default(), requests: [const { None }; REQUESTS] }
    }
}

impl Front {
    /// Describes a request to read or write sectors, from or to whole pages of the guest from `page` on: its id.
    /// [`Front::flush`] lets the back end see it.
    ///
    /// # Errors
    /// [`Refused`]; then nothing is granted.
    pub fn submit(
        &mut self,
        write: bool,
        sector: u64,
        (page, sectors): (u32, u32),
        hal: &mut impl Hal,
    ) -> Result<u16, Refused> {
        let segments = sectors.div_ceil(PER_PAGE.into());
        if segments == 0 || segments > SEGMENTS.into() {
            return Err(Refused::Length);
        }
        let id = self.requests.iter().position(Option::is_none).ok_or(Refused::Full)?;
        if self.ring.room() <= segments {
            return Err(Refused::Full);
        }
        let mut granted = Vec::with_capacity(segments as usize);
        for n in 0..segments {
            match hal.grant(page + n, !write) {
                Some(reference) => granted.push(reference),
                None => {
                    granted.iter().for_each(|reference| hal.end(*reference));
                    return Err(Refused::Full);
                }
            }
        }
        let operation = if write { WRITE } else { READ };
        let header = Header { operation, segments: segments as u8, id: id as u16, sector };
        self.ring.put(hal.ring(), &header.emit());
        for (n, reference) in granted.iter().enumerate() {
            let left = sectors - n as u32 * u32::from(PER_PAGE);
            let last = left.min(PER_PAGE.into()) as u8 - 1;
            self.ring.put(hal.ring(), &Segment { reference: *reference, first: 0, last }.emit());
        }
        self.requests[id] = Some(granted);
        Ok(id as u16)
    }

    /// Lets the back end see what was described, with an event if it has asked for one.
    pub fn flush(&mut self, hal: &mut impl Hal) {
        if self.ring.publish(hal.ring()) {
            hal.notify();
        }
    }

    /// Requests under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.requests.iter().flatten().count()
    }

    /// The next request that was answered; its pages are the guest's alone again. Asks for an event if there is none.
    pub fn take(&mut self, hal: &mut impl Hal) -> Option<Done> {
        let mut has_asked = false;
        loop {
            let Some((_, slot)) = self.ring.take(hal.ring()) else {
                if core::mem::replace(&mut has_asked, true) {
                    return None;
                }
                self.ring.ask(hal.ring(), 1);
                continue;
            };
            let Response { id, status } = Response::parse(&slot);
            if status == status::NULL {
                continue;
            }
            let request = self.requests.get_mut(usize::from(id)).and_then(Option::take);
            if let Some(granted) = request {
                granted.iter().for_each(|reference| hal.end(*reference));
                return Some(Done { id, good: status == status::OKAY });
            }
        }
    }
}
