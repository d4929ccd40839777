//! The shared ring of Xen (`xen/io/ring.h`): the front end puts requests, the back end takes each out and puts a
//! response in its place. Indices run freely and wrap at 2^32. Each side also says from which index on it wants
//! to hear of more; looking once more after saying so is what keeps an event from being lost.
//!
//! The page is shared, so each side keeps its own indices to itself, and believes of the other's only what can be:
//! no more than [`SLOTS`] between what was asked and what was answered. Left out: what slots say.

#[cfg(test)]
mod tests;

/// Slots of a ring, a power of two.
pub const SLOTS: u32 = 256;
/// Bytes of a slot.
pub const SLOT: usize = 12;

/// A request or a response.
pub type Slot = [u8; SLOT];

/// The page that both sides see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Requests up to here are there to be taken.
    pub requests: u32,
    /// The back end wants an event for the request before this index.
    pub request_event: u32,
    /// Responses up to here are there to be taken.
    pub responses: u32,
    /// The front end wants an event for the response before this index.
    pub response_event: u32,
    /// Requests, and responses in their place.
    pub slots: [Slot; SLOTS as usize],
}

impl Default for Page {
    fn default() -> Self {
        Self {
            requests: 0,
            request_event: 1,
            responses: 0,
            response_event: 1,
            slots: [[0; SLOT]; SLOTS as usize],
        }
    }
}

/// The other side's index says more than there can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} slots are said to be filled; there cannot be so many")]
pub struct Overrun(pub u32);

/// Whether an event is due for what was published from `old` up to `new`.
fn is_asked_for(old: u32, new: u32, event: u32) -> bool {
    new.wrapping_sub(event) < new.wrapping_sub(old)
}

fn place(index: u32) -> usize {
    (index % SLOTS) as usize
}

/// The front end's indices.
#[derive(Debug, Clone, Default)]
pub struct FrontRing {
    /// Requests put.
    put: u32,
    /// Requests that the other side may know of.
    published: u32,
    /// Responses taken.
    taken: u32,
}

impl FrontRing {
    /// Requests that there is room for.
    #[must_use]
    pub fn room(&self) -> u32 {
        SLOTS - self.outstanding()
    }

    /// Requests without a response.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        self.put.wrapping_sub(self.taken)
    }

    /// The index of the request that is put next.
    #[must_use]
    pub fn next(&self) -> u32 {
        self.put
    }

    /// Puts a request: its index. `None` if the ring is full.
    pub fn put(&mut self, page: &mut Page, request: &Slot) -> Option<u32> {
        if self.room() == 0 {
            return None;
        }
        let index = self.put;
        page.slots[place(index)] = *request;
        self.put = index.wrapping_add(1);
        Some(index)
    }

    /// Lets the other side see what was put; whether it is to be sent an event.
    #[must_use]
    pub fn publish(&mut self, page: &mut Page) -> bool {
        let old = core::mem::replace(&mut self.published, self.put);
        page.requests = self.put;
        is_asked_for(old, self.put, page.request_event)
    }

    /// Responses that are there.
    ///
    /// # Errors
    /// [`Overrun`]: more than requests.
    pub fn pending(&self, page: &Page) -> Result<u32, Overrun> {
        let count = page.responses.wrapping_sub(self.taken);
        if count <= self.published.wrapping_sub(self.taken) { Ok(count) } else { Err(Overrun(count)) }
    }

    /// Takes the next response, with the index of the request it stands in place of. `None` if there is none to
    /// be believed.
    pub fn take(&mut self, page: &Page) -> Option<(u32, Slot)> {
        self.pending(page).ok().filter(|count| *count > 0)?;
        let index = self.taken;
        self.taken = index.wrapping_add(1);
        Some((index, page.slots[place(index)]))
    }

    /// Asks for an event when `more` responses are there. Then look once more: [`FrontRing::pending`].
    pub fn ask(&self, page: &mut Page, more: u32) {
        page.response_event = self.taken.wrapping_add(more.max(1));
    }
}

/// The back end's indices.
#[derive(Debug, Clone, Default)]
pub struct BackRing {
    /// Responses put.
    put: u32,
    /// Responses that the other side may know of.
    published: u32,
    /// Requests taken.
    taken: u32,
}

impl BackRing {
    /// Requests that are there.
    ///
    /// # Errors
    /// [`Overrun`]: more than slots that are not waiting for their response.
    pub fn pending(&self, page: &Page) -> Result<u32, Overrun> {
        let count = page.requests.wrapping_sub(self.taken);
        let unanswered = self.taken.wrapping_sub(self.put);
        if count <= SLOTS - unanswered { Ok(count) } else { Err(Overrun(count)) }
    }

    /// Takes the next request. `None` if there is none to be believed.
    pub fn take(&mut self, page: &Page) -> Option<Slot> {
        self.pending(page).ok().filter(|count| *count > 0)?;
        let slot = page.slots[place(self.taken)];
        self.taken = self.taken.wrapping_add(1);
        Some(slot)
    }

    /// Puts a response in place of the oldest request that has none; `false` if every request taken has one.
    pub fn put(&mut self, page: &mut Page, response: &Slot) -> bool {
        if self.put == self.taken {
            return false;
        }
        page.slots[place(self.put)] = *response;
        self.put = self.put.wrapping_add(1);
        true
    }

    /// Lets the other side see what was put; whether it is to be sent an event.
    #[must_use]
    pub fn publish(&mut self, page: &mut Page) -> bool {
        let old = core::mem::replace(&mut self.published, self.put);
        page.responses = self.put;
        is_asked_for(old, self.put, page.response_event)
    }

    /// Asks for an event for the next request. Then look once more: [`BackRing::pending`].
    pub fn ask(&self, page: &mut Page) {
        page.request_event = self.taken.wrapping_add(1);
    }
}
