//! The commands, and how long a request of each may be.

use core::mem::size_of;

use super::{IrqSetBody, MAX_DATA_XFER, MAX_MULTI_WRITES, MultiWriteBody, MultiWriteEntry, RegionAccessBody};

/// Longest request of a command whose body has a fixed size; some slack, because clients pad.
const FIXED_BODY: usize = 256;
/// Longest JSON text in a `VERSION` request; QEMU's has about 200 bytes.
const VERSION_BODY: usize = 4096;
/// Most vectors of one interrupt type (PCI allows MSI-X 2,048).
const MAX_VECTORS: usize = 2048;

/// Commands by the numbers of the specification's table "Commands".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Command {
    /// Propose or accept a protocol version.
    Version = 1,
    /// Announce a DMA window.
    DmaMap = 2,
    /// Withdraw a DMA window, or all.
    DmaUnmap = 3,
    /// How many regions and interrupts.
    DeviceGetInfo = 4,
    /// One region.
    DeviceGetRegionInfo = 5,
    /// ioeventfds of a region.
    DeviceGetRegionIoFds = 6,
    /// One interrupt type.
    DeviceGetIrqInfo = 7,
    /// Say where interrupts go.
    DeviceSetIrqs = 8,
    /// Load.
    RegionRead = 9,
    /// Store.
    RegionWrite = 10,
    /// Server to client: read guest memory.
    DmaRead = 11,
    /// Server to client: write guest memory.
    DmaWrite = 12,
    /// Reset the device.
    DeviceReset = 13,
    /// Dirty page tracking of older drafts.
    DirtyPages = 14,
    /// Several stores.
    RegionWriteMulti = 15,
    /// Features, that is migration.
    DeviceFeature = 16,
    /// Migration data out.
    MigDataRead = 17,
    /// Migration data in.
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

    /// The command with this number, if there is one.
    pub fn from_number(number: u16) -> Option<Self> {
        let index = usize::from(number).checked_sub(1)?;
        Self::ALL.get(index).copied()
    }

    /// The command's number on the wire.
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// Bytes after the header that a request may have. Longer requests are swallowed unread and refused, and so
    /// is any payload of a command that is not implemented.
    pub const fn max_request_body(self) -> usize {
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

    /// Bytes after the header that a reply may have.
    pub const fn max_reply_body(self) -> usize {
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
    fn numbers_are_the_specifications() {
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
