//! A VF at the far end of a vfio-user socket, as a driver sees it: registers by message or, where the server offers
//! that, in shared memory; the guest's own memory by a shared file, interrupts by eventfds.
//!
//! What a VMM and a guest's kernel do to a VF before a driver probes it, [`VfioUserHal::attach`] does.
//!
//! Left out: address translation (the card sees the guest's memory at one address, [`RAM_BASE`]).

mod attach;
mod connection;
mod ram;
#[cfg(test)]
mod tests;

pub use ram::Ram;

use crate::vf::Family;
use connection::Connection;
use driver::{Access, DmaHal, DmaRegion, Hal, OutOfDmaMemory};
use host::eventfd::EventFd;
use host::memory::{MapError, MappedFile};
use host::poll::Clock;
use host::shared::SharedMemoryError;
use i82576::Time;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
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
    /// Registers cannot be mapped.
    #[error("registers that the server offers cannot be mapped: {0}")]
    Registers(#[from] MapError),
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
    /// The device is not a VF of a family that there is a driver for.
    #[error("not a VF: {0}")]
    NotAVf(&'static str),
    /// The server has closed the connection.
    #[error("the vfio-user server is gone")]
    Gone,
    /// The server does not answer, or does not read.
    #[error("the vfio-user server does not answer")]
    Late,
}

/// Register accesses so far that were messages. Accesses to mapped registers are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accesses {
    /// Reads, which wait for the card.
    pub reads: u64,
    /// Writes, which do not.
    pub writes: u64,
}

/// The bus that a guest's VF is on: what its driver needs, and what its thread sleeps on.
pub trait Bus: DmaHal + Send + 'static {
    /// The eventfd that an MSI-X vector signals; `None` beyond the vectors in use.
    fn eventfd(&self, vector: usize) -> Option<&EventFd>;

    /// What ends when the card does, if there is such a thing. Nothing is to be read from it.
    fn lifeline(&self) -> Option<BorrowedFd<'_>>;

    /// Register accesses so far.
    fn accesses(&self) -> Accesses;

    /// Whether the card is gone: its registers then read as all ones.
    fn is_gone(&self) -> bool;
}

/// Registers that are mapped, from an offset of BAR0 on.
#[derive(Debug)]
struct Area {
    offset: u64,
    memory: MappedFile,
}

/// A VF behind a vfio-user socket. Dropping it closes the connection.
#[derive(Debug)]
pub struct VfioUserHal {
    socket: PathBuf,
    connection: Connection,
    /// What of BAR0 is mapped.
    areas: Vec<Area>,
    ram: Ram,
    family: Family,
    eventfds: Vec<EventFd>,
    accesses: Accesses,
    /// Why nothing works any more.
    broken: Option<HalError>,
}

impl VfioUserHal {
    /// The socket that it was attached to.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Which VF it is.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// Whether rings and interrupts are reached by memory that is shared with the server, and not by messages.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        !self.areas.is_empty()
    }

    /// The mapping that holds a register, and where in it, if any does.
    fn mapped(&self, offset: u32) -> Option<(&MappedFile, u64)> {
        self.areas.iter().find_map(|Area { offset: start, memory }| {
            let at = u64::from(offset).checked_sub(*start)?;
            (at < memory.len()).then_some((memory, at))
        })
    }

    /// Why the VF does not answer any more, if that is so: its registers then read as all ones.
    #[must_use]
    pub fn broken(&self) -> Option<&HalError> {
        self.broken.as_ref()
    }
}

impl Bus for VfioUserHal {
    fn eventfd(&self, vector: usize) -> Option<&EventFd> {
        self.eventfds.get(vector)
    }

    fn lifeline(&self) -> Option<BorrowedFd<'_>> {
        Some(self.connection.stream().as_fd())
    }

    /// Each is a message to the server.
    fn accesses(&self) -> Accesses {
        self.accesses
    }

    fn is_gone(&self) -> bool {
        self.broken.is_some()
    }
}

impl Hal for VfioUserHal {
    fn read(&mut self, offset: u32) -> u32 {
        if self.broken.is_some() {
            return u32::MAX;
        }
        if let Some((memory, at)) = self.mapped(offset) {
            return memory.load_dword(at).unwrap_or(u32::MAX);
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
        if let Some((memory, at)) = self.mapped(offset) {
            // The register is inside, and the mapping can be written to.
            let _ = memory.store_dword(at, value);
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
        self.ram.allocate(length, align)
    }

    fn dma_read(&self, iova: u64, into: &mut [u8]) {
        self.ram.read(iova, into);
    }

    fn dma_write(&mut self, iova: u64, from: &[u8]) {
        self.ram.write(iova, from);
    }

    #[inline]
    fn prefetch(&self, iova: u64, length: usize, access: Access) {
        self.ram.prefetch(iova, length, access);
    }
}
