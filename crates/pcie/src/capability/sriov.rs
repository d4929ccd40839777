//! SR-IOV as a layout (Single root I/O virtualization specification 1.1, 3.3). Left out: VF migration, and
//! the rules between the registers: [`crate::sriov`].

use super::ExtendedCapability;
use crate::config::{Bar, BarKind, Register};
use alloc::vec;

/// Extended capability id.
pub const ID: u16 = 0x0010;
/// Capabilities.
pub const CAPABILITIES: u16 = 0x04;
/// Control, 16 bits.
pub const CONTROL: u16 = 0x08;
/// Status, 16 bits.
pub const STATUS: u16 = 0x0a;
/// VFs at first, 16 bits.
pub const INITIAL_VFS: u16 = 0x0c;
/// VFs at most, 16 bits.
pub const TOTAL_VFS: u16 = 0x0e;
/// VFs that software wants, 16 bits.
pub const NUM_VFS: u16 = 0x10;
/// Function dependency link, 8 bits.
pub const DEPENDENCY: u16 = 0x12;
/// Routing id of the first VF, relative to the PF, 16 bits.
pub const FIRST_OFFSET: u16 = 0x14;
/// Distance between VFs' routing ids, 16 bits.
pub const STRIDE: u16 = 0x16;
/// Device id of the VFs, 16 bits.
pub const VF_DEVICE: u16 = 0x1a;
/// Page sizes that the VF BARs can be aligned to: bit n is 4 KiB << n.
pub const SUPPORTED_PAGES: u16 = 0x1c;
/// The page size chosen: one bit.
pub const PAGE_SIZE: u16 = 0x20;
/// The first of six VF BARs.
pub const VF_BAR0: u16 = 0x24;

/// Control: VFs exist.
pub const CONTROL_ENABLE: u16 = 1 << 0;
/// Control: VFs answer memory requests.
pub const CONTROL_MEMORY: u16 = 1 << 3;
/// Control: the hierarchy above routes by ARI.
pub const CONTROL_ARI: u16 = 1 << 4;

/// What differs between devices.
#[derive(Debug, Clone)]
pub struct SrIov {
    /// VFs at most.
    pub total_vfs: u16,
    /// This function's number.
    pub function: u8,
    /// Routing id of the first VF, relative to the PF, without ARI.
    pub first_offset: u16,
    /// Distance between VFs' routing ids.
    pub stride: u16,
    /// Device id of the VFs.
    pub vf_device: u16,
    /// Page sizes supported.
    pub pages: u32,
    /// BAR numbers with what ONE VF decodes there.
    pub bars: &'static [(u8, Bar)],
}

impl SrIov {
    /// The capability.
    ///
    /// # Panics
    /// If a BAR does not fit the six registers.
    #[must_use]
    pub fn capability(&self) -> ExtendedCapability {
        let control = CONTROL_ENABLE | CONTROL_MEMORY | CONTROL_ARI;
        let mut body = vec![
            Register::dword(CAPABILITIES, 0),
            Register::word(CONTROL, 0).writable(control.into()),
            Register::word(STATUS, 0),
            Register::word(INITIAL_VFS, self.total_vfs),
            Register::word(TOTAL_VFS, self.total_vfs),
            Register::word(NUM_VFS, 0).writable(0xffff),
            Register::byte(DEPENDENCY, self.function),
            Register::word(FIRST_OFFSET, self.first_offset),
            Register::word(STRIDE, self.stride),
            Register::word(VF_DEVICE, self.vf_device),
            Register::dword(SUPPORTED_PAGES, self.pages),
            Register::dword(PAGE_SIZE, 1).writable(self.pages),
        ];
        for &(number, bar) in self.bars {
            assert!(number + u8::from(bar.kind == BarKind::Memory64) < 6, "VFs have six BARs");
            body.extend(bar.registers(VF_BAR0 + 4 * u16::from(number)));
        }
        ExtendedCapability { id: ID, version: 1, body }
    }
}
