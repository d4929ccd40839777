//! Rules between the registers of the SR-IOV capability (SR-IOV specification 1.1, 3.3), without VF migration.
//!
//! A forbidden write, which the specification leaves undefined, is ignored here: a guest may be hostile.

#[cfg(test)]
mod tests;

use crate::Rid;
use crate::capability::sriov as field;
use crate::config::ConfigSpace;
use crate::low::low_dword;

/// Settings of an SR-IOV capability by software: its control bits, and the number of VFs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SrIovSettings {
    /// True if software has enabled the VFs.
    pub enabled: bool,
    /// True if the VFs accept memory requests.
    pub memory: bool,
    /// True if the bus above the device routes by ARI.
    pub ari: bool,
    /// Requested number of VFs; kept while the VFs are disabled.
    pub num_vfs: u16,
}

impl SrIovSettings {
    /// Returns the number of enabled VFs.
    #[must_use]
    pub const fn active(self) -> u16 {
        if self.enabled { self.num_vfs } else { 0 }
    }
}

/// Routing ids of VFs, relative to the PF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VfRoutingIds {
    /// Distance of the first VF's routing id from the PF's.
    pub first_offset: u16,
    /// Distance between the routing ids of consecutive VFs.
    pub stride: u16,
}

impl VfRoutingIds {
    /// Returns the routing id of VF `n`, from 0. Returns `None` beyond the last bus.
    #[must_use]
    pub fn rid(self, pf: Rid, n: u8) -> Option<Rid> {
        let behind = u16::from(n).checked_mul(self.stride)?;
        pf.0.checked_add(self.first_offset)?.checked_add(behind).map(Rid)
    }
}

/// Location of an SR-IOV capability in a configuration space. The methods read and restrict the capability's registers
/// there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SrIovRegisters {
    at: u16,
    /// Offsets of the first VF's routing id from the PF's, without and with ARI.
    offsets: [u16; 2],
}

impl SrIovRegisters {
    /// Finds the SR-IOV capability of `space`. `ari_offset` is the first VF's offset when the hierarchy routes by ARI;
    /// without ARI the present value of FirstVFOffset applies.
    #[must_use]
    pub fn find(space: &ConfigSpace, ari_offset: u16) -> Option<Self> {
        let at = space.find_extended(field::ID)?;
        Some(Self { at, offsets: [space.word(at + field::FIRST_OFFSET), ari_offset] })
    }

    /// Returns the settings in the capability's registers.
    #[must_use]
    pub fn state(self, space: &ConfigSpace) -> SrIovSettings {
        let control = space.word(self.at + field::CONTROL);
        SrIovSettings {
            enabled: control & field::CONTROL_ENABLE != 0,
            memory: control & field::CONTROL_MEMORY != 0,
            ari: control & field::CONTROL_ARI != 0,
            num_vfs: space.word(self.at + field::NUM_VFS),
        }
    }

    /// Returns the routing ids of the VFs, relative to the PF.
    #[must_use]
    pub fn placement(self, space: &ConfigSpace) -> VfRoutingIds {
        VfRoutingIds {
            first_offset: space.word(self.at + field::FIRST_OFFSET),
            stride: space.word(self.at + field::STRIDE),
        }
    }

    /// Enforces the rules after a write, given the settings before it:
    /// - while VFs are enabled, NumVFs, the page size and the hierarchy bit are locked;
    /// - NumVFs beyond TotalVFs and an unsupported page size are ignored;
    /// - the first VF's offset follows the hierarchy bit;
    /// - a VF BAR is aligned to the page size, so that each VF has pages of its own.
    pub fn enforce(self, before: SrIovSnapshot, space: &mut ConfigSpace) {
        let control = self.at + field::CONTROL;
        let (num_vfs, page_size) = (self.at + field::NUM_VFS, self.at + field::PAGE_SIZE);
        let locked = before.control & field::CONTROL_ENABLE != 0;
        if locked {
            let ari = before.control & field::CONTROL_ARI;
            space.set_word(control, space.word(control) & !field::CONTROL_ARI | ari);
        }
        if locked || space.word(num_vfs) > space.word(self.at + field::TOTAL_VFS) {
            space.set_word(num_vfs, before.num_vfs);
        }
        if locked || !space.dword(page_size).is_power_of_two() {
            space.set_dword(page_size, before.page_size);
        }
        let ari = space.word(control) & field::CONTROL_ARI != 0;
        space.set_word(self.at + field::FIRST_OFFSET, self.offsets[usize::from(ari)]);
        self.align_bars(space);
    }

    /// Returns the settings that [`SrIovRegisters::enforce`] may have to restore.
    #[must_use]
    pub fn settings(self, space: &ConfigSpace) -> SrIovSnapshot {
        SrIovSnapshot {
            control: space.word(self.at + field::CONTROL),
            num_vfs: space.word(self.at + field::NUM_VFS),
            page_size: space.dword(self.at + field::PAGE_SIZE),
        }
    }

    fn align_bars(self, space: &mut ConfigSpace) {
        let page = 4096u64 * u64::from(space.dword(self.at + field::PAGE_SIZE));
        let below = low_dword(page - 1) & !0xf;
        let mut number = 0;
        while number < 6 {
            let at = self.at + field::VF_BAR0 + 4 * number;
            let low = space.dword(at);
            space.set_dword(at, low & !below);
            number += if low & 7 == 4 { 2 } else { 1 };
        }
    }
}

/// Settings of an SR-IOV capability before a write.
#[derive(Debug, Clone, Copy)]
pub struct SrIovSnapshot {
    control: u16,
    num_vfs: u16,
    page_size: u32,
}
