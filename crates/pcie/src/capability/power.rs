//! Power management capability (PCI power management specification 1.2, 3.2), without D1 and D2. The data register
//! has one value, whatever is selected.

use super::Capability;
use crate::config::ConfigRegister;
use alloc::vec;

/// Capability id of power management.
pub const ID: u8 = 0x01;
/// Offset of the power management capabilities word.
pub const CAPABILITIES: u16 = 2;
/// Offset of the power management control and status word.
pub const CONTROL: u16 = 4;
/// Offset of the power management data byte.
pub const DATA: u16 = 7;

/// Power management control field: power state.
pub const CONTROL_STATE: u16 = 0b11;
/// Power management control bit: configuration survives D3hot.
pub(crate) const CONTROL_NO_SOFT_RESET: u16 = 1 << 3;
/// Power management control bit: power management events enabled.
pub(crate) const CONTROL_PME_ENABLE: u16 = 1 << 8;
/// Power management control field: selection of the data register's value.
pub(crate) const CONTROL_DATA_SELECT: u16 = 0xf << 9;
/// Power management control bit: a power management event is pending; write 1 to clear.
pub(crate) const CONTROL_PME_STATUS: u16 = 1 << 15;

/// Power states that functions support.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerState {
    /// Power state D0: the function works normally.
    D0,
    /// Power state D3hot: the function accepts only configuration requests.
    D3Hot,
}

impl PowerState {
    /// Returns the power state that a control word requests, or `None` for D1 and D2.
    #[must_use]
    pub(crate) const fn from_control(control: u16) -> Option<Self> {
        match control & CONTROL_STATE {
            0 => Some(Self::D0),
            3 => Some(Self::D3Hot),
            _ => None,
        }
    }
}

/// Values of the power management capability that differ between functions.
#[derive(Debug, Clone, Copy)]
pub struct PowerCapability {
    /// Value of the power management capabilities word.
    pub capabilities: u16,
    /// Scale of the power management data register, 0 to 3.
    pub data_scale: u8,
    /// Value of the power management data register.
    pub data: u8,
}

impl PowerCapability {
    /// Returns the power management capability.
    #[must_use]
    pub fn capability(self) -> Capability {
        let sticky = u32::from(CONTROL_PME_ENABLE | CONTROL_PME_STATUS);
        let writable = CONTROL_STATE | CONTROL_PME_ENABLE | CONTROL_DATA_SELECT;
        let body = vec![
            ConfigRegister::word(CAPABILITIES, self.capabilities),
            ConfigRegister::word(CONTROL, u16::from(self.data_scale & 3) << 13)
                .writable(writable.into())
                .write_1_to_clear(CONTROL_PME_STATUS.into())
                .sticky(sticky),
            ConfigRegister::byte(DATA, self.data),
        ];
        Capability { id: ID, body }
    }
}
