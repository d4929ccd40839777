//! Offences of VFs that are counted, and the rates from which on the host acts against a VF. `driver::conduct` counts
//! and judges.

use serde::{Deserialize, Serialize};

/// Kind of offence by a VF, with thresholds of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Offence {
    /// The VF sends requests by mailbox, or is reset, too often.
    Mailbox,
    /// The VF sends frames with an address or VLAN that is not its own, or link-control frames.
    Spoofing,
    /// The VF sends too many broadcasts and multicasts.
    Storm,
    /// The VF raises too many interrupts, each of which costs the host time.
    Interrupts,
    /// The VF sends malformed packets, or malformed messages on cards that read messages from memory.
    Invalid,
    /// The VF accesses memory that is not the guest's, or not shared.
    DmaFaults,
}

/// Number of kinds of offence.
pub const KINDS: usize = 6;

impl Offence {
    /// All kinds of offence, in the order of the thresholds in [`ConductLimits`].
    pub const ALL: [Offence; KINDS] = [
        Offence::Mailbox,
        Offence::Spoofing,
        Offence::Storm,
        Offence::Interrupts,
        Offence::Invalid,
        Offence::DmaFaults,
    ];

    /// Returns the name of the kind of offence in settings and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Offence::Mailbox => "mailbox",
            Offence::Spoofing => "spoofing",
            Offence::Storm => "storm",
            Offence::Interrupts => "interrupts",
            Offence::Invalid => "invalid",
            Offence::DmaFaults => "dma-faults",
        }
    }
}

/// Action of the host against a VF whose rate of one kind of offence exceeds a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OffenceAction {
    /// Action: logs a warning about the VF.
    Warn,
    /// Action: throttles the VF for a while.
    Throttle,
    /// Action: quarantines the VF until the administrator releases it.
    Quarantine,
}

/// Thresholds of one kind of offence: the rate, in events per second, from which on each action is taken; 0 is never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "Thresholds")]
pub struct OffenceThresholds {
    /// Events per second from which on the host logs a warning.
    pub warn: u32,
    /// Events per second from which on the host throttles the VF.
    pub throttle: u32,
    /// Events per second from which on the host quarantines the VF.
    pub quarantine: u32,
}

impl OffenceThresholds {
    const fn warn(warn: u32) -> Self {
        Self { warn, throttle: 0, quarantine: 0 }
    }

    /// Returns the gravest action whose threshold is reached by a rate, in events per second.
    #[must_use]
    pub fn action(&self, rate: u64) -> Option<OffenceAction> {
        let steps = [
            (self.quarantine, OffenceAction::Quarantine),
            (self.throttle, OffenceAction::Throttle),
            (self.warn, OffenceAction::Warn),
        ];
        let reached = |(from, action)| (from > 0 && rate >= u64::from(from)).then_some(action);
        steps.into_iter().find_map(reached)
    }
}

/// Thresholds of each kind of offence, in the order of [`Offence::ALL`].
pub type ConductLimits = [OffenceThresholds; KINDS];

/// Default thresholds of offences, far above the rates of honest guests. Only floods of mailbox requests are throttled:
/// the card does not limit their cost to other VFs by itself.
pub const DEFAULT_CONDUCT: ConductLimits = [
    OffenceThresholds { warn: 200, throttle: 1_000, quarantine: 0 },
    OffenceThresholds::warn(10),
    OffenceThresholds::warn(10_000),
    OffenceThresholds::warn(200_000),
    OffenceThresholds::warn(10),
    OffenceThresholds::warn(10),
];

#[cfg(test)]
mod tests {
    use super::{DEFAULT_CONDUCT, Offence};

    #[test]
    fn offence_numbers_are_consecutive_and_have_warning_limits() {
        assert!(Offence::ALL.iter().enumerate().all(|(i, kind)| *kind as usize == i));
        assert!(DEFAULT_CONDUCT.iter().all(|limit| limit.warn > 0));
    }
}
