//! Status of a port's uplink, part of the port's (`status`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Status of a port's uplink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UplinkStatus {
    /// Kind: "none", "tap", "macvtap", "wire", "stream", "interface" or "replay".
    pub kind: String,
    /// Present name. It differs from the configured one after a tap or an interface was renamed.
    pub name: String,
    /// State.
    pub state: UplinkState,
    /// Seconds since the last change of the state.
    pub seconds: u64,
    /// Carrier of the interface. Unknown for wires and streams, and for an interface that is gone or in another network
    /// namespace than the host's.
    pub carrier: Option<bool>,
    /// Largest payload of a frame, bytes; known together with `carrier`.
    pub mtu: Option<u32>,
    /// Mode of an existing interface; null for uplinks of other kinds.
    #[serde(default)]
    pub mode: Option<InterfaceMode>,
    /// Times that the uplink was gone and came back.
    pub reattached: u64,
    /// Frames received from the uplink.
    #[serde(default)]
    pub rx: UplinkTraffic,
    /// Frames sent to the uplink.
    #[serde(default)]
    pub tx: UplinkTraffic,
    /// Frames dropped at the uplink, by reason.
    pub drops: UplinkDrops,
}

/// Mode in which an interface carries frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InterfaceMode {
    /// Packet socket.
    PacketSocket,
    /// AF_XDP; the driver moves frames to and from the host's memory without a copy.
    NativeWithZerocopy,
    /// AF_XDP; the driver runs the program, and the kernel copies frames.
    Native,
    /// AF_XDP; the kernel runs the program and copies frames.
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

/// Frames of one direction, since the port has the uplink. A hand-over keeps the counts. A packet that passes before
/// segmentation counts as the frames that it makes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UplinkTraffic {
    /// Frames.
    pub packets: u64,
    /// Bytes, frame check sequence excluded.
    pub bytes: u64,
    /// Multicast frames among them, without broadcasts; only received frames are counted.
    #[serde(default)]
    pub multicast: u64,
}

/// State of an uplink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UplinkState {
    /// Frames pass: the interface is set up, both ends of the wire exist, or the other process is connected.
    Up,
    /// The interface exists, but the administrator has set it down.
    Down,
    /// The uplink is missing: the interface was deleted, no port has the wire's other end, or no process is connected.
    /// The port attaches to it as soon as it exists again.
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

/// Frames dropped at an uplink, by reason, since the port has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UplinkDrops {
    /// Sent frames longer than the interface's MTU with the headers of Ethernet and a VLAN.
    pub too_long: u64,
    /// Sent frames without room in the kernel or the wire, or for a process that does not read.
    pub no_room: u64,
    /// Sent frames while the uplink was down or gone, though the port's link was up.
    pub no_link: u64,
    /// Invalid received frames: longer than the card accepts, shorter than a header, or cut by the end of the stream.
    #[serde(default)]
    pub malformed: u64,
    /// Frames that the kernel dropped because the port was late to read them.
    #[serde(default)]
    pub missed: u64,
    /// Frames that the configured impairment lost, or that exceeded the room for delayed frames.
    #[serde(default)]
    pub impaired: u64,
    /// Delivered frames that are missing in the recording, because the writer was too slow or failed.
    #[serde(default)]
    pub unrecorded: u64,
}
