//! What the host tells about itself: the shapes that `softiov vf list` and `vf show` print, and that `--json`
//! gives as they are.

use super::uplink::UplinkStatus;
use crate::config::file::Family;
pub use crate::settings::{LinkState, Origin};
use crate::settings::{PortSettings, VfSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::PathBuf;

/// A port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PortStatus {
    /// Its name.
    pub name: String,
    /// What its card is.
    #[serde(default)]
    pub family: Family,
    /// Its own address.
    pub mac: String,
    /// "none", or kind and name as in "tap:NAME", with "(down)" or "(gone)" behind it if it is so.
    pub uplink: String,
    /// How the uplink is, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uplink_status: Option<UplinkStatus>,
    /// The processors that its thread is held to, if it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
    /// Its link is up.
    pub link: bool,
    /// Its PF, if a guest may have it; there are no VFs then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pf: Option<FunctionStatus>,
    /// What is set for the port, unless a guest drives its PF.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<PortSettings>,
    /// Where settings come from that do not have their default.
    #[serde(default)]
    pub origins: BTreeMap<String, Origin>,
    /// How many storms there have been.
    #[serde(default)]
    pub storms: u64,
    /// How long its VFs waited for the PF driver, unless a guest drives its PF.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Answers>,
    /// Its VFs.
    pub vfs: Vec<VfStatus>,
}

/// Requests of a port's VFs and the PF driver's answers, since the host started. Nanoseconds, from
/// the VF's mailbox write to the end of the visit that answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Answers {
    /// Requests that were answered.
    pub requests: u64,
    /// Visits of the PF driver that answered any.
    pub visits: u64,
    /// The most that a visit has answered.
    pub most_a_visit: u8,
    /// Half of the requests waited no longer than this, by two digits.
    pub p50_ns: u64,
    /// Of a hundred requests 99 waited no longer than this, by two digits.
    pub p99_ns: u64,
    /// The longest wait.
    pub max_ns: u64,
    /// All waits together.
    pub sum_ns: u64,
    /// How many waited so long at most, for bounds from 1 us to 10 s.
    pub at_most: Vec<AtMost>,
}

/// A number of requests that waited no longer than a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AtMost {
    /// The bound.
    pub ns: u64,
    /// How many.
    pub requests: u64,
}

/// What is told of every function that a guest may have: a VF, or a PF that a guest drives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionStatus {
    /// The vfio-user socket.
    pub socket: PathBuf,
    /// The VMM at the other end of it.
    pub peer: Option<Peer>,
    /// What keeps the function from working, and the remedy.
    pub hint: Option<String>,
    /// Frames received by the guest.
    pub rx: Traffic,
    /// Frames sent by the guest.
    pub tx: Traffic,
    /// Frames lost, by reason.
    pub drops: Drops,
    /// Frames that wait for the guest to post receive descriptors.
    #[serde(default)]
    pub waiting: Waiting,
    /// What the VMM was asked to do.
    pub interventions: Interventions,
}

/// A VF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VfStatus {
    /// Its name.
    pub name: String,
    /// Which VF of its port.
    pub index: u8,
    /// Its routing id, as a PCI address.
    pub rid: String,
    /// The address it uses now.
    pub mac: String,
    /// VLANs it is a member of; 0 stands for untagged.
    pub vlans: Vec<u16>,
    /// What the guest sees: the link is up.
    pub link: bool,
    /// A driver runs it.
    pub active: bool,
    /// By what its guest receives.
    #[serde(default)]
    pub filters: Filters,
    /// What is set for it.
    pub settings: VfSettings,
    /// Where settings come from that do not have their default.
    #[serde(default)]
    pub origins: BTreeMap<String, Origin>,
    /// Its conduct.
    pub conduct: Conduct,
    /// What is told of every function.
    #[serde(flatten)]
    pub function: FunctionStatus,
    /// What the guest's driver has asked the PF.
    pub mailbox: Mailbox,
}

/// Filters of a VF: multicast hashes of an 82576's, addresses of every kind of an AVF's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Filters {
    /// Filters in use.
    pub used: u16,
    /// The most that the VF may have.
    pub most: u16,
    /// The guest wants more than fit: frames of the groups beyond them do not arrive.
    pub cut: bool,
}

/// A VF is a function: `vf.rx` is `vf.function.rx`, as in the JSON.
impl Deref for VfStatus {
    type Target = FunctionStatus;

    fn deref(&self) -> &FunctionStatus {
        &self.function
    }
}

/// A VF's requests to the PF since the host started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mailbox {
    /// Requests by what they are about; those that never came are left out.
    pub requests: BTreeMap<String, u64>,
    /// Requests that were granted.
    pub granted: u64,
    /// Requests that were refused, by reason; reasons that never applied are left out.
    pub refused: BTreeMap<String, u64>,
    /// Requests without an answer: the guest asks too often, or does not let go of the mailbox.
    pub unanswered: u64,
    /// Resets of the function.
    pub resets: u64,
    /// Notices of a changed link or of a reset.
    pub notices: u64,
}

/// Returns the setting by which the administrator can allow what is refused for a reason of [`Mailbox::refused`].
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

/// What a VF was caught at, and what is done about it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conduct {
    /// Why it is quarantined: an offence, or the administrator's wish.
    pub quarantine: Option<String>,
    /// It is throttled.
    pub throttled: bool,
    /// Seconds in which it did too much, by offence; offences that never were are left out.
    pub offences: BTreeMap<String, u64>,
}

/// A connected VMM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Peer {
    /// Process id.
    pub pid: i32,
    /// User id.
    pub uid: u32,
    /// Windows of guest memory it has announced.
    pub windows: usize,
    /// Of these, the ones the card can reach.
    pub shareable: usize,
    /// Bytes of these.
    pub shareable_bytes: u64,
}

/// One direction's frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// Frames.
    pub packets: u64,
    /// Bytes, frame check sequence excluded.
    pub bytes: u64,
    /// Of the frames, multicast ones; received frames only.
    pub multicast: u64,
    /// Of the frames, broadcast ones; received frames only.
    pub broadcast: u64,
    /// Frames lost.
    pub dropped: u64,
}

/// What is in a receive packet buffer now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    /// Frames.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Frames lost, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drops {
    /// The guest had posted too few receive descriptors.
    pub rx_no_descriptors: u64,
    /// The guest's receive queue was not set up.
    pub rx_disabled: u64,
    /// Transmit requests that made no sense.
    pub tx_invalid: u64,
    /// Spoofed, foreign VLAN, or link control.
    pub tx_blocked: u64,
    /// Of these, frames with a source address or VLAN that is not the VF's.
    pub tx_spoofed: u64,
    /// Of these, link-control frames: pause, spanning tree and the like.
    pub tx_link_control: u64,
    /// Broadcasts and multicasts that storm control kept from the guest.
    pub rx_storm: u64,
    /// Nobody was there to take the frame.
    pub tx_unclaimed: u64,
    /// Memory the VMM has not shared.
    pub dma_faults: u64,
}

/// What passed between card and VMM for this VF since the host started: the cost that SR-IOV is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interventions {
    /// Register reads: the guest waits for each.
    pub reads: u64,
    /// Register writes that the guest does not wait for.
    pub posted_writes: u64,
    /// Register writes that the guest waits for.
    pub synchronous_writes: u64,
    /// Interrupts.
    pub interrupts: u64,
}
