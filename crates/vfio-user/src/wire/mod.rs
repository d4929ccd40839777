//! Wire format: header, commands, bodies, error numbers, version text.
//!
//! Source: the vfio-user specification (`docs/interop/vfio-user.rst` of QEMU) and `struct vfio_*` of
//! `<linux/vfio.h>`, whose layouts it reuses. The specification requires "host endianness"; every current host of a
//! client is little-endian, and so is this codec, on any machine.

mod body;
mod command;
mod errno;
mod header;
mod version;

pub use body::{
    CapabilityHeader, DeviceInfoBody, DmaMapBody, DmaUnmapBody, IrqInfoBody, IrqSetBody, MultiWriteBody,
    MultiWriteEntry, RegionAccessBody, RegionInfoBody, SparseAreaBody, SparseMmapBody, VersionBody,
};
pub use command::Command;
pub use errno::Errno;
pub use header::{Header, Kind};
pub use version::{Capabilities, MalformedCapabilities};

/// Only protocol major version.
pub const VERSION_MAJOR: u16 = 0;
/// Newest supported minor version.
pub const VERSION_MINOR: u16 = 1;

/// Maximum data bytes of one region access: the specification's default, and this crate's limit.
pub const MAX_DATA_XFER: u32 = 1 << 20;
/// Maximum file descriptors of one message (QEMU's own limit).
pub const MAX_MESSAGE_FDS: usize = 16;
/// Maximum DMA windows at one time: the specification's default.
pub const MAX_DMA_MAPS: u32 = 65535;
/// Unit of DMA windows in bytes: the specification's default `pgsizes`.
pub const DMA_PAGE_SIZE: u64 = 4096;
/// Maximum writes of one `REGION_WRITE_MULTI`; QEMU sends at most 200.
pub const MAX_MULTI_WRITES: usize = 1024;

/// `VFIO_DEVICE_FLAGS_*`.
pub mod device_flags {
    /// The device supports `DEVICE_RESET`.
    pub const RESET: u32 = 1 << 0;
    /// The regions and interrupts are those of a PCI function.
    pub const PCI: u32 = 1 << 1;
}

/// `VFIO_REGION_INFO_FLAG_*`.
pub mod region_flags {
    /// The client may read.
    pub const READ: u32 = 1 << 0;
    /// The client may write.
    pub const WRITE: u32 = 1 << 1;
    /// The client may map; the reply has a file descriptor.
    pub const MMAP: u32 = 1 << 2;
    /// A list of capabilities follows the fixed part.
    pub const CAPS: u32 = 1 << 3;
}

/// `VFIO_IRQ_INFO_*`.
pub mod irq_flags {
    /// Interrupts are signalled by an eventfd.
    pub const EVENTFD: u32 = 1 << 0;
    /// The type supports mask and unmask.
    pub const MASKABLE: u32 = 1 << 1;
    /// A vector masks itself when it fires.
    pub const AUTOMASKED: u32 = 1 << 2;
    /// Vectors are enabled as one set.
    pub const NORESIZE: u32 = 1 << 3;
}

/// `VFIO_IRQ_SET_*`: exactly one data bit and one action bit.
pub mod irq_set {
    /// No data: the action applies to the whole range.
    pub const DATA_NONE: u32 = 1 << 0;
    /// A byte per vector selects the vectors of the action.
    pub const DATA_BOOL: u32 = 1 << 1;
    /// An eventfd per vector is attached to the message.
    pub const DATA_EVENTFD: u32 = 1 << 2;
    /// Masks vectors.
    pub const ACTION_MASK: u32 = 1 << 3;
    /// Unmasks vectors.
    pub const ACTION_UNMASK: u32 = 1 << 4;
    /// Fires vectors, or assigns their eventfds.
    pub const ACTION_TRIGGER: u32 = 1 << 5;
}

/// `VFIO_DMA_MAP_FLAG_*` and `VFIO_DMA_UNMAP_FLAG_*`.
pub mod dma_flags {
    /// Map: the device may read the window.
    pub const READ: u32 = 1 << 0;
    /// Map: the device may write the window.
    pub const WRITE: u32 = 1 << 1;
    /// Unmap: all windows (the kernel's value, which QEMU and libvfio-user share).
    pub const UNMAP_ALL: u32 = 1 << 1;
}

/// The fixed region numbers of a PCI function (`VFIO_PCI_*_REGION_INDEX`).
pub mod pci_region {
    /// BAR 0; BAR `n` is region `n`.
    pub const BAR0: u32 = 0;
    /// BAR 2.
    pub const BAR2: u32 = 2;
    /// BAR 3.
    pub const BAR3: u32 = 3;
    /// Expansion ROM.
    pub const ROM: u32 = 6;
    /// Configuration space.
    pub const CONFIG: u32 = 7;
    /// Legacy VGA.
    pub const VGA: u32 = 8;
    /// Number of regions.
    pub const COUNT: u32 = 9;
}

/// The fixed interrupt numbers of a PCI function (`VFIO_PCI_*_IRQ_INDEX`).
pub mod pci_irq {
    /// Pin interrupt.
    pub const INTX: u32 = 0;
    /// MSI.
    pub const MSI: u32 = 1;
    /// MSI-X.
    pub const MSIX: u32 = 2;
    /// Error recovery.
    pub const ERR: u32 = 3;
    /// Device request (unplug).
    pub const REQ: u32 = 4;
    /// Number of interrupt types.
    pub const COUNT: u32 = 5;
}
