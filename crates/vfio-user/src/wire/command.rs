//! Commands of the protocol, and the maximum lengths of their messages.

use core::mem::size_of;

use super::{IrqSetBody, MAX_DATA_XFER, MAX_MULTI_WRITES, MultiWriteBody, MultiWriteEntry, RegionAccessBody};

/// Maximum bytes of a request with a fixed body, with slack for clients that pad.
const FIXED_BODY: usize = 256;
/// Maximum bytes of a `VERSION` request; QEMU's has about 200.
const VERSION_BODY: usize = 4096;
/// Maximum number of interrupt vectors of one interrupt type (PCI allows MSI-X 2,048).
const MAX_VECTORS: usize = 2048;

/// Command of a vfio-user message (vfio-user specification, table "Commands").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Command {
    /// Command: proposes or accepts a protocol version.
    Version = 1,
    /// Command: maps a DMA window.
    DmaMap = 2,
    /// Command: unmaps a DMA window, or all DMA windows.
    DmaUnmap = 3,
    /// Command: requests the numbers of the device's regions and interrupt types.
    DeviceGetInfo = 4,
    /// Command: requests the properties of one region of the device.
    DeviceGetRegionInfo = 5,
    /// Command: requests the ioeventfds of a region.
    DeviceGetRegionIoFds = 6,
    /// Command: requests the properties of one interrupt type of the device.
    DeviceGetIrqInfo = 7,
    /// Command: assigns, fires or masks interrupts of the device.
    DeviceSetIrqs = 8,
    /// Command: reads from a region of the device.
    RegionRead = 9,
    /// Command: writes to a region of the device.
    RegionWrite = 10,
    /// Command: reads guest memory (sent by the server).
    DmaRead = 11,
    /// Command: writes guest memory (sent by the server).
    DmaWrite = 12,
    /// Command: resets the device.
    DeviceReset = 13,
    /// Command: tracks dirty pages (older drafts).
    DirtyPages = 14,
    /// Command: writes several values to regions of the device.
    RegionWriteMulti = 15,
    /// Command: controls features such as migration.
    DeviceFeature = 16,
    /// Command: reads migration data.
    MigDataRead = 17,
    /// Command: writes migration data.
    MigDataWrite = 18,
}

impl Command {
    const ALL: [Self; 18] = [
        Self::Version,
        Self::DmaMap,
        Self::DmaUnmap,
        Self::DeviceGetInfo,
        Self::DeviceGetRegionInfo,
        Self::DeviceGetRegionIoFds,
        Self::DeviceGetIrqInfo,
        Self::DeviceSetIrqs,
        Self::RegionRead,
        Self::RegionWrite,
        Self::DmaRead,
        Self::DmaWrite,
        Self::DeviceReset,
        Self::DirtyPages,
        Self::RegionWriteMulti,
        Self::DeviceFeature,
        Self::MigDataRead,
        Self::MigDataWrite,
    ];

    /// Returns the command that a number on the wire stands for, or `None` if the number is unknown.
    pub(crate) fn from_number(number: u16) -> Option<Self> {
        let index = usize::from(number).checked_sub(1)?;
        Self::ALL.get(index).copied()
    }

    /// Returns the command's number on the wire.
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// Returns the maximum length of a request's body in bytes. Longer requests are discarded and refused, and so is
    /// any payload of an unsupported command.
    pub(crate) const fn max_request_body(self) -> usize {
        match self {
            Self::Version => VERSION_BODY,
            Self::RegionWrite => size_of::<RegionAccessBody>() + MAX_DATA_XFER as usize,
            Self::RegionWriteMulti => {
                size_of::<MultiWriteBody>() + MAX_MULTI_WRITES * size_of::<MultiWriteEntry>()
            }
            Self::DeviceSetIrqs => size_of::<IrqSetBody>() + MAX_VECTORS,
            Self::DmaMap
            | Self::DmaUnmap
            | Self::DeviceGetInfo
            | Self::DeviceGetRegionInfo
            | Self::DeviceGetIrqInfo
            | Self::RegionRead
            | Self::DeviceReset => FIXED_BODY,
            Self::DeviceGetRegionIoFds
            | Self::DmaRead
            | Self::DmaWrite
            | Self::DirtyPages
            | Self::DeviceFeature
            | Self::MigDataRead
            | Self::MigDataWrite => 0,
        }
    }

    /// Returns the maximum length of a reply's body in bytes.
    pub(crate) const fn max_reply_body(self) -> usize {
        match self {
            Self::RegionRead => size_of::<RegionAccessBody>() + MAX_DATA_XFER as usize,
            _ => VERSION_BODY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vfio_user_command_numbers_match_the_specification() {
        for (index, command) in Command::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(command.number()), index + 1);
            assert_eq!(Command::from_number(command.number()), Some(command));
        }
        assert_eq!(Command::RegionWriteMulti.number(), 15);
        assert_eq!(Command::from_number(0), None);
        assert_eq!(Command::from_number(19), None);
        assert_eq!(Command::from_number(u16::MAX), None);
    }
}
