//! What the host tells about a port's tap. Left out: the port itself (`status`).

use serde::{Deserialize, Serialize};
use std::fmt;

/// A port's tap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TapStatus {
    /// The interface's name now: another than the configured one if somebody has renamed it.
    pub interface: String,
    /// How it is.
    pub state: TapState,
    /// For how many seconds it has been so.
    pub seconds: u64,
    /// It has a carrier; not known while it is in another network namespace than the host's, or gone.
    pub carrier: Option<bool>,
    /// The largest payload of a frame, in bytes; known when `carrier` is.
    pub mtu: Option<u32>,
    /// How often it was gone, came back and was attached to again.
    pub reattached: u64,
    /// Frames for the tap that were lost, by reason.
    pub drops: TapDrops,
}

/// How a tap is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TapState {
    /// Its administrator has set it up.
    Up,
    /// It is there, and down.
    Down,
    /// It was deleted. When an interface of that name is there again, it is attached to.
    Gone,
}

impl fmt::Display for TapState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Gone => "gone",
        })
    }
}

/// Frames for a tap that were lost, by reason, since the host started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TapDrops {
    /// Longer than the tap's MTU and the headers of Ethernet and a VLAN.
    pub too_long: u64,
    /// The kernel had no room.
    pub no_room: u64,
    /// The tap was down or gone, while the port's link was up all the same.
    pub no_link: u64,
}
