//! Continues a client's session in the server's successor process.
//!
//! The session's owner keeps for a successor: the bytes of unhandled messages ([`ServerSession::undone`] returns their
//! number), in the socket or elsewhere; and, once messages up to there are handled, the first part of an incomplete
//! message ([`ServerSession::partial`]). It also records the negotiated parameters and the DMA windows.
//!
//! The outbox has the unsent replies ([`MessageOutbox::resume`](crate::outbox::MessageOutbox::resume)).

use super::{NegotiatedVersion, PendingRequest, ServerSession};
use crate::decoder::{ProtocolError, UnfinishedMessage};

impl<F> ServerSession<F> {
    /// Creates a session that continues the session of a previous process. `windows` are the first and last addresses
    /// of the disjoint DMA windows, which the device has already mapped again.
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

    /// Restores the incomplete message that the previous process had received, with the message's descriptors. Call
    /// this method before any push.
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

    /// Returns the number of received bytes of messages that are incomplete, not handled yet, or not finished by the
    /// device.
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
