//! What the host tells about a port's uplink. Left out: the port itself (`status`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A port's uplink, if it has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UplinkStatus {
    /// What it is: "none", "tap", "macvtap", "wire", "stream", "interface" or "replay".
    pub kind: String,
    /// What it is called now. A tap or an interface that somebody has renamed has another name than the configured one.
    pub name: String,
    /// How it is.
    pub state: UplinkState,
    /// For how many seconds it has been so.
    pub seconds: u64,
    /// It has a carrier. Not known of wires and streams, nor of an interface that is gone or in another network namespace
    /// than the host's.
    pub carrier: Option<bool>,
    /// The largest payload of a frame, in bytes; known when `carrier` is.
    pub mtu: Option<u32>,
    /// How an interface's frames pass, while it is there; not known of uplinks of other kinds.
    #[serde(default)]
    pub mode: Option<InterfaceMode>,
    /// How often it was gone and came back.
    pub reattached: u64,
    /// Frames that came by it.
    #[serde(default)]
    pub rx: UplinkTraffic,
    /// Frames that it has taken.
    #[serde(default)]
    pub tx: UplinkTraffic,
    /// Frames that were lost on it, by reason.
    pub drops: UplinkDrops,
}

/// How the frames of an interface pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InterfaceMode {
    /// By a packet socket.
    PacketSocket,
    /// By AF_XDP: the driver moves them to and from the host's memory.
    NativeWithZerocopy,
    /// By AF_XDP: the driver runs the program, and the kernel copies.
    Native,
    /// By AF_XDP: the kernel runs the program and copies.
    Generic,
}

impl fmt::Display for InterfaceMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PacketSocket => "packet socket",
            Self::NativeWithZerocopy => "AF_XDP native-with-zerocopy",
            Self::Native => "AF_XDP native",
            Self::Generic => "AF_XDP generic",
        })
    }
}

/// Frames of one direction, since the port has the uplink; a hand-over does not restart them. A packet that passes uncut counts as the frames that it makes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UplinkTraffic {
    /// Frames.
    pub packets: u64,
    /// Bytes, frame check sequence excluded.
    pub bytes: u64,
    /// Multicast frames among them, broadcasts excluded; counted for received frames only.
    #[serde(default)]
    pub multicast: u64,
}

/// How an uplink is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UplinkState {
    /// Frames pass: the interface is set up; the other port has its end of the wire; the other process is connected.
    Up,
    /// It is there, and its administrator has set it down.
    Down,
    /// It is not there: the interface was deleted, the other port has no end of the wire, no process is connected. When
    /// it is there again, it is attached to.
    Gone,
}

impl fmt::Display for UplinkState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Gone => "gone",
        })
    }
}

/// Frames that were lost on an uplink, by reason, since the port has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UplinkDrops {
    /// To be sent, and longer than the interface's MTU and the headers of Ethernet and a VLAN.
    pub too_long: u64,
    /// To be sent, and there was no room: in the kernel, in the wire, or because the other process does not read.
    pub no_room: u64,
    /// To be sent while the uplink was down or gone, though the port's link was up.
    pub no_link: u64,
    /// Received, but not a valid frame: longer than any that the card takes, shorter than a header, or cut short by the end of the
    /// stream.
    #[serde(default)]
    pub malformed: u64,
    /// Received by the kernel for this port, which did not take it in time.
    #[serde(default)]
    pub missed: u64,
    /// Lost because the configuration wants frames to be lost, or more of them delayed than the line holds.
    #[serde(default)]
    pub impaired: u64,
    /// Not lost, but not in the recording either: the writer was too slow, or could not write.
    #[serde(default)]
    pub unrecorded: u64,
}
