//! Bits and masks of those registers of a VF that hold several fields.

/// ATQLEN and ARQLEN: a mailbox queue's length, its errors, and its enable bit.
pub mod aqlen {
    /// ATQLEN, ARQLEN: mask of the number of descriptors in the mailbox ring.
    pub const LENGTH: u32 = 0x3ff;
    /// ATQLEN, ARQLEN: a VF made an error on the mailbox queue.
    pub const VFE: u32 = 1 << 28;
    /// ATQLEN, ARQLEN: a message found no free descriptor.
    pub const OVFL: u32 = 1 << 29;
    /// ATQLEN, ARQLEN: the queue stopped on a critical error.
    pub const CRIT: u32 = 1 << 30;
    /// ATQLEN, ARQLEN: the mailbox queue is enabled. A reset clears this bit, by which a driver notices the reset.
    pub const ENABLE: u32 = 1 << 31;
    /// ATQLEN, ARQLEN: mask of the error bits, which a driver reads and clears.
    pub const ERRORS: u32 = VFE | OVFL | CRIT;
}

/// Mask of the descriptor index, 10 bits, in the head and tail registers of an admin queue.
pub const AQ_INDEX: u32 = 0x3ff;

/// VFINT_ICR01, the interrupt causes of vector 0, and VFINT_ICR0_ENA1, the enabled ones of these causes.
pub mod icr0 {
    /// ICR01: the link state has changed.
    pub const LINK: u32 = 1 << 25;
    /// ICR01: the mailbox has a message for the VF.
    pub const ADMINQ: u32 = 1 << 30;
}

/// VFINT_DYN_CTL01 and VFINT_DYN_CTLN1: a vector's enable bit, interval and trigger.
pub mod dyn_ctl {
    /// DYN_CTL: the vector may interrupt. The bit clears itself when the vector interrupts.
    pub const INTENA: u32 = 1 << 0;
    /// DYN_CTL: clears the vector's pending bit.
    pub const CLEARPBA: u32 = 1 << 1;
    /// DYN_CTL: triggers an interrupt of the vector now, by software.
    pub const SWINT_TRIG: u32 = 1 << 2;
    /// DYN_CTL: shift of the index of the throttling interval that a write sets, bits 4:3.
    pub const ITR_SHIFT: u32 = 3;
    /// DYN_CTL: interval index that stands for no interval: the write changes no interval.
    pub const ITR_NONE: u32 = 3;
    /// DYN_CTL: shift of the throttling interval, bits 16:5, in units of 2 us.
    pub const INTERVAL_SHIFT: u32 = 5;
    /// DYN_CTL: mask of the throttling interval.
    pub const INTERVAL: u32 = 0xfff;
    /// DYN_CTL: a software-triggered interrupt waits for the end of the interval that [`SW_ITR_SHIFT`] selects.
    pub const SW_ITR_ENA: u32 = 1 << 24;
    /// DYN_CTL: shift of the index of the interval that a software-triggered interrupt waits for, bits 26:25.
    pub const SW_ITR_SHIFT: u32 = 25;
    /// DYN_CTL: bit that is reserved in real cards. In a register that is mapped as the guest's memory, the card sets
    /// it once it has taken the stored value.
    pub const SEEN: u32 = 1 << 27;
    /// DYN_CTL: the card writes descriptors back when the vector's interval ends.
    pub const WB_ON_ITR: u32 = 1 << 30;
    /// DYN_CTL: a write with this bit set leaves INTENA unchanged.
    pub const INTENA_MSK: u32 = 1 << 31;
}

/// VFGEN_RSTAT: the state of a VF's reset.
pub mod rstat {
    /// RSTAT: the VF's reset is in progress.
    pub const IN_PROGRESS: u32 = 0;
    /// RSTAT: the hardware's part of the reset is complete. A probing driver continues, a driver after a reset waits
    /// for `ACTIVE`.
    pub const COMPLETED: u32 = 1;
    /// RSTAT: the VF is active after its reset.
    pub const ACTIVE: u32 = 2;
    /// RSTAT: mask of the VF's reset state.
    pub const STATE: u32 = 3;
}

/// State of a VF's reset, as VFGEN_RSTAT reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VfResetState {
    /// Reset state: the PF has not set the VF up again.
    InProgress,
    /// Reset state: the hardware has completed its part of the reset.
    Completed,
    /// Reset state: the VF has been reset and can be used.
    Active,
    /// Reset state: cannot be read, since the register gives 0xDEADBEEF or all ones.
    Unknown,
}

impl VfResetState {
    /// Returns the reset state that a value of VFGEN_RSTAT stands for.
    #[must_use]
    pub const fn of(value: u32) -> Self {
        match value & rstat::STATE {
            rstat::IN_PROGRESS => Self::InProgress,
            rstat::COMPLETED => Self::Completed,
            rstat::ACTIVE => Self::Active,
            _ => Self::Unknown,
        }
    }

    /// Returns true if a driver that has just been loaded may continue its probe.
    #[must_use]
    pub const fn lets_probe(self) -> bool {
        matches!(self, Self::Completed | Self::Active)
    }
}

#[cfg(test)]
mod tests {
    use super::VfResetState;

    #[test]
    fn driver_probe_continues_once_the_vf_reset_is_complete() {
        let lets: std::vec::Vec<_> = (0..4).map(|value| VfResetState::of(value).lets_probe()).collect();
        assert_eq!(lets, [false, true, true, false]);
    }

    #[test]
    fn unreachable_card_has_an_unknown_reset_state() {
        for value in [0xdead_beef, u32::MAX] {
            assert_eq!(VfResetState::of(value), VfResetState::Unknown);
        }
    }
}
