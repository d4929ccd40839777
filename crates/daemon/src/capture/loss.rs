//! Texts of drop reasons in packet captures.

use plane::Missed;
use plane::switch::Reason;
use plane::watch::Loss;

/// Returns the text of a drop reason, shorter than 256 bytes because its length takes one byte in the ring.
pub(super) fn text(loss: Loss) -> &'static str {
    match loss {
        Loss::Dropped(reason) => dropped(reason),
        Loss::Missed(missed) => self::missed(missed),
        Loss::Storm => "storm control",
        Loss::Truncated => "the frame is shorter than its length field says",
        Loss::Unclaimed => "no function has the destination address",
        Loss::Uplink => "the uplink has no link, or its queue is full",
    }
}

fn dropped(reason: Reason) -> &'static str {
    match reason {
        Reason::LinkControl => "guests may not send link-control frames",
        Reason::SourceSpoofed => "the source address is not the sender's (spoof check)",
        Reason::VlanSpoofed => "the sender is not a member of the frame's VLAN (spoof check)",
        Reason::Unwanted => "no function accepts the destination address in the frame's VLAN",
        Reason::OnlySender => "only the sender has the destination address",
        Reason::Disabled => "the receiving function's driver has disabled reception",
        Reason::TooLong => "the frame is longer than the receiving function accepts",
    }
}

fn missed(missed: Missed) -> &'static str {
    match missed {
        Missed::Disabled => "the driver has not set up the receive queue",
        Missed::Dropped => "no receive descriptors",
        Missed::Waits => "the frame waits for receive descriptors",
        Missed::Full => "no receive descriptors, and the receive buffer is full",
        Missed::Fault => "the guest memory of the receive buffers is not mapped",
    }
}
