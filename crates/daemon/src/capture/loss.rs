//! Texts of drop reasons, which a packet capture adds as comments to dropped frames.

use plane::DeliveryError;
use plane::guard::GuardReason;
use plane::switch::SwitchDropReason;
use plane::watch::FrameDropReason;

/// Returns the text of a frame's drop reason for a capture. The text is shorter than 256 bytes, because the capture's
/// ring stores its length in one byte.
pub(super) fn text(loss: FrameDropReason) -> &'static str {
    match loss {
        FrameDropReason::Dropped(reason) => dropped(reason),
        FrameDropReason::Missed(missed) => self::missed(missed),
        FrameDropReason::Storm => "storm control",
        FrameDropReason::Truncated => "the frame is shorter than its length field says",
        FrameDropReason::Unclaimed => "no function has the destination address",
        FrameDropReason::Uplink => "the uplink has no link, or its queue is full",
    }
}

fn dropped(reason: SwitchDropReason) -> &'static str {
    match reason {
        SwitchDropReason::LinkControl => "guests may not send link-control frames",
        SwitchDropReason::SourceSpoofed => "the source address is not the sender's (spoof check)",
        SwitchDropReason::VlanSpoofed => "the sender is not a member of the frame's VLAN (spoof check)",
        SwitchDropReason::Guarded(reason) => guarded(reason),
        SwitchDropReason::Unwanted => "no function accepts the destination address in the frame's VLAN",
        SwitchDropReason::OnlySender => "only the sender has the destination address",
        SwitchDropReason::Disabled => "the receiving function's driver has disabled reception",
        SwitchDropReason::TooLong => "the frame is longer than the receiving function accepts",
    }
}

fn guarded(reason: GuardReason) -> &'static str {
    match reason {
        GuardReason::DoubleTag => "the frame has a VLAN tag behind the sender's port VLAN (qinq)",
        GuardReason::DhcpServer => "guests may not be DHCP servers (dhcp_guard)",
        GuardReason::Router => "guests may not advertise routers (router_guard)",
        GuardReason::SourceIp => "the source IP address is not the sender's (ips)",
        GuardReason::SourceArp => "the ARP sender is not the sender (ips)",
        GuardReason::SourceNeighbor => "the neighbour discovery message names addresses of others (ips)",
        GuardReason::Protocol => "the sender may send only IP and ARP (ips)",
        GuardReason::Unreadable => "the guards of the sender cannot read the frame's headers",
    }
}

fn missed(missed: DeliveryError) -> &'static str {
    match missed {
        DeliveryError::Disabled => "the driver has not set up the receive queue",
        DeliveryError::Dropped => "no receive descriptors",
        DeliveryError::Waits => "the frame waits for receive descriptors",
        DeliveryError::Full => "no receive descriptors, and the receive buffer is full",
        DeliveryError::Fault => "the guest memory of the receive buffers is not mapped",
    }
}
