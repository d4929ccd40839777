//! Kinds of VFs' conduct, and from which rate on it has consequences. Left out: counting, judging and holding VFs back
//! (`driver::conduct`).

use serde::{Deserialize, Serialize};

/// A kind of conduct that a VF may do too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Offence {
    /// Requests by mailbox, and resets.
    Mailbox,
    /// Frames with an address or VLAN that is not its own, and link-control frames.
    Spoofing,
    /// Broadcasts and multicasts sent.
    Storm,
    /// Interrupts, which cost the host something each.
    Interrupts,
    /// Packets that make no sense, and messages where a card takes them out of memory.
    Invalid,
    /// Requests for memory that is not the guest's, or not shared.
    DmaFaults,
}

/// Kinds of conduct.
pub const KINDS: usize = 6;

impl Offence {
    /// Every kind, in the order of [`ConductLimits`].
    pub const ALL: [Offence; KINDS] = [
        Offence::Mailbox,
        Offence::Spoofing,
        Offence::Storm,
        Offence::Interrupts,
        Offence::Invalid,
        Offence::DmaFaults,
    ];

    /// Returns its name in settings and tables.
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

/// Action against an offence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// A warning in the log.
    Warn,
    /// The VF is throttled for a while.
    Throttle,
    /// The VF is quarantined until the administrator releases it.
    Quarantine,
}

/// From how many events a second on each action is taken; 0 is never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thresholds {
    /// [`Action::Warn`].
    pub warn: u32,
    /// [`Action::Throttle`].
    pub throttle: u32,
    /// [`Action::Quarantine`].
    pub quarantine: u32,
}

impl Thresholds {
    const fn warn(warn: u32) -> Self {
        Self { warn, throttle: 0, quarantine: 0 }
    }

    /// Returns the gravest action that a rate, events a second, calls for.
    #[must_use]
    pub fn action(&self, rate: u64) -> Option<Action> {
        let steps = [
            (self.quarantine, Action::Quarantine),
            (self.throttle, Action::Throttle),
            (self.warn, Action::Warn),
        ];
        let reached = |(from, action)| (from > 0 && rate >= u64::from(from)).then_some(action);
        steps.into_iter().find_map(reached)
    }
}

/// The thresholds of each kind.
pub type ConductLimits = [Thresholds; KINDS];

/// Defaults, far above what honest guests do. Only a flood of requests costs others something that the card does not
/// bound itself: it is throttled.
pub const DEFAULT_CONDUCT: ConductLimits = [
    Thresholds { warn: 200, throttle: 1_000, quarantine: 0 },
    Thresholds::warn(10),
    Thresholds::warn(10_000),
    Thresholds::warn(200_000),
    Thresholds::warn(10),
    Thresholds::warn(10),
];

#[cfg(test)]
mod tests {
    use super::{DEFAULT_CONDUCT, Offence};

    #[test]
    fn each_kind_has_its_place() {
        assert!(Offence::ALL.iter().enumerate().all(|(i, kind)| *kind as usize == i));
        assert!(DEFAULT_CONDUCT.iter().all(|limit| limit.warn > 0));
    }
}
