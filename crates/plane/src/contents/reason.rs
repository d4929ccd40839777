//! Reasons of the guards to drop a frame, and their counters.

/// Reason of a guard to drop a frame of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardReason {
    /// The frame has a VLAN tag of its own behind the port VLAN.
    DoubleTag,
    /// The frame is of a DHCP server.
    DhcpServer,
    /// The frame is a router advertisement or a redirect.
    Router,
    /// The packet's source address is not the port's.
    SourceIp,
    /// The sender of an ARP or RARP packet is not the port.
    SourceArp,
    /// A neighbour discovery message names an address that is not the port's.
    SourceNeighbor,
    /// The frame has neither IP nor ARP, and the source guard is on.
    Protocol,
    /// The frame's headers end early or are too many.
    Unreadable,
}

impl GuardReason {
    /// All reasons of the guards, in the order of their counters.
    pub const ALL: [Self; 8] = [
        Self::DoubleTag,
        Self::DhcpServer,
        Self::Router,
        Self::SourceIp,
        Self::SourceArp,
        Self::SourceNeighbor,
        Self::Protocol,
        Self::Unreadable,
    ];

    /// Returns the name of the reason in metrics and captures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DoubleTag => "double_tag",
            Self::DhcpServer => "dhcp_server",
            Self::Router => "router",
            Self::SourceIp => "source_ip",
            Self::SourceArp => "source_arp",
            Self::SourceNeighbor => "source_neighbor",
            Self::Protocol => "protocol",
            Self::Unreadable => "unreadable",
        }
    }
}

/// Numbers of a port's frames that the guards have dropped, in the order of [`GuardReason::ALL`].
pub type GuardCounts = [u64; GuardReason::ALL.len()];
