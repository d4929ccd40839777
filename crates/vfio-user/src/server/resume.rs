//! A session that goes on in another process.
//!
//! Nothing of the stream is taken along: whoever serves the session leaves in the socket what is not handled
//! ([`Session::undone`] says how much that is), so a successor receives it again. What was agreed on, and which
//! windows there are, has to be noted elsewhere.
//!
//! Left out: replies that were not sent, which are the outbox's ([`Outbox::resume`](crate::outbox::Outbox::resume)).

use super::{Negotiated, Session, Waiting};
use crate::wire::Header;
use zerocopy::IntoBytes;

impl<F> Session<F> {
    /// A session that goes on where another process has left it. `windows` are the first and last addresses of the DMA
    /// windows, none overlapping another, which the device has mapped again already.
    pub fn resume(
        max_dma_maps: u32,
        negotiated: Option<Negotiated>,
        windows: impl IntoIterator<Item = (u64, u64)>,
    ) -> Self {
        let mut session = Self::new(max_dma_maps);
        session.state.negotiated = negotiated;
        session.state.dma.resume(windows);
        session
    }

    /// How many of the bytes that were pushed a successor would have to receive again: those of messages that are not
    /// complete or not done. `None` if it could not go on from them, because a part of a message was dropped.
    pub fn undone(&self) -> Option<usize> {
        let waiting = |waiting: &Waiting| waiting.request.size.get() as usize;
        let waiting = self.state.waiting.as_ref().map_or(0, waiting);
        self.decoder.is_in_step().then(|| self.decoder.buffered() + waiting)
    }

    /// How these bytes begin: a header, with zeros for what has not come of it.
    pub fn front(&self) -> [u8; Header::LEN] {
        let mut front = [0; Header::LEN];
        match &self.state.waiting {
            Some(waiting) => front.copy_from_slice(waiting.request.as_bytes()),
            None => {
                let held = self.decoder.held();
                let length = held.len().min(Header::LEN);
                front[..length].copy_from_slice(&held[..length]);
            }
        }
        front
    }
}
