//! Writes the server's reply to a request, unless the client has requested that there is none.

use alloc::vec::Vec;

use crate::outbox::MessageOutbox;
use crate::wire::{Errno, MessageHeader};

/// Destination of the reply to one request. Drops the reply to a request with `NO_REPLY`.
pub(super) struct ReplyWriter<'a, F> {
    request: MessageHeader,
    out: &'a mut MessageOutbox<F>,
}

impl<'a, F> ReplyWriter<'a, F> {
    pub(super) fn new(request: MessageHeader, out: &'a mut MessageOutbox<F>) -> Self {
        Self { request, out }
    }

    /// Returns the request's header, by which a later reply identifies the request.
    pub(super) fn request(&self) -> MessageHeader {
        self.request
    }

    /// Returns true if the client waits for a reply to the request.
    pub(super) fn wanted(&self) -> bool {
        !self.request.no_reply()
    }

    /// Sends the reply of a successful request, with a body.
    pub(super) fn send(&mut self, body: &[&[u8]]) {
        self.send_with_fds(body, Vec::new());
    }

    /// Sends the reply of a successful request, with a body and descriptors.
    pub(super) fn send_with_fds(&mut self, body: &[&[u8]], fds: Vec<F>) {
        if self.wanted() {
            let size = body.iter().map(|part| part.len()).sum();
            self.out.message(&self.request.reply(size), body, fds);
        }
    }

    /// Sends the reply of a successful request with a body of `start` and `data` more bytes, and returns
    /// these bytes to be filled in. Call it only if a reply is [`wanted`](Self::wanted).
    pub(super) fn send_data(&mut self, start: &[u8], data: usize) -> &mut [u8] {
        self.out.message_with_data(&self.request.reply(start.len() + data), start, data)
    }

    /// Withdraws the reply with a body of `body` bytes that was sent last: the request is not finished.
    pub(super) fn withdraw(&mut self, body: usize) {
        self.out.withdraw(MessageHeader::LEN + body);
    }

    /// Sends an error reply: a header without a body.
    pub(super) fn fail(&mut self, errno: Errno) {
        if self.wanted() {
            self.out.message(&self.request.error_reply(errno), &[], Vec::new());
        }
    }
}
