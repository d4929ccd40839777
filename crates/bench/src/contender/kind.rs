//! Kinds of contenders: cards by their mode, peers, and limits of the machine.

use serde::Serialize;
use std::fmt;

/// Kind of a measured forwarder: a card of `softiov serve`, an alternative to it, or a limit of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum ContenderKind {
    /// Contender: card of `softiov serve` whose guests ring doorbells by stores into memory that they share with the
    /// card.
    Mapped,
    /// Contender: card of `softiov serve` whose guests ring doorbells by messages over the socket.
    Posted,
    /// Contender: virtio card of `softiov serve` whose guests kick it by eventfds while it sleeps. A virtio card has no
    /// other mode.
    #[value(skip)]
    Kicked,
    /// Contender: a software switch that users would choose instead of `softiov serve`.
    #[value(skip)]
    Peer,
    /// Contender: limit of the machine, measured without a card.
    #[value(skip)]
    Raw,
}

impl ContenderKind {
    /// Returns true if the contender is a card of `softiov serve`.
    #[must_use]
    pub fn is_card(self) -> bool {
        matches!(self, Self::Mapped | Self::Posted | Self::Kicked)
    }
}

impl fmt::Display for ContenderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mapped => "mapped",
            Self::Posted => "posted",
            Self::Kicked => "kicked",
            Self::Peer => "peer",
            Self::Raw => "raw",
        })
    }
}
