//! What the host tells about itself: the shapes that `softiov vf list` and `vf show` print, and that `--json`
//! gives as they are.

use super::tap::TapStatus;
pub use crate::settings::{LinkState, Origin};
use crate::settings::{PortSettings, VfSettings};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::PathBuf;

/// A port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortStatus {
    /// Its name.
    pub name: String,
    /// Its own address.
    pub mac: String,
    /// "none", "tap:NAME", "tap:NAME (down)" or "tap:NAME (gone)".
    pub uplink: String,
    /// The tap, if that is the uplink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tap: Option<TapStatus>,
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
    /// Its VFs.
    pub vfs: Vec<VfStatus>,
}

/// What is told of every function that a guest may have: a VF, or a PF that a guest drives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// What the VMM was asked to do.
    pub interventions: Interventions,
}

/// A VF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

/// A VF is a function: `vf.rx` is `vf.function.rx`, as in the JSON.
impl Deref for VfStatus {
    type Target = FunctionStatus;

    fn deref(&self) -> &FunctionStatus {
        &self.function
    }
}

/// A VF's requests to the PF since the host started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// What a VF was caught at, and what is done about it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conduct {
    /// Why it is shut in: an offence, or the administrator's wish.
    pub quarantine: Option<String>,
    /// It is slowed down.
    pub throttled: bool,
    /// Seconds in which it did too much, by offence; offences that never were are left out.
    pub offences: BTreeMap<String, u64>,
}

/// A connected VMM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// Frames lost, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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
