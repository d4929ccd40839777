//! Attaches to a VF with the requests of QEMU, in its order, and the configuration writes of a kernel's PCI core.
//! Writes no MSI-X table, because a VMM emulates the table itself.

use crate::connection::ServerConnection;
use crate::{MappedBarArea, RAM_BASE, RegisterAccessCounts, SharedDmaMemory, VfioUserHal, VfioUserHalError};
use driver::any_vf::DeviceFamily;
use host::driver_thread::{DriverThread, SystemThread};
use host::eventfd::EventFd;
use host::memory::{MappedFile, MemoryProtection};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use vfio_user::client::{Client, ClientDmaWindow, ReplyContents};
use vfio_user::outbox::MessageOutbox;
use vfio_user::types::{DeviceInfo, SparseArea};
use vfio_user::wire::{Errno, VERSION_MAJOR, device_flags, pci_irq, pci_region};

/// Configuration space offset of vendor and device id.
const IDS: u64 = 0x00;
/// Configuration space offset of the command register.
const COMMAND: u64 = 0x04;
/// Bits of the command register that enable memory space and bus mastering.
const ENABLE: u16 = 1 << 1 | 1 << 2;
/// Configuration space offset of the capabilities pointer.
const CAPABILITIES: u64 = 0x34;
/// Configuration space capability id of MSI-X.
const MSIX: u8 = 0x11;
/// Enable bit in the message control register of the MSI-X capability.
const MSIX_ENABLE: u16 = 1 << 15;
/// Maximum number of capabilities in the first 256 bytes of configuration space; a longer list is a loop.
const MAX_CAPABILITIES: usize = 48;
/// Maximum bytes of the server's reply about a region, including the list of mappable areas.
const REGION_INFO: u32 = 256;

impl VfioUserHal {
    /// Attaches to the VF behind `socket`: shares `memory` bytes (a multiple of 4,096) with the card, resets and
    /// enables the VF, and assigns an eventfd to each interrupt vector.
    ///
    /// # Errors
    /// [`VfioUserHalError`].
    pub fn attach(socket: &Path, memory: u64) -> Result<Self, VfioUserHalError> {
        Self::attach_on(SystemThread, socket, memory)
    }
}

impl<T: DriverThread> VfioUserHal<T> {
    /// Attaches to the VF behind `socket` as [`VfioUserHal::attach`] does. The driver waits as `thread` does, and reads its
    /// clock.
    ///
    /// # Errors
    /// [`VfioUserHalError`].
    pub fn attach_on(thread: T, socket: &Path, memory: u64) -> Result<Self, VfioUserHalError> {
        let mut connection = ServerConnection::open(socket, thread)?;
        let ram = SharedDmaMemory::new(RAM_BASE, memory)?;
        let AttachedVfProperties { family, areas, vectors } = identify(&mut connection)?;
        share(&mut connection, ram.shared().as_fd(), window(&ram, ram.base()))?;
        done(&mut connection, "a reset", |client, out| client.reset(out))?;
        let eventfds = (0..vectors).map(|_| EventFd::new()).collect::<Result<Vec<_>, _>>()?;
        assign(&mut connection, &eventfds)?;
        enable(&mut connection)?;
        let socket = socket.to_owned();
        let accesses = RegisterAccessCounts::default();
        Ok(Self { socket, connection, family, areas, ram, eventfds, accesses, broken: None })
    }

    /// Resets the VF, and enables its DMA and interrupts again.
    ///
    /// # Errors
    /// [`VfioUserHalError`].
    pub fn reset(&mut self) -> Result<(), VfioUserHalError> {
        done(&mut self.connection, "a reset", |client, out| client.reset(out))?;
        enable(&mut self.connection)
    }

    /// Maps the shared memory at another device address too, as a VMM does for memory that its guest sees twice.
    ///
    /// # Errors
    /// [`VfioUserHalError`].
    pub fn map_again(&mut self, iova: u64) -> Result<(), VfioUserHalError> {
        share(&mut self.connection, self.ram.shared().as_fd(), window(&self.ram, iova))
    }

    /// Maps the first `size` bytes of a file at a device address, as a VMM does for memory that its guest does not share with the
    /// driver.
    ///
    /// # Errors
    /// [`VfioUserHalError`].
    pub fn map_file(&mut self, file: BorrowedFd<'_>, iova: u64, size: u64) -> Result<(), VfioUserHalError> {
        share(&mut self.connection, file, ClientDmaWindow { iova, size, offset: 0, writable: true })
    }

    /// Unmaps the shared memory at a device address of [`VfioUserHal::map_again`].
    ///
    /// # Errors
    /// [`VfioUserHalError`].
    pub fn unmap(&mut self, iova: u64) -> Result<(), VfioUserHalError> {
        let size = self.ram.shared().memory().len();
        done(&mut self.connection, "the end of a mapping", |client, out| client.dma_unmap(out, iova, size))
    }
}

/// Sends a request to the server and waits for its reply, which has no body.
fn done<T: DriverThread>(
    connection: &mut ServerConnection<T>,
    request: &'static str,
    make: impl FnOnce(&mut Client<OwnedFd>, &mut MessageOutbox<OwnedFd>) -> u16,
) -> Result<(), VfioUserHalError> {
    let answer: Result<(), Errno> = connection.ask(make, |answer| answer.map(drop))?;
    answer.map_err(|errno| VfioUserHalError::Refused { request, errno })
}

/// Properties of the PCI function behind a vfio-user socket, as found during the attachment.
struct AttachedVfProperties {
    family: DeviceFamily,
    /// Mapped parts of the VF's BAR0.
    areas: Vec<MappedBarArea>,
    /// Number of the VF's MSI-X vectors to use.
    vectors: usize,
}

/// Requests the protocol version, device, regions and interrupts of the server, checks them, and maps the VF's
/// registers.
fn identify<T: DriverThread>(
    connection: &mut ServerConnection<T>,
) -> Result<AttachedVfProperties, VfioUserHalError> {
    let major = connection.ask(Client::version, |answer| match answer {
        Ok(ReplyContents::Version { major, .. }) => Some(major),
        _ => None,
    })?;
    expect(major == Some(VERSION_MAJOR), "the server's vfio-user protocol version is unsupported")?;
    let info = connection.ask(Client::device_info, |answer| match answer {
        Ok(ReplyContents::DeviceInfo(info)) => Some(info),
        _ => None,
    })?;
    let usable = |info: DeviceInfo| {
        info.flags & device_flags::PCI != 0 && info.regions > pci_region::CONFIG && info.irqs > pci_irq::MSIX
    };
    expect(info.is_some_and(usable), "the device is not a PCI function")?;
    let mut ids = [0; 4];
    connection.read(pci_region::CONFIG, IDS, &mut ids)?;
    let [vendor, device] = [[ids[0], ids[1]], [ids[2], ids[3]]].map(u16::from_le_bytes);
    let family = DeviceFamily::of(vendor, device);
    let family =
        family.ok_or(VfioUserHalError::NotAVf("vendor and device id are neither 8086:10ca nor 8086:1889"))?;
    let areas = registers(connection, family)?;
    let offered = connection.ask(
        |client, out| client.irq_info(out, pci_irq::MSIX),
        |answer| match answer {
            Ok(ReplyContents::Irq(info)) => info.count as usize,
            _ => 0,
        },
    )?;
    let (least, most) = family.vectors();
    expect(offered >= least, "the device has too few MSI-X vectors")?;
    Ok(AttachedVfProperties { family, areas, vectors: offered.min(most) })
}

fn expect(holds: bool, otherwise: &'static str) -> Result<(), VfioUserHalError> {
    if holds { Ok(()) } else { Err(VfioUserHalError::NotAVf(otherwise)) }
}

/// Checks the size of the VF's BAR0, and maps the areas that the server offers.
fn registers<T: DriverThread>(
    connection: &mut ServerConnection<T>,
    family: DeviceFamily,
) -> Result<Vec<MappedBarArea>, VfioUserHalError> {
    let (layout, file) = connection.ask_for_file(
        |client, out| client.region_info(out, pci_region::BAR0, REGION_INFO),
        |answer, fds| match answer {
            Ok(ReplyContents::Region(layout)) => (Some(layout), fds.into_iter().next()),
            _ => (None, None),
        },
    )?;
    let layout = layout.filter(|layout| layout.size >= family.bar0_size());
    let layout = layout.ok_or(VfioUserHalError::NotAVf("BAR0 is too small"))?;
    let Some(file) = file else { return Ok(Vec::new()) };
    let area = |area: &SparseArea| {
        let at = layout.offset.saturating_add(area.offset);
        let memory = MappedFile::map(&file, at, area.size, MemoryProtection::ReadWrite)?;
        Ok(MappedBarArea { offset: area.offset, memory })
    };
    layout.sparse.iter().map(area).collect()
}

/// Returns the window of the whole shared memory at a device address.
fn window(ram: &SharedDmaMemory, iova: u64) -> ClientDmaWindow {
    ClientDmaWindow { iova, size: ram.shared().memory().len(), offset: 0, writable: true }
}

fn share<T: DriverThread>(
    connection: &mut ServerConnection<T>,
    file: BorrowedFd<'_>,
    window: ClientDmaWindow,
) -> Result<(), VfioUserHalError> {
    let fd = file.try_clone_to_owned()?;
    done(connection, "the mapping of shared memory", |client, out| client.dma_map(out, window, Some(fd)))
}

fn assign<T: DriverThread>(
    connection: &mut ServerConnection<T>,
    eventfds: &[EventFd],
) -> Result<(), VfioUserHalError> {
    let copies: Result<Vec<OwnedFd>, _> = eventfds.iter().map(|e| e.as_fd().try_clone_to_owned()).collect();
    let copies = copies?;
    done(connection, "the assignment of eventfds to MSI-X vectors", |client, out| {
        client.assign_irqs(out, pci_irq::MSIX, 0, copies)
    })
}

/// Enables memory space, bus mastering and MSI-X of the VF.
fn enable<T: DriverThread>(connection: &mut ServerConnection<T>) -> Result<(), VfioUserHalError> {
    let control = u64::from(find_capability(connection, MSIX)?) + 2;
    for (offset, bits) in [(COMMAND, ENABLE), (control, MSIX_ENABLE)] {
        let mut word = [0; 2];
        connection.read(pci_region::CONFIG, offset, &mut word)?;
        let word = (u16::from_le_bytes(word) | bits).to_le_bytes();
        done(connection, "a configuration write", |client, out| {
            client.write(out, pci_region::CONFIG, offset, &word)
        })?;
    }
    Ok(())
}

fn find_capability<T: DriverThread>(
    connection: &mut ServerConnection<T>,
    wanted: u8,
) -> Result<u8, VfioUserHalError> {
    let mut pointer = [0];
    connection.read(pci_region::CONFIG, CAPABILITIES, &mut pointer)?;
    for _ in 0..MAX_CAPABILITIES {
        let at = pointer[0] & 0xfc;
        if at == 0 {
            break;
        }
        let mut header = [0; 2];
        connection.read(pci_region::CONFIG, at.into(), &mut header)?;
        if header[0] == wanted {
            return Ok(at);
        }
        pointer = [header[1]];
    }
    Err(VfioUserHalError::NotAVf("the device has no MSI-X capability"))
}
