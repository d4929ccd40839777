//! Reports to captures each frame at each port and at the uplink, with the frame's outcome there. A capture changes
//! nothing on the plane. Without a capture a frame costs one check ([`crate::UplinkWire::is_watched`]).

use crate::sink::DeliveryError;
use crate::switch::{FrameOrigin, SwitchDropReason};

/// Observation of a frame at a port or at the uplink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameObservation {
    /// Port or uplink where the capture saw the frame.
    pub at: FrameOrigin,
    /// Direction of the observed frame: into the plane or out of it.
    pub way: FrameDirection,
    /// Reason for the frame's drop; `None` if the frame was forwarded.
    pub lost: Option<FrameDropReason>,
}

/// Direction of a frame, as the plane sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameDirection {
    /// The frame enters the plane: a port sent it, or it came from the uplink.
    In,
    /// The frame leaves the plane: to a port, or to the uplink.
    Out,
}

/// Reason why a captured frame was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameDropReason {
    /// Drop reason: the switch dropped the frame.
    Dropped(SwitchDropReason),
    /// Drop reason: the port did not receive the frame.
    Missed(DeliveryError),
    /// Drop reason: storm control keeps the frame from the port.
    Storm,
    /// Drop reason: the frame's length field exceeds the frame.
    Truncated,
    /// Drop reason: no port and no uplink receives the frame.
    Unclaimed,
    /// Drop reason: the uplink dropped the frame.
    Uplink,
}
