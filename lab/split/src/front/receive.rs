//! Receives frames through a network front end. The page of each ring slot is granted for writing and posted; a frame
//! occupies one or more pages, in order. Frames are copied to the stack.

use super::merge::SegmentMerger;
use super::{NetworkFrontend, NetworkFrontendHal};
use crate::message::{RxRequest, RxResponse, parse_segments, rx_flag};
use crate::ring::{FrontRing, SLOTS};
use crate::{PAGE, PIECES, PendingOffloads};
use alloc::boxed::Box;

/// Frame that a network front end received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrontendReceivedFrame {
    /// Length of the received frame in bytes.
    pub length: usize,
    /// Offloads that were never applied to the received frame, because the frame did not leave the machine.
    pub offload: PendingOffloads,
    /// Number of frames merged into the received frame, including itself.
    pub frames: u32,
}

#[derive(Debug)]
pub(super) struct FrontendReceiveQueue {
    ring: FrontRing,
    /// Grant reference of each receive slot's page while the page is posted.
    granted: Box<[Option<u32>]>,
}

impl FrontendReceiveQueue {
    pub(super) fn new() -> Self {
        Self { ring: FrontRing::default(), granted: alloc::vec![None; SLOTS as usize].into() }
    }

    /// Posts a page for every free slot, and sends an event if the back end requested one.
    pub(super) fn post<H: NetworkFrontendHal>(&mut self, hal: &mut H) {
        while self.ring.room() > 0 {
            let id = self.ring.next() % SLOTS;
            // A slot is free once its response was taken, and its grant ended with it. A page that stayed in
            // use is granted once more.
            let Some(reference) = hal.grant(SLOTS + id, true) else { break };
            self.granted[id as usize] = Some(reference);
            let request = RxRequest { id: id as u16, reference };
            self.ring.put(&mut hal.rings().receive, &request.emit());
        }
        if self.ring.publish(&mut hal.rings().receive) {
            hal.notify();
        }
    }
}

impl NetworkFrontend {
    /// Returns `true` if a received frame may be pending.
    pub fn has_received<H: NetworkFrontendHal>(&self, hal: &mut H) -> bool {
        self.merge.as_ref().is_some_and(SegmentMerger::has_frame)
            || self.receive.ring.pending(&hal.rings().receive).is_ok_and(|count| count > 0)
    }

    /// Copies the next received frame to the front of `into`, merged with the segments that follow if merging is
    /// enabled. Returns `None` if no frame is pending. Malformed frames are counted and skipped.
    pub fn receive<H: NetworkFrontendHal>(
        &mut self,
        hal: &mut H,
        into: &mut [u8],
    ) -> Option<FrontendReceivedFrame> {
        let Some(mut merge) = self.merge.take() else { return self.receive_one(hal, into) };
        let mut found = merge.take(into).or_else(|| self.receive_one(hal, into));
        while let Some(first) = &mut found {
            let Some(next) = self.receive_one(hal, merge.next()) else { break };
            let Some(length) = merge.append(into, *first, next) else { break };
            (first.length, first.frames) = (length, first.frames + 1);
        }
        self.merge = Some(merge);
        found
    }

    /// Copies the next received frame to the front of `into`, without merging.
    fn receive_one<H: NetworkFrontendHal>(
        &mut self,
        hal: &mut H,
        into: &mut [u8],
    ) -> Option<FrontendReceivedFrame> {
        // Each round takes a response, of which there are at most `SLOTS`.
        for _ in 0..SLOTS {
            let (index, slot) = self.take(hal)?;
            match self.assemble(hal, (index, RxResponse::parse(&slot)), into) {
                Some(received) => {
                    self.counters.received += 1;
                    return Some(received);
                }
                None => self.counters.malformed += 1,
            }
        }
        None
    }

    /// Posts free pages and requests an event, after all frames were taken. Returns `true` if a frame arrived before
    /// the request.
    pub fn receive_done<H: NetworkFrontendHal>(&mut self, hal: &mut H) -> bool {
        self.receive.post(hal);
        self.receive.ring.arm_event(&mut hal.rings().receive, 1);
        self.has_received(hal)
    }

    /// Takes the next receive response off the ring and ends the grant of its page.
    fn take<H: NetworkFrontendHal>(&mut self, hal: &mut H) -> Option<(u32, crate::ring::RingSlot)> {
        let (index, slot) = self.receive.ring.take(&hal.rings().receive)?;
        let id = (index % SLOTS) as usize;
        if let Some(reference) = self.receive.granted[id].take() {
            self.counters.stuck += u64::from(!hal.end_access(reference));
        }
        Some((index, slot))
    }

    /// Assembles a received frame in `into`, from its first response and the following responses on the ring.
    fn assemble<H: NetworkFrontendHal>(
        &mut self,
        hal: &mut H,
        first: (u32, RxResponse),
        into: &mut [u8],
    ) -> Option<FrontendReceivedFrame> {
        let (mut index, mut response) = first;
        let mut received = FrontendReceivedFrame { frames: 1, ..FrontendReceivedFrame::default() };
        received.offload.csum_blank = response.flags & rx_flag::CSUM_BLANK != 0;
        if response.flags & rx_flag::EXTRA != 0 {
            let (_, slot) = self.take(hal)?;
            received.offload.segment = Some(parse_segments(&slot)?);
        }
        for _ in 0..PIECES {
            let size = usize::try_from(response.status).ok()?;
            let start = usize::from(response.offset);
            if u32::from(response.id) != index % SLOTS || start + size > PAGE {
                return None;
            }
            let place = into.get_mut(received.length..received.length + size)?;
            place.copy_from_slice(&hal.page(SLOTS + index % SLOTS)[start..start + size]);
            received.length += size;
            if response.flags & rx_flag::MORE == 0 {
                return Some(received);
            }
            let (next, slot) = self.take(hal)?;
            (index, response) = (next, RxResponse::parse(&slot));
        }
        None
    }
}
