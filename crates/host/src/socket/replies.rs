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
//! The same file holds the first part of a message of the client's that has not come whole ([`ReplyLog::hold`]): it lies on
//! pages of its own, which are never sent, behind the replies that are sent and before those to come.
//!
//! Left out: what is in replies and messages, and where one ends.

#[cfg(test)]
mod tests;

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
/// More than this is never noted at a time: what a client may leave unread, twice over, or the longest message.
const LONGEST: u64 = 4 << 20;

/// What is written and not sent, as positions in the file: kept by the owner where a successor finds it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// Where a reply begins that may not be sent; all before it are.
    pub begin: u64,
    /// Where the next reply will be written.
    pub end: u64,
}

/// Bytes of a message that has not come whole, as positions in the file: noted like [`Extent`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// The position of the first byte.
    pub begin: u64,
    /// The number of bytes; 0 if there is no such message.
    pub length: u64,
}

impl Held {
    /// The first page behind the bytes.
    fn end(self) -> u64 {
        (self.begin + self.length).next_multiple_of(PAGE)
    }
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
    held: Held,
    /// The next reply begins here at the earliest, behind everything that was held.
    floor: u64,
}

impl ReplyLog {
    /// An empty one.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new() -> io::Result<Self> {
        let file = memfd_create("softiov-replies", MemfdFlags::CLOEXEC)?;
        Ok(Self { file, extent: Extent::default(), sent: 0, hole: 0, held: Held::default(), floor: 0 })
    }

    /// Takes over a predecessor's file with what it had noted last. Returns the log, the replies from
    /// [`Extent::begin`] on, and how many bytes of them are sent.
    ///
    /// # Errors
    /// The file cannot be read: it is not one of these.
    pub fn adopt(file: OwnedFd, extent: Extent, held: Held) -> io::Result<(Self, Vec<u8>, usize)> {
        let mut sent = tell(&file)?;
        // The predecessor died between noting the next page and moving there.
        if !(extent.begin..=extent.end).contains(&sent) {
            sent = seek(&file, SeekFrom::Start(extent.begin))?;
        }
        let replies = read(&file, extent.begin, extent.end.checked_sub(extent.begin))?;
        let (hole, floor) = (sent & !(PAGE - 1), if held.length > 0 { held.end() } else { 0 });
        Ok((Self { file, extent, sent, hole, held, floor }, replies, (sent - extent.begin) as usize))
    }

    /// Appends bytes of the message that has not come whole to those that are held. They count from when [`ReplyLog::held`]
    /// is noted. Only while every reply is sent: the next ones will lie behind.
    ///
    /// # Errors
    /// There is no memory.
    pub fn hold(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.held.length == 0 {
            self.held.begin = self.extent.end.next_multiple_of(PAGE);
        }
        write(&self.file, self.held.begin + self.held.length, bytes)?;
        self.held.length += bytes.len() as u64;
        self.floor = self.held.end();
        Ok(())
    }

    /// Returns the bytes to note after [`ReplyLog::hold`].
    #[must_use]
    pub fn held(&self) -> Held {
        self.held
    }

    /// Reads the bytes that are held.
    ///
    /// # Errors
    /// The file is not one of these.
    pub fn read_held(&self) -> io::Result<Vec<u8>> {
        read(&self.file, self.held.begin, Some(self.held.length))
    }

    /// Forgets the bytes that are held. To be called when a note counts that there are none.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn release(&mut self) -> io::Result<()> {
        let Held { begin, length } = std::mem::take(&mut self.held);
        if length >= HOLE {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&self.file, flags, begin, length)?;
        }
        Ok(())
    }

    /// What to note before the next [`ReplyLog::send`].
    #[must_use]
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// Makes room for `bytes` of replies: they begin on the next page if everything is sent and they would cross the end
    /// of this one, and behind what is or was held. If it returns true, [`ReplyLog::extent`] has to be noted, and then
    /// [`ReplyLog::settle`] to be called.
    #[must_use]
    pub fn make_room(&mut self, bytes: usize) -> bool {
        let end = self.extent.end;
        let page = end.next_multiple_of(PAGE);
        let crosses = end != page && end % PAGE + bytes as u64 > PAGE;
        if self.sent < end || !(crosses || end < self.floor) {
            return false;
        }
        let next = page.max(self.floor);
        self.extent = Extent { begin: next, end: next };
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
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        write(&self.file, self.extent.end, bytes)?;
        self.extent.end += bytes.len() as u64;
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

fn write(file: &OwnedFd, mut at: u64, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = pwrite(file, bytes, at)?;
        (at, bytes) = (at + written as u64, &bytes[written..]);
    }
    Ok(())
}

/// Reads bytes that were noted, if their number is one that may be.
fn read(file: &OwnedFd, mut at: u64, length: Option<u64>) -> io::Result<Vec<u8>> {
    let length = length.filter(|length| *length <= LONGEST).ok_or(io::ErrorKind::InvalidData)?;
    let mut bytes = vec![0; length as usize];
    let mut rest = bytes.as_mut_slice();
    while !rest.is_empty() {
        let read = pread(file, &mut *rest, at)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        (at, rest) = (at + read as u64, &mut rest[read..]);
    }
    Ok(bytes)
}

impl AsFd for ReplyLog {
    /// The file, to be kept for a successor.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
