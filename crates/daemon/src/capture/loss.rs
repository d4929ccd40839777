//! Texts of drop reasons, which a packet capture adds as comments to dropped frames.

use plane::DeliveryError;
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
        SwitchDropReason::Unwanted => "no function accepts the destination address in the frame's VLAN",
        SwitchDropReason::OnlySender => "only the sender has the destination address",
        SwitchDropReason::Disabled => "the receiving function's driver has disabled reception",
        SwitchDropReason::TooLong => "the frame is longer than the receiving function accepts",
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
