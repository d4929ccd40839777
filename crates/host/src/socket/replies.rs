//! Log of the replies to a client, which the host's successor process can continue to send.
//!
//! A process that dies between sending a reply and recording that leaves its successor in doubt whether to send it
//! again, and a client tolerates neither a duplicate nor a missing reply. So replies are written to a file in
//! memory, and `sendfile` sends from it: the kernel advances the file's position by the sent bytes, and the
//! position belongs to the open file, which a successor holds too. At no moment do the two disagree.
//!
//! The socket references the file's pages instead of copying them, so a sent byte must not be overwritten:
//! positions only grow. Sent pages are released to the kernel (a hole); the socket keeps its own reference.
//!
//! The same file holds the first part of an incomplete client message ([`ReplyLog::hold`]): on pages of its own,
//! which are never sent, after the sent replies and before later ones.
//!
//! The log does not interpret replies and messages.

#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FallocateFlags, MemfdFlags, SeekFrom, fallocate, memfd_create, seek, sendfile, tell};
use rustix::io::{Errno, pread, pwrite};

use super::{SocketSendResult, StreamSocket};
#[cfg(any(test, feature = "test-support"))]
use crate::kernel_choices;

/// Bytes of a page of the reply log. QEMU reads a reply's header with one receive, and fails if it receives only a
/// part. Before Linux 6.5 the kernel sends page by page, so a reply that could cross the end of a page begins on the
/// next page.
const PAGE: u64 = 4096;
/// Number of sent bytes after which the reply log releases the pages of these bytes to the kernel.
const HOLE: u64 = 64 * 1024;
/// Maximum length in bytes of a recorded range of the reply log: twice what a client may leave unread, and above the
/// longest message.
const LONGEST: u64 = 4 << 20;

/// Range of the reply log's file that holds replies which may be unsent. The log's owner records the range for a
/// successor process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnsentReplyRange {
    /// Position of the first reply that may be unsent, in the reply log.
    pub begin: u64,
    /// Position in the reply log of the next reply to be written.
    pub end: u64,
}

/// Range of the reply log's file that holds the received part of an incomplete message. The log's owner records the
/// range like [`UnsentReplyRange`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IncompleteMessageRange {
    /// Position in the reply log of the first received byte of the incomplete message.
    pub begin: u64,
    /// Number of received bytes of the incomplete message in the reply log; 0 if there is no such message.
    pub length: u64,
}

impl IncompleteMessageRange {
    /// Returns the position of the reply log's first page after the received part of an incomplete message.
    fn end(self) -> u64 {
        (self.begin + self.length).next_multiple_of(PAGE)
    }
}

/// Log of the replies to one client.
#[derive(Debug)]
pub struct ReplyLog {
    file: OwnedFd,
    extent: UnsentReplyRange,
    /// Position in the reply log of the first unsent byte.
    sent: u64,
    /// Position in the reply log before which pages have been released to the kernel.
    hole: u64,
    held: IncompleteMessageRange,
    /// Lowest position in the reply log for the next reply, after the received part of an incomplete message.
    floor: u64,
}

impl ReplyLog {
    /// Creates a reply log without replies.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new() -> io::Result<Self> {
        let file = memfd_create("softiov-replies", MemfdFlags::CLOEXEC)?;
        Ok(Self {
            file,
            extent: UnsentReplyRange::default(),
            sent: 0,
            hole: 0,
            held: IncompleteMessageRange::default(),
            floor: 0,
        })
    }

    /// Adopts the reply log's file and the last records of the previous host process. Returns the log, the replies from
    /// [`UnsentReplyRange::begin`] on, and how many bytes of these replies were sent.
    ///
    /// # Errors
    /// The file is not a reply log, or cannot be read.
    pub fn adopt(
        file: OwnedFd,
        extent: UnsentReplyRange,
        held: IncompleteMessageRange,
    ) -> io::Result<(Self, Vec<u8>, usize)> {
        let mut sent = tell(&file)?;
        // The predecessor died between recording the next page and moving there.
        if !(extent.begin..=extent.end).contains(&sent) {
            sent = seek(&file, SeekFrom::Start(extent.begin))?;
        }
        let replies = read(&file, extent.begin, extent.end.checked_sub(extent.begin))?;
        let (hole, floor) = (sent & !(PAGE - 1), if held.length > 0 { held.end() } else { 0 });
        Ok((Self { file, extent, sent, hole, held, floor }, replies, (sent - extent.begin) as usize))
    }

    /// Appends bytes to the received part of an incomplete message in the reply log. A successor process reads the
    /// bytes only if [`ReplyLog::held`] was recorded afterwards. Every reply must have been sent: later replies are
    /// written after these bytes.
    ///
    /// # Errors
    /// The system is out of memory.
    pub fn hold(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.held.length == 0 {
            self.held.begin = self.extent.end.next_multiple_of(PAGE);
        }
        write(&self.file, self.held.begin + self.held.length, bytes)?;
        self.held.length += bytes.len() as u64;
        self.floor = self.held.end();
        Ok(())
    }

    /// Returns the range of the reply log with the received part of an incomplete message, to be recorded after
    /// [`ReplyLog::hold`].
    #[must_use]
    pub fn held(&self) -> IncompleteMessageRange {
        self.held
    }

    /// Reads the received part of the incomplete message from the reply log.
    ///
    /// # Errors
    /// The file is not a reply log.
    pub fn read_held(&self) -> io::Result<Vec<u8>> {
        read(&self.file, self.held.begin, Some(self.held.length))
    }

    /// Drops the received part of a message from the reply log. Call it after a record without such a part.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn release(&mut self) -> io::Result<()> {
        let IncompleteMessageRange { begin, length } = std::mem::take(&mut self.held);
        if length >= HOLE {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&self.file, flags, begin, length)?;
        }
        Ok(())
    }

    /// Returns the range of unsent replies in the log, to be recorded before the next [`ReplyLog::send`].
    #[must_use]
    pub fn extent(&self) -> UnsentReplyRange {
        self.extent
    }

    /// Prepares room for `bytes` of replies in the reply log, after the received part of a message. If all replies are
    /// sent and the new ones would cross a page's end, they begin on the next page. If it returns true, call
    /// [`ReplyLog::settle`] once [`ReplyLog::extent`] is recorded together with the replies.
    #[must_use]
    pub fn make_room(&mut self, bytes: usize) -> bool {
        let end = self.extent.end;
        let page = end.next_multiple_of(PAGE);
        let crosses = end != page && end % PAGE + bytes as u64 > PAGE;
        if self.sent < end || !(crosses || end < self.floor) {
            return false;
        }
        let next = page.max(self.floor);
        self.extent = UnsentReplyRange { begin: next, end: next };
        true
    }

    /// Moves the position of the reply log's file to the page that [`ReplyLog::make_room`] has chosen, after the
    /// replies there were recorded and before they are sent.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn settle(&mut self) -> io::Result<()> {
        self.sent = seek(&self.file, SeekFrom::Start(self.extent.begin))?;
        Ok(())
    }

    /// Drops the sent replies from the reply log, since the successor process does not need them. The sent bytes must
    /// end with a whole reply.
    ///
    /// # Errors
    /// The kernel's error.
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

    /// Appends replies to the reply log. A successor process sends the replies only if [`ReplyLog::extent`] was
    /// recorded afterwards.
    ///
    /// # Errors
    /// The system is out of memory.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        write(&self.file, self.extent.end, bytes)?;
        self.extent.end += bytes.len() as u64;
        Ok(())
    }

    /// Sends up to `bytes` of the reply log's recorded replies without blocking.
    ///
    /// # Errors
    /// The kernel's error, except a full socket and a closed peer.
    pub fn send(&mut self, stream: &StreamSocket, bytes: usize) -> io::Result<SocketSendResult> {
        #[cfg(any(test, feature = "test-support"))]
        let bytes = match kernel_choices::taken_of_send(bytes) {
            0 => return Ok(SocketSendResult::WouldBlock),
            taken => taken,
        };
        loop {
            return match sendfile(stream, &self.file, None, bytes) {
                Ok(sent) => {
                    self.sent += sent as u64;
                    Ok(SocketSendResult::Bytes(sent))
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => Ok(SocketSendResult::WouldBlock),
                Err(Errno::PIPE | Errno::CONNRESET) => Ok(SocketSendResult::Closed),
                Err(error) => Err(error.into()),
            };
        }
    }

    /// Sends the next `bytes` of the reply log's recorded replies with file descriptors, without blocking. If the
    /// process dies between sending and the update of the log's position, the successor process sends the bytes again:
    /// `sendfile`, which updates it at once, carries no descriptors.
    ///
    /// # Errors
    /// Returns the errors of [`Self::send`].
    pub fn send_with(
        &mut self,
        stream: &StreamSocket,
        bytes: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> io::Result<SocketSendResult> {
        let sent = stream.send(bytes, fds)?;
        if let SocketSendResult::Bytes(count) = sent {
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

/// Reads `length` bytes of the reply log's file from position `at`. Refuses an impossible length.
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
    /// Returns the reply log's file, to be kept for the successor process.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
