//! The PF's counters for each VF: messages by kind, replies, and refusals by reason. The card counts traffic.

use i82576::mailbox::{ID_MASK, id};
use serde::{Deserialize, Serialize};

/// Kind of a VF's message in the 82576's mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailboxMessageKind {
    /// VF_RESET: the VF was reset.
    Reset,
    /// SET_MAC_ADDR: the VF requests an address.
    Mac,
    /// SET_MULTICAST: the VF requests multicast groups.
    Multicast,
    /// SET_VLAN: the VF joins or leaves a VLAN.
    Vlan,
    /// SET_LPE: the VF requests the length of its longest frame.
    FrameLength,
    /// SET_PROMISC: the VF requests promiscuity.
    Promiscuity,
    /// Mailbox message of an unknown kind.
    Other,
}

impl MailboxMessageKind {
    /// All kinds of mailbox messages, in the order of [`MailboxCounters::messages`].
    pub const ALL: [MailboxMessageKind; 7] = [
        MailboxMessageKind::Reset,
        MailboxMessageKind::Mac,
        MailboxMessageKind::Multicast,
        MailboxMessageKind::Vlan,
        MailboxMessageKind::FrameLength,
        MailboxMessageKind::Promiscuity,
        MailboxMessageKind::Other,
    ];

    /// Returns the kind of a mailbox message by the message's first dword.
    #[must_use]
    pub fn of(first: u32) -> Self {
        match first & ID_MASK {
            id::VF_RESET => MailboxMessageKind::Reset,
            id::SET_MAC_ADDR => MailboxMessageKind::Mac,
            id::SET_MULTICAST => MailboxMessageKind::Multicast,
            id::SET_VLAN => MailboxMessageKind::Vlan,
            id::SET_LPE => MailboxMessageKind::FrameLength,
            id::SET_PROMISC => MailboxMessageKind::Promiscuity,
            _ => MailboxMessageKind::Other,
        }
    }

    /// Returns the name of the kind of message, as tables show it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MailboxMessageKind::Reset => "reset",
            MailboxMessageKind::Mac => "mac",
            MailboxMessageKind::Multicast => "multicast",
            MailboxMessageKind::Vlan => "vlan",
            MailboxMessageKind::FrameLength => "frame-length",
            MailboxMessageKind::Promiscuity => "promiscuity",
            MailboxMessageKind::Other => "other",
        }
    }
}

/// Reason why the PF refused a VF's mailbox message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MailboxRefusal {
    /// The VF has sent another request before VF_RESET.
    #[error("the VF has not sent VF_RESET since its last reset")]
    NotReady,
    /// The VF sent VF_RESET while it has no address.
    #[error("the VF sent VF_RESET but has no MAC address: assign one to the VF")]
    NoAddress,
    /// The administrator has set the VF's address, so the VF may not choose another.
    #[error("the administrator set the VF's MAC address, so the guest cannot change it")]
    AddressFixed,
    /// The requested address is zero or a group address.
    #[error("the requested MAC address is invalid: zero or a group address")]
    AddressInvalid,
    /// Another function has the requested address, and the two functions may not share it. Or the switch withholds it: a VF that
    /// resets, a station beyond the uplink or the host has it.
    #[error(
        "the requested MAC address is in use by another function, by a station at the uplink or by the host; allow it with \
         share_mac (for both, if another function has it), or with trust"
    )]
    AddressInUse,
    /// The VF has as many addresses as its policy allows, or the other entries of the receive-address table are in use or
    /// guaranteed to other VFs.
    #[error(
        "the VF has reached max_mac_filters, or the card's other MAC address filters are in use or guaranteed to other VFs; \
         raise max_mac_filters or min_mac_filters of the VF"
    )]
    NoFilter,
    /// The administrator has put the VF on one VLAN, so it may not join others.
    #[error("the administrator set the VF's port VLAN, so the guest cannot join another VLAN")]
    VlanFixed,
    /// The VF has as many VLANs as its policy allows, or the other entries of the VLAN filter table (VLVF) are in use or
    /// guaranteed to other VFs.
    #[error(
        "the VF has reached max_vlan_filters, or the card's other VLAN filters are in use or guaranteed to other VFs; raise \
         max_vlan_filters or min_vlan_filters of the VF"
    )]
    NoVlanFilter,
    /// The requested VLAN is not in the administrator's list.
    #[error("the requested VLAN is not among the VF's allowed VLANs")]
    VlanNotAllowed,
    /// The requested frame length exceeds the MAC's maximum.
    #[error("the requested frame length exceeds the card's maximum")]
    FrameLength,
    /// The requested frame length exceeds the administrator's limit.
    #[error("the requested frame length exceeds the VF's MTU, which the administrator set")]
    MtuLimit,
    /// The administrator does not allow multicast promiscuity.
    #[error("the VF's policy does not allow reception of every multicast frame")]
    MulticastPromiscuity,
    /// The 82576 has no unicast promiscuity for VFs.
    #[error("the 82576 does not support unicast promiscuous mode for VFs")]
    UnicastPromiscuity,
    /// The kind of the mailbox message is unknown.
    #[error("unknown mailbox message")]
    Unknown,
}

impl MailboxRefusal {
    /// All reasons of refusals, in the order of [`MailboxCounters::refused`].
    pub const ALL: [MailboxRefusal; 14] = [
        MailboxRefusal::NotReady,
        MailboxRefusal::NoAddress,
        MailboxRefusal::AddressFixed,
        MailboxRefusal::AddressInvalid,
        MailboxRefusal::AddressInUse,
        MailboxRefusal::NoFilter,
        MailboxRefusal::VlanFixed,
        MailboxRefusal::NoVlanFilter,
        MailboxRefusal::VlanNotAllowed,
        MailboxRefusal::FrameLength,
        MailboxRefusal::MtuLimit,
        MailboxRefusal::MulticastPromiscuity,
        MailboxRefusal::UnicastPromiscuity,
        MailboxRefusal::Unknown,
    ];

    /// Returns the name that tables give to the reason of a refusal.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MailboxRefusal::NotReady => "not-ready",
            MailboxRefusal::NoAddress => "no-address",
            MailboxRefusal::AddressFixed => "address-fixed",
            MailboxRefusal::AddressInvalid => "address-invalid",
            MailboxRefusal::AddressInUse => "address-in-use",
            MailboxRefusal::NoFilter => "no-filter",
            MailboxRefusal::VlanFixed => "vlan-fixed",
            MailboxRefusal::NoVlanFilter => "no-vlan-filter",
            MailboxRefusal::VlanNotAllowed => "vlan-not-allowed",
            MailboxRefusal::FrameLength => "frame-length",
            MailboxRefusal::MtuLimit => "mtu-limit",
            MailboxRefusal::MulticastPromiscuity => "multicast-promiscuity",
            MailboxRefusal::UnicastPromiscuity => "unicast-promiscuity",
            MailboxRefusal::Unknown => "unknown",
        }
    }
}

/// The PF driver's counters of one VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "Counters")]
pub struct MailboxCounters {
    messages: [u64; MailboxMessageKind::ALL.len()],
    refused: [u64; MailboxRefusal::ALL.len()],
    /// Number of the VF's messages that were granted.
    pub granted: u64,
    /// Number of messages without a reply: refused too soon after the last refusal.
    pub unanswered: u64,
    /// Number of requests dropped because the VF kept the mailbox.
    pub dropped: u64,
    /// Number of the VF's resets (VFLR and CTRL.RST).
    pub resets: u64,
    /// Number of PF_CONTROL messages sent to the VF.
    pub notices: u64,
    /// Number of reports by the card that it blocked frames of the VF for a forged source.
    pub spoofed: u64,
}

impl MailboxCounters {
    /// Returns the number of the VF's mailbox messages of one kind.
    #[must_use]
    pub fn messages(&self, kind: MailboxMessageKind) -> u64 {
        self.messages[kind as usize]
    }

    /// Returns the number of the VF's mailbox messages refused for one reason.
    #[must_use]
    pub fn refused(&self, reason: MailboxRefusal) -> u64 {
        self.refused[reason as usize]
    }

    /// Returns the number of messages of every kind, including those without a reply.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.messages.iter().sum::<u64>() + self.dropped
    }

    /// Returns the values of all counters of a VF's messages, resets and notices.
    pub(super) fn all(&self) -> impl Iterator<Item = u64> {
        let Self { messages, refused, granted, unanswered, dropped, resets, notices, spoofed } = *self;
        let others = [granted, unanswered, dropped, resets, notices, spoofed];
        messages.into_iter().chain(refused).chain(others)
    }

    pub(super) fn count_message(&mut self, kind: MailboxMessageKind) {
        self.messages[kind as usize] += 1;
    }

    pub(super) fn count_outcome(&mut self, outcome: Result<(), MailboxRefusal>) {
        match outcome {
            Ok(()) => self.granted += 1,
            Err(reason) => self.refused[reason as usize] += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MailboxMessageKind, MailboxRefusal};

    #[test]
    fn mailbox_counter_enums_list_every_value_in_index_order() {
        assert!(MailboxMessageKind::ALL.iter().enumerate().all(|(i, kind)| *kind as usize == i));
        assert!(MailboxRefusal::ALL.iter().enumerate().all(|(i, reason)| *reason as usize == i));
    }
}
