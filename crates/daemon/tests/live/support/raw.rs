//! Messages as bytes on a vfio-user socket, valid or not, and the host's replies.

use super::{PATIENCE, eventually};
use host::socket::StreamSocket;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use vfio_user::wire::Command;

/// Returns a vfio-user message with header and body. Flag bit 4 requests no reply.
pub(crate) fn message(id: u16, command: Command, flags: u32, body: &[u8]) -> Vec<u8> {
    let size = 16 + body.len() as u32;
    [
        &id.to_le_bytes()[..],
        &command.number().to_le_bytes(),
        &size.to_le_bytes(),
        &flags.to_le_bytes(),
        &[0; 4],
        body,
    ]
    .concat()
}

/// Returns a vfio-user VERSION message without capabilities, the smallest valid one.
pub(crate) fn version() -> Vec<u8> {
    message(0, Command::Version, 0, b"\0\0\x01\0{}\0")
}

/// Returns the body of a REGION_READ or REGION_WRITE message, without data.
pub(crate) fn access(region: u32, offset: u64, count: u32) -> Vec<u8> {
    [&offset.to_le_bytes()[..], &region.to_le_bytes(), &count.to_le_bytes()].concat()
}

/// Returns a vfio-user message that reads `count` bytes of a region.
pub(crate) fn load(id: u16, region: u32, offset: u64, count: u32) -> Vec<u8> {
    message(id, Command::RegionRead, 0, &access(region, offset, count))
}

/// Returns a vfio-user message that writes `bytes` to a region.
pub(crate) fn store(id: u16, region: u32, offset: u64, bytes: &[u8]) -> Vec<u8> {
    let access = access(region, offset, bytes.len() as u32);
    message(id, Command::RegionWrite, 0, &[&access[..], bytes].concat())
}

/// Returns a vfio-user message that maps a DMA window of guest memory. The memory's file descriptor, if any, must be
/// sent with the message.
pub(crate) fn dma_map(iova: u64, size: u64) -> Vec<u8> {
    dma_map_at(0, iova, size)
}

/// Returns a vfio-user message that maps a DMA window of guest memory that begins at `offset` in its file.
pub(crate) fn dma_map_at(offset: u64, iova: u64, size: u64) -> Vec<u8> {
    let numbers = [offset, iova, size].map(u64::to_le_bytes).concat();
    message(1, Command::DmaMap, 0, &[&32u32.to_le_bytes()[..], &3u32.to_le_bytes(), &numbers].concat())
}

/// Returns a vfio-user message that unmaps a DMA window.
pub(crate) fn dma_unmap(iova: u64, size: u64) -> Vec<u8> {
    let numbers = [iova, size].map(u64::to_le_bytes).concat();
    message(1, Command::DmaUnmap, 0, &[&24u32.to_le_bytes()[..], &0u32.to_le_bytes(), &numbers].concat())
}

/// Blocking connection of a test to a vfio-user socket, with timeouts.
pub(crate) struct RawVfioUserConnection(UnixStream);

impl Drop for RawVfioUserConnection {
    /// Ends the connection for the host too while a process that another test has just started still has a copy of the socket.
    fn drop(&mut self) {
        // Fails if the host has ended the connection.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

impl RawVfioUserConnection {
    pub(crate) fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }

    /// Connects to a function's vfio-user socket and negotiates the version.
    pub(crate) fn greet(path: &Path) -> Self {
        Self::try_greet(path).expect("the host answers VERSION")
    }

    /// Connects to a VF and negotiates the version. Returns `None` if the VF has another client.
    pub(crate) fn try_greet(path: &Path) -> Option<Self> {
        let mut raw = Self::connect(path);
        let (error, _) = raw.try_send(&version()).then(|| raw.reply())??;
        assert_eq!(error, 0);
        Some(raw)
    }

    pub(crate) fn stream(&self) -> &UnixStream {
        &self.0
    }

    /// Sends all bytes to the host. Returns false if the host has closed the connection.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.0.write_all(bytes).is_ok()
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// Sends a vfio-user message with any number of file descriptors.
    pub(crate) fn send_with(&mut self, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
        let copy = StreamSocket::adopt(OwnedFd::from(self.0.try_clone().unwrap())).unwrap();
        copy.send(bytes, fds).unwrap();
        self.0.set_nonblocking(false).unwrap();
    }

    /// Sends bytes of which the last is urgent data (MSG_OOB). Returns false if the kernel does not support urgent data
    /// on this socket.
    pub(crate) fn send_urgent(&mut self, bytes: &[u8]) -> bool {
        let sent = rustix::net::send(&self.0, bytes, rustix::net::SendFlags::OOB);
        assert!(matches!(sent, Err(rustix::io::Errno::OPNOTSUPP)) || sent == Ok(bytes.len()), "{sent:?}");
        sent.is_ok()
    }

    /// Returns the error number and the body of the next reply, or `None` if the host has closed the connection.
    pub(crate) fn reply(&mut self) -> Option<(u32, Vec<u8>)> {
        let mut header = [0; 16];
        if let Err(error) = self.0.read_exact(&mut header) {
            assert!(matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset), "{error}");
            return None;
        }
        let word =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        assert_eq!(word(8) & 0xf, 1, "the message is no reply");
        let mut body = vec![0; word(4) as usize - 16];
        self.0.read_exact(&mut body).unwrap();
        Some((word(12), body))
    }

    /// Reads until the host has closed the connection.
    pub(crate) fn wait_for_end(&mut self) {
        let mut buffer = [0; 4096];
        eventually("the connection ends", || {
            self.0
                .read(&mut buffer)
                .map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |n| n == 0)
        });
    }
}
