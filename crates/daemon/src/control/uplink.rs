//! Status of a port's uplink, as a part of the port's status (`status`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Status of a port's uplink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UplinkStatus {
    /// Kind of the uplink: "tap", "macvtap", "wire", "stream", "interface" or "replay".
    pub kind: String,
    /// Present name of the uplink's interface or wire, or path of its socket or recording. An interface that was
    /// renamed has another name here than in the configuration.
    pub name: String,
    /// State of the uplink: "up", "down" or "gone".
    pub state: UplinkState,
    /// Seconds since the last change of the state.
    pub seconds: u64,
    /// True if the interface has a carrier. Null for uplinks that are no interface, and for an interface that is gone
    /// or in another network namespace than the host's.
    pub carrier: Option<bool>,
    /// MTU of the interface, bytes; null if `carrier` is null.
    pub mtu: Option<u32>,
    /// Mode in which an uplink of the kind "interface" transfers frames; null for uplinks of other kinds.
    #[serde(default)]
    pub mode: Option<InterfaceMode>,
    /// Number of times that the uplink was gone and came back.
    pub reattached: u64,
    /// Numbers of frames that the port has received from the uplink.
    #[serde(default)]
    pub rx: UplinkTraffic,
    /// Numbers of frames that the port has sent to the uplink.
    #[serde(default)]
    pub tx: UplinkTraffic,
    /// Numbers of frames dropped at the uplink, by reason.
    pub drops: UplinkDrops,
}

/// Mode in which frames pass between the port and an existing interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InterfaceMode {
    /// The host uses a packet socket, without AF_XDP.
    PacketSocket,
    /// The host uses AF_XDP, and the interface's driver moves frames to and from the host's memory without a copy.
    NativeWithZerocopy,
    /// The host uses AF_XDP; the interface's driver runs the XDP program, and the kernel copies frames.
    Native,
    /// The host uses AF_XDP; the kernel runs the XDP program and copies frames.
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

/// Numbers of frames in one direction, since the port has the uplink. A hand-over keeps the counts. A packet that
/// passes before segmentation counts as the frames that it makes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UplinkTraffic {
    /// Number of frames from the uplink (in `rx`) or to the uplink (in `tx`).
    pub packets: u64,
    /// Bytes of these frames, frame check sequence excluded.
    pub bytes: u64,
    /// Number of multicast frames among these frames, without broadcasts; always 0 for sent frames.
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

/// Numbers of frames dropped at an uplink, by reason, since the port has the uplink.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UplinkDrops {
    /// Sent frames that are longer than the interface's MTU with an Ethernet header and a VLAN tag.
    pub too_long: u64,
    /// Sent frames for which the kernel, the wire or the stream had no room. A process that does not read its stream
    /// leaves no room.
    pub no_room: u64,
    /// Sent frames while the uplink was down or gone, though the port's link was up.
    pub no_link: u64,
    /// Invalid received frames: longer than the card accepts, shorter than a header, or cut by the end of the stream.
    #[serde(default)]
    pub malformed: u64,
    /// Received frames that the kernel dropped, because the port did not read them in time.
    #[serde(default)]
    pub missed: u64,
    /// Frames that the configured impairment dropped by chance, or for lack of room for delayed frames.
    #[serde(default)]
    pub impaired: u64,
    /// Delivered frames that are missing in the uplink's recording, because its writer was too slow or failed.
    #[serde(default)]
    pub unrecorded: u64,
}
