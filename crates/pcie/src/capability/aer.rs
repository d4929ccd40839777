//! Advanced error reporting capability, version 1 (PCIe base specification, 7.8.4), of an endpoint. The detector of
//! an error sets its status bit. All registers are sticky.

use super::ExtendedCapability;
use crate::config::ConfigRegister;
use alloc::vec;

/// Extended capability id of advanced error reporting.
pub const ID: u16 = 0x0001;
/// Offset of the uncorrectable error status register.
pub(crate) const UNCORRECTABLE_STATUS: u16 = 0x04;
/// Offset of the uncorrectable error mask register.
pub(crate) const UNCORRECTABLE_MASK: u16 = 0x08;
/// Offset of the uncorrectable error severity: 1 is fatal.
pub(crate) const UNCORRECTABLE_SEVERITY: u16 = 0x0c;
/// Offset of the correctable error status register.
pub(crate) const CORRECTABLE_STATUS: u16 = 0x10;
/// Offset of the correctable error mask register.
pub(crate) const CORRECTABLE_MASK: u16 = 0x14;
/// Offset of the error reporting capabilities and control register.
pub const CONTROL: u16 = 0x18;
/// Offset of the first error's packet header, four dwords.
pub(crate) const HEADER_LOG: u16 = 0x1c;

/// Uncorrectable errors of version 1: data link, poisoned, flow control, completion timeout, completer abort,
/// unexpected completion, overflow, malformed, ECRC, unsupported request.
pub(crate) const UNCORRECTABLE: u32 = 0x001f_f010;
/// Correctable errors of version 1, as bits of the status and mask registers.
pub(crate) const CORRECTABLE: u32 = 0x0000_31c1;

/// Values of advanced error reporting that differ between functions.
#[derive(Debug, Clone, Copy)]
pub struct AerCapability {
    /// Reset value of the uncorrectable errors' severity register.
    pub severity: u32,
    /// Reset value of the correctable errors' mask.
    pub correctable_mask: u32,
    /// True for a VF, whose masks and severities are the PF's: the VF's own are reserved (SR-IOV specification 1.1,
    /// 4.2.2).
    pub virtual_function: bool,
}

impl AerCapability {
    /// Returns the advanced error reporting capability.
    #[must_use]
    pub fn capability(self) -> ExtendedCapability {
        let own = |bits: u32| if self.virtual_function { 0 } else { bits };
        let (severity, mask) = (own(self.severity), own(self.correctable_mask));
        let body = vec![
            status(UNCORRECTABLE_STATUS, UNCORRECTABLE),
            setting(UNCORRECTABLE_MASK, 0, own(UNCORRECTABLE)),
            setting(UNCORRECTABLE_SEVERITY, severity, own(UNCORRECTABLE)),
            status(CORRECTABLE_STATUS, CORRECTABLE),
            setting(CORRECTABLE_MASK, mask, own(CORRECTABLE)),
            ConfigRegister::dword(CONTROL, 0),
            ConfigRegister::dword(HEADER_LOG, 0).sticky(u32::MAX),
            ConfigRegister::dword(HEADER_LOG + 4, 0).sticky(u32::MAX),
            ConfigRegister::dword(HEADER_LOG + 8, 0).sticky(u32::MAX),
            ConfigRegister::dword(HEADER_LOG + 12, 0).sticky(u32::MAX),
        ];
        ExtendedCapability { id: ID, version: 1, body }
    }
}

fn status(offset: u16, errors: u32) -> ConfigRegister {
    ConfigRegister::dword(offset, 0).write_1_to_clear(errors).sticky(errors)
}

fn setting(offset: u16, reset: u32, errors: u32) -> ConfigRegister {
    ConfigRegister::dword(offset, reset).writable(errors).sticky(errors)
}
