//! Byte offsets of a VF's registers in its BAR 0, under the names of Intel's headers. A "1" at the end of a name
//! means the VF's own view. [`crate::table`] defines the effects of an access, [`crate::bits`] the bits.

macro_rules! offsets {
    ($($(#[$doc:meta])* $name:ident = $offset:literal;)*) => { $($(#[$doc])* pub const $name: u32 = $offset;)* };
}
pub(crate) use offsets;

offsets! {
    /// Tail of transmit queue 0; the others follow at a stride of 4.
    QTX_TAIL = 0x0000;
    /// Tail of receive queue 0; the others follow at a stride of 4.
    QRX_TAIL = 0x2000;
    /// Interval 0 of interrupt vector 1; intervals are 0x40 apart, vectors 4.
    VFINT_ITRN = 0x2800;
    /// Interrupt control of vector 1; the others follow at a stride of 4.
    VFINT_DYN_CTLN = 0x3800;
    /// Interrupt causes of vector 0.
    VFINT_ICR01 = 0x4800;
    /// Interval 0 of interrupt vector 0; the others follow at a stride of 4.
    VFINT_ITR01 = 0x4c00;
    /// Interrupt causes of vector 0 that are enabled.
    VFINT_ICR0_ENA = 0x5000;
    /// Statistics control of vector 0.
    VFINT_STAT_CTL0 = 0x5400;
    /// Interrupt control of vector 0.
    VFINT_DYN_CTL0 = 0x5c00;
    /// Base address of the mailbox receive queue, high half.
    VF_ARQBAH = 0x6000;
    /// Head index of the mailbox send queue.
    VF_ATQH = 0x6400;
    /// Length and state of the mailbox send queue.
    VF_ATQLEN = 0x6800;
    /// Base address of the mailbox receive queue, low half.
    VF_ARQBAL = 0x6c00;
    /// Tail index of the mailbox receive queue.
    VF_ARQT = 0x7000;
    /// Head index of the mailbox receive queue.
    VF_ARQH = 0x7400;
    /// Base address of the mailbox send queue, high half.
    VF_ATQBAH = 0x7800;
    /// Base address of the mailbox send queue, low half.
    VF_ATQBAL = 0x7c00;
    /// Length and state of the mailbox receive queue.
    VF_ARQLEN = 0x8000;
    /// Tail index of the mailbox send queue: the doorbell.
    VF_ATQT = 0x8400;
    /// State of the VF's reset.
    VFGEN_RSTAT = 0x8800;
    /// Packet types that RSS hashes, a bit each in two words.
    VFQF_HENA = 0xc400;
    /// RSS hash key, 13 words.
    VFQF_HKEY = 0xcc00;
    /// RSS lookup table, 16 words.
    VFQF_HLUT = 0xd000;
}

/// Returns the offset of a transmit queue's tail.
#[must_use]
pub const fn qtx_tail(queue: u8) -> u32 {
    QTX_TAIL + 4 * (queue & 15) as u32
}

/// Returns the offset of a receive queue's tail.
#[must_use]
pub const fn qrx_tail(queue: u8) -> u32 {
    QRX_TAIL + 4 * (queue & 15) as u32
}

/// Returns the offset of a vector's control register.
#[must_use]
pub const fn dyn_ctl(vector: u8) -> u32 {
    if vector == 0 { VFINT_DYN_CTL0 } else { VFINT_DYN_CTLN + 4 * ((vector - 1) & 15) as u32 }
}

/// Returns the offset of one of a vector's three intervals.
#[must_use]
pub const fn itr(index: u8, vector: u8) -> u32 {
    let index = (index % 3) as u32;
    if vector == 0 {
        VFINT_ITR01 + 4 * index
    } else {
        VFINT_ITRN + 0x40 * index + 4 * ((vector - 1) & 15) as u32
    }
}
