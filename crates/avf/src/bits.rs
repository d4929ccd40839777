//! Bits of registers. Left out: registers that are a number.

/// ATQLEN and ARQLEN: length, what went wrong, and whether the queue is on.
pub mod aqlen {
    /// Descriptors of the ring.
    pub const LENGTH: u32 = 0x3ff;
    /// A VF did something wrong.
    pub const VFE: u32 = 1 << 28;
    /// A message found no room.
    pub const OVFL: u32 = 1 << 29;
    /// The queue cannot go on.
    pub const CRIT: u32 = 1 << 30;
    /// The queue is on. A reset clears it, and by that a driver notices.
    pub const ENABLE: u32 = 1 << 31;
    /// What a driver reads and clears.
    pub const ERRORS: u32 = VFE | OVFL | CRIT;
}

/// The head and tail of an admin queue: an index of 10 bits.
pub const AQ_INDEX: u32 = 0x3ff;

/// VFINT_ICR01, the causes of vector 0, and VFINT_ICR0_ENA1, which of them interrupt.
pub mod icr0 {
    /// The link has changed.
    pub const LINK: u32 = 1 << 25;
    /// The mailbox has a message.
    pub const ADMINQ: u32 = 1 << 30;
}

/// VFINT_DYN_CTL01 and VFINT_DYN_CTLN1: one vector's switch, interval and trigger.
pub mod dyn_ctl {
    /// The vector may interrupt. Clears itself when it does.
    pub const INTENA: u32 = 1 << 0;
    /// The vector's pending bit goes.
    pub const CLEARPBA: u32 = 1 << 1;
    /// Interrupt now, by software's wish.
    pub const SWINT_TRIG: u32 = 1 << 2;
    /// Which interval a write sets, bits 4:3.
    pub const ITR_SHIFT: u32 = 3;
    /// No interval: the write leaves them alone.
    pub const ITR_NONE: u32 = 3;
    /// The interval, bits 16:5, in units of 2 us.
    pub const INTERVAL_SHIFT: u32 = 5;
    /// Bits of an interval.
    pub const INTERVAL: u32 = 0xfff;
    /// The software interrupt waits for an interval.
    pub const SW_ITR_ENA: u32 = 1 << 24;
    /// Which one, bits 26:25.
    pub const SW_ITR_SHIFT: u32 = 25;
    /// Reserved. In a register that the guest has as memory it reads as one: the card has taken what was stored.
    pub const SEEN: u32 = 1 << 27;
    /// Descriptors are written back when the interval ends.
    pub const WB_ON_ITR: u32 = 1 << 30;
    /// The write leaves INTENA alone.
    pub const INTENA_MSK: u32 = 1 << 31;
}

/// VFGEN_RSTAT: how far a reset is.
pub mod rstat {
    /// In progress.
    pub const IN_PROGRESS: u32 = 0;
    /// Completed: probing drivers go on, drivers after a reset do not.
    pub const COMPLETED: u32 = 1;
    /// The VF is ready.
    pub const ACTIVE: u32 = 2;
    /// The field.
    pub const STATE: u32 = 3;
}

/// How far a VF's reset is, as VFGEN_RSTAT says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetState {
    /// The PF has not set the VF up again.
    InProgress,
    /// The hardware's part is over.
    Completed,
    /// The VF can be used.
    Active,
    /// The register is out of reach: 0xDEADBEEF, or all ones.
    Unknown,
}

impl ResetState {
    /// What a value of VFGEN_RSTAT means.
    #[must_use]
    pub const fn of(value: u32) -> Self {
        match value & rstat::STATE {
            rstat::IN_PROGRESS => Self::InProgress,
            rstat::COMPLETED => Self::Completed,
            rstat::ACTIVE => Self::Active,
            _ => Self::Unknown,
        }
    }

    /// Whether a driver that has just been loaded may go on.
    #[must_use]
    pub const fn lets_probe(self) -> bool {
        matches!(self, Self::Completed | Self::Active)
    }
}

#[cfg(test)]
mod tests {
    use super::ResetState;

    #[test]
    fn a_probe_goes_on_when_the_reset_is_completed_or_the_vf_active() {
        let lets: std::vec::Vec<_> = (0..4).map(|value| ResetState::of(value).lets_probe()).collect();
        assert_eq!(lets, [false, true, true, false]);
    }

    #[test]
    fn a_card_that_is_gone_is_in_no_state() {
        for value in [0xdead_beef, u32::MAX] {
            assert_eq!(ResetState::of(value), ResetState::Unknown);
        }
    }
}
