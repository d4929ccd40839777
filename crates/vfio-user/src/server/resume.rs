//! Continues a session with a client in the next process of the server.
//!
//! The session's owner keeps for a successor: the bytes of unhandled messages ([`ServerSession::undone`] returns their
//! number), in the socket or elsewhere; and, once messages up to there are handled, the first part of an incomplete
//! message ([`ServerSession::partial`]). It also records the negotiated parameters and the DMA windows.
//!
//! The outbox has the unsent replies ([`MessageOutbox::resume`](crate::outbox::MessageOutbox::resume)).

use super::{NegotiatedVersion, PendingRequest, ServerSession};
use crate::decoder::{ProtocolError, UnfinishedMessage};

impl<F> ServerSession<F> {
    /// Creates a session that continues the session of another process. `windows` are the first and last addresses of
    /// the disjoint DMA windows, which the device has mapped again already.
    pub fn resume(
        max_dma_maps: u32,
        negotiated: Option<NegotiatedVersion>,
        windows: impl IntoIterator<Item = (u64, u64)>,
    ) -> Self {
        let mut session = Self::new(max_dma_maps);
        session.state.negotiated = negotiated;
        session.state.dma.resume(windows);
        session
    }

    /// Restores the incomplete message that the other process had received, and its descriptors, before any push.
    ///
    /// # Errors
    /// The partial message is invalid: no session can have left it.
    pub fn resume_partial(
        &mut self,
        partial: UnfinishedMessage<'_>,
        fds: impl IntoIterator<Item = F>,
    ) -> Result<(), ProtocolError> {
        self.decoder.resume(partial, fds)
    }

    /// Returns the number of pushed or restored bytes of messages that are incomplete or unfinished.
    pub fn undone(&self) -> usize {
        let waiting = |waiting: &PendingRequest| waiting.request.size.get() as usize;
        self.state.waiting.as_ref().map_or(0, waiting) + self.decoder.pending()
    }

    /// Returns the incomplete message, once [`step`](Self::step) has returned
    /// [`SessionProgress::Starved`](super::SessionProgress::Starved).
    pub fn partial(&self) -> UnfinishedMessage<'_> {
        self.decoder.partial()
    }
}
