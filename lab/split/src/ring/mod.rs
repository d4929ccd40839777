//! The shared ring of Xen (`xen/io/ring.h`). The front end puts requests; the back end takes them and puts responses in
//! the same slots. Indices run freely and wrap at 2^32. Front end and back end each publish the index for which they
//! want an event, and check the ring once more afterwards, so that no event is lost.
//!
//! The page is shared with an untrusted peer. Each side keeps its own indices privately and accepts a peer's
//! index only if at most [`SLOTS`] slots are in use.

#[cfg(test)]
mod tests;

/// Number of slots of a ring, a power of two.
pub const SLOTS: u32 = 256;
/// Size of a ring's slot in bytes.
pub const SLOT: usize = 12;

/// Contents of a ring's slot: a request or a response.
pub type RingSlot = [u8; SLOT];

/// Page of a ring, which front end and back end share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RingPage {
    /// Index of the slot after the last published request.
    pub requests: u32,
    /// Index of a request at which the back end wants an event.
    pub request_event: u32,
    /// Index of the slot after the last published response.
    pub responses: u32,
    /// Index of a response at which the front end wants an event.
    pub response_event: u32,
    /// Slots of the ring: requests, each replaced by its response.
    pub slots: [RingSlot; SLOTS as usize],
}

impl Default for RingPage {
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

/// Error: the peer published a ring index that claims more filled slots than possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid ring index: the peer claims {0} filled slots")]
pub struct RingOverrun(pub u32);

/// Returns `true` if publishing indices `old` to `new` passes the peer's event index.
fn is_event_due(old: u32, new: u32, event: u32) -> bool {
    new.wrapping_sub(event) < new.wrapping_sub(old)
}

fn slot_index(index: u32) -> usize {
    (index % SLOTS) as usize
}

/// Private indices of the front end in a ring.
#[derive(Debug, Clone, Default)]
pub struct FrontRing {
    /// Number of requests that the front end has put on the ring.
    put: u32,
    /// Number of requests that the front end has published to the back end.
    published: u32,
    /// Number of responses that the front end has taken from the ring.
    taken: u32,
}

impl FrontRing {
    /// Returns the number of free slots on the ring.
    #[must_use]
    pub fn room(&self) -> u32 {
        SLOTS - self.outstanding()
    }

    /// Returns the number of requests without a response.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        self.put.wrapping_sub(self.taken)
    }

    /// Returns the index of the next request on the ring.
    #[must_use]
    pub fn next(&self) -> u32 {
        self.put
    }

    /// Puts a request on the ring. Returns its index, or `None` if the ring is full.
    pub fn put(&mut self, page: &mut RingPage, request: &RingSlot) -> Option<u32> {
        if self.room() == 0 {
            return None;
        }
        let index = self.put;
        page.slots[slot_index(index)] = *request;
        self.put = index.wrapping_add(1);
        Some(index)
    }

    /// Publishes the front end's new requests on the ring. Returns `true` if the back end must be sent an event.
    #[must_use]
    pub fn publish(&mut self, page: &mut RingPage) -> bool {
        let old = core::mem::replace(&mut self.published, self.put);
        page.requests = self.put;
        is_event_due(old, self.put, page.request_event)
    }

    /// Returns the number of published responses that the front end has not taken.
    ///
    /// # Errors
    /// [`RingOverrun`] if there are more responses than requests.
    pub fn pending(&self, page: &RingPage) -> Result<u32, RingOverrun> {
        let count = page.responses.wrapping_sub(self.taken);
        if count <= self.published.wrapping_sub(self.taken) { Ok(count) } else { Err(RingOverrun(count)) }
    }

    /// Takes the next response with the index of its request. Returns `None` if none is pending or the index
    /// is invalid.
    pub fn take(&mut self, page: &RingPage) -> Option<(u32, RingSlot)> {
        self.pending(page).ok().filter(|count| *count > 0)?;
        let index = self.taken;
        self.taken = index.wrapping_add(1);
        Some((index, page.slots[slot_index(index)]))
    }

    /// Requests an event once `more` responses are pending. Check [`FrontRing::pending`] afterwards.
    pub fn arm_event(&self, page: &mut RingPage, more: u32) {
        page.response_event = self.taken.wrapping_add(more.max(1));
    }
}

/// Private indices of the back end in a ring.
#[derive(Debug, Clone, Default)]
pub struct BackRing {
    /// Number of responses that the back end has put on the ring.
    put: u32,
    /// Number of responses that the back end has published to the front end.
    published: u32,
    /// Number of requests that the back end has taken from the ring.
    taken: u32,
}

impl BackRing {
    /// Returns the number of published requests that the back end has not taken.
    ///
    /// # Errors
    /// [`RingOverrun`] if there are more requests than free slots.
    pub fn pending(&self, page: &RingPage) -> Result<u32, RingOverrun> {
        let count = page.requests.wrapping_sub(self.taken);
        let unanswered = self.taken.wrapping_sub(self.put);
        if count <= SLOTS - unanswered { Ok(count) } else { Err(RingOverrun(count)) }
    }

    /// Takes the next request from the ring. Returns `None` if none is pending or the index is invalid.
    pub fn take(&mut self, page: &RingPage) -> Option<RingSlot> {
        self.pending(page).ok().filter(|count| *count > 0)?;
        let slot = page.slots[slot_index(self.taken)];
        self.taken = self.taken.wrapping_add(1);
        Some(slot)
    }

    /// Puts the response to the oldest request without one. Returns `false` if every request taken has one.
    pub fn put(&mut self, page: &mut RingPage, response: &RingSlot) -> bool {
        if self.put == self.taken {
            return false;
        }
        page.slots[slot_index(self.put)] = *response;
        self.put = self.put.wrapping_add(1);
        true
    }

    /// Publishes the back end's new responses on the ring. Returns `true` if the front end must be sent an event.
    #[must_use]
    pub fn publish(&mut self, page: &mut RingPage) -> bool {
        let old = core::mem::replace(&mut self.published, self.put);
        page.responses = self.put;
        is_event_due(old, self.put, page.response_event)
    }

    /// Requests an event when the front end publishes its next request. Check [`BackRing::pending`] afterwards.
    pub fn arm_event(&self, page: &mut RingPage) {
        page.request_event = self.taken.wrapping_add(1);
    }
}
