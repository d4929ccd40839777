//! Queues outgoing messages, and divides them into `sendmsg` calls.
//!
//! Two properties of receivers decide where a send may end. QEMU reads a header with one `recvmsg` and ends the
//! connection if fewer than 16 bytes come back, and the `vfio_user` crate reads a whole region info that way: no
//! send may end inside a message unless the message itself is too long for one. And descriptors travel with the
//! first byte of a send: a message that carries them is sent alone. Small messages without descriptors are joined
//! up to 4,096 bytes (`MAX_CHUNK`), which the kernel queues whole or not at all.

use alloc::{collections::VecDeque, vec::Vec};

use zerocopy::FromBytes;

use crate::wire::MessageHeader;

/// Maximum bytes of small messages that one `sendmsg` joins.
pub(crate) const MAX_CHUNK: usize = 4096;

/// Bytes and descriptors for one `sendmsg` call.
#[derive(Debug, PartialEq, Eq)]
pub struct SendmsgArguments<'a, F> {
    /// Bytes for one `sendmsg`; never empty.
    pub bytes: &'a [u8],
    /// Descriptors to send with these bytes.
    pub fds: &'a [F],
}

/// Queue of encoded messages to send. An empty queue keeps the memory of its buffers.
#[derive(Debug)]
pub struct MessageOutbox<F> {
    bytes: Vec<u8>,
    head: usize,
    /// Position of `bytes[0]` among all bytes that were ever sent.
    base: u64,
    /// Stream position up to which [`MessageOutbox::fresh`] has returned queued bytes to the caller, who records them.
    noted: u64,
    /// Number of unsent bytes of the message that was sent in part; 0 between messages.
    begun: usize,
    /// Descriptors to send, with the stream position of their message, in order.
    fds: VecDeque<(u64, Vec<F>)>,
}

impl<F> Default for MessageOutbox<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F> MessageOutbox<F> {
    /// Creates an outbox without messages.
    pub fn new() -> Self {
        Self { bytes: Vec::new(), head: 0, base: 0, noted: 0, begun: 0, fds: VecDeque::new() }
    }

    /// Creates an outbox with the replies that a previous process had queued. `bytes` are whole messages, whose first
    /// `sent` bytes were sent already. Descriptors of replies cannot be restored.
    pub fn resume(bytes: Vec<u8>, sent: usize) -> Self {
        let mut outbox = Self { noted: bytes.len() as u64, bytes, ..Self::new() };
        outbox.sent(sent);
        outbox
    }

    /// Returns the bytes queued since the last call, which the caller records before they are sent.
    pub fn fresh(&mut self) -> &[u8] {
        let from = (self.noted - self.base) as usize;
        self.noted = self.base + self.bytes.len() as u64;
        &self.bytes[from..]
    }

    /// Returns the number of unsent bytes in the outbox.
    pub fn pending(&self) -> usize {
        self.bytes.len() - self.head
    }

    /// Returns true if no message was sent in part.
    pub fn is_between_messages(&self) -> bool {
        self.begun == 0
    }

    /// Returns the next bytes to send with their descriptors, or `None` if everything is sent.
    pub fn chunk(&self) -> Option<SendmsgArguments<'_, F>> {
        let rest = &self.bytes[self.head..];
        let first = if self.begun > 0 { self.begun } else { message_size(rest)? };
        if self.begun == 0 {
            let position = self.base + self.head as u64;
            if let Some((_, fds)) = self.fds.front().filter(|(owner, _)| *owner == position) {
                return Some(SendmsgArguments { bytes: &rest[..first], fds });
            }
        }
        let end = if self.begun > 0 { first } else { self.end_of_small_messages(first) };
        Some(SendmsgArguments { bytes: &rest[..end], fds: &[] })
    }

    /// Removes `sent` bytes of the last [`chunk`](Self::chunk), and drops the descriptors sent with them.
    pub fn sent(&mut self, sent: usize) {
        let mut left = sent.min(self.pending());
        if left == 0 {
            return;
        }
        let start = self.base + self.head as u64;
        self.fds.pop_front_if(|(owner, _)| *owner <= start);
        while left > 0 {
            if self.begun == 0 {
                self.begun = message_size(&self.bytes[self.head..]).unwrap_or(left);
            }
            let step = left.min(self.begun);
            self.begun -= step;
            self.head += step;
            left -= step;
        }
        self.reclaim();
    }

    /// Queues a message of a header, the parts of its body and descriptors.
    pub(crate) fn message(&mut self, header: &MessageHeader, body: &[&[u8]], fds: Vec<F>) {
        if !fds.is_empty() {
            self.fds.push_back((self.base + self.bytes.len() as u64, fds));
        }
        self.bytes.extend_from_slice(zerocopy::IntoBytes::as_bytes(header));
        for part in body {
            self.bytes.extend_from_slice(part);
        }
    }

    /// Queues a message with the body `start` and `data` zero bytes. Returns the zero bytes for the caller to fill in.
    pub(crate) fn message_with_data(
        &mut self,
        header: &MessageHeader,
        start: &[u8],
        data: usize,
    ) -> &mut [u8] {
        self.message(header, &[start], Vec::new());
        let from = self.bytes.len();
        self.bytes.resize(from + data, 0);
        &mut self.bytes[from..]
    }

    /// Removes the last queued message, which has `size` bytes and no descriptors. Call it before [`Self::fresh`] and
    /// [`Self::chunk`] have returned the message.
    pub(crate) fn withdraw(&mut self, size: usize) {
        self.bytes.truncate(self.bytes.len().saturating_sub(size));
    }

    /// Returns the end of the whole messages without descriptors that fit one `sendmsg` after a message of `first`
    /// bytes.
    fn end_of_small_messages(&self, first: usize) -> usize {
        let rest = &self.bytes[self.head..];
        let barrier = match self.fds.front() {
            Some((owner, _)) => (owner - self.base) as usize - self.head,
            None => rest.len(),
        };
        let mut end = first;
        while end < barrier {
            match message_size(&rest[end..]) {
                Some(size) if end + size <= MAX_CHUNK => end += size,
                _ => break,
            }
        }
        end
    }

    fn reclaim(&mut self) {
        if self.head == self.bytes.len() {
            self.bytes.clear();
        } else if self.head > self.pending() {
            self.bytes.drain(..self.head);
        } else {
            return;
        }
        self.base += self.head as u64;
        self.head = 0;
    }
}

fn message_size(bytes: &[u8]) -> Option<usize> {
    let (header, _) = MessageHeader::read_from_prefix(bytes).ok()?;
    Some((header.size.get() as usize).clamp(1, bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Command;

    fn queue(out: &mut MessageOutbox<i32>, body: usize, fds: Vec<i32>) {
        let header = MessageHeader::request(0, Command::RegionWrite, body, true);
        out.message_with_data(&header, &[], body);
        if !fds.is_empty() {
            let position = out.base + (out.bytes.len() - body - MessageHeader::LEN) as u64;
            out.fds.push_back((position, fds));
        }
    }

    fn drain(out: &mut MessageOutbox<i32>) -> Vec<(usize, Vec<i32>)> {
        let mut sends = Vec::new();
        while let Some(chunk) = out.chunk() {
            let (bytes, fds) = (chunk.bytes.len(), chunk.fds.to_vec());
            out.sent(bytes);
            sends.push((bytes, fds));
        }
        sends
    }

    #[test]
    fn only_messages_without_file_descriptors_share_one_send() {
        let mut out = MessageOutbox::new();
        queue(&mut out, 4, Vec::new());
        queue(&mut out, 4, Vec::new());
        queue(&mut out, 0, Vec::from([7, 8]));
        queue(&mut out, 1, Vec::new());
        assert_eq!(
            drain(&mut out),
            [(40, Vec::new()), (16, Vec::from([7, 8])), (17, Vec::new())],
            "descriptors ride on the first byte of a send"
        );
        assert_eq!(out.pending(), 0);
    }

    #[test]
    fn send_of_joined_small_messages_ends_with_a_whole_message() {
        let mut out = MessageOutbox::new();
        for _ in 0..5 {
            queue(&mut out, 984, Vec::new());
        }
        assert_eq!(drain(&mut out), [(4000, Vec::new()), (1000, Vec::new())]);
    }

    #[test]
    fn next_process_sends_the_rest_of_a_partly_sent_message() {
        let mut out = MessageOutbox::new();
        for _ in 0..2 {
            queue(&mut out, 9984, Vec::new());
        }
        let noted = out.fresh().to_vec();
        assert_eq!((noted.len(), out.fresh().len()), (20_000, 0));
        out.sent(10_100);
        queue(&mut out, 4, Vec::new());
        assert_eq!(out.fresh().len(), 20, "returned once");
        let mut resumed = MessageOutbox::resume(noted, 10_100);
        assert_eq!(drain(&mut resumed), [(9900, Vec::new())]);
        assert_eq!(resumed.fresh().len(), 0);
    }

    #[test]
    fn partly_sent_message_is_not_joined_with_later_messages() {
        let mut out = MessageOutbox::new();
        queue(&mut out, 9984, Vec::new());
        queue(&mut out, 0, Vec::from([3]));
        assert_eq!(out.chunk().unwrap().bytes.len(), 10_000);
        out.sent(100);
        assert_eq!(out.chunk().unwrap().bytes.len(), 9900);
        out.sent(9899);
        assert_eq!(drain(&mut out), [(1, Vec::new()), (16, Vec::from([3]))]);
    }
}
