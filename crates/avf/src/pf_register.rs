//! Byte offsets of the registers of an X710 by which a PF driver without interrupts talks to its VFs: its admin
//! queues, and the resets of VFs. A driver of real silicon needs more (host memory cache, queue contexts, NVM,
//! PHY); [`crate::control`] stands in for those.

crate::register::offsets! {
    /// Base address of the PF's admin send queue, low half.
    PF_ATQBAL = 0x8_0000;
    /// Base address of the PF's admin receive queue, low half.
    PF_ARQBAL = 0x8_0080;
    /// Base address of the PF's admin send queue, high half.
    PF_ATQBAH = 0x8_0100;
    /// Base address of the PF's admin receive queue, high half.
    PF_ARQBAH = 0x8_0180;
    /// Length and state of the PF's admin send queue (`bits::aqlen`).
    PF_ATQLEN = 0x8_0200;
    /// Length and state of the PF's admin receive queue.
    PF_ARQLEN = 0x8_0280;
    /// Head index of the PF's admin send queue.
    PF_ATQH = 0x8_0300;
    /// Head index of the PF's admin receive queue.
    PF_ARQH = 0x8_0380;
    /// Tail index of the PF's admin send queue: the doorbell.
    PF_ATQT = 0x8_0400;
    /// Tail index of the PF's admin receive queue.
    PF_ARQT = 0x8_0480;
    /// State of VF 0's reset, which the VF reads in VFGEN_RSTAT; the others follow at a stride of 4.
    VFGEN_RSTAT1 = 0x7_4400;
    /// Trigger of VF 0's reset; the others follow at a stride of 4.
    VPGEN_VFRTRIG = 0x9_1800;
    /// Completion of the hardware's part of VF 0's reset; the others follow at a stride of 4.
    VPGEN_VFRSTAT = 0x9_1c00;
    /// VFs whose guest issued a function level reset, a bit each in words of 32. Writing ones clears them.
    GLGEN_VFLRSTAT = 0x9_2600;
}

/// VPGEN_VFRTRIG: the VF is in reset while this bit is set.
pub const VFSWR: u32 = 1 << 0;
/// VPGEN_VFRSTAT: the hardware has completed its part of the reset.
pub const VFRD: u32 = 1 << 0;
