//! Bytes and file descriptors in, whole messages out.
//!
//! # Which message does a file descriptor belong to?
//!
//! **The one that holds the last byte received together with it.** On a Unix stream socket, descriptors ride on the
//! first byte of the `sendmsg` they were given to, and the kernel never lets one `recvmsg` run past the data of
//! such a `sendmsg` (unix(7): "ancillary data forms a barrier"). It may run *into* it, though: one `recvmsg` can
//! return the end of message 1, all of message 2, and the beginning of message 3 with message 3's descriptors.
//! QEMU, libvfio-user and the published `vfio_user` crate all give a message that carries descriptors a
//! `sendmsg` of its own. So everything up to the barrier that follows the carrying `sendmsg`'s first byte is that
//! one message, and the last byte received is part of it, however the receiver cut the stream: a partial header,
//! a header without its body, or a dozen messages at once.
//!
//! A client that packed several messages into one `sendmsg` with descriptors would see them go to the last one;
//! the specification does not say which it should be, and no known client does it.
//!
//! # Bounds
//!
//! At most [`BUFFER_LIMIT`] bytes and one push are held, at most [`MAX_MESSAGE_FDS`] descriptors per message and
//! four times as many in all. A message longer than its command allows is swallowed as it arrives and reported
//! without its body, so the stream stays in step whatever the client sends.

use alloc::{collections::VecDeque, vec::Vec};

use thiserror::Error;
use zerocopy::{FromBytes, IntoBytes};

use crate::wire::{Header, MAX_DATA_XFER, MAX_MESSAGE_FDS};

/// Bytes held beyond which a push is refused: the longest message there is, rounded up.
pub const BUFFER_LIMIT: usize = MAX_DATA_XFER as usize + 4096;

const MAX_HELD_FDS: usize = 4 * MAX_MESSAGE_FDS;

/// The stream cannot be followed any further: end the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// A message that claims to be shorter than its header.
    #[error("message size {size} is below the header's own")]
    SizeBelowHeader {
        /// The claimed size in bytes.
        size: u32,
    },
    /// A protocol major version other than 0; the specification asks to close.
    #[error("the peer speaks protocol version {major}, not 0")]
    UnsupportedVersion {
        /// The proposed major version.
        major: u16,
    },
    /// Bytes were pushed although earlier ones had not been taken out.
    #[error("more bytes were received than were asked for")]
    Overrun,
}

/// What came after a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// It was longer than allowed, and swallowed.
    Discarded,
}

/// One message, borrowing from the decoder's buffer.
#[derive(Debug)]
pub struct Message<'a, F> {
    /// Its header.
    pub header: Header,
    /// What followed.
    pub body: Body<'a>,
    /// The descriptors that rode along; none for a discarded body.
    pub fds: Vec<F>,
}

/// A message that is being swallowed.
#[derive(Debug)]
struct Discarding {
    header: Header,
    start: u64,
    left: usize,
}

impl Discarding {
    /// Bytes swallowed behind the header.
    fn skipped(&self) -> usize {
        self.header.size.get() as usize - Header::LEN - self.left
    }
}

/// A message of which only the first bytes have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Partial<'a> {
    /// The bytes that are kept, from the first on.
    pub kept: &'a [u8],
    /// Bytes that came behind those and were swallowed, because the message is longer than its command allows.
    pub skipped: usize,
}

impl Partial<'_> {
    /// Bytes that have come.
    #[must_use]
    pub fn received(&self) -> usize {
        self.kept.len() + self.skipped
    }

    /// The size of the whole message, if its header has come.
    #[must_use]
    pub fn size(&self) -> Option<u32> {
        Header::read_from_prefix(self.kept).ok().map(|(header, _)| header.size.get())
    }
}

/// The incremental parser. `F` is a file descriptor: whatever closes on drop, or a number in tests.
#[derive(Debug)]
pub struct Decoder<F> {
    max_body: fn(&Header) -> usize,
    /// Received, from the start of the first unconsumed message at `head`.
    buffer: Vec<u8>,
    head: usize,
    /// Position of `buffer[0]` among all bytes that were ever in the buffer. Swallowed bytes do not count, but every
    /// message has a header, so no two messages start at the same position.
    base: u64,
    discarding: Option<Discarding>,
    /// Descriptors with the position at which their message starts, in order.
    fds: VecDeque<(u64, F)>,
    dropped_fds: u64,
}

impl<F> Decoder<F> {
    /// A decoder that holds bodies of at most `max_body(header)` bytes and swallows longer ones.
    pub fn new(max_body: fn(&Header) -> usize) -> Self {
        Self {
            max_body,
            buffer: Vec::new(),
            head: 0,
            base: 0,
            discarding: None,
            fds: VecDeque::new(),
            dropped_fds: 0,
        }
    }

    /// Takes what one `recvmsg` returned. Call [`next_message`](Self::next_message) until it has no more before
    /// the next push.
    ///
    /// # Errors
    /// [`ProtocolError::Overrun`] if more than [`BUFFER_LIMIT`] bytes are waiting.
    pub fn push(&mut self, bytes: &[u8], fds: impl IntoIterator<Item = F>) -> Result<(), ProtocolError> {
        if self.buffered() > BUFFER_LIMIT {
            return Err(ProtocolError::Overrun);
        }
        let swallowed = self.swallow(bytes.len());
        self.buffer.drain(..self.head);
        self.base += self.head as u64;
        self.head = 0;
        self.buffer.extend_from_slice(&bytes[swallowed..]);
        self.keep_fds(bytes.len(), fds);
        Ok(())
    }

    /// The next whole message, if there is one.
    ///
    /// # Errors
    /// The framing is lost; every later call says the same.
    pub fn next_message(&mut self) -> Result<Option<Message<'_, F>>, ProtocolError> {
        if self.discarding.is_none() {
            let Some((header, body)) = self.peek()? else { return Ok(None) };
            if body <= (self.max_body)(&header) {
                return Ok(self.take_whole(header, Header::LEN + body));
            }
            self.start_discarding(header, Header::LEN + body);
        }
        Ok(self.take_discarded())
    }

    /// Bytes buffered that belong to no message taken out yet.
    pub fn buffered(&self) -> usize {
        self.buffer.len() - self.head
    }

    /// Bytes that came and belong to no message taken out yet, the swallowed ones too.
    pub fn pending(&self) -> usize {
        let swallowed = self.discarding.as_ref().map_or(0, |discarding| Header::LEN + discarding.skipped());
        swallowed + self.buffered()
    }

    /// The message that has not come whole, once [`next_message`](Self::next_message) has returned none.
    pub fn partial(&self) -> Partial<'_> {
        match &self.discarding {
            Some(discarding) => Partial { kept: discarding.header.as_bytes(), skipped: discarding.skipped() },
            None => Partial { kept: &self.buffer[self.head..], skipped: 0 },
        }
    }

    /// Goes on with the [`Partial`] message of another decoder, and the descriptors that came with it.
    ///
    /// # Errors
    /// It is no message of which some was swallowed, or it has lost the framing.
    pub fn resume(
        &mut self,
        partial: Partial<'_>,
        fds: impl IntoIterator<Item = F>,
    ) -> Result<(), ProtocolError> {
        self.push(partial.kept, fds)?;
        if partial.skipped > 0 {
            self.next_message()?;
            if self.swallow(partial.skipped) < partial.skipped {
                return Err(ProtocolError::Overrun);
            }
        }
        Ok(())
    }

    /// Descriptors dropped because there were too many or their message was not understood.
    pub fn dropped_fds(&self) -> u64 {
        self.dropped_fds
    }

    /// The header at the front, and how many bytes follow it in its message.
    fn peek(&self) -> Result<Option<(Header, usize)>, ProtocolError> {
        let Ok((header, _)) = Header::read_from_prefix(&self.buffer[self.head..]) else { return Ok(None) };
        let size = header.size.get();
        match (size as usize).checked_sub(Header::LEN) {
            Some(body) => Ok(Some((header, body))),
            None => Err(ProtocolError::SizeBelowHeader { size }),
        }
    }

    fn take_whole(&mut self, header: Header, size: usize) -> Option<Message<'_, F>> {
        if self.buffered() < size {
            return None;
        }
        let start = self.head;
        self.head += size;
        let fds = self.take_fds(self.base + start as u64);
        let body = Body::Whole(&self.buffer[start + Header::LEN..start + size]);
        Some(Message { header, body, fds })
    }

    fn start_discarding(&mut self, header: Header, size: usize) {
        let start = self.base + self.head as u64;
        let here = size.min(self.buffered());
        self.head += here;
        self.discarding = Some(Discarding { header, start, left: size - here });
    }

    /// The first bytes of a push may belong to a message that is being swallowed.
    fn swallow(&mut self, received: usize) -> usize {
        let Some(discarding) = &mut self.discarding else { return 0 };
        let here = discarding.left.min(received);
        discarding.left -= here;
        here
    }

    fn take_discarded(&mut self) -> Option<Message<'_, F>> {
        let finished = self.discarding.take_if(|discarding| discarding.left == 0)?;
        let unwanted = self.take_fds(finished.start);
        self.dropped_fds += unwanted.len() as u64;
        Some(Message { header: finished.header, body: Body::Discarded, fds: Vec::new() })
    }

    fn take_fds(&mut self, start: u64) -> Vec<F> {
        let mut taken = Vec::new();
        while let Some((_, fd)) = self.fds.pop_front_if(|(owner, _)| *owner <= start) {
            taken.push(fd);
        }
        taken
    }

    fn keep_fds(&mut self, bytes: usize, fds: impl IntoIterator<Item = F>) {
        let mut fds = fds.into_iter().peekable();
        if fds.peek().is_none() {
            return;
        }
        let owner = self.last_message_start();
        let mut held = self.fds.iter().rev().take_while(|(start, _)| *start == owner).count();
        // Without a byte there is no message they could belong to.
        if bytes == 0 {
            held = MAX_MESSAGE_FDS;
        }
        for fd in fds {
            if held < MAX_MESSAGE_FDS && self.fds.len() < MAX_HELD_FDS {
                self.fds.push_back((owner, fd));
                held += 1;
            } else {
                self.dropped_fds += 1;
            }
        }
    }

    /// Where the message starts that holds the last byte received.
    fn last_message_start(&self) -> u64 {
        if let (Some(discarding), true) = (&self.discarding, self.buffer.is_empty()) {
            return discarding.start;
        }
        let mut start = 0;
        while let Ok((header, _)) = Header::read_from_prefix(&self.buffer[start..]) {
            let size = header.size.get() as usize;
            if size < Header::LEN || size >= self.buffer.len() - start {
                break;
            }
            start += size;
        }
        self.base + start as u64
    }
}
