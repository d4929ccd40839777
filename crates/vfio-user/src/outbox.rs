//! Messages on their way out, and how to cut them into `sendmsg` calls.
//!
//! Two facts about receivers decide where a send may end. QEMU reads a header with one `recvmsg` and gives the
//! connection up if fewer than 16 bytes come back, and the `vfio_user` crate reads a whole region info that way:
//! no send may end inside a message unless the message itself is too long for one. And descriptors ride on the
//! first byte of a send: a message that carries them is sent alone. Small messages without any are put together up
//! to [`MAX_CHUNK`], which the kernel queues in one piece or not at all.

use alloc::{collections::VecDeque, vec::Vec};

use zerocopy::FromBytes;

use crate::wire::Header;

/// Bytes of small messages that are sent together.
pub const MAX_CHUNK: usize = 4096;

/// What to give to one `sendmsg`.
#[derive(Debug, PartialEq, Eq)]
pub struct Chunk<'a, F> {
    /// The data; never empty.
    pub bytes: &'a [u8],
    /// The descriptors to attach.
    pub fds: &'a [F],
}

/// A queue of encoded messages. Its buffers are kept when it runs empty.
#[derive(Debug)]
pub struct Outbox<F> {
    bytes: Vec<u8>,
    head: usize,
    /// Position in the stream of `bytes[0]`.
    base: u64,
    /// Position in the stream up to which bytes are noted elsewhere ([`Outbox::fresh`]).
    noted: u64,
    /// Bytes left of a message of which a part is sent.
    begun: usize,
    /// Descriptors with the stream position of their message, in order.
    fds: VecDeque<(u64, Vec<F>)>,
}

impl<F> Default for Outbox<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F> Outbox<F> {
    /// An empty one.
    pub fn new() -> Self {
        Self { bytes: Vec::new(), head: 0, base: 0, noted: 0, begun: 0, fds: VecDeque::new() }
    }

    /// Replies of another process, which are to be sent on: `bytes` are whole messages, but that `sent` bytes of the
    /// first are sent already. They came without descriptors, which cannot be had again.
    pub fn resume(bytes: Vec<u8>, sent: usize) -> Self {
        let mut outbox = Self { noted: bytes.len() as u64, bytes, ..Self::new() };
        outbox.sent(sent);
        outbox
    }

    /// Bytes that were queued since the last call, to be noted elsewhere before they are sent.
    pub fn fresh(&mut self) -> &[u8] {
        let from = (self.noted - self.base) as usize;
        self.noted = self.base + self.bytes.len() as u64;
        &self.bytes[from..]
    }

    /// Bytes not yet sent.
    pub fn pending(&self) -> usize {
        self.bytes.len() - self.head
    }

    /// Whether what was sent ends with a whole message.
    pub fn is_between_messages(&self) -> bool {
        self.begun == 0
    }

    /// What to send next, or `None` if everything is sent.
    pub fn chunk(&self) -> Option<Chunk<'_, F>> {
        let rest = &self.bytes[self.head..];
        let first = if self.begun > 0 { self.begun } else { message_size(rest)? };
        if self.begun == 0 {
            let position = self.base + self.head as u64;
            if let Some((_, fds)) = self.fds.front().filter(|(owner, _)| *owner == position) {
                return Some(Chunk { bytes: &rest[..first], fds });
            }
        }
        let end = if self.begun > 0 { first } else { self.end_of_small_messages(first) };
        Some(Chunk { bytes: &rest[..end], fds: &[] })
    }

    /// `sent` bytes of the last [`chunk`](Self::chunk) are on their way, and with them its descriptors, which are
    /// dropped here.
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

    /// Queues a message: header, then the parts of its body.
    pub(crate) fn message(&mut self, header: &Header, body: &[&[u8]], fds: Vec<F>) {
        if !fds.is_empty() {
            self.fds.push_back((self.base + self.bytes.len() as u64, fds));
        }
        self.bytes.extend_from_slice(zerocopy::IntoBytes::as_bytes(header));
        for part in body {
            self.bytes.extend_from_slice(part);
        }
    }

    /// Queues a message whose body is `start` and `data` zero bytes, which the caller fills in.
    pub(crate) fn message_with_data(&mut self, header: &Header, start: &[u8], data: usize) -> &mut [u8] {
        self.message(header, &[start], Vec::new());
        let from = self.bytes.len();
        self.bytes.resize(from + data, 0);
        &mut self.bytes[from..]
    }

    /// The end of as many whole messages without descriptors as fit a chunk, after one of `first` bytes.
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
    let (header, _) = Header::read_from_prefix(bytes).ok()?;
    Some((header.size.get() as usize).clamp(1, bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Command;

    fn queue(out: &mut Outbox<i32>, body: usize, fds: Vec<i32>) {
        let header = Header::request(0, Command::RegionWrite, body, true);
        out.message_with_data(&header, &[], body);
        if !fds.is_empty() {
            let position = out.base + (out.bytes.len() - body - Header::LEN) as u64;
            out.fds.push_back((position, fds));
        }
    }

    fn drain(out: &mut Outbox<i32>) -> Vec<(usize, Vec<i32>)> {
        let mut sends = Vec::new();
        while let Some(chunk) = out.chunk() {
            let (bytes, fds) = (chunk.bytes.len(), chunk.fds.to_vec());
            out.sent(bytes);
            sends.push((bytes, fds));
        }
        sends
    }

    #[test]
    fn small_messages_go_together_and_one_with_descriptors_goes_alone() {
        let mut out = Outbox::new();
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
    fn a_send_never_ends_inside_a_small_message() {
        let mut out = Outbox::new();
        for _ in 0..5 {
            queue(&mut out, 984, Vec::new());
        }
        assert_eq!(drain(&mut out), [(4000, Vec::new()), (1000, Vec::new())]);
    }

    #[test]
    fn another_process_goes_on_sending_in_the_middle_of_a_message() {
        let mut out = Outbox::new();
        for _ in 0..2 {
            queue(&mut out, 9984, Vec::new());
        }
        let noted = out.fresh().to_vec();
        assert_eq!((noted.len(), out.fresh().len()), (20_000, 0));
        out.sent(10_100);
        queue(&mut out, 4, Vec::new());
        assert_eq!(out.fresh().len(), 20, "noted once");
        let mut resumed = Outbox::resume(noted, 10_100);
        assert_eq!(drain(&mut resumed), [(9900, Vec::new())]);
        assert_eq!(resumed.fresh().len(), 0);
    }

    #[test]
    fn a_long_message_sent_in_part_goes_on_alone() {
        let mut out = Outbox::new();
        queue(&mut out, 9984, Vec::new());
        queue(&mut out, 0, Vec::from([3]));
        assert_eq!(out.chunk().unwrap().bytes.len(), 10_000);
        out.sent(100);
        assert_eq!(out.chunk().unwrap().bytes.len(), 9900);
        out.sent(9899);
        assert_eq!(drain(&mut out), [(1, Vec::new()), (16, Vec::from([3]))]);
    }
}
