//! PHY registers behind MDIC: the first sixteen of the standard (IEEE 802.3, clause 22), then those of the IGP3
//! family, which depend on a page. Only page 0 is defined.

/// PHY address on the MDIO bus (82576 datasheet 8.2.4).
pub const ADDRESS: u32 = 1;
/// Number of registers that MDIC can address.
pub const REGISTERS: usize = 32;

/// PHY register number: control.
pub const CONTROL: usize = 0;
/// PHY register number: status.
pub const STATUS: usize = 1;
/// PHY register number: identifier, upper half.
pub const ID_1: usize = 2;
/// PHY register number: identifier, lower half.
pub const ID_2: usize = 3;
/// PHY register number: auto-negotiation advertisement.
pub const ADVERTISE: usize = 4;
/// PHY register number: link partner ability.
pub const PARTNER: usize = 5;
/// PHY register number: auto-negotiation expansion.
pub const EXPANSION: usize = 6;
/// PHY register number: next page transmit.
pub const NEXT_PAGE: usize = 7;
/// PHY register number: gigabit control.
pub const GIGABIT_CONTROL: usize = 9;
/// PHY register number: gigabit status.
pub const GIGABIT_STATUS: usize = 10;
/// PHY register number: extended status.
pub const EXTENDED_STATUS: usize = 15;
/// PHY register number: port configuration, the first one that depends on the page.
pub const PORT_CONFIG: usize = 0x10;
/// PHY register number: port status.
pub const PORT_STATUS: usize = 0x11;
/// PHY register number: port control.
pub const PORT_CONTROL: usize = 0x12;
/// PHY register number: link health.
pub const LINK_HEALTH: usize = 0x13;
/// PHY register number: GMII FIFO.
pub const GMII_FIFO: usize = 0x14;
/// PHY register number: power management.
pub const POWER: usize = 0x19;
/// PHY register number: page select, with the page in bits 15:5.
pub const PAGE: usize = 0x1f;

/// Bits of the PHY's control register ([`CONTROL`]).
pub mod control {
    /// PHY control: reset of the PHY, self-clearing.
    pub const RESET: u16 = 1 << 15;
    /// PHY control: sent frames are looped back, and do not reach the wire.
    pub const LOOPBACK: u16 = 1 << 14;
    /// PHY control: auto-negotiation enable, instead of speed and duplex from this register.
    pub const NEGOTIATE: u16 = 1 << 12;
    /// PHY control: power the PHY down. While the bit is set, the link is down.
    pub const POWER_DOWN: u16 = 1 << 11;
    /// PHY control: isolate the PHY from the MAC: no link.
    pub const ISOLATE: u16 = 1 << 10;
    /// PHY control: restart auto-negotiation, self-clearing.
    pub const RESTART: u16 = 1 << 9;
    /// PHY control: reserved bits.
    pub const RESERVED: u16 = 0x3f;
}

/// Bits of the PHY's status register ([`STATUS`]).
pub mod status {
    /// PHY status: auto-negotiation is complete.
    pub const COMPLETE: u16 = 1 << 5;
    /// PHY status: the link is up, and has not gone down since the last read of this register.
    pub const LINK: u16 = 1 << 2;
}

/// Writable bits of each PHY register; all other bits are read-only.
pub const WRITABLE: [u16; REGISTERS] = {
    let mut masks = [0; REGISTERS];
    masks[CONTROL] = !(control::RESET | control::RESTART | control::RESERVED);
    masks[ADVERTISE] = 0xffff;
    masks[NEXT_PAGE] = 0xffff;
    masks[GIGABIT_CONTROL] = 0xffff;
    masks[PORT_CONFIG] = 0xffff;
    masks[PORT_CONTROL] = 0xffff;
    masks[LINK_HEALTH] = 0xffff;
    masks[GMII_FIFO] = 0xffff;
    masks[POWER] = 0xffff;
    masks[PAGE] = 0xffff;
    masks
};

/// Reset values of the PHY registers, without a link.
pub const RESET: [u16; REGISTERS] = {
    let mut values = [0; REGISTERS];
    // Gigabit, full duplex, auto-negotiation.
    values[CONTROL] = 0x1140;
    // All of 10 and 100 Mb/s, extended status, auto-negotiation.
    values[STATUS] = 0x7949;
    // IGP3, revision 1.
    values[ID_1] = 0x02a8;
    values[ID_2] = 0x0391;
    // All of 10 and 100 Mb/s, pause in both directions.
    values[ADVERTISE] = 0x0de1;
    values[NEXT_PAGE] = 0x2001;
    // Gigabit, both duplexes, multi-port, master.
    values[GIGABIT_CONTROL] = 0x0f00;
    // Gigabit over copper, both duplexes.
    values[EXTENDED_STATUS] = 0x3000;
    values[PORT_CONFIG] = 0x0120;
    values[POWER] = 0x008d;
    values
};

/// Bits of the PHY's registers that are set while the link is up: the partner's abilities, auto-negotiation complete,
/// gigabit full duplex.
pub const LINKED: [u16; REGISTERS] = {
    let mut bits = [0; REGISTERS];
    bits[STATUS] = status::COMPLETE | status::LINK;
    bits[PARTNER] = 0x45e1;
    bits[EXPANSION] = 0x0001;
    bits[GIGABIT_STATUS] = 0x3c00;
    bits[PORT_STATUS] = 0xc200;
    bits
};
