//! PCI Express, version 2, of an endpoint (PCIe base specification, 7.5.3). Left out: slots, root ports, and
//! link retraining: the link is always as it was reported.

use super::Capability;
use crate::config::Register;
use alloc::vec;

/// Capability id.
pub const ID: u8 = 0x10;
/// Capabilities, 16 bits.
pub const CAPABILITIES: u16 = 0x02;
/// Device capabilities.
pub const DEVICE_CAPABILITIES: u16 = 0x04;
/// Device control, 16 bits.
pub const DEVICE_CONTROL: u16 = 0x08;
/// Device status, 16 bits.
pub const DEVICE_STATUS: u16 = 0x0a;
/// Link capabilities.
pub const LINK_CAPABILITIES: u16 = 0x0c;
/// Link control, 16 bits.
pub const LINK_CONTROL: u16 = 0x10;
/// Link status, 16 bits.
pub const LINK_STATUS: u16 = 0x12;
/// Device capabilities 2.
pub const DEVICE_CAPABILITIES_2: u16 = 0x24;
/// Device control 2, 16 bits.
pub const DEVICE_CONTROL_2: u16 = 0x28;

/// Capabilities: version 2, device type 0 (endpoint).
pub const ENDPOINT_V2: u16 = 0x0002;
/// Device capabilities: the function can be reset alone.
pub const DEVICE_CAPABILITIES_FLR: u32 = 1 << 28;
/// Device control: initiate a function level reset. Reads as zero.
pub const DEVICE_CONTROL_FLR: u16 = 1 << 15;
/// Device control: error reporting, relaxed ordering, payload size, no-snoop, read request size.
pub const DEVICE_CONTROL_WRITABLE: u16 = 0x78ff;
/// Device control: the payload size, which a function level reset leaves alone.
pub const DEVICE_CONTROL_PAYLOAD: u16 = 0b111 << 5;
/// Device control after reset: relaxed ordering, no-snoop, 128-byte payload, 512-byte read requests.
pub const DEVICE_CONTROL_RESET: u16 = 0x2810;
/// Device status: the four error bits, write-1-to-clear.
pub const DEVICE_STATUS_ERRORS: u16 = 0xf;
/// Link control: ASPM, read completion boundary, common clock, extended sync. A function level reset leaves
/// them alone.
pub const LINK_CONTROL_WRITABLE: u16 = 0xcb;
/// Device control 2: completion timeout value and disable.
pub const DEVICE_CONTROL_2_WRITABLE: u16 = 0x1f;

/// What differs between functions.
#[derive(Debug, Clone, Copy)]
pub struct Express {
    /// Device capabilities.
    pub device_capabilities: u32,
    /// Link capabilities.
    pub link_capabilities: u32,
    /// Link status.
    pub link_status: u16,
    /// Device capabilities 2.
    pub device_capabilities_2: u32,
    /// A VF shares the PF's device and link settings: its own control words are reserved (Single root I/O
    /// virtualization specification 1.1, 3.5).
    pub virtual_function: bool,
}

impl Express {
    /// The capability.
    #[must_use]
    pub fn capability(self) -> Capability {
        let own = |bits: u16| if self.virtual_function { 0 } else { bits };
        let body = vec![
            Register::word(CAPABILITIES, ENDPOINT_V2),
            Register::dword(DEVICE_CAPABILITIES, self.device_capabilities),
            Register::word(DEVICE_CONTROL, own(DEVICE_CONTROL_RESET))
                .writable(own(DEVICE_CONTROL_WRITABLE).into())
                .sticky(own(DEVICE_CONTROL_PAYLOAD).into()),
            Register::word(DEVICE_STATUS, 0).write_1_to_clear(DEVICE_STATUS_ERRORS.into()),
            Register::dword(LINK_CAPABILITIES, self.link_capabilities),
            Register::word(LINK_CONTROL, 0)
                .writable(own(LINK_CONTROL_WRITABLE).into())
                .sticky(own(LINK_CONTROL_WRITABLE).into()),
            Register::word(LINK_STATUS, self.link_status),
            Register::dword(DEVICE_CAPABILITIES_2, self.device_capabilities_2),
            Register::word(DEVICE_CONTROL_2, 0).writable(own(DEVICE_CONTROL_2_WRITABLE).into()),
        ];
        Capability { id: ID, body }
    }
}
