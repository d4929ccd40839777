//! Layout of the SR-IOV capability (SR-IOV specification 1.1, 3.3), without VF migration. [`crate::sriov`] enforces the
//! rules between the registers.

use super::ExtendedCapability;
use crate::config::{Bar, BarKind, ConfigRegister};
use alloc::vec;

/// Extended capability id of SR-IOV.
pub const ID: u16 = 0x0010;
/// Offset of the SR-IOV capabilities register.
pub const CAPABILITIES: u16 = 0x04;
/// Offset of the SR-IOV control word within its capability.
pub const CONTROL: u16 = 0x08;
/// Offset of the SR-IOV status word within its capability.
pub const STATUS: u16 = 0x0a;
/// Offset of InitialVFs, a word.
pub(crate) const INITIAL_VFS: u16 = 0x0c;
/// Offset of TotalVFs, a word.
pub const TOTAL_VFS: u16 = 0x0e;
/// Offset of NumVFs, a word.
pub const NUM_VFS: u16 = 0x10;
/// Offset of the function dependency link, a byte.
pub(crate) const DEPENDENCY: u16 = 0x12;
/// Offset of FirstVFOffset, a word: the routing id of the first VF relative to the PF.
pub const FIRST_OFFSET: u16 = 0x14;
/// Offset of the VF stride, a word.
pub const STRIDE: u16 = 0x16;
/// Offset of the VFs' device id, a word.
pub const VF_DEVICE: u16 = 0x1a;
/// Offset of the supported page sizes: bit n is 4 KiB << n.
pub(crate) const SUPPORTED_PAGES: u16 = 0x1c;
/// Offset of the selected page size: one bit.
pub const PAGE_SIZE: u16 = 0x20;
/// Offset of the first of six VF BARs.
pub const VF_BAR0: u16 = 0x24;

/// SR-IOV control bit: VF enable.
pub const CONTROL_ENABLE: u16 = 1 << 0;
/// SR-IOV control bit: memory space enable of the VFs.
pub const CONTROL_MEMORY: u16 = 1 << 3;
/// SR-IOV control bit: ARI-capable hierarchy.
pub const CONTROL_ARI: u16 = 1 << 4;

/// Values of the SR-IOV capability that differ between devices.
#[derive(Debug, Clone)]
pub struct SrIovParameters {
    /// Maximum number of VFs that the device supports.
    pub total_vfs: u16,
    /// Number of the PF among the device's functions.
    pub function: u8,
    /// Distance of the first VF's routing id from the PF's, without ARI.
    pub first_offset: u16,
    /// Distance between VFs' routing ids.
    pub stride: u16,
    /// Device id of the VFs.
    pub vf_device: u16,
    /// Supported page sizes: bit n is 4 KiB << n.
    pub pages: u32,
    /// BARs of a single VF, each with its BAR number.
    pub bars: &'static [(u8, Bar)],
}

impl SrIovParameters {
    /// Returns the SR-IOV capability.
    ///
    /// # Panics
    /// A BAR does not fit the six registers.
    #[must_use]
    pub fn capability(&self) -> ExtendedCapability {
        let control = CONTROL_ENABLE | CONTROL_MEMORY | CONTROL_ARI;
        let mut body = vec![
            ConfigRegister::dword(CAPABILITIES, 0),
            ConfigRegister::word(CONTROL, 0).writable(control.into()),
            ConfigRegister::word(STATUS, 0),
            ConfigRegister::word(INITIAL_VFS, self.total_vfs),
            ConfigRegister::word(TOTAL_VFS, self.total_vfs),
            ConfigRegister::word(NUM_VFS, 0).writable(0xffff),
            ConfigRegister::byte(DEPENDENCY, self.function),
            ConfigRegister::word(FIRST_OFFSET, self.first_offset),
            ConfigRegister::word(STRIDE, self.stride),
            ConfigRegister::word(VF_DEVICE, self.vf_device),
            ConfigRegister::dword(SUPPORTED_PAGES, self.pages),
            ConfigRegister::dword(PAGE_SIZE, 1).writable(self.pages),
        ];
        for &(number, bar) in self.bars {
            assert!(
                number + u8::from(bar.kind == BarKind::Memory64) < 6,
                "a VF's BAR index must be below six"
            );
            body.extend(bar.registers(VF_BAR0 + 4 * u16::from(number)));
        }
        ExtendedCapability { id: ID, version: 1, body }
    }
}
