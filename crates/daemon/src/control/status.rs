//! Status of ports and VFs: the data that `softiov vf list` and `vf show` print, and that `--json` prints unchanged.

mod device;

use super::uplink::UplinkStatus;
use crate::config::file::{CardFamily, SocketRole};
pub use crate::settings::{LinkState, SettingOrigin};
use crate::settings::{PortSettings, VfSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::PathBuf;

pub use device::VirtioDeviceCounts;

/// Status of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PortStatus {
    /// Name of the port, such as pf0.
    pub name: String,
    /// Card family of the port: "82576", "avf" or "virtio". VFs may be of another family.
    #[serde(default)]
    pub family: CardFamily,
    /// Ethernet address of the port, six hexadecimal bytes with colons.
    pub mac: String,
    /// Uplink of the port: "none", or its kind and name as in "tap:NAME", followed by "(down)" or "(gone)" in that
    /// state.
    pub uplink: String,
    /// Status of the uplink, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uplink_status: Option<UplinkStatus>,
    /// Numbers of the processors to which the port's thread is restricted; empty if the thread may use any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
    /// Threads that share the port's VFs, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerStatus>,
    /// True if the port's link is up.
    pub link: bool,
    /// Status of the PF, if a guest drives the PF; the port has no VFs then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pf: Option<FunctionStatus>,
    /// Settings of the port in force, unless a guest drives the PF.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<PortSettings>,
    /// Source of each setting that the configuration file or a command has set, by the setting's name.
    #[serde(default)]
    pub origins: BTreeMap<String, SettingOrigin>,
    /// Number of broadcast and multicast storms that storm control has detected since the host started.
    #[serde(default)]
    pub storms: u64,
    /// Delays of the PF driver's answers to mailbox requests of VFs, unless a guest drives the PF.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<PfAnswerStatus>,
    /// Status of each VF that the port offers, by index.
    pub vfs: Vec<VfStatus>,
}

impl PortStatus {
    /// Returns the card family of one of the port's VFs.
    #[must_use]
    pub fn family_of(&self, vf: &VfStatus) -> CardFamily {
        vf.family.unwrap_or(self.family)
    }
}

/// Status of a thread that shares the VFs of its port with other threads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerStatus {
    /// Share of the last 10 ms for which the worker was busy, in permille.
    pub busy_permille: u32,
    /// Time for which the worker was busy, nanoseconds, since the host's process started.
    #[serde(default)]
    pub busy_ns: u64,
    /// Number of frames that VFs have sent or received on the worker, since the host's process started.
    #[serde(default)]
    pub frames: u64,
    /// Indexes of the VFs that the worker serves.
    pub vfs: Vec<u8>,
}

/// Requests of a port's VFs to the PF driver, and the delays of its answers, since the host started. A delay lasts from
/// the VF's mailbox write to the end of the PF driver's visit that answers the request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PfAnswerStatus {
    /// Number of mailbox requests that the PF driver has answered.
    pub requests: u64,
    /// Number of visits of the PF driver that answered at least one request.
    pub visits: u64,
    /// Largest number of requests that one visit of the PF driver answered.
    pub most_a_visit: u8,
    /// Median of the answer delays, nanoseconds, rounded up to two digits.
    pub p50_ns: u64,
    /// 99th percentile of the answer delays, nanoseconds, rounded up to two digits.
    pub p99_ns: u64,
    /// Longest answer delay, nanoseconds.
    pub max_ns: u64,
    /// Sum of all answer delays, nanoseconds.
    pub sum_ns: u64,
    /// Numbers of requests answered within each of 22 bounds, from 1 us to 10 s; each number includes those of shorter
    /// bounds.
    pub at_most: Vec<AtMost>,
}

/// Number of requests that the PF driver has answered within a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AtMost {
    /// Longest counted answer delay, nanoseconds.
    pub ns: u64,
    /// Number of requests that were answered within this delay.
    pub requests: u64,
}

/// Status of a function that a guest may have: a VF, or a PF that a guest drives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionStatus {
    /// Path of the function's vfio-user socket, or of a virtio VF's vhost-user socket.
    pub socket: PathBuf,
    /// Role of the host at the socket: "server" if the host listens, "client" if the VMM does.
    #[serde(default)]
    pub socket_mode: SocketRole,
    /// Reason why the host is not connected to the socket on which the VMM listens; null if it is, or if the host listens.
    #[serde(default)]
    pub unconnected: Option<String>,
    /// VMM that is connected to the function's socket; null if there is none.
    pub peer: Option<ConnectedVmm>,
    /// Problem that keeps the function from working, and the remedy; null if none is known.
    pub hint: Option<String>,
    /// Clients that the function has refused, because it had another client.
    #[serde(default)]
    pub refusals: ClientRefusals,
    /// Numbers of frames that the guest has received.
    pub rx: TrafficCounts,
    /// Numbers of frames that the guest has sent.
    pub tx: TrafficCounts,
    /// Dropped frames, by reason.
    pub drops: DropCounts,
    /// Frames that wait for receive descriptors of the guest.
    #[serde(default)]
    pub waiting: PacketBufferStatus,
    /// Numbers of messages and interrupts between the card and the VMM.
    pub interventions: VmmInterventions,
}

/// Status of a VF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VfStatus {
    /// Name of the VF, such as pf0vf3.
    pub name: String,
    /// Index of the VF within its port, from 0.
    pub index: u8,
    /// Card family of the VF: "82576", "avf" or "virtio". A host of an earlier version does not report
    /// it, because each of its VFs has the family of the port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<CardFamily>,
    /// Routing id of the VF as a PCI address without a domain, in hexadecimal: bus:device.function; empty for a virtio
    /// VF, whose PCI function is its VMM's.
    pub rid: String,
    /// Ethernet address that the VF uses now, six hexadecimal bytes with colons.
    pub mac: String,
    /// Ids of the VLANs of which the VF is a member; 0 stands for untagged frames.
    pub vlans: Vec<u16>,
    /// True if the guest sees the VF's link up; for a virtio VF, whose guest sees the link up while its client is
    /// connected, true if the VF may move frames.
    pub link: bool,
    /// True if the guest's driver has enabled the VF.
    pub active: bool,
    /// Address filters by which the guest receives frames.
    #[serde(default)]
    pub filters: VfFilterStatus,
    /// Use of the VF's quotas of filters; missing for a virtio VF, which requests none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quotas: Option<VfQuotaStatus>,
    /// Settings of the VF in force.
    pub settings: VfSettings,
    /// Source of each setting that the configuration file or a command has set, by the setting's name.
    #[serde(default)]
    pub origins: BTreeMap<String, SettingOrigin>,
    /// Offences of the VF, and whether it is throttled or quarantined.
    pub conduct: VfConductStatus,
    /// Status that a VF has in common with a PF: socket, client, traffic and drops.
    #[serde(flatten)]
    pub function: FunctionStatus,
    /// Numbers of requests of the guest's driver to the PF, by subject and outcome.
    pub mailbox: VfMailboxStatus,
    /// Addresses that the plane has refused to the guest.
    #[serde(default)]
    pub claims: RefusedClaims,
    /// Frames that guards of the VF dropped (`ips`, `dhcp_guard`, `router_guard`, `qinq`), by reason, since the host's process
    /// started; reasons without frames are left out.
    #[serde(default)]
    pub guarded: BTreeMap<String, u64>,
    /// Events of a virtio VF's device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<VirtioDeviceCounts>,
}

/// MAC addresses that a guest has claimed, and that other VFs, stations at the uplink or the host use, since the host's process started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedClaims {
    /// Number of refused claims.
    pub refused: u64,
    /// Address that was refused last; missing if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// Filters of a VF: multicast hashes of an 82576 VF, addresses of every kind of an AVF VF.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VfFilterStatus {
    /// Number of receive filters that the VF uses.
    pub used: u16,
    /// Maximum number of filters that the VF may have.
    pub most: u16,
    /// True if the guest has requested more filters than the VF may have: frames to the other addresses do not arrive.
    pub cut: bool,
}

/// Use of a VF's quotas of filters that its guest requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VfQuotaStatus {
    /// MAC addresses that the guest has added; with family "avf" all its addresses and groups.
    pub mac: FilterQuotaStatus,
    /// VLANs that the guest has joined, or its port VLAN.
    pub vlan: FilterQuotaStatus,
}

/// Use of one quota of filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilterQuotaStatus {
    /// Number of filters that the VF uses.
    pub used: u16,
    /// Number of filters that other VFs cannot take from the VF.
    pub guaranteed: u16,
    /// Greatest number of filters that the VF may have.
    pub most: u16,
}

impl From<policy::FilterUse> for FilterQuotaStatus {
    fn from(policy::FilterUse { used, guaranteed, most }: policy::FilterUse) -> Self {
        Self { used, guaranteed, most }
    }
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
    /// Number of requests by subject, such as "mac" or "vlan"; subjects without requests are left out.
    pub requests: BTreeMap<String, u64>,
    /// Number of requests that the PF driver has granted.
    pub granted: u64,
    /// Number of refused requests by reason, such as "vlan-not-allowed"; reasons without requests are left out.
    pub refused: BTreeMap<String, u64>,
    /// Number of requests without an answer: the guest asks too often, or does not release the mailbox.
    pub unanswered: u64,
    /// Number of resets of the VF.
    pub resets: u64,
    /// Number of notices of the PF driver to the guest's driver: of a changed link, or of a reset.
    pub notices: u64,
}

/// Returns the setting that allows requests refused for a reason of [`VfMailboxStatus::refused`].
#[must_use]
pub fn remedy(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "address-at-uplink" => "mac, if the address is this VF's, or share_mac or trust on",
        "address-in-use" => "share_mac on (for both VFs, if another one has it), or trust on",
        "address-fixed" | "promiscuity" => "trust on",
        "multicast-promiscuity" => "allmulti on",
        "mtu-limit" => "a larger max_mtu",
        "no-filter" => "a larger min_mac_filters, or max_mac_filters if the VF has one",
        "no-vlan-filter" => "a larger min_vlan_filters, or max_vlan_filters if the VF has one",
        "too-many-addresses" => "a larger max_mac_filters and a reset of the guest's interface",
        "too-many-vlans" => "a larger max_vlan_filters and a reset of the guest's interface",
        "vlan-fixed" => "vlan 0",
        "vlan-not-allowed" => "the VLAN in vlans",
        _ => return None,
    })
}

/// Offences of a VF, and their consequences.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VfConductStatus {
    /// Reason of the VF's quarantine: an offence, or the administrator; null if the VF is not quarantined.
    pub quarantine: Option<String>,
    /// True if the VF is throttled.
    pub throttled: bool,
    /// Number of seconds in which the VF exceeded a threshold, by offence; offences without such seconds are left out.
    pub offences: BTreeMap<String, u64>,
}

/// VMM that is connected to a function's socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectedVmm {
    /// Process id of the VMM.
    pub pid: i32,
    /// Id of the user that the VMM runs as.
    pub uid: u32,
    /// Number of windows of guest memory that the VMM has announced.
    pub windows: usize,
    /// Number of announced windows whose memory the card can access, because the VMM shares the memory.
    pub shareable: usize,
    /// Bytes of guest memory in the windows that the card can access.
    pub shareable_bytes: u64,
}

/// Clients that a function has refused, because it had another client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientRefusals {
    /// Number of refused connections since the host's process started. A connection that a virtio VF serves later, because
    /// the VF became free within a second, counts too.
    pub count: u64,
    /// Process id of the VMM whose refused connection a virtio VF holds at the moment, for a second; null if there is
    /// none.
    pub held: Option<i32>,
}

/// Numbers of frames and bytes that a function has received, or has sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename = "Traffic")]
#[schemars(rename = "TrafficCounts")]
pub struct TrafficCounts {
    /// Number of frames that the function received (in `rx`) or sent (in `tx`).
    pub packets: u64,
    /// Bytes of these frames, frame check sequence excluded.
    pub bytes: u64,
    /// Number of multicast frames among these frames; always 0 for sent frames.
    pub multicast: u64,
    /// Number of broadcast frames among these frames; always 0 for sent frames.
    pub broadcast: u64,
    /// Number of frames in this direction that were dropped.
    pub dropped: u64,
}

/// Frames that wait in the card for receive descriptors of a function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PacketBufferStatus {
    /// Number of frames that wait in the card for receive descriptors.
    pub frames: u64,
    /// Bytes of the frames that wait in the card for receive descriptors.
    pub bytes: u64,
}

/// Dropped frames, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename = "Drops")]
#[schemars(rename = "DropCounts")]
pub struct DropCounts {
    /// Frames for a guest that had posted too few receive descriptors.
    pub rx_no_descriptors: u64,
    /// Frames for a guest whose driver had not set up the receive queue.
    pub rx_disabled: u64,
    /// Packets of the guest with invalid descriptors, lengths or offload requests.
    pub tx_invalid: u64,
    /// Frames of the guest that policy refused: the sum of `tx_spoofed` and `tx_link_control`.
    pub tx_blocked: u64,
    /// Frames of the guest with a source address or VLAN that is not the VF's.
    pub tx_spoofed: u64,
    /// Link-control frames of the guest: pause, spanning tree and the like.
    pub tx_link_control: u64,
    /// Broadcasts and multicasts for the guest that storm control dropped.
    pub rx_storm: u64,
    /// Frames of the guest that no function and no uplink accepted.
    pub tx_unclaimed: u64,
    /// Accesses of the card to guest memory that the VMM has not shared.
    pub dma_faults: u64,
}

/// Numbers of messages and interrupts between card and VMM for a function, since the host started. Each may cost the
/// guest an exit to the hypervisor, which SR-IOV is to avoid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename = "Interventions")]
#[schemars(rename = "VmmInterventions")]
pub struct VmmInterventions {
    /// Number of register reads; the guest waits for each.
    pub reads: u64,
    /// Number of register writes that the guest does not wait for.
    pub posted_writes: u64,
    /// Number of register writes that the guest waits for.
    pub synchronous_writes: u64,
    /// Number of interrupts that the card has sent to the VMM.
    pub interrupts: u64,
}
