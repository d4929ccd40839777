//! PCI Express capability, version 2, of an endpoint (PCIe base specification, 7.5.3). The link never retrains, so the
//! link status is constant.

use super::Capability;
use crate::config::ConfigRegister;
use alloc::vec;

/// Capability id of PCI Express.
pub const ID: u8 = 0x10;
/// Offset of the PCI Express capabilities word.
pub const CAPABILITIES: u16 = 0x02;
/// Offset of the PCI Express device capabilities.
pub const DEVICE_CAPABILITIES: u16 = 0x04;
/// Offset of the PCI Express device control word.
pub const DEVICE_CONTROL: u16 = 0x08;
/// Offset of the PCI Express device status word.
pub const DEVICE_STATUS: u16 = 0x0a;
/// Offset of the PCI Express link capabilities.
pub(crate) const LINK_CAPABILITIES: u16 = 0x0c;
/// Offset of the PCI Express link control word.
pub(crate) const LINK_CONTROL: u16 = 0x10;
/// Offset of the PCI Express link status word.
pub(crate) const LINK_STATUS: u16 = 0x12;
/// Offset of PCI Express device capabilities 2.
pub(crate) const DEVICE_CAPABILITIES_2: u16 = 0x24;
/// Offset of the PCI Express device control 2 word.
pub(crate) const DEVICE_CONTROL_2: u16 = 0x28;

/// Capabilities value: version 2, device type 0 (endpoint).
pub(crate) const ENDPOINT_V2: u16 = 0x0002;
/// Device capabilities bit: function level reset.
pub const DEVICE_CAPABILITIES_FLR: u32 = 1 << 28;
/// Device control bit: initiate a function level reset. Reads as zero.
pub const DEVICE_CONTROL_FLR: u16 = 1 << 15;
/// Writable device control bits: error reporting, relaxed ordering, payload size, no-snoop, read request size.
pub(crate) const DEVICE_CONTROL_WRITABLE: u16 = 0x78ff;
/// Device control field: maximum payload size, which a function level reset keeps.
pub(crate) const DEVICE_CONTROL_PAYLOAD: u16 = 0b111 << 5;
/// Reset value of device control: relaxed ordering, no-snoop, 128-byte payload, 512-byte read requests.
pub(crate) const DEVICE_CONTROL_RESET: u16 = 0x2810;
/// Device status bits of errors, write-1-to-clear.
pub(crate) const DEVICE_STATUS_ERRORS: u16 = 0xf;
/// Writable link control bits: ASPM, read completion boundary, common clock, extended sync. A function level reset
/// keeps them.
pub(crate) const LINK_CONTROL_WRITABLE: u16 = 0xcb;
/// Writable device control 2 bits: completion timeout value and disable.
pub(crate) const DEVICE_CONTROL_2_WRITABLE: u16 = 0x1f;

/// Values of the PCI Express capability that differ between functions.
#[derive(Debug, Clone, Copy)]
pub struct ExpressCapability {
    /// Value of the PCI Express device capabilities register.
    pub device_capabilities: u32,
    /// Value of the PCI Express link capabilities register.
    pub link_capabilities: u32,
    /// Value of the PCI Express link status word.
    pub link_status: u16,
    /// Value of the PCI Express device capabilities 2 register.
    pub device_capabilities_2: u32,
    /// True for a VF, which shares the PF's device and link settings: the VF's own control words are reserved (SR-IOV
    /// specification 1.1, 3.5).
    pub virtual_function: bool,
}

impl ExpressCapability {
    /// Returns the PCI Express capability.
    #[must_use]
    pub fn capability(self) -> Capability {
        let own = |bits: u16| if self.virtual_function { 0 } else { bits };
        let body = vec![
            ConfigRegister::word(CAPABILITIES, ENDPOINT_V2),
            ConfigRegister::dword(DEVICE_CAPABILITIES, self.device_capabilities),
            ConfigRegister::word(DEVICE_CONTROL, own(DEVICE_CONTROL_RESET))
                .writable(own(DEVICE_CONTROL_WRITABLE).into())
                .sticky(own(DEVICE_CONTROL_PAYLOAD).into()),
            ConfigRegister::word(DEVICE_STATUS, 0).write_1_to_clear(DEVICE_STATUS_ERRORS.into()),
            ConfigRegister::dword(LINK_CAPABILITIES, self.link_capabilities),
            ConfigRegister::word(LINK_CONTROL, 0)
                .writable(own(LINK_CONTROL_WRITABLE).into())
                .sticky(own(LINK_CONTROL_WRITABLE).into()),
            ConfigRegister::word(LINK_STATUS, self.link_status),
            ConfigRegister::dword(DEVICE_CAPABILITIES_2, self.device_capabilities_2),
            ConfigRegister::word(DEVICE_CONTROL_2, 0).writable(own(DEVICE_CONTROL_2_WRITABLE).into()),
        ];
        Capability { id: ID, body }
    }
}
