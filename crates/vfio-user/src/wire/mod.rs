//! Wire format of vfio-user messages: header, commands, bodies, error numbers, version text.
//!
//! Source: the vfio-user specification (`docs/interop/vfio-user.rst` of QEMU) and `struct vfio_*` of
//! `<linux/vfio.h>`, whose layouts it reuses. The specification requires "host endianness"; every current host of a
//! client is little-endian, and so is this codec, on any machine.

mod body;
mod command;
mod errno;
mod header;
mod version;

pub(crate) use body::{
    DeviceInfoBody, DmaMapBody, DmaUnmapBody, IrqInfoBody, IrqSetBody, MultiWriteBody, MultiWriteEntry,
    RegionAccessBody, RegionCapabilityHeader, RegionInfoBody, SparseAreaBody, SparseMmapBody, VersionBody,
};
pub use command::Command;
pub use errno::Errno;
pub use header::{MessageHeader, MessageType};
pub use version::{MalformedCapabilities, VersionCapabilities};

/// Major version of the vfio-user protocol, the only one defined.
pub const VERSION_MAJOR: u16 = 0;
/// Newest supported minor version of the protocol.
pub(crate) const VERSION_MINOR: u16 = 1;

/// Maximum data bytes of one region access: the specification's default, and this crate's limit.
pub(crate) const MAX_DATA_XFER: u32 = 1 << 20;
/// Maximum file descriptors of one message (QEMU's own limit).
pub const MAX_MESSAGE_FDS: usize = 16;
/// Maximum DMA windows at one time: the specification's default.
pub const MAX_DMA_MAPS: u32 = 65535;
/// Unit of DMA windows in bytes: the specification's default `pgsizes`.
pub(crate) const DMA_PAGE_SIZE: u64 = 4096;
/// Maximum writes of one `REGION_WRITE_MULTI`; QEMU sends at most 200.
pub(crate) const MAX_MULTI_WRITES: usize = 1024;

/// Flags of a device (`VFIO_DEVICE_FLAGS_*`).
pub mod device_flags {
    /// The device supports the command `DEVICE_RESET`.
    pub const RESET: u32 = 1 << 0;
    /// The regions and interrupts are those of a PCI function.
    pub const PCI: u32 = 1 << 1;
}

/// Flags of a region (`VFIO_REGION_INFO_FLAG_*`).
pub mod region_flags {
    /// The client may read the device's region.
    pub const READ: u32 = 1 << 0;
    /// The client may write to the device's region.
    pub const WRITE: u32 = 1 << 1;
    /// The client may map the region; the reply has a file descriptor.
    pub const MMAP: u32 = 1 << 2;
    /// A list of capabilities follows the fixed part of the reply.
    pub const CAPS: u32 = 1 << 3;
}

/// Flags of an interrupt type (`VFIO_IRQ_INFO_*`).
pub mod irq_flags {
    /// The device signals interrupts of the type by an eventfd.
    pub const EVENTFD: u32 = 1 << 0;
    /// The client may mask and unmask the interrupt vectors of the type.
    pub const MASKABLE: u32 = 1 << 1;
    /// The device masks an interrupt vector of the type when it fires.
    pub const AUTOMASKED: u32 = 1 << 2;
    /// The interrupt vectors of the type are enabled together as one set.
    pub const NORESIZE: u32 = 1 << 3;
}

/// Flags of a change of interrupts (`VFIO_IRQ_SET_*`): exactly one data bit and one action bit.
pub mod irq_set {
    /// The request has no data: the action applies to the whole range of interrupt vectors.
    pub(crate) const DATA_NONE: u32 = 1 << 0;
    /// The request's data is a byte per interrupt vector, which selects the vectors of the action.
    pub(crate) const DATA_BOOL: u32 = 1 << 1;
    /// The request's data is an eventfd per interrupt vector, attached to the message.
    pub const DATA_EVENTFD: u32 = 1 << 2;
    /// The action of the request is to mask interrupt vectors.
    pub(crate) const ACTION_MASK: u32 = 1 << 3;
    /// The action of the request is to unmask interrupt vectors.
    pub(crate) const ACTION_UNMASK: u32 = 1 << 4;
    /// The action of the request is to fire interrupt vectors, or to assign eventfds to them.
    pub const ACTION_TRIGGER: u32 = 1 << 5;
}

/// Flags of mapping and unmapping a DMA window, `VFIO_DMA_MAP_FLAG_*` and `VFIO_DMA_UNMAP_FLAG_*`.
pub(crate) mod dma_flags {
    /// DMA_MAP: the device may read the DMA window.
    pub(crate) const READ: u32 = 1 << 0;
    /// DMA_MAP: the device may write the DMA window.
    pub(crate) const WRITE: u32 = 1 << 1;
    /// DMA_MAP: the device is to map the file of the DMA window (libvfio-user's `VFIO_USER_F_DMA_REGION_MMAP`). A client may
    /// leave the flag out.
    pub(crate) const MMAP: u32 = 1 << 2;
    /// DMA_UNMAP: unmaps all DMA windows. The value is that of Linux's VFIO, which QEMU and libvfio-user use too.
    pub(crate) const UNMAP_ALL: u32 = 1 << 1;
}

/// The fixed region numbers of a PCI function (`VFIO_PCI_*_REGION_INDEX`).
pub mod pci_region {
    /// Region number of BAR 0; BAR `n` is region `n`.
    pub const BAR0: u32 = 0;
    /// Region number of BAR 2.
    pub const BAR2: u32 = 2;
    /// Region number of BAR 3.
    pub const BAR3: u32 = 3;
    /// Region number of the expansion ROM.
    pub const ROM: u32 = 6;
    /// Region number of configuration space.
    pub const CONFIG: u32 = 7;
    /// Region number of legacy VGA.
    pub const VGA: u32 = 8;
    /// Number of a PCI function's regions.
    pub const COUNT: u32 = 9;
}

/// The fixed interrupt numbers of a PCI function (`VFIO_PCI_*_IRQ_INDEX`).
pub mod pci_irq {
    /// Interrupt type number of the interrupt pin (INTx).
    pub const INTX: u32 = 0;
    /// Interrupt type number of MSI.
    pub const MSI: u32 = 1;
    /// Interrupt type number of MSI-X.
    pub const MSIX: u32 = 2;
    /// Interrupt type number of errors to recover from.
    pub const ERR: u32 = 3;
    /// Interrupt type number of requests for the device's release (unplug).
    pub const REQ: u32 = 4;
    /// Number of a PCI function's interrupt types.
    pub const COUNT: u32 = 5;
}
