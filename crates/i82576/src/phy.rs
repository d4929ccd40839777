//! The PHY's registers, as MDIC reaches them: the standard's first sixteen (IEEE 802.3, clause 22), then those
//! of the IGP3 family, whose place depends on a page. Left out: the pages other than 0.

/// Where the PHY answers.
pub const ADDRESS: u32 = 1;
/// Registers that MDIC can name.
pub const REGISTERS: usize = 32;

/// Control.
pub const CONTROL: usize = 0;
/// Status.
pub const STATUS: usize = 1;
/// Identifier, upper half.
pub const ID_1: usize = 2;
/// Identifier, lower half.
pub const ID_2: usize = 3;
/// What is advertised.
pub const ADVERTISE: usize = 4;
/// What the partner advertises.
pub const PARTNER: usize = 5;
/// How negotiation went.
pub const EXPANSION: usize = 6;
/// Next page to send.
pub const NEXT_PAGE: usize = 7;
/// Gigabit control.
pub const GIGABIT_CONTROL: usize = 9;
/// Gigabit status.
pub const GIGABIT_STATUS: usize = 10;
/// Extended status.
pub const EXTENDED_STATUS: usize = 15;
/// First register whose place depends on the page: port configuration.
pub const PORT_CONFIG: usize = 0x10;
/// Port status.
pub const PORT_STATUS: usize = 0x11;
/// Port control.
pub const PORT_CONTROL: usize = 0x12;
/// Link health.
pub const LINK_HEALTH: usize = 0x13;
/// GMII buffers.
pub const GMII_FIFO: usize = 0x14;
/// Power management.
pub const POWER: usize = 0x19;
/// Page, in bits 15:5.
pub const PAGE: usize = 0x1f;

/// Bits of [`CONTROL`].
pub mod control {
    /// Reset, self-clearing.
    pub const RESET: u16 = 1 << 15;
    /// What is sent comes back, and the wire hears nothing.
    pub const LOOPBACK: u16 = 1 << 14;
    /// Negotiate, instead of taking speed and duplex from this register.
    pub const NEGOTIATE: u16 = 1 << 12;
    /// Asleep: no link.
    pub const POWER_DOWN: u16 = 1 << 11;
    /// Cut off from the MAC: no link.
    pub const ISOLATE: u16 = 1 << 10;
    /// Negotiate again, self-clearing.
    pub const RESTART: u16 = 1 << 9;
    /// Bits that are reserved.
    pub const RESERVED: u16 = 0x3f;
}

/// Bits of [`STATUS`].
pub mod status {
    /// Negotiation is complete.
    pub const COMPLETE: u16 = 1 << 5;
    /// There is a link, and there was since the last read.
    pub const LINK: u16 = 1 << 2;
}

/// Bits that software can write, a mask a register; all other bits are read-only.
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

/// Values after reset, without a link.
pub const RESET: [u16; REGISTERS] = {
    let mut values = [0; REGISTERS];
    // Gigabit, full duplex, negotiating.
    values[CONTROL] = 0x1140;
    // All of 10 and 100 Mb/s, extended status, negotiation.
    values[STATUS] = 0x7949;
    // IGP3, revision 1.
    values[ID_1] = 0x02a8;
    values[ID_2] = 0x0391;
    // All of 10 and 100 Mb/s, pause both ways.
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

/// Bits that a link adds: what the partner can do, how negotiation went, gigabit full duplex.
pub const LINKED: [u16; REGISTERS] = {
    let mut bits = [0; REGISTERS];
    bits[STATUS] = status::COMPLETE | status::LINK;
    bits[PARTNER] = 0x45e1;
    bits[EXPANSION] = 0x0001;
    bits[GIGABIT_STATUS] = 0x3c00;
    bits[PORT_STATUS] = 0xc200;
    bits
};
