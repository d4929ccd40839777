//! Queues outgoing messages, and divides them into `sendmsg` calls.
//!
//! Descriptors travel with the first byte of a send, and receivers read a header by one `recvmsg`. So each message is a
//! send of its own, and only the rest of a partly sent message is a send without descriptors.

use alloc::{collections::VecDeque, vec::Vec};

use zerocopy::IntoBytes;

use crate::message::MessageHeader;

/// Arguments of one `sendmsg`.
#[derive(Debug, PartialEq, Eq)]
pub struct OutgoingChunk<'a, F> {
    /// Bytes for one `sendmsg`; never empty.
    pub bytes: &'a [u8],
    /// Descriptors to send with these bytes.
    pub fds: &'a [F],
}

/// Encoded message of which some bytes are not sent yet.
#[derive(Debug)]
struct OutgoingMessage<F> {
    bytes: Vec<u8>,
    sent: usize,
    fds: Vec<F>,
}

/// Queue of encoded messages to send.
#[derive(Debug)]
pub struct OutgoingMessages<F> {
    messages: VecDeque<OutgoingMessage<F>>,
}

impl<F> Default for OutgoingMessages<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F> OutgoingMessages<F> {
    /// Creates an empty queue of messages to send.
    pub fn new() -> Self {
        Self { messages: VecDeque::new() }
    }

    /// Returns the number of messages that are not sent completely.
    pub fn pending(&self) -> usize {
        self.messages.len()
    }

    /// Returns the next bytes to send with their descriptors, or `None` if everything is sent.
    pub fn chunk(&self) -> Option<OutgoingChunk<'_, F>> {
        let message = self.messages.front()?;
        Some(OutgoingChunk { bytes: &message.bytes[message.sent..], fds: &message.fds })
    }

    /// Removes `sent` bytes of the last [`chunk`](Self::chunk), and drops the descriptors sent with them.
    pub fn sent(&mut self, sent: usize) {
        let Some(message) = self.messages.front_mut().filter(|_| sent > 0) else { return };
        message.sent += sent;
        message.fds.clear();
        if message.sent >= message.bytes.len() {
            self.messages.pop_front();
        }
    }

    /// Queues a message of a header, its body and descriptors.
    pub(crate) fn message(&mut self, header: &MessageHeader, body: &[u8], fds: Vec<F>) {
        let bytes = [header.as_bytes(), body].concat();
        self.messages.push_back(OutgoingMessage { bytes, sent: 0, fds });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_descriptors_go_with_the_first_byte_of_their_message() {
        let mut out = OutgoingMessages::new();
        out.message(&MessageHeader::request(3, 0, false), &[], Vec::new());
        out.message(&MessageHeader::request(37, 2, false), &[1, 2], Vec::from([7]));
        assert_eq!(out.chunk().map(|chunk| (chunk.bytes.len(), chunk.fds)), Some((12, &[][..])));
        out.sent(12);
        assert_eq!(out.chunk().map(|chunk| (chunk.bytes.len(), chunk.fds)), Some((14, &[7][..])));
        out.sent(12);
        assert_eq!(out.chunk(), Some(OutgoingChunk { bytes: &[1, 2], fds: &[] }));
        out.sent(2);
        assert_eq!((out.chunk(), out.pending()), (None, 0));
    }
}
