//! PCI power management (PCI bus power management specification 1.2, 3.2). Left out: D1 and D2, and the data
//! register's table: it shows one value whatever is selected.

use super::Capability;
use crate::config::Register;
use alloc::vec;

/// Capability id.
pub const ID: u8 = 0x01;
/// Capabilities, 16 bits.
pub const CAPABILITIES: u16 = 2;
/// Control and status, 16 bits.
pub const CONTROL: u16 = 4;
/// Data, 8 bits.
pub const DATA: u16 = 7;

/// Control: the power state.
pub const CONTROL_STATE: u16 = 0b11;
/// Control: configuration survives D3hot.
pub const CONTROL_NO_SOFT_RESET: u16 = 1 << 3;
/// Control: the function may signal power management events.
pub const CONTROL_PME_ENABLE: u16 = 1 << 8;
/// Control: what the data register shows.
pub const CONTROL_DATA_SELECT: u16 = 0xf << 9;
/// Control: a power management event is pending; write 1 to clear.
pub const CONTROL_PME_STATUS: u16 = 1 << 15;

/// The power states a function here can be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerState {
    /// Working.
    D0,
    /// Only configuration requests are answered.
    D3Hot,
}

impl PowerState {
    /// The state a control word asks for; D1 and D2 are none.
    #[must_use]
    pub const fn from_control(control: u16) -> Option<Self> {
        match control & CONTROL_STATE {
            0 => Some(Self::D0),
            3 => Some(Self::D3Hot),
            _ => None,
        }
    }
}

/// What differs between functions.
#[derive(Debug, Clone, Copy)]
pub struct Power {
    /// The capabilities word.
    pub capabilities: u16,
    /// Scale of the data register, 0 to 3.
    pub data_scale: u8,
    /// The data register.
    pub data: u8,
}

impl Power {
    /// The capability.
    #[must_use]
    pub fn capability(self) -> Capability {
        let sticky = u32::from(CONTROL_PME_ENABLE | CONTROL_PME_STATUS);
        let writable = CONTROL_STATE | CONTROL_PME_ENABLE | CONTROL_DATA_SELECT;
        let body = vec![
            Register::word(CAPABILITIES, self.capabilities),
            Register::word(CONTROL, u16::from(self.data_scale & 3) << 13)
                .writable(writable.into())
                .write_1_to_clear(CONTROL_PME_STATUS.into())
                .sticky(sticky),
            Register::byte(DATA, self.data),
        ];
        Capability { id: ID, body }
    }
}
