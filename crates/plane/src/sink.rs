//! The receiving side of a family's ports, and the fate of a frame there. Left out: who gets a frame (`switch`).

use crate::Port;
use crate::frame::Frame;
use crate::switch::Reason;

/// Properties of a frame for the port that receives it.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// The frame comes from the uplink.
    pub from_uplink: bool,
    /// No other port gets it.
    pub alone: bool,
    /// No exact filter knows its destination.
    pub inexact: bool,
    /// The port wants frame and tag apart.
    pub strips: bool,
}

/// Why a port did not get a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// The port is not set up.
    Disabled,
    /// The port has no room for the whole frame, and drops such frames.
    Dropped,
    /// The port has no room for the whole frame. The frame should have waited for room, and its waiting place was full.
    Full,
    /// The port has no room for the whole frame yet, and keeps the frame until it has. Then it calls [`crate::Plane::came_late`].
    Waits,
    /// Its memory is not there.
    Fault,
}

/// The side of a family's ports that takes frames.
pub trait Sink {
    /// Results of a look at a frame, for all ports that get it.
    type Findings: Default;

    /// Puts a frame into a port's own buffers; answers its bytes there, check sequence excluded.
    ///
    /// # Errors
    /// [`Missed`]: the port's owner sees nothing of the frame.
    fn deliver(
        &mut self,
        port: Port,
        frame: &mut Frame<'_>,
        about: About,
        findings: &mut Self::Findings,
    ) -> Result<usize, Missed>;
}

/// Fate of a frame at a port, from bad to good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// The frame should have waited for room, and its waiting place was full.
    Missed,
    /// The port dropped the frame.
    Dropped,
    /// The port has it, or has a place where it waits.
    Reached,
}

/// Result of forwarding, for the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Forwarded {
    /// The frame was one that the sender may not send.
    pub refused: Option<Reason>,
    /// The frame has left by the uplink.
    pub sent: bool,
}
