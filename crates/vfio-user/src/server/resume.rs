//! A session that goes on in another process.
//!
//! Whoever serves the session keeps what a successor needs: the bytes of messages that are not handled
//! ([`Session::undone`] says how many there are), in the socket or elsewhere; and, once messages up to there are handled, the
//! first part of a message that has not come whole ([`Session::partial`]). What was agreed on, and which windows there are, has
//! to be noted too.
//!
//! Left out: replies that were not sent, which are the outbox's ([`Outbox::resume`](crate::outbox::Outbox::resume)).

use super::{Negotiated, Session, Waiting};
use crate::decoder::{Partial, ProtocolError};

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

    /// Takes over the message that has not come whole, and the descriptors that came with it, before anything is pushed.
    ///
    /// # Errors
    /// No session can have left this.
    pub fn resume_partial(
        &mut self,
        partial: Partial<'_>,
        fds: impl IntoIterator<Item = F>,
    ) -> Result<(), ProtocolError> {
        self.decoder.resume(partial, fds)
    }

    /// The number of bytes, of those that were pushed or resumed with, that belong to messages that are not complete or not
    /// done.
    pub fn undone(&self) -> usize {
        let waiting = |waiting: &Waiting| waiting.request.size.get() as usize;
        self.state.waiting.as_ref().map_or(0, waiting) + self.decoder.pending()
    }

    /// The message that has not come whole, once [`step`](Self::step) has said [`Step::Starved`](super::Step::Starved).
    pub fn partial(&self) -> Partial<'_> {
        self.decoder.partial()
    }
}
