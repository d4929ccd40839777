//! Bit fields of timers and of packet time stamps.

/// Bits of the TCP timer (TCPTIMER).
pub mod tcptimer {
    /// TCPTIMER: mask of the count's duration in milliseconds.
    pub const DURATION: u32 = 0xff;
    /// TCPTIMER: restart the count from the duration; reads as zero.
    pub const KICK_START: u32 = 1 << 8;
    /// TCPTIMER: the timer counts; otherwise the count is paused.
    pub const COUNT_EN: u32 = 1 << 9;
    /// TCPTIMER: interrupt now, before the end of the count; reads as zero.
    pub const FINISH: u32 = 1 << 10;
    /// TCPTIMER: the count restarts at its end.
    pub const LOOP: u32 = 1 << 11;
    /// TCPTIMER: writable bits of the millisecond timer.
    pub const KEPT: u32 = DURATION | COUNT_EN | LOOP;
}

/// Bits of the control of time stamps (TSYNCRXCTL and TSYNCTXCTL).
pub mod tsync {
    /// TSYNCTXCTL, TSYNCRXCTL: a time stamp is valid, and no further one is taken until the stamp's high half
    /// is read.
    pub const VALID: u32 = 1 << 0;
    /// TSYNCRXCTL: position of the packet type to time-stamp, 3 bits.
    pub const KIND_SHIFT: u32 = 1;
    /// TSYNCRXCTL packet type: PTP version 2 over Ethernet, of one message type.
    pub const L2_V2: u32 = 0;
    /// TSYNCRXCTL packet type: PTP version 1 over UDP, of one control field.
    pub const L4_V1: u32 = 1;
    /// TSYNCRXCTL packet type: PTP version 2, of one message type.
    pub const V2: u32 = 2;
    /// TSYNCRXCTL packet type: PTP version 2, every event message.
    pub const EVENT_V2: u32 = 5;
    /// TSYNCTXCTL, TSYNCRXCTL: time stamps are enabled.
    pub const ENABLE: u32 = 1 << 4;
}

/// Bits of the selection of packets to stamp (TSYNCRXCFG).
pub mod tsyncrxcfg {
    /// TSYNCRXCFG: control field of the PTP version 1 packets to time-stamp.
    pub const CONTROL: u32 = 0xff;
    /// TSYNCRXCFG: position of the message type of PTP version 2 packets to time-stamp, 8 bits.
    pub const MESSAGE_SHIFT: u32 = 8;
}
