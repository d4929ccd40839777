#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | `attach` | requests up to a VF that a driver can probe |
//! | `connection` | requests that wait for their reply, and posted writes |
//! | `ram` | memory that a driver shares with its card, over any bus |
//! | `error` | errors of attaching and of the connection |
#![forbid(unsafe_code)]

mod attach;
mod connection;
mod error;
mod ram;
#[cfg(test)]
mod tests;

pub use error::VfioUserHalError;
pub use ram::SharedDmaMemory;

use connection::ServerConnection;
use driver::any_vf::DeviceFamily;
use driver::hal::DESCRIPTOR;
use driver::{DmaAllocation, DmaHal, Hal, OutOfDmaMemory, PrefetchPurpose};
use host::driver_thread::{DriverThread, SystemThread};
use host::eventfd::EventFd;
use host::memory::MappedFile;
use i82576::Time;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;
use vfio_user::wire::pci_region;

/// Device address of the shared memory: at 4 GiB, so that addresses have more than 32 bits.
pub const RAM_BASE: u64 = 1 << 32;

/// Numbers of register accesses by message. Accesses to mapped registers are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RegisterAccessCounts {
    /// Number of register reads by message, which wait for a reply.
    pub reads: u64,
    /// Number of register writes by message, which do not wait.
    pub writes: u64,
}

/// Access of a driver to its VF: registers, DMA memory, and file descriptors on which the driver's thread waits.
pub trait VfDriverHal: DmaHal + Send + 'static {
    /// Returns the eventfd that an MSI-X interrupt vector signals, or `None` beyond the vectors in use.
    fn eventfd(&self, vector: usize) -> Option<&EventFd>;

    /// Returns a descriptor that closes when the card is gone, if the bus has one. No data arrives on it.
    fn lifeline(&self) -> Option<BorrowedFd<'_>>;

    /// Returns the numbers of register accesses by message so far.
    fn accesses(&self) -> RegisterAccessCounts;

    /// Returns true if the connection to the card has ended. The card's registers then read as all ones.
    fn is_gone(&self) -> bool;
}

/// Mapped part of a VF's BAR0.
#[derive(Debug)]
struct MappedBarArea {
    /// Offset of the mapped part in BAR0, bytes.
    offset: u64,
    memory: MappedFile,
}

/// Connection of a driver in this process to the VF behind a vfio-user socket. Dropping this value closes the
/// connection.
#[derive(Debug)]
pub struct VfioUserHal<T = SystemThread> {
    socket: PathBuf,
    connection: ServerConnection<T>,
    /// Mapped parts of the VF's BAR0.
    areas: Vec<MappedBarArea>,
    ram: SharedDmaMemory,
    family: DeviceFamily,
    eventfds: Vec<EventFd>,
    accesses: RegisterAccessCounts,
    /// Error that ended the connection to the server, if it has ended.
    broken: Option<VfioUserHalError>,
}

impl<T: DriverThread> VfioUserHal<T> {
    /// Returns the path of the server's vfio-user socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns the eventfd that an MSI-X interrupt vector signals, or `None` beyond the vectors in use.
    #[must_use]
    pub fn interrupt(&self, vector: usize) -> Option<&EventFd> {
        self.eventfds.get(vector)
    }

    /// Returns the memory that the driver shares with its card.
    #[must_use]
    pub fn memory(&self) -> &SharedDmaMemory {
        &self.ram
    }

    /// Returns the VF's device family.
    #[must_use]
    pub fn family(&self) -> DeviceFamily {
        self.family
    }

    /// Returns true if ring and interrupt registers are in memory that the server shares, so that accesses need no
    /// message.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        !self.areas.is_empty()
    }

    /// Returns the mapping that holds the VF's register at `offset`, and the register's offset in the mapping.
    fn mapped(&self, offset: u32) -> Option<(&MappedFile, u64)> {
        self.areas.iter().find_map(|MappedBarArea { offset: start, memory }| {
            let at = u64::from(offset).checked_sub(*start)?;
            (at < memory.len()).then_some((memory, at))
        })
    }

    /// Reads a register by message, although it may be mapped. Returns all ones if the connection has ended.
    pub fn read_by_message(&mut self, offset: u32) -> u32 {
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

    /// Returns the error that ended the connection, if it has ended. Registers then read as all ones.
    #[must_use]
    pub fn broken(&self) -> Option<&VfioUserHalError> {
        self.broken.as_ref()
    }
}

impl<T: DriverThread + Send + 'static> VfDriverHal for VfioUserHal<T> {
    fn eventfd(&self, vector: usize) -> Option<&EventFd> {
        self.interrupt(vector)
    }

    fn lifeline(&self) -> Option<BorrowedFd<'_>> {
        Some(self.connection.stream().as_fd())
    }

    fn accesses(&self) -> RegisterAccessCounts {
        self.accesses
    }

    fn is_gone(&self) -> bool {
        self.broken.is_some()
    }
}

impl<T: DriverThread> Hal for VfioUserHal<T> {
    fn read(&mut self, offset: u32) -> u32 {
        if self.broken.is_some() {
            return u32::MAX;
        }
        if let Some((memory, at)) = self.mapped(offset) {
            return memory.load_dword(at).unwrap_or(u32::MAX);
        }
        self.read_by_message(offset)
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
        Time::from_nanos(self.connection.thread.now_ns())
    }

    fn wait(&mut self, time: Duration) {
        self.connection.thread.sleep(time);
    }
}

impl<T: DriverThread> DmaHal for VfioUserHal<T> {
    fn dma_alloc(&mut self, length: usize, align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
        self.ram.allocate(length, align)
    }

    fn dma_read(&self, iova: u64, into: &mut [u8]) {
        self.ram.read(iova, into);
    }

    #[inline]
    fn read_completed(&self, iova: u64, size: usize, into: &mut [[u8; DESCRIPTOR]]) -> usize {
        self.ram.read_completed(iova, size, into)
    }

    fn dma_write(&mut self, iova: u64, from: &[u8]) {
        self.ram.write(iova, from);
    }

    #[inline]
    fn prefetch(&self, iova: u64, length: usize, access: PrefetchPurpose) {
        self.ram.prefetch(iova, length, access);
    }
}
