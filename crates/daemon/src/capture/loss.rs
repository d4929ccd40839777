//! Texts of drop reasons in captures.

use plane::Missed;
use plane::switch::Reason;
use plane::watch::Loss;

/// Returns the text of a drop reason, shorter than 256 bytes because its length takes one byte in the ring.
pub(super) fn text(loss: Loss) -> &'static str {
    match loss {
        Loss::Dropped(reason) => dropped(reason),
        Loss::Missed(missed) => self::missed(missed),
        Loss::Storm => "storm control",
        Loss::Truncated => "shorter than its length field says",
        Loss::Unclaimed => "no function has this address",
        Loss::Uplink => "the uplink has no link, or no room",
    }
}

fn dropped(reason: Reason) -> &'static str {
    match reason {
        Reason::LinkControl => "a guest may not send link-control frames",
        Reason::SourceSpoofed => "the source address is not the sender's (spoof check)",
        Reason::VlanSpoofed => "the sender is not in this VLAN (spoof check)",
        Reason::Unwanted => "no function takes this address in this VLAN",
        Reason::OnlySender => "only the sender itself has this address",
        Reason::Disabled => "the receiving function has reception switched off",
        Reason::TooLong => "longer than the receiving function accepts",
    }
}

fn missed(missed: Missed) -> &'static str {
    match missed {
        Missed::Disabled => "the driver has not set up the receive queue",
        Missed::Dropped => "no receive descriptors",
        Missed::Waits => "it waits for receive descriptors",
        Missed::Full => "no receive descriptors, and no room to wait",
        Missed::Fault => "the memory of the receive buffers is not there",
    }
}
