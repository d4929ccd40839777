//! The one reply to a request, or the silence that was asked for.

use alloc::vec::Vec;

use crate::outbox::Outbox;
use crate::wire::{Errno, Header};

/// Where the reply to one request goes. With `NO_REPLY` everything sent here vanishes.
pub(super) struct Answer<'a, F> {
    request: Header,
    out: &'a mut Outbox<F>,
}

impl<'a, F> Answer<'a, F> {
    pub(super) fn new(request: Header, out: &'a mut Outbox<F>) -> Self {
        Self { request, out }
    }

    /// What is answered, to be answered later.
    pub(super) fn request(&self) -> Header {
        self.request
    }

    /// The client waits for a reply.
    pub(super) fn wanted(&self) -> bool {
        !self.request.no_reply()
    }

    /// Success, with this body.
    pub(super) fn send(&mut self, body: &[&[u8]]) {
        self.send_with_fds(body, Vec::new());
    }

    /// Success, with this body and these descriptors.
    pub(super) fn send_with_fds(&mut self, body: &[&[u8]], fds: Vec<F>) {
        if self.wanted() {
            let size = body.iter().map(|part| part.len()).sum();
            self.out.message(&self.request.reply(size), body, fds);
        }
    }

    /// Success, with `start` and `data` bytes to be filled in; only if a reply is [`wanted`](Self::wanted).
    pub(super) fn send_data(&mut self, start: &[u8], data: usize) -> &mut [u8] {
        self.out.message_with_data(&self.request.reply(start.len() + data), start, data)
    }

    /// Failure: a header and nothing else.
    pub(super) fn fail(&mut self, errno: Errno) {
        if self.wanted() {
            self.out.message(&self.request.error_reply(errno), &[], Vec::new());
        }
    }
}
