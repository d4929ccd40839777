//! What a capture is told of the plane: each frame at each place, and what became of it there. A capture changes nothing;
//! without one a frame pays one look. Left out: which captures there are, and what for.

use crate::sink::Missed;
use crate::switch::{Origin, Reason};

/// A frame at a place of the plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// A port, or the uplink.
    pub at: Origin,
    /// Which way it went there.
    pub way: Way,
    /// Why it went no further. `None`: it did.
    pub lost: Option<Loss>,
}

/// Which way a frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Onto the plane: a port has sent it, or it came from the uplink.
    In,
    /// From the plane: to a port, or to the uplink.
    Out,
}

/// Why a frame went no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The switch names no port, and not the uplink.
    Dropped(Reason),
    /// The port did not get it.
    Missed(Missed),
    /// Storm control keeps it from the port.
    Storm,
    /// Its length field says more than there is.
    Truncated,
    /// No port and no uplink takes it.
    Unclaimed,
    /// The uplink has dropped it.
    Uplink,
}
