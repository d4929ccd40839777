//! Bit fields of timers and of the time stamps of packets.

/// TCPTIMER.
pub mod tcptimer {
    /// Milliseconds of a count.
    pub const DURATION: u32 = 0xff;
    /// Count down from the duration; reads as zero.
    pub const KICK_START: u32 = 1 << 8;
    /// The count goes on; while this is clear it stands still.
    pub const COUNT_EN: u32 = 1 << 9;
    /// Interrupt now, whatever is left of the count; reads as zero.
    pub const FINISH: u32 = 1 << 10;
    /// Begin again at the end.
    pub const LOOP: u32 = 1 << 11;
    /// What is kept.
    pub const KEPT: u32 = DURATION | COUNT_EN | LOOP;
}

/// TSYNCRXCTL and TSYNCTXCTL.
pub mod tsync {
    /// There is a stamp, and no other is taken until its high half is read.
    pub const VALID: u32 = 1 << 0;
    /// Position of the kind of packets that are stamped (TSYNCRXCTL), 3 bits.
    pub const KIND_SHIFT: u32 = 1;
    /// Version 2 over Ethernet, of one message type.
    pub const L2_V2: u32 = 0;
    /// Version 1 over UDP, of one control field.
    pub const L4_V1: u32 = 1;
    /// Version 2, of one message type.
    pub const V2: u32 = 2;
    /// Version 2, every event message.
    pub const EVENT_V2: u32 = 5;
    /// Stamps are taken.
    pub const ENABLE: u32 = 1 << 4;
}

/// TSYNCRXCFG.
pub mod tsyncrxcfg {
    /// The control field of version 1 whose packets are stamped.
    pub const CONTROL: u32 = 0xff;
    /// Position of the message type of version 2 whose packets are stamped, 8 bits.
    pub const MESSAGE_SHIFT: u32 = 8;
}
