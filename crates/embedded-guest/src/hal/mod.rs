//! A VF at the far end of a vfio-user socket, as a driver sees it: registers by message, memory by a shared
//! file, interrupts by eventfds.
//!
//! What a VMM and a guest's kernel do to a VF before a driver probes it, [`VfioUserHal::attach`] does.
//!
//! Left out: mapped regions (every register access is a message) and address translation (the card sees the
//! guest's memory at one address, [`RAM_BASE`]).

mod attach;
mod connection;
#[cfg(test)]
mod tests;

use connection::Connection;
use driver::{DmaHal, DmaRegion, Hal, OutOfDmaMemory};
use host::eventfd::EventFd;
use host::poll::Clock;
use host::shared::{SharedMemory, SharedMemoryError};
use host::socket::Stream;
use i82576::Time;
use i82576::ids::VF_VECTORS;
use std::path::PathBuf;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;
use vfio_user::client::ClientError;
use vfio_user::wire::{Errno, pci_region};

/// Where the card finds the guest's memory: above 4 GiB, so that addresses need all their bits.
pub const RAM_BASE: u64 = 1 << 32;

/// Why a VF cannot be had, or was lost.
#[derive(Debug, thiserror::Error)]
pub enum HalError {
    /// Nobody serves the socket.
    #[error("cannot connect to {path}: {source}", path = path.display())]
    Connect {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The system refuses eventfds, epoll or the socket.
    #[error("vfio-user connection: {0}")]
    System(#[from] std::io::Error),
    /// No memory can be shared.
    #[error(transparent)]
    Memory(#[from] SharedMemoryError),
    /// The server does not keep to the protocol.
    #[error("vfio-user server: {0}")]
    Protocol(#[from] ClientError),
    /// The server refused a request.
    #[error("the vfio-user server refused {request}: errno {}", errno.0)]
    Refused {
        /// What was asked.
        request: &'static str,
        /// What it said.
        errno: Errno,
    },
    /// The device is not a VF of an 82576.
    #[error("not a VF: {0}")]
    NotAVf(&'static str),
    /// The server has closed the connection.
    #[error("the vfio-user server is gone")]
    Gone,
    /// The server does not answer, or does not read.
    #[error("the vfio-user server does not answer")]
    Late,
}

/// Register accesses so far: each is a message to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accesses {
    /// Reads, which wait for the server.
    pub reads: u64,
    /// Writes, which do not.
    pub writes: u64,
}

/// A VF behind a vfio-user socket. Dropping it closes the connection.
#[derive(Debug)]
pub struct VfioUserHal {
    connection: Connection,
    memory: SharedMemory,
    eventfds: [EventFd; VF_VECTORS],
    accesses: Accesses,
    /// Why nothing works any more.
    broken: Option<HalError>,
}

impl VfioUserHal {
    /// The eventfd that an MSI-X vector signals; `None` beyond the VF's vectors.
    #[must_use]
    pub fn eventfd(&self, vector: usize) -> Option<&EventFd> {
        self.eventfds.get(vector)
    }

    /// The socket, to notice its end. Nothing is to be read from it.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        self.connection.stream()
    }

    /// Register accesses since [`VfioUserHal::attach`].
    #[must_use]
    pub fn accesses(&self) -> Accesses {
        self.accesses
    }

    /// Why the VF does not answer any more, if that is so: its registers then read as all ones.
    #[must_use]
    pub fn broken(&self) -> Option<&HalError> {
        self.broken.as_ref()
    }

    /// The offset in the shared file of a device address.
    fn offset(iova: u64) -> u64 {
        iova.wrapping_sub(RAM_BASE)
    }
}

impl Hal for VfioUserHal {
    fn read(&mut self, offset: u32) -> u32 {
        if self.broken.is_some() {
            return u32::MAX;
        }
        self.accesses.reads += 1;
        let mut value = [0; 4];
        match self.connection.read(pci_region::BAR0, offset.into(), &mut value) {
            Ok(()) => u32::from_le_bytes(value),
            Err(error) => {
                self.broken = Some(error);
                u32::MAX
            }
        }
    }

    fn write(&mut self, offset: u32, value: u32) {
        if self.broken.is_some() {
            return;
        }
        self.accesses.writes += 1;
        let written = self.connection.write_posted(pci_region::BAR0, offset.into(), &value.to_le_bytes());
        self.broken = written.err();
    }

    fn now(&self) -> Time {
        Time::from_nanos(Clock.now_ns())
    }

    fn wait(&mut self, time: Duration) {
        std::thread::sleep(time);
    }
}

impl DmaHal for VfioUserHal {
    fn dma_alloc(&mut self, length: usize, align: usize) -> Result<DmaRegion, OutOfDmaMemory> {
        // Never given back, so it is as zero as the file was.
        let piece = self.memory.allocate(length as u64, align as u64).ok_or(OutOfDmaMemory(length))?;
        Ok(DmaRegion { iova: RAM_BASE + piece.offset(), length })
    }

    fn dma_read(&self, iova: u64, into: &mut [u8]) {
        let read = self.memory.memory().read(Self::offset(iova), into);
        fence(Ordering::Acquire);
        assert!(read.is_ok(), "the driver read {} bytes at {iova:#x}, outside its memory", into.len());
    }

    fn dma_write(&mut self, iova: u64, from: &[u8]) {
        fence(Ordering::Release);
        let written = self.memory.memory().write(Self::offset(iova), from);
        assert!(written.is_ok(), "the driver wrote {} bytes at {iova:#x}, outside its memory", from.len());
    }
}
