//! Sends frames through a network front end. Each piece of a frame is copied to a page granted for reading. The page
//! is free again once the back end has responded and the grant has ended. Granting the stack's own pages would save
//! the copy, which the lab's cost model does not charge.

use super::{NetworkFrontend, NetworkFrontendHal};
use crate::message::{TxRequest, TxResponse, emit_segments, status, tx_flag};
use crate::ring::{FrontRing, SLOTS};
use crate::{MAX_FRAME, PAGE, PIECES, PendingOffloads, slots};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Error of sending a frame through a network front end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TransmitError {
    /// The transmit ring is full; retry after the next event of the back end.
    #[error("the transmit ring is full")]
    Full,
    /// The frame to send is shorter than an Ethernet header or longer than requests can describe.
    #[error("frame length {0} is out of range (14-65535 bytes)")]
    Length(usize),
}

#[derive(Debug)]
pub(super) struct FrontendTransmitQueue {
    ring: FrontRing,
    /// Indices of the front end's transmit pages that hold no frame.
    free: Vec<u16>,
    /// Grant reference of each transmit page that holds a piece of a frame.
    granted: Box<[Option<u32>]>,
}

impl FrontendTransmitQueue {
    pub(super) fn new() -> Self {
        Self {
            ring: FrontRing::default(),
            free: (0..SLOTS as u16).rev().collect(),
            granted: alloc::vec![None; SLOTS as usize].into(),
        }
    }

    /// Reserves and grants a transmit page for each piece of a frame. Returns `None`, with none reserved, if too few
    /// are free.
    fn reserve<H: NetworkFrontendHal>(&mut self, hal: &mut H, pieces: usize) -> Option<[u16; PIECES]> {
        let mut ids = [0; PIECES];
        for at in 0..pieces {
            let granted = self.free.pop().map(|id| (id, hal.grant(id.into(), false)));
            let Some((id, Some(reference))) = granted else {
                self.free.extend(granted.map(|(id, _)| id));
                for id in &ids[..at] {
                    self.take_back(hal, *id);
                }
                return None;
            };
            self.granted[usize::from(id)] = Some(reference);
            ids[at] = id;
        }
        Some(ids)
    }

    /// Copies a piece of a frame to its page, and puts the request for the piece on the ring, which must have room.
    fn put<H: NetworkFrontendHal>(
        &mut self,
        hal: &mut H,
        (id, piece): (u16, &[u8]),
        size: usize,
        flags: u16,
    ) {
        hal.page(id.into())[..piece.len()].copy_from_slice(piece);
        let reference = self.granted[usize::from(id)].unwrap_or_default();
        let request = TxRequest { reference, offset: 0, flags, id, size: size as u16 };
        self.ring.put(&mut hal.rings().transmit, &request.emit());
    }

    /// Frees the transmit page that a response names. Returns `false` if the page was not in use or its grant cannot
    /// end.
    fn take_back<H: NetworkFrontendHal>(&mut self, hal: &mut H, id: u16) -> bool {
        let Some(reference) = self.granted.get_mut(usize::from(id)).and_then(Option::take) else {
            return false;
        };
        let free = hal.end_access(reference);
        if free {
            self.free.push(id);
        }
        free
    }
}

impl NetworkFrontend {
    /// Queues a frame to send. [`NetworkFrontend::flush`] notifies the back end.
    ///
    /// # Errors
    /// [`TransmitError`].
    pub fn transmit<H: NetworkFrontendHal>(
        &mut self,
        hal: &mut H,
        frame: &[u8],
        offload: PendingOffloads,
    ) -> Result<(), TransmitError> {
        if !(14..=MAX_FRAME).contains(&frame.len()) {
            return Err(TransmitError::Length(frame.len()));
        }
        let queue = &mut self.transmit;
        if queue.ring.room() < slots(frame.len(), offload) {
            return Err(TransmitError::Full);
        }
        let pieces = frame.len().div_ceil(PAGE);
        let ids = queue.reserve(hal, pieces).ok_or(TransmitError::Full)?;
        let mut flags = if offload.csum_blank { tx_flag::CSUM_BLANK | tx_flag::DATA_VALIDATED } else { 0 };
        flags |= if offload.segment.is_some() { tx_flag::EXTRA } else { 0 };
        for (at, (id, piece)) in ids.into_iter().zip(frame.chunks(PAGE)).enumerate() {
            flags |= if at + 1 < pieces { tx_flag::MORE } else { 0 };
            let size = if at == 0 { frame.len() } else { piece.len() };
            queue.put(hal, (id, piece), size, flags);
            if let Some(segment) = offload.segment.filter(|_| at == 0) {
                queue.ring.put(&mut hal.rings().transmit, &emit_segments(segment));
            }
            flags = 0;
        }
        self.counters.sent += 1;
        Ok(())
    }

    /// Publishes queued frames on the transmit ring, with an event if the back end requested one.
    pub fn flush<H: NetworkFrontendHal>(&mut self, hal: &mut H) {
        if self.transmit.ring.publish(&mut hal.rings().transmit) {
            hal.notify();
        }
    }

    /// Returns the number of transmit requests without a response.
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.transmit.ring.outstanding() as usize
    }

    /// Frees the pages of sent frames, and requests an event when half of the pending frames are sent. Returns the
    /// number of pages freed.
    pub fn clean<H: NetworkFrontendHal>(&mut self, hal: &mut H) -> usize {
        let mut cleaned = 0;
        // The second round sees responses put while the event was requested; later ones raise that event.
        for _ in 0..2 {
            while let Some((_, slot)) = self.transmit.ring.take(&hal.rings().transmit) {
                let response = TxResponse::parse(&slot);
                if response.status == status::NULL {
                    continue;
                }
                self.counters.refused += u64::from(response.status < 0);
                let free = self.transmit.take_back(hal, response.id);
                self.counters.stuck += u64::from(!free);
                cleaned += 1;
            }
            let ring = &self.transmit.ring;
            ring.arm_event(&mut hal.rings().transmit, ring.outstanding() / 2 + 1);
            if ring.pending(&hal.rings().transmit) == Ok(0) {
                break;
            }
        }
        cleaned
    }
}
