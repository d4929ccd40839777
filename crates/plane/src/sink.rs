//! Receiving side of a device's ports: the trait by which the plane delivers a frame, and the outcome of the delivery.
//! `switch` chooses the ports.

use crate::PortIndex;
use crate::frame::Frame;
use crate::switch::SwitchDropReason;
use crate::uplink::UnsegmentedPacketLayout;

/// Properties of a frame for the port that receives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryFlags {
    /// True if the frame came from the uplink.
    pub from_uplink: bool,
    /// True if no other port gets the frame.
    pub alone: bool,
    /// True if no exact address filter has the frame's destination.
    pub inexact: bool,
    /// True if the port gets the frame without its VLAN tag, and the tag beside the frame.
    pub strips: bool,
}

impl DeliveryFlags {
    /// Returns true if the frame is another port's broadcast or multicast. Such a frame is dropped if few of the receiver's
    /// buffers are left, so that a flood of them leaves room for frames to one station.
    #[must_use]
    #[inline]
    pub fn leave_room(&self, frame: &Frame<'_>) -> bool {
        !self.from_uplink && frame.ends().is_to_group()
    }
}

/// Reason why a frame did not reach a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryError {
    /// The port's driver has not set up the receive queue.
    Disabled,
    /// The port has too few receive buffers for the whole frame, and drops such frames.
    Dropped,
    /// The port has too few receive buffers for the whole frame, and its buffer for waiting frames is full.
    Full,
    /// The frame is on its way: it waits until the port has enough receive buffers, is in a trunk
    /// ([`crate::FrameTrunk`]), or in a packet that the device joins. Its arrival is counted later ([`crate::ForwardingPlane::came_late`]).
    Waits,
    /// The bus refused access to the port's memory.
    Fault,
}

/// Receiving side of a device's ports, to which the plane delivers frames.
pub trait FrameSink {
    /// Results of parsing a frame, shared by all ports of the device that get the frame.
    type Findings: Default;

    /// True if ports of this device may take TCP packets that are not segmented.
    const RECEIVES_UNCUT: bool = false;

    /// Returns true if a port takes TCP packets that are not segmented: over IPv4 if `ipv4` is true, over IPv6
    /// otherwise.
    fn takes_uncut(&self, port: PortIndex, ipv4: bool) -> bool {
        let _ = (port, ipv4);
        false
    }

    /// Puts an unsegmented packet into the buffers of a port that takes such packets. Its headers are complete for Linux: the
    /// length of the whole packet, and the sum of the pseudo header in the checksum field.
    ///
    /// # Errors
    /// [`DeliveryError`]: the port's driver does not get the packet.
    fn deliver_uncut(
        &mut self,
        port: PortIndex,
        packet: &mut Frame<'_>,
        uncut: &UnsegmentedPacketLayout,
        about: DeliveryFlags,
    ) -> Result<(), DeliveryError> {
        let _ = (port, packet, uncut, about);
        Err(DeliveryError::Disabled)
    }

    /// Puts a frame into a port's own buffers. Returns the number of bytes put there, frame check sequence excluded.
    ///
    /// # Errors
    /// [`DeliveryError`]: the port's driver does not get the frame.
    fn deliver(
        &mut self,
        port: PortIndex,
        frame: &mut Frame<'_>,
        about: DeliveryFlags,
        findings: &mut Self::Findings,
    ) -> Result<usize, DeliveryError>;
}

/// Outcome of a frame's delivery to a port, in ascending order of success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeliveryOutcome {
    /// The frame is lost: the port's buffer for waiting frames was full.
    Missed,
    /// The port dropped the frame, because it had too few receive buffers.
    Dropped,
    /// The port has received the frame, or the frame waits there for receive buffers.
    Reached,
}

/// Result of forwarding a frame, for its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ForwardResult {
    /// Violation of the sender for which the frame was dropped.
    pub refused: Option<SwitchDropReason>,
    /// True if the frame left by the uplink.
    pub sent: bool,
}
