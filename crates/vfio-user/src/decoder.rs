//! Decodes the bytes and file descriptors that a socket received into whole vfio-user messages.
//!
//! # Ownership of file descriptors
//!
//! **Descriptors belong to the message that holds the last byte received together with them.** On a Unix stream
//! socket, descriptors travel with the first byte of their `sendmsg`, and the kernel never lets one `recvmsg`
//! continue past the data of such a `sendmsg` (unix(7): "ancillary data forms a barrier"). It may continue *into*
//! it, though: one `recvmsg` can return the end of message 1, all of message 2, and the beginning of message 3 with
//! message 3's descriptors. QEMU, libvfio-user and the published `vfio_user` crate all send a message with
//! descriptors by a `sendmsg` of its own. So everything from that `sendmsg`'s first byte to the barrier is that one
//! message, and the last byte received is part of it, however the receiver cut the stream: a partial header, a
//! header without its body, or a dozen messages at once.
//!
//! If a client packed several messages into one `sendmsg` with descriptors, they would go to the last one; the
//! specification does not define this case, and no known client produces it.
//!
//! # Bounds
//!
//! The decoder holds at most [`BUFFER_LIMIT`] bytes and one push, at most [`MAX_MESSAGE_FDS`] descriptors per
//! message and four times as many in all. A message longer than its command allows is discarded as it arrives and
//! reported without its body, so the stream stays in step whatever the client sends.

use alloc::{collections::VecDeque, vec::Vec};

use thiserror::Error;
use zerocopy::{FromBytes, IntoBytes};

use crate::wire::{MAX_DATA_XFER, MAX_MESSAGE_FDS, MessageHeader};

/// Maximum number of received bytes in the decoder's buffer, beyond which a push is refused: the longest message,
/// rounded up.
pub const BUFFER_LIMIT: usize = MAX_DATA_XFER as usize + 4096;

const MAX_HELD_FDS: usize = 4 * MAX_MESSAGE_FDS;

/// Unrecoverable error in the stream of vfio-user messages: end the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// The size in a message's header is below the size of the header itself.
    #[error("vfio-user message size {size} is below the 16 bytes of its header")]
    SizeBelowHeader {
        /// Size in bytes that the message's header claims.
        size: u32,
    },
    /// The protocol's major version is not 0; the specification requires closing the connection.
    #[error("unsupported vfio-user protocol version {major} (supported: 0)")]
    UnsupportedVersion {
        /// Major version that the client proposes.
        major: u16,
    },
    /// More received bytes were pushed into the decoder before the messages in it were taken.
    #[error("too many received bytes are buffered before their messages are read")]
    Overrun,
}

/// Body of a received message: whole, or discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageBody<'a> {
    /// The message was received with its whole body.
    Whole(&'a [u8]),
    /// The message's body exceeded its length limit and was discarded.
    Discarded,
}

/// Received message that borrows from the decoder's buffer.
#[derive(Debug)]
pub struct ReceivedMessage<'a, F> {
    /// Header of the received message.
    pub header: MessageHeader,
    /// Body of the received message.
    pub body: MessageBody<'a>,
    /// Descriptors of the received message; none for a discarded body.
    pub fds: Vec<F>,
}

/// Message that is discarded because its body is too long.
#[derive(Debug)]
struct DiscardedMessage {
    header: MessageHeader,
    start: u64,
    left: usize,
}

impl DiscardedMessage {
    /// Returns the number of discarded bytes after the message's header.
    fn skipped(&self) -> usize {
        self.header.size.get() as usize - MessageHeader::LEN - self.left
    }
}

/// Received part of a message that is not complete yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnfinishedMessage<'a> {
    /// Buffered bytes of the incomplete message, from its first byte on.
    pub kept: &'a [u8],
    /// Number of discarded bytes after the buffered ones, of a message that exceeds its length limit.
    pub skipped: usize,
}

impl UnfinishedMessage<'_> {
    /// Returns the number of received bytes of the incomplete message.
    #[must_use]
    pub fn received(&self) -> usize {
        self.kept.len() + self.skipped
    }

    /// Returns the size of the whole message in bytes, if the message's header is complete.
    #[must_use]
    pub fn size(&self) -> Option<u32> {
        MessageHeader::read_from_prefix(self.kept).ok().map(|(header, _)| header.size.get())
    }
}

/// Incremental parser of received vfio-user messages. `F` is the type of a file descriptor: one that closes on drop, or
/// a number in tests.
#[derive(Debug)]
pub struct Decoder<F> {
    max_body: fn(&MessageHeader) -> usize,
    /// Received bytes; the first unconsumed message starts at `head`.
    buffer: Vec<u8>,
    head: usize,
    /// Position of `buffer[0]` among all bytes that were ever in the decoder's buffer. Discarded bytes do not count,
    /// but every message has a header, so no two messages start at the same position.
    base: u64,
    discarding: Option<DiscardedMessage>,
    /// Received descriptors, each with the start position of its message, in order.
    fds: VecDeque<(u64, F)>,
    dropped_fds: u64,
}

impl<F> Decoder<F> {
    /// Creates a decoder that buffers bodies of at most `max_body(header)` bytes and discards longer ones.
    pub fn new(max_body: fn(&MessageHeader) -> usize) -> Self {
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

    /// Adds the received bytes and descriptors of one `recvmsg` call. Call [`next_message`](Self::next_message) until
    /// it returns `None` before the next push.
    ///
    /// # Errors
    /// [`ProtocolError::Overrun`] if more than [`BUFFER_LIMIT`] bytes are buffered.
    pub fn push(&mut self, bytes: &[u8], fds: impl IntoIterator<Item = F>) -> Result<(), ProtocolError> {
        if self.buffered() > BUFFER_LIMIT {
            return Err(ProtocolError::Overrun);
        }
        let swallowed = self.discard(bytes.len());
        self.buffer.drain(..self.head);
        self.base += self.head as u64;
        self.head = 0;
        self.buffer.extend_from_slice(&bytes[swallowed..]);
        self.keep_fds(bytes.len(), fds);
        Ok(())
    }

    /// Returns the next whole message, or `None` if it has not arrived.
    ///
    /// # Errors
    /// The framing is lost; every later call returns the same error.
    pub fn next_message(&mut self) -> Result<Option<ReceivedMessage<'_, F>>, ProtocolError> {
        if self.discarding.is_none() {
            let Some((header, body)) = self.peek()? else { return Ok(None) };
            if body <= (self.max_body)(&header) {
                return Ok(self.take_whole(header, MessageHeader::LEN + body));
            }
            self.start_discarding(header, MessageHeader::LEN + body);
        }
        Ok(self.take_discarded())
    }

    /// Puts the message back that was taken last, which had `size` bytes and its whole body, to be taken again. Its
    /// descriptors stay taken.
    pub(crate) fn put_back(&mut self, size: usize) {
        self.head = self.head.saturating_sub(size);
    }

    /// Returns the number of buffered bytes of messages that were not taken yet.
    pub fn buffered(&self) -> usize {
        self.buffer.len() - self.head
    }

    /// Returns the number of received bytes of messages that were not taken yet, including discarded ones.
    pub fn pending(&self) -> usize {
        let swallowed =
            self.discarding.as_ref().map_or(0, |discarding| MessageHeader::LEN + discarding.skipped());
        swallowed + self.buffered()
    }

    /// Returns the incomplete message, once [`next_message`](Self::next_message) has returned `None`.
    pub(crate) fn partial(&self) -> UnfinishedMessage<'_> {
        match &self.discarding {
            Some(discarding) => {
                UnfinishedMessage { kept: discarding.header.as_bytes(), skipped: discarding.skipped() }
            }
            None => UnfinishedMessage { kept: &self.buffer[self.head..], skipped: 0 },
        }
    }

    /// Continues an incomplete message of another decoder, given as an [`UnfinishedMessage`], with the message's
    /// descriptors.
    ///
    /// # Errors
    /// The partial message is invalid: no decoder can have left it.
    pub(crate) fn resume(
        &mut self,
        partial: UnfinishedMessage<'_>,
        fds: impl IntoIterator<Item = F>,
    ) -> Result<(), ProtocolError> {
        self.push(partial.kept, fds)?;
        if partial.skipped > 0 {
            self.next_message()?;
            if self.discard(partial.skipped) < partial.skipped {
                return Err(ProtocolError::Overrun);
            }
        }
        Ok(())
    }

    /// Returns the number of received descriptors that were dropped, because there were too many or their message was
    /// discarded.
    pub fn dropped_fds(&self) -> u64 {
        self.dropped_fds
    }

    /// Returns the next message's header, and the number of bytes of the message's body.
    fn peek(&self) -> Result<Option<(MessageHeader, usize)>, ProtocolError> {
        let Ok((header, _)) = MessageHeader::read_from_prefix(&self.buffer[self.head..]) else {
            return Ok(None);
        };
        let size = header.size.get();
        match (size as usize).checked_sub(MessageHeader::LEN) {
            Some(body) => Ok(Some((header, body))),
            None => Err(ProtocolError::SizeBelowHeader { size }),
        }
    }

    fn take_whole(&mut self, header: MessageHeader, size: usize) -> Option<ReceivedMessage<'_, F>> {
        if self.buffered() < size {
            return None;
        }
        let start = self.head;
        self.head += size;
        let fds = self.take_fds(self.base + start as u64);
        let body = MessageBody::Whole(&self.buffer[start + MessageHeader::LEN..start + size]);
        Some(ReceivedMessage { header, body, fds })
    }

    fn start_discarding(&mut self, header: MessageHeader, size: usize) {
        let start = self.base + self.head as u64;
        let here = size.min(self.buffered());
        self.head += here;
        self.discarding = Some(DiscardedMessage { header, start, left: size - here });
    }

    /// Discards those bytes at the start of a push that belong to a message being discarded. Returns the number of
    /// discarded bytes.
    fn discard(&mut self, received: usize) -> usize {
        let Some(discarding) = &mut self.discarding else { return 0 };
        let here = discarding.left.min(received);
        discarding.left -= here;
        here
    }

    fn take_discarded(&mut self) -> Option<ReceivedMessage<'_, F>> {
        let finished = self.discarding.take_if(|discarding| discarding.left == 0)?;
        let unwanted = self.take_fds(finished.start);
        self.dropped_fds += unwanted.len() as u64;
        Some(ReceivedMessage { header: finished.header, body: MessageBody::Discarded, fds: Vec::new() })
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
        // Without a byte there is no message that the descriptors could belong to.
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

    /// Returns the position of the first byte of the message that holds the last received byte.
    fn last_message_start(&self) -> u64 {
        if let (Some(discarding), true) = (&self.discarding, self.buffer.is_empty()) {
            return discarding.start;
        }
        let mut start = 0;
        while let Ok((header, _)) = MessageHeader::read_from_prefix(&self.buffer[start..]) {
            let size = header.size.get() as usize;
            if size < MessageHeader::LEN || size >= self.buffer.len() - start {
                break;
            }
            start += size;
        }
        self.base + start as u64
    }
}
