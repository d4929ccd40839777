//! Decodes received bytes and file descriptors into whole vhost-user messages.
//!
//! A message is read in two parts: its header, then its body. [`MessageDecoder::room`] returns how many bytes the next
//! `recvmsg` may take, so that no `recvmsg` ever reaches into the next message. Every descriptor therefore belongs to
//! the message being read, whichever of its bytes it came with, and no descriptor must be matched with a stream
//! position. Two system calls per message are no cost: a front end sends messages when a driver starts or stops, not
//! for frames. QEMU, DPDK and libvhost-user read in the same way.
//!
//! A decoder holds at most one message: [`MAX_BODY`] bytes, and [`MAX_MESSAGE_FDS`] descriptors.

use alloc::vec::Vec;
use core::mem;

use thiserror::Error;
use zerocopy::FromBytes;

use crate::message::{MAX_BODY, MAX_MESSAGE_FDS, MessageHeader};

/// Unrecoverable error in the stream of messages: end the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum StreamError {
    /// The protocol's version in a message header is not 1.
    #[error("unsupported vhost-user version {0} (supported: 1)")]
    UnsupportedVersion(u32),
    /// The body of a message exceeds every request of a network device.
    #[error("vhost-user message {request} has a body of {size} bytes (maximum: {MAX_BODY})")]
    BodyTooLong {
        /// Number of the request in the message's header.
        request: u32,
        /// Bytes of the body that the header claims.
        size: u32,
    },
    /// A message carries more descriptors than any request of a network device.
    #[error("a vhost-user message has more than {MAX_MESSAGE_FDS} file descriptors")]
    TooManyDescriptors,
    /// More bytes were pushed than the decoder has room for.
    #[error("{pushed} bytes were received, but the vhost-user message needs only {room} more")]
    Overrun {
        /// Number of pushed bytes.
        pushed: usize,
        /// Number of bytes that the decoder had room for.
        room: usize,
    },
}

/// Whole message with its descriptors.
#[derive(Debug)]
pub struct ReceivedMessage<F> {
    /// Header of the received message.
    pub header: MessageHeader,
    /// Body of the received message.
    pub body: Vec<u8>,
    /// Descriptors of the received message.
    pub fds: Vec<F>,
}

/// Incremental parser of vhost-user messages. `F` is the type of a file descriptor: one that closes on drop, or a
/// number in tests.
#[derive(Debug)]
pub struct MessageDecoder<F> {
    /// Received bytes of one message.
    bytes: Vec<u8>,
    fds: Vec<F>,
    error: Option<StreamError>,
}

impl<F> Default for MessageDecoder<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F> MessageDecoder<F> {
    /// Creates a decoder that has received nothing.
    pub fn new() -> Self {
        Self { bytes: Vec::new(), fds: Vec::new(), error: None }
    }

    /// Returns the maximum bytes of the next `recvmsg`: the rest of a header or of a body. Returns 0 if a whole message
    /// must be [taken](Self::take) first, or after an error.
    pub fn room(&self) -> usize {
        if self.error.is_some() {
            return 0;
        }
        let size = match self.header() {
            Some(header) => MessageHeader::LEN + header.size.get() as usize,
            None => MessageHeader::LEN,
        };
        size - self.bytes.len()
    }

    /// Returns the number of received bytes of the incomplete message, and the message's size in bytes if its header
    /// was received.
    pub fn partial(&self) -> (usize, Option<u32>) {
        // A header that is refused may claim any size.
        let size = self.header().map(|header| header.size.get().saturating_add(MessageHeader::LEN as u32));
        (self.bytes.len(), size)
    }

    /// Returns the received bytes of the message, and the number of its descriptors.
    pub(crate) fn received(&self) -> (&[u8], usize) {
        (&self.bytes, self.fds.len())
    }

    /// Adds the bytes and descriptors that one `recvmsg` returned. The caller must close descriptors that stay in
    /// `fds`: they are too many, or came without a byte.
    ///
    /// # Errors
    /// The stream is broken; every later call returns the same error.
    pub fn push(&mut self, bytes: &[u8], fds: &mut Vec<F>) -> Result<(), StreamError> {
        let outcome = self.error.map_or(Ok(()), Err).and_then(|()| self.add(bytes, fds));
        self.error = outcome.err();
        outcome
    }

    fn add(&mut self, bytes: &[u8], fds: &mut Vec<F>) -> Result<(), StreamError> {
        let (pushed, room) = (bytes.len(), self.room());
        if pushed > room {
            return Err(StreamError::Overrun { pushed, room });
        }
        if self.fds.len() + fds.len() > MAX_MESSAGE_FDS || bytes.is_empty() && !fds.is_empty() {
            return Err(StreamError::TooManyDescriptors);
        }
        self.bytes.extend_from_slice(bytes);
        self.fds.append(fds);
        let Some(header) = self.header() else { return Ok(()) };
        header.check_version().map_err(StreamError::UnsupportedVersion)?;
        let (request, size) = (header.request.get(), header.size.get());
        if size as usize > MAX_BODY {
            return Err(StreamError::BodyTooLong { request, size });
        }
        Ok(())
    }

    /// Takes the received message out of the decoder, if it is complete.
    ///
    /// # Errors
    /// The stream is broken.
    pub fn take(&mut self) -> Result<Option<ReceivedMessage<F>>, StreamError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let Some(header) = self.header().filter(|_| self.room() == 0) else { return Ok(None) };
        let body = self.bytes.split_off(MessageHeader::LEN);
        self.bytes.clear();
        Ok(Some(ReceivedMessage { header, body, fds: mem::take(&mut self.fds) }))
    }

    fn header(&self) -> Option<MessageHeader> {
        MessageHeader::read_from_prefix(&self.bytes).ok().map(|(header, _)| header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    #[test]
    fn partial_message_reports_received_bytes_and_size() {
        let mut decoder = MessageDecoder::<u32>::new();
        assert_eq!(decoder.partial(), (0, None));
        let header = MessageHeader::request(5, 264, false);
        decoder.push(&header.as_bytes()[..7], &mut Vec::new()).unwrap();
        assert_eq!(decoder.partial(), (7, None));
        decoder.push(&header.as_bytes()[7..], &mut Vec::new()).unwrap();
        assert_eq!(decoder.partial(), (12, Some(276)));
    }

    #[test]
    fn partial_size_of_a_refused_header_does_not_overflow() {
        let mut decoder = MessageDecoder::<u32>::new();
        let header = MessageHeader { size: u32::MAX.into(), ..MessageHeader::request(5, 0, false) };
        assert!(decoder.push(header.as_bytes(), &mut Vec::new()).is_err());
        assert_eq!(decoder.partial(), (12, Some(u32::MAX)));
    }
}
