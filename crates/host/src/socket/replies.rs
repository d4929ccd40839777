//! Bytes on their way out that outlive the process which wrote them.
//!
//! A process that dies between sending a reply and noting so leaves its successor in doubt whether to send it again,
//! and a client takes neither a reply too many nor one too few. So replies are written to a file in memory, and
//! `sendfile` sends from it: the kernel advances the file's position by what it has sent, and the position belongs to
//! the open file, which a successor holds too. There is no moment at which the two disagree.
//!
//! The socket takes the file's pages and not copies of them, so a byte that was sent must not be written again:
//! positions only grow. Pages that are done with are given back to the kernel (a hole); the socket keeps its own hold
//! of them.
//!
//! Left out: what is in the replies, and where one ends.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FallocateFlags, MemfdFlags, SeekFrom, fallocate, memfd_create, seek, sendfile, tell};
use rustix::io::{Errno, pread, pwrite};

use super::{Sent, Stream};

/// QEMU reads a header with one receive and gives up on a part of one. Before Linux 6.5 the kernel sends page by
/// page, so a reply that could cross the end of a page begins on the next one.
const PAGE: u64 = 4096;
/// How much may be sent before its pages are given back.
const HOLE: u64 = 64 * 1024;
/// More than this is never noted at a time: what a client may leave unread, twice over.
const LONGEST: u64 = 4 << 20;

/// What is written and not sent, as positions in the file: kept by the owner where a successor finds it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// Where a reply begins that may not be sent; all before it are.
    pub begin: u64,
    /// Where the next reply will be written.
    pub end: u64,
}

/// A file of replies to one client.
#[derive(Debug)]
pub struct ReplyLog {
    file: OwnedFd,
    extent: Extent,
    /// The file's position: everything before is sent.
    sent: u64,
    /// The pages before have been given back.
    hole: u64,
}

impl ReplyLog {
    /// An empty one.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new() -> io::Result<Self> {
        let file = memfd_create("softiov-replies", MemfdFlags::CLOEXEC)?;
        Ok(Self { file, extent: Extent::default(), sent: 0, hole: 0 })
    }

    /// Takes over a predecessor's file with what it had noted last. Answers the log, the replies from
    /// [`Extent::begin`] on, and how many bytes of them are sent.
    ///
    /// # Errors
    /// The file cannot be read: it is not one of these.
    pub fn adopt(file: OwnedFd, extent: Extent) -> io::Result<(Self, Vec<u8>, usize)> {
        let mut sent = tell(&file)?;
        // The predecessor died between noting the next page and moving there.
        if !(extent.begin..=extent.end).contains(&sent) {
            sent = seek(&file, SeekFrom::Start(extent.begin))?;
        }
        let length = extent.end.checked_sub(extent.begin).filter(|length| *length <= LONGEST);
        let mut replies = vec![0; length.ok_or(io::ErrorKind::InvalidData)? as usize];
        let (mut at, mut rest) = (extent.begin, replies.as_mut_slice());
        while !rest.is_empty() {
            let read = pread(&file, &mut *rest, at)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            (at, rest) = (at + read as u64, &mut rest[read..]);
        }
        let hole = sent & !(PAGE - 1);
        Ok((Self { file, extent, sent, hole }, replies, (sent - extent.begin) as usize))
    }

    /// What to note before the next [`ReplyLog::send`].
    #[must_use]
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// Makes room for `bytes` of replies: they begin on the next page if everything is sent and they would cross the end
    /// of this one. If the answer is true, [`ReplyLog::extent`] has to be noted, and then [`ReplyLog::settle`] to be
    /// called.
    #[must_use]
    pub fn make_room(&mut self, bytes: usize) -> bool {
        let end = self.extent.end;
        let page = end.next_multiple_of(PAGE);
        if self.sent < end || end == page || end % PAGE + bytes as u64 <= PAGE {
            return false;
        }
        self.extent = Extent { begin: page, end: page };
        true
    }

    /// Moves to where the file goes on, after [`ReplyLog::make_room`] was noted.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn settle(&mut self) -> io::Result<()> {
        self.sent = seek(&self.file, SeekFrom::Start(self.extent.begin))?;
        Ok(())
    }

    /// What was sent ends with a whole reply: from now on a successor need not know what was before.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn trim(&mut self) -> io::Result<()> {
        self.extent.begin = self.sent;
        let page = self.sent & !(PAGE - 1);
        if page - self.hole >= HOLE {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&self.file, flags, self.hole, page - self.hole)?;
            self.hole = page;
        }
        Ok(())
    }

    /// Writes replies behind those that are there. They count from when the [`ReplyLog::extent`] is noted.
    ///
    /// # Errors
    /// There is no memory.
    pub fn append(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = pwrite(&self.file, bytes, self.extent.end)?;
            self.extent.end += written as u64;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// Sends up to `bytes` of what is noted, as the socket takes them now.
    ///
    /// # Errors
    /// What the kernel says, if it is neither "not now" nor "the peer is gone".
    pub fn send(&mut self, stream: &Stream, bytes: usize) -> io::Result<Sent> {
        loop {
            return match sendfile(stream, &self.file, None, bytes) {
                Ok(sent) => {
                    self.sent += sent as u64;
                    Ok(Sent::Bytes(sent))
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => Ok(Sent::WouldBlock),
                Err(Errno::PIPE | Errno::CONNRESET) => Ok(Sent::Closed),
                Err(error) => Err(error.into()),
            };
        }
    }

    /// Sends what is noted next, which is `bytes`, with descriptors, as far as the socket takes it now. Descriptors do
    /// not go through `sendfile`, so here there is a moment at which file and socket disagree: a successor of a process
    /// that dies in it sends the bytes again.
    ///
    /// # Errors
    /// As for [`Self::send`].
    pub fn send_with(&mut self, stream: &Stream, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<Sent> {
        let sent = stream.send(bytes, fds)?;
        if let Sent::Bytes(count) = sent {
            self.sent += count as u64;
            seek(&self.file, SeekFrom::Start(self.sent))?;
        }
        Ok(sent)
    }
}

impl AsFd for ReplyLog {
    /// The file, to be kept for a successor.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{FdBatch, Received};

    /// A conversation with the notes that an owner keeps.
    struct World {
        log: ReplyLog,
        noted: Extent,
        ours: Stream,
        theirs: Stream,
    }

    impl World {
        fn new() -> Self {
            let (ours, theirs) = Stream::pair().unwrap();
            Self { log: ReplyLog::new().unwrap(), noted: Extent::default(), ours, theirs }
        }

        fn append(&mut self, bytes: &[u8]) {
            if self.log.make_room(bytes.len()) {
                self.noted = self.log.extent();
                self.log.settle().unwrap();
            }
            self.log.append(bytes).unwrap();
            self.noted = self.log.extent();
        }

        fn send(&mut self, bytes: usize) {
            assert_eq!(self.log.send(&self.ours, bytes).unwrap(), Sent::Bytes(bytes));
        }

        fn hears(&self, bytes: &[u8]) {
            let (mut heard, mut buffer) = (Vec::new(), [0; 1 << 16]);
            while heard.len() < bytes.len() {
                match self.theirs.recv(&mut buffer, &mut FdBatch::new()).unwrap() {
                    Received::Bytes(count) => heard.extend_from_slice(&buffer[..count]),
                    other => panic!("{other:?} after {} bytes", heard.len()),
                }
            }
            assert!(heard == bytes, "the client hears something else");
        }

        /// The process dies; what the client is owed.
        fn die(&mut self) -> Vec<u8> {
            let file = self.log.file.try_clone().unwrap();
            let (log, replies, sent) = ReplyLog::adopt(file, self.noted).unwrap();
            self.log = log;
            replies[sent..].to_vec()
        }
    }

    #[test]
    fn a_successor_knows_to_the_byte_what_was_sent() {
        let mut world = World::new();
        world.append(b"first second");
        world.send(6);
        assert_eq!(world.die(), b"second");
        world.send(6);
        world.hears(b"first second");
        assert_eq!(world.die(), b"");
    }

    #[test]
    fn what_was_written_and_not_noted_is_not_owed() {
        let mut world = World::new();
        world.append(b"noted");
        world.log.append(b"not noted").unwrap();
        assert_eq!(world.die(), b"noted");
        world.log.append(b" later").unwrap();
        world.noted = world.log.extent();
        world.send(11);
        world.hears(b"noted later");
    }

    #[test]
    fn bytes_that_a_client_has_not_read_stay_what_they_were_when_their_pages_are_given_back() {
        let mut world = World::new();
        let mut expected = Vec::new();
        for number in 0..40_u8 {
            let reply = vec![number; 3000];
            world.append(&reply);
            world.send(reply.len());
            world.log.trim().unwrap();
            expected.extend(reply);
        }
        assert!(world.log.hole >= HOLE, "pages were given back");
        world.hears(&expected);
    }

    #[test]
    fn a_death_between_noting_the_next_page_and_moving_there_is_no_loss() {
        let mut world = World::new();
        world.append(&[7; 4000]);
        world.send(4000);
        assert!(world.log.make_room(200), "200 bytes more would cross the page");
        world.noted = world.log.extent();
        assert_eq!(world.die(), b"");
        world.append(&[8; 200]);
        world.send(200);
        world.hears(&[[7; 4000].as_slice(), &[8; 200]].concat());
    }

    #[test]
    fn a_client_that_does_not_read_is_not_waited_for() {
        let mut world = World::new();
        world.append(&[1; 1 << 20]);
        let mut total = 0;
        while let Sent::Bytes(sent) = world.log.send(&world.ours, (1 << 20) - total).unwrap() {
            total += sent;
        }
        assert_eq!(world.die().len(), (1 << 20) - total);
    }
}
