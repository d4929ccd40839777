//! Sending: a page for each piece of a frame, granted for reading. A page is free again when the back end has
//! answered and its grant could be withdrawn. Left out: sending from the stack's own pages, which would save a
//! copy that nobody is charged for.

use super::{Front, Hal};
use crate::message::{TxRequest, TxResponse, emit_segments, status, tx_flag};
use crate::ring::{FrontRing, SLOTS};
use crate::{LONGEST, Offload, PAGE, PIECES, slots};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Why a frame was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The ring is full: try again after the next event.
    #[error("the transmit ring is full")]
    Full,
    /// Shorter than an Ethernet header, or longer than can be described.
    #[error("a frame of {0} bytes cannot be sent")]
    Length(usize),
}

#[derive(Debug)]
pub(super) struct Transmit {
    ring: FrontRing,
    /// Pages that nobody else has.
    free: Vec<u16>,
    /// The grant of each page that is under way.
    granted: Box<[Option<u32>]>,
}

impl Transmit {
    pub(super) fn new() -> Self {
        Self {
            ring: FrontRing::default(),
            free: (0..SLOTS as u16).rev().collect(),
            granted: alloc::vec![None; SLOTS as usize].into(),
        }
    }

    /// A free page for each piece of a frame, granted; `None`, and none taken, if there are too few.
    fn reserve<H: Hal>(&mut self, hal: &mut H, pieces: usize) -> Option<[u16; PIECES]> {
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

    /// Puts one piece on the ring, for which there is room.
    fn put<H: Hal>(&mut self, hal: &mut H, (id, piece): (u16, &[u8]), size: usize, flags: u16) {
        hal.page(id.into())[..piece.len()].copy_from_slice(piece);
        let reference = self.granted[usize::from(id)].unwrap_or_default();
        let request = TxRequest { reference, offset: 0, flags, id, size: size as u16 };
        self.ring.put(&mut hal.rings().transmit, &request.emit());
    }

    /// Takes a page back from a response; `false` if it was not under way or is still in use.
    fn take_back<H: Hal>(&mut self, hal: &mut H, id: u16) -> bool {
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

impl Front {
    /// Takes a frame to send. The back end hears of it with [`Front::flush`].
    ///
    /// # Errors
    /// [`Refused`].
    pub fn transmit<H: Hal>(&mut self, hal: &mut H, frame: &[u8], offload: Offload) -> Result<(), Refused> {
        if !(14..=LONGEST).contains(&frame.len()) {
            return Err(Refused::Length(frame.len()));
        }
        let queue = &mut self.transmit;
        if queue.ring.room() < slots(frame.len(), offload) {
            return Err(Refused::Full);
        }
        let pieces = frame.len().div_ceil(PAGE);
        let ids = queue.reserve(hal, pieces).ok_or(Refused::Full)?;
        let mut flags = if offload.blank { tx_flag::BLANK | tx_flag::VALIDATED } else { 0 };
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

    /// Lets the back end see what was taken, and sends it an event if it waits for one.
    pub fn flush<H: Hal>(&mut self, hal: &mut H) {
        if self.transmit.ring.publish(&mut hal.rings().transmit) {
            hal.notify();
        }
    }

    /// Requests that have no response yet.
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.transmit.ring.outstanding() as usize
    }

    /// Takes pages back that have been sent, and asks for an event when half of those under way are: how many
    /// frames' pieces came back.
    pub fn clean<H: Hal>(&mut self, hal: &mut H) -> usize {
        let mut cleaned = 0;
        // A second round sees what came while the event was asked for; a third could not be told from a later one.
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
            ring.ask(&mut hal.rings().transmit, ring.outstanding() / 2 + 1);
            if ring.pending(&hal.rings().transmit) == Ok(0) {
                break;
            }
        }
        cleaned
    }
}
