//! Status of ports and VFs: the data that `softiov vf list` and `vf show` print, and that `--json` prints unchanged.

use super::uplink::UplinkStatus;
use crate::config::file::CardFamily;
pub use crate::settings::{LinkState, SettingOrigin};
use crate::settings::{PortSettings, VfSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::PathBuf;

/// Status of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PortStatus {
    /// Name.
    pub name: String,
    /// Card family of the port.
    #[serde(default)]
    pub family: CardFamily,
    /// Ethernet address of the port.
    pub mac: String,
    /// "none", or kind and name as in "tap:NAME", followed by "(down)" or "(gone)" if the uplink is in that state.
    pub uplink: String,
    /// Status of the uplink, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uplink_status: Option<UplinkStatus>,
    /// Processors that the port's thread is restricted to; empty if it is not restricted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
    /// Link is up.
    pub link: bool,
    /// PF, if a guest drives it; there are no VFs then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pf: Option<FunctionStatus>,
    /// Settings, unless a guest drives the PF.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<PortSettings>,
    /// Sources of the settings that do not have their default.
    #[serde(default)]
    pub origins: BTreeMap<String, SettingOrigin>,
    /// Storms since the host started.
    #[serde(default)]
    pub storms: u64,
    /// Delays of the PF driver's answers, unless a guest drives the PF.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<PfAnswerStatus>,
    /// VFs.
    pub vfs: Vec<VfStatus>,
}

/// Requests of a port's VFs to the PF driver, and the delays of its answers, since the host started. A delay is in
/// nanoseconds, from the VF's mailbox write to the end of the visit that answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PfAnswerStatus {
    /// Answered requests.
    pub requests: u64,
    /// Visits of the PF driver that answered at least one request.
    pub visits: u64,
    /// Largest number of requests that one visit of the PF driver answered.
    pub most_a_visit: u8,
    /// Median of the delays, to two digits.
    pub p50_ns: u64,
    /// 99th percentile of the delays, to two digits.
    pub p99_ns: u64,
    /// Longest delay.
    pub max_ns: u64,
    /// Sum of all delays.
    pub sum_ns: u64,
    /// Cumulative numbers of requests for bounds from 1 us to 10 s.
    pub at_most: Vec<AtMost>,
}

/// Number of requests that waited no longer than a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AtMost {
    /// Bound, nanoseconds.
    pub ns: u64,
    /// Requests.
    pub requests: u64,
}

/// Status of a function that a guest may have: a VF, or a PF that a guest drives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionStatus {
    /// Path of the vfio-user socket.
    pub socket: PathBuf,
    /// Connected VMM.
    pub peer: Option<ConnectedVmm>,
    /// Obstacle that keeps the function from working, and the remedy.
    pub hint: Option<String>,
    /// Frames received by the guest.
    pub rx: TrafficCounts,
    /// Frames sent by the guest.
    pub tx: TrafficCounts,
    /// Dropped frames, by reason.
    pub drops: DropCounts,
    /// Frames that wait for receive descriptors of the guest.
    #[serde(default)]
    pub waiting: PacketBufferStatus,
    /// Messages and interrupts between the card and the VMM.
    pub interventions: VmmInterventions,
}

/// Status of a VF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VfStatus {
    /// Name.
    pub name: String,
    /// Index within its port.
    pub index: u8,
    /// Routing id, as a PCI address.
    pub rid: String,
    /// Present Ethernet address.
    pub mac: String,
    /// VLANs of which the VF is a member; 0 means untagged.
    pub vlans: Vec<u16>,
    /// The guest sees the link up.
    pub link: bool,
    /// A driver has enabled the VF.
    pub active: bool,
    /// Filters by which its guest receives.
    #[serde(default)]
    pub filters: VfFilterStatus,
    /// Settings of the VF.
    pub settings: VfSettings,
    /// Sources of the settings that do not have their default.
    #[serde(default)]
    pub origins: BTreeMap<String, SettingOrigin>,
    /// Conduct.
    pub conduct: VfConductStatus,
    /// Status that every function has.
    #[serde(flatten)]
    pub function: FunctionStatus,
    /// Requests of the guest's driver to the PF.
    pub mailbox: VfMailboxStatus,
}

/// Filters of a VF: multicast hashes of an 82576 VF, addresses of every kind of an AVF VF.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VfFilterStatus {
    /// Filters in use.
    pub used: u16,
    /// Most filters that the VF may have.
    pub most: u16,
    /// The guest has requested more filters than fit: frames of the groups beyond them do not arrive.
    pub cut: bool,
}

/// Gives access to the function's fields: `vf.rx` is `vf.function.rx`, as in the JSON.
impl Deref for VfStatus {
    type Target = FunctionStatus;

    fn deref(&self) -> &FunctionStatus {
        &self.function
    }
}

/// Requests of a VF to the PF, since the host started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
// Saved states keep the names of `#[serde(rename)]`; the schema of the API has those of `#[schemars(rename)]`.
#[serde(rename = "Mailbox")]
#[schemars(rename = "VfMailboxStatus")]
pub struct VfMailboxStatus {
    /// Requests by subject; subjects without requests are left out.
    pub requests: BTreeMap<String, u64>,
    /// Requests that were granted.
    pub granted: u64,
    /// Refused requests by reason; reasons without requests are left out.
    pub refused: BTreeMap<String, u64>,
    /// Requests without an answer: the guest asks too often, or does not release the mailbox.
    pub unanswered: u64,
    /// Resets of the function.
    pub resets: u64,
    /// Notices of a changed link or of a reset.
    pub notices: u64,
}

/// Returns the setting by which the administrator can allow requests that are refused for a reason of
/// [`VfMailboxStatus::refused`].
#[must_use]
pub fn remedy(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "address-in-use" => "share_mac on for both VFs, or trust on",
        "address-fixed" | "promiscuity" => "trust on",
        "multicast-promiscuity" => "allmulti on",
        "mtu-limit" => "a larger max_mtu",
        "vlan-fixed" => "vlan 0",
        "vlan-not-allowed" => "the VLAN in vlans",
        _ => return None,
    })
}

/// Offences of a VF, and their consequences.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VfConductStatus {
    /// Reason of the quarantine: an offence, or the administrator.
    pub quarantine: Option<String>,
    /// The VF is throttled.
    pub throttled: bool,
    /// Seconds above the threshold, by offence; offences without such seconds are left out.
    pub offences: BTreeMap<String, u64>,
}

/// Connected VMM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectedVmm {
    /// Process id.
    pub pid: i32,
    /// User id.
    pub uid: u32,
    /// Windows of guest memory that the VMM has announced.
    pub windows: usize,
    /// Windows among these that the card can reach.
    pub shareable: usize,
    /// Bytes of the reachable windows.
    pub shareable_bytes: u64,
}

/// Frames of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename = "Traffic")]
#[schemars(rename = "TrafficCounts")]
pub struct TrafficCounts {
    /// Frames.
    pub packets: u64,
    /// Bytes, frame check sequence excluded.
    pub bytes: u64,
    /// Multicast frames among them; only received frames are counted.
    pub multicast: u64,
    /// Broadcast frames among them; only received frames are counted.
    pub broadcast: u64,
    /// Dropped frames.
    pub dropped: u64,
}

/// Present contents of a receive packet buffer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PacketBufferStatus {
    /// Frames in the buffer.
    pub frames: u64,
    /// Bytes of these frames.
    pub bytes: u64,
}

/// Dropped frames, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename = "Drops")]
#[schemars(rename = "DropCounts")]
pub struct DropCounts {
    /// The guest had posted too few receive descriptors.
    pub rx_no_descriptors: u64,
    /// The guest's receive queue was not set up.
    pub rx_disabled: u64,
    /// Invalid transmit requests.
    pub tx_invalid: u64,
    /// Sent frames that policy refused: spoofed, of a foreign VLAN, or link control.
    pub tx_blocked: u64,
    /// Refused frames with a source address or VLAN that is not the VF's.
    pub tx_spoofed: u64,
    /// Refused link-control frames: pause, spanning tree and the like.
    pub tx_link_control: u64,
    /// Broadcasts and multicasts that storm control dropped before the guest.
    pub rx_storm: u64,
    /// Sent frames that no function and no uplink accepted.
    pub tx_unclaimed: u64,
    /// Frames in memory that the VMM has not shared.
    pub dma_faults: u64,
}

/// Messages and interrupts between card and VMM for this VF, since the host started. Each may cost the guest an exit,
/// and SR-IOV exists to avoid them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename = "Interventions")]
#[schemars(rename = "VmmInterventions")]
pub struct VmmInterventions {
    /// Register reads: the guest waits for each.
    pub reads: u64,
    /// Register writes that the guest does not wait for.
    pub posted_writes: u64,
    /// Register writes that the guest waits for.
    pub synchronous_writes: u64,
    /// Interrupts.
    pub interrupts: u64,
}
