//! Advanced error reporting, version 1 (PCIe base specification, 7.8.4). Left out: root ports, and the errors:
//! whoever detects one sets the status bits. Everything here is sticky.

use super::ExtendedCapability;
use crate::config::Register;
use alloc::vec;

/// Extended capability id.
pub const ID: u16 = 0x0001;
/// Uncorrectable error status.
pub const UNCORRECTABLE_STATUS: u16 = 0x04;
/// Uncorrectable error mask.
pub const UNCORRECTABLE_MASK: u16 = 0x08;
/// Uncorrectable error severity: 1 is fatal.
pub const UNCORRECTABLE_SEVERITY: u16 = 0x0c;
/// Correctable error status.
pub const CORRECTABLE_STATUS: u16 = 0x10;
/// Correctable error mask.
pub const CORRECTABLE_MASK: u16 = 0x14;
/// Capabilities and control.
pub const CONTROL: u16 = 0x18;
/// The header of the first error's packet, four dwords.
pub const HEADER_LOG: u16 = 0x1c;

/// Uncorrectable errors that version 1 defines: data link, poisoned, flow control, completion timeout,
/// completer abort, unexpected completion, overflow, malformed, ECRC, unsupported request.
pub const UNCORRECTABLE: u32 = 0x001f_f010;
/// Correctable errors that version 1 defines.
pub const CORRECTABLE: u32 = 0x0000_31c1;

/// What differs between functions.
#[derive(Debug, Clone, Copy)]
pub struct Aer {
    /// Reset value of the severity register.
    pub severity: u32,
    /// Reset value of the correctable mask.
    pub correctable_mask: u32,
    /// A VF's masks and severities are the PF's: its own are reserved (Single root I/O virtualization
    /// specification 1.1, 4.2.2).
    pub virtual_function: bool,
}

impl Aer {
    /// The capability.
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
            Register::dword(CONTROL, 0),
            Register::dword(HEADER_LOG, 0).sticky(u32::MAX),
            Register::dword(HEADER_LOG + 4, 0).sticky(u32::MAX),
            Register::dword(HEADER_LOG + 8, 0).sticky(u32::MAX),
            Register::dword(HEADER_LOG + 12, 0).sticky(u32::MAX),
        ];
        ExtendedCapability { id: ID, version: 1, body }
    }
}

fn status(offset: u16, errors: u32) -> Register {
    Register::dword(offset, 0).write_1_to_clear(errors).sticky(errors)
}

fn setting(offset: u16, reset: u32, errors: u32) -> Register {
    Register::dword(offset, reset).writable(errors).sticky(errors)
}
