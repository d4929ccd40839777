//! The block front end: the guest's half of a split disk driver. A request's pages are granted while the
//! request is pending. Responses to unknown requests are ignored.

use super::{
    BlockRequestHeader, BlockRequestSegment, BlockResponse, PER_PAGE, READ, REQUESTS, SEGMENTS, WRITE,
};
use crate::message::status;
use crate::ring::{FrontRing, RingPage};
use alloc::vec::Vec;

/// Machine operations that the block front end needs. The implementer accounts for the costs.
pub trait BlockFrontendHal {
    /// Returns the ring that front end and back end share.
    fn ring(&mut self) -> &mut RingPage;

    /// Grants a page of the guest to the service domain. Returns `None` if the guest's grant table is full.
    fn grant(&mut self, page: u32, write: bool) -> Option<u32>;

    /// Ends the service domain's access to a granted page.
    fn end(&mut self, reference: u32);

    /// Sends an event to the back end in the service domain.
    fn notify(&mut self);
}

/// Error of submitting a disk request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BlockSubmitError {
    /// The ring or the grant table is full; retry after a response.
    #[error("the block request ring or the grant table is full")]
    Full,
    /// The disk request has no sectors, or more than fit in one request.
    #[error("block request length is out of range (1-88 sectors)")]
    Length,
}

/// Disk request that the back end has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompletedBlockRequest {
    /// Id of the disk request, which [`BlockFrontend::submit`] returned.
    pub id: u16,
    /// True if the back end reported that the request succeeded.
    pub succeeded: bool,
}

/// Block front end of one disk.
#[derive(Debug)]
pub struct BlockFrontend {
    ring: FrontRing,
    /// Grant references of the pages of pending requests, by request id.
    requests: [Option<Vec<u32>>; REQUESTS],
}

impl Default for BlockFrontend {
    fn default() -> Self {
        Self { ring: FrontRing::default(), requests: [const { None }; REQUESTS] }
    }
}

impl BlockFrontend {
    /// Queues a request to read or write sectors, from or to whole guest pages starting at `page`. Returns
    /// the request's id. [`BlockFrontend::flush`] publishes it.
    ///
    /// # Errors
    /// [`BlockSubmitError`], with nothing granted.
    pub fn submit(
        &mut self,
        write: bool,
        sector: u64,
        (page, sectors): (u32, u32),
        hal: &mut impl BlockFrontendHal,
    ) -> Result<u16, BlockSubmitError> {
        let segments = sectors.div_ceil(PER_PAGE.into());
        if segments == 0 || segments > SEGMENTS.into() {
            return Err(BlockSubmitError::Length);
        }
        let id = self.requests.iter().position(Option::is_none).ok_or(BlockSubmitError::Full)?;
        if self.ring.room() <= segments {
            return Err(BlockSubmitError::Full);
        }
        let mut granted = Vec::with_capacity(segments as usize);
        for n in 0..segments {
            match hal.grant(page + n, !write) {
                Some(reference) => granted.push(reference),
                None => {
                    granted.iter().for_each(|reference| hal.end(*reference));
                    return Err(BlockSubmitError::Full);
                }
            }
        }
        let operation = if write { WRITE } else { READ };
        let header = BlockRequestHeader { operation, segments: segments as u8, id: id as u16, sector };
        self.ring.put(hal.ring(), &header.emit());
        for (n, reference) in granted.iter().enumerate() {
            let left = sectors - n as u32 * u32::from(PER_PAGE);
            let last = left.min(PER_PAGE.into()) as u8 - 1;
            self.ring.put(hal.ring(), &BlockRequestSegment { reference: *reference, first: 0, last }.emit());
        }
        self.requests[id] = Some(granted);
        Ok(id as u16)
    }

    /// Publishes queued disk requests on the ring, and sends an event if the back end requested one.
    pub fn flush(&mut self, hal: &mut impl BlockFrontendHal) {
        if self.ring.publish(hal.ring()) {
            hal.notify();
        }
    }

    /// Returns the number of pending disk requests.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.requests.iter().flatten().count()
    }

    /// Returns the next completed disk request, after ending its grants. Requests an event if no request is
    /// completed.
    pub fn take(&mut self, hal: &mut impl BlockFrontendHal) -> Option<CompletedBlockRequest> {
        let mut has_asked = false;
        loop {
            let Some((_, slot)) = self.ring.take(hal.ring()) else {
                if core::mem::replace(&mut has_asked, true) {
                    return None;
                }
                self.ring.arm_event(hal.ring(), 1);
                continue;
            };
            let BlockResponse { id, status } = BlockResponse::parse(&slot);
            if status == status::NULL {
                continue;
            }
            let request = self.requests.get_mut(usize::from(id)).and_then(Option::take);
            if let Some(granted) = request {
                granted.iter().for_each(|reference| hal.end(*reference));
                return Some(CompletedBlockRequest { id, succeeded: status == status::OKAY });
            }
        }
    }
}
