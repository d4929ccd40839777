//! What the PF counts for each VF: its messages by kind, the answers, and the refusals by reason.
//! Left out: traffic, which the card counts.

use i82576::mailbox::{ID_MASK, id};
use serde::{Deserialize, Serialize};

/// What a message was about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// VF_RESET.
    Reset,
    /// SET_MAC_ADDR.
    Mac,
    /// SET_MULTICAST.
    Multicast,
    /// SET_VLAN.
    Vlan,
    /// SET_LPE.
    FrameLength,
    /// SET_PROMISC.
    Promiscuity,
    /// Anything else.
    Other,
}

impl Kind {
    /// Every kind, in the order of [`Counters::messages`].
    pub const ALL: [Kind; 7] = [
        Kind::Reset,
        Kind::Mac,
        Kind::Multicast,
        Kind::Vlan,
        Kind::FrameLength,
        Kind::Promiscuity,
        Kind::Other,
    ];

    /// The kind of a message by its first dword.
    #[must_use]
    pub fn of(first: u32) -> Self {
        match first & ID_MASK {
            id::VF_RESET => Kind::Reset,
            id::SET_MAC_ADDR => Kind::Mac,
            id::SET_MULTICAST => Kind::Multicast,
            id::SET_VLAN => Kind::Vlan,
            id::SET_LPE => Kind::FrameLength,
            id::SET_PROMISC => Kind::Promiscuity,
            _ => Kind::Other,
        }
    }

    /// A name for tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Reset => "reset",
            Kind::Mac => "mac",
            Kind::Multicast => "multicast",
            Kind::Vlan => "vlan",
            Kind::FrameLength => "frame-length",
            Kind::Promiscuity => "promiscuity",
            Kind::Other => "other",
        }
    }
}

/// Why a message was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Anything before VF_RESET.
    #[error("the VF has not introduced itself with VF_RESET")]
    NotReady,
    /// VF_RESET while no address is set for the VF.
    #[error("no address is set for the VF")]
    NoAddress,
    /// The administrator has chosen the address.
    #[error("the address was set by the administrator")]
    AddressFixed,
    /// Zero or a group address.
    #[error("not a unicast address")]
    AddressInvalid,
    /// Another function has the address, and may not share it.
    #[error("the address is in use by another function; allow it with share_mac for both, or with trust")]
    AddressInUse,
    /// No receive-address entry is free.
    #[error("no address filter is left")]
    NoFilter,
    /// The administrator has put the VF on one VLAN.
    #[error("the VLAN was set by the administrator")]
    VlanFixed,
    /// No VLVF entry is free.
    #[error("no VLAN filter is left")]
    NoVlanFilter,
    /// Not in the administrator's list.
    #[error("the administrator does not allow the VLAN")]
    VlanNotAllowed,
    /// Longer than the MAC takes.
    #[error("the frame length is not possible")]
    FrameLength,
    /// Longer than the administrator allows.
    #[error("the administrator has limited the MTU")]
    MtuLimit,
    /// The administrator does not allow it.
    #[error("the administrator does not allow every multicast")]
    MulticastPromiscuity,
    /// The 82576 has no promiscuity for VFs.
    #[error("unicast promiscuity is not possible")]
    UnicastPromiscuity,
    /// No such message.
    #[error("unknown message")]
    Unknown,
}

impl Refusal {
    /// Every reason, in the order of [`Counters::refused`].
    pub const ALL: [Refusal; 14] = [
        Refusal::NotReady,
        Refusal::NoAddress,
        Refusal::AddressFixed,
        Refusal::AddressInvalid,
        Refusal::AddressInUse,
        Refusal::NoFilter,
        Refusal::VlanFixed,
        Refusal::NoVlanFilter,
        Refusal::VlanNotAllowed,
        Refusal::FrameLength,
        Refusal::MtuLimit,
        Refusal::MulticastPromiscuity,
        Refusal::UnicastPromiscuity,
        Refusal::Unknown,
    ];

    /// A name for tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Refusal::NotReady => "not-ready",
            Refusal::NoAddress => "no-address",
            Refusal::AddressFixed => "address-fixed",
            Refusal::AddressInvalid => "address-invalid",
            Refusal::AddressInUse => "address-in-use",
            Refusal::NoFilter => "no-filter",
            Refusal::VlanFixed => "vlan-fixed",
            Refusal::NoVlanFilter => "no-vlan-filter",
            Refusal::VlanNotAllowed => "vlan-not-allowed",
            Refusal::FrameLength => "frame-length",
            Refusal::MtuLimit => "mtu-limit",
            Refusal::MulticastPromiscuity => "multicast-promiscuity",
            Refusal::UnicastPromiscuity => "unicast-promiscuity",
            Refusal::Unknown => "unknown",
        }
    }
}

/// The counters of a VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    messages: [u64; Kind::ALL.len()],
    refused: [u64; Refusal::ALL.len()],
    /// Messages that were agreed to.
    pub granted: u64,
    /// Messages that got no reply: refused too soon after the last refusal.
    pub unanswered: u64,
    /// Requests dropped because the VF did not let go of the mailbox.
    pub dropped: u64,
    /// Resets of the function (VFLR and CTRL.RST).
    pub resets: u64,
    /// PF_CONTROL messages sent.
    pub notices: u64,
    /// Reports of blocked, spoofed frames.
    pub spoofed: u64,
}

impl Counters {
    /// Messages of a kind.
    #[must_use]
    pub fn messages(&self, kind: Kind) -> u64 {
        self.messages[kind as usize]
    }

    /// Messages refused for a reason.
    #[must_use]
    pub fn refused(&self, reason: Refusal) -> u64 {
        self.refused[reason as usize]
    }

    /// Messages of every kind, those without an answer among them.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.messages.iter().sum::<u64>() + self.dropped
    }

    /// Every counter.
    pub(super) fn all(&self) -> impl Iterator<Item = u64> {
        let Self { messages, refused, granted, unanswered, dropped, resets, notices, spoofed } = *self;
        let others = [granted, unanswered, dropped, resets, notices, spoofed];
        messages.into_iter().chain(refused).chain(others)
    }

    pub(super) fn count_message(&mut self, kind: Kind) {
        self.messages[kind as usize] += 1;
    }

    pub(super) fn count_outcome(&mut self, outcome: Result<(), Refusal>) {
        match outcome {
            Ok(()) => self.granted += 1,
            Err(reason) => self.refused[reason as usize] += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Refusal};

    #[test]
    fn lists_are_in_the_order_of_their_indices() {
        assert!(Kind::ALL.iter().enumerate().all(|(i, kind)| *kind as usize == i));
        assert!(Refusal::ALL.iter().enumerate().all(|(i, reason)| *reason as usize == i));
    }
}
