//! PF driver of Adaptive Virtual Functions: serves requests of VFs by the rules of Linux i40e, resets VFs, sends
//! link events, and enforces policies. It drives mailbox and resets through the registers of an X710, and the rest
//! through [`avf::control`].
//!
//! It takes no interrupts: the port's loop calls [`AvfPf::visit`] when it has time. Linux's probe looks for a reply
//! once, 4 to 30 ms after the request, and a miss costs it a second: so visits must be at most 3 ms apart while a
//! request may come, and closer together where more than eight VFs may request at once: a request of one of n VFs
//! is served by visit (n + 31) / 16 at the latest.
//!
//! | module | contents |
//! |---|---|
//! | `mail` | the admin queues: bounded messages per visit, replies |
//! | `reset` | function level resets, and resets by the PF |
//! | `requests` | dispatch of requests; version, resources, RSS |
//! | `queues` | rings, vectors, enabling and disabling |
//! | `filters` | addresses, promiscuity |
//! | `vlans` | VLANs and tags |
//! | `policy`, `limits`, `decided` | applying policies of VFs, the family's limits, saved encoding |
//! | `held` | throttled and quarantined VFs |
//! | `link` | link events |
//! | `state`, `earlier` | saving and restoring the driver; states of earlier versions |
//!
//! The PF has no data path, and [`avf::control`] replaces a real X710's other parts.

mod counters;
mod decided;
pub mod earlier;
mod filters;
mod held;
mod limits;
mod link;
mod mail;
mod policy;
mod queues;
mod requests;
mod reset;
mod state;
#[cfg(test)]
mod tests;
mod vlans;

pub use counters::{VirtchnlCounters, VirtchnlRefusal};
pub use limits::LIMITS;
pub use mail::AvfPfServiceResults;
pub use state::{AvfPfRestoreError, AvfPfState};

use crate::conduct::VfConductMonitor;
use crate::hal::{DmaHal, OutOfDmaMemory};
use ::avf::control::CardControl;
use ::avf::ids::MAX_VFS;
use ::avf::virtchnl::{VfCapabilities, VirtchnlVersion};
use ::policy::{FilterKind, FilterUse};
use alloc::vec::Vec;
use decided::AvfVfPolicy;
use i82576::MacAddress;
use mail::PfAdminQueues;
use serde::{Deserialize, Serialize};
use units::VlanIds;

/// Environment of the PF driver: registers, time, DMA memory, and a card that carries out the driver's orders.
pub trait CardControlHal: DmaHal + CardControl {}

impl<T: DmaHal + CardControl> CardControlHal for T {}

/// Virtchnl capabilities that the PF offers to VFs.
pub const OFFERED: VfCapabilities = VfCapabilities::L2
    .and(VfCapabilities::REQ_QUEUES)
    .and(VfCapabilities::ADV_LINK_SPEED)
    .and(VfCapabilities::CRC)
    .and(VfCapabilities::VLAN)
    .and(VfCapabilities::VLAN_V2)
    .and(VfCapabilities::RX_POLLING)
    .and(VfCapabilities::RSS_PF)
    .and(VfCapabilities::RX_FLEX_DESC);

/// Progress of a VF's driver since the VF's last reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "Stage")]
enum VfDriverStage {
    /// The VF's driver has not requested its resources since the reset.
    Reset,
    /// The VF's driver has requested its resources.
    Active,
}

/// State that the PF driver keeps of one VF.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "AvfVfState")]
struct AvfVfState {
    #[serde(rename = "policy")]
    decided: AvfVfPolicy,
    stage: VfDriverStage,
    /// Last virtchnl version that the VF's driver sent. Kept over a reset: drivers do not send it again.
    version: VirtchnlVersion,
    agreed: VfCapabilities,
    /// Number of the VF's queue pairs in use.
    pairs: u16,
    /// MAC address of the VF, kept over a reset.
    mac: Option<MacAddress>,
    /// Addresses that the VF receives by, its own MAC address among them.
    addresses: Vec<MacAddress>,
    vlans: VlanIds,
    /// VLANs that the VF requested and its policy denies.
    withheld: VlanIds,
    /// Receive queues of the VF that are running, a bit each.
    rx: u16,
    tx: u16,
    /// True if the card strips VLAN tags of received frames.
    strip: bool,
    /// True if the card inserts VLAN tags into sent frames.
    insert: bool,
    counters: VirtchnlCounters,
    /// Address that a VF of the same number has on the card of another family. That card's owner tells it again after a restart.
    #[serde(skip)]
    reserved: Option<MacAddress>,
    /// Record of the VF's offences. It is saved apart from the PF driver's state, because it outlives the card.
    #[serde(skip)]
    monitor: VfConductMonitor,
}

impl AvfVfState {
    fn new() -> Self {
        let decided = AvfVfPolicy::default();
        Self {
            stage: VfDriverStage::Reset,
            version: VirtchnlVersion::V1_1,
            agreed: VfCapabilities::default(),
            pairs: decided.pairs,
            mac: None,
            addresses: Vec::new(),
            vlans: VlanIds::new(),
            withheld: VlanIds::new(),
            rx: 0,
            tx: 0,
            strip: false,
            insert: false,
            counters: VirtchnlCounters::default(),
            reserved: None,
            monitor: VfConductMonitor::default(),
            decided,
        }
    }

    fn has(&self, capability: VfCapabilities) -> bool {
        self.agreed.has(capability)
    }

    /// Returns true if the VF receives by a unicast address now, or will after a reset.
    fn uses(&self, mac: MacAddress) -> bool {
        [self.decided.policy.mac, self.mac].contains(&Some(mac)) || self.addresses.contains(&mac)
    }

    /// Returns the number of MSI-X vectors: one per queue pair and one for the mailbox.
    fn vectors(&self) -> u16 {
        self.pairs + 1
    }
}

/// Returns the number of a VF's VSI, which its requests name.
const fn vsi(vf: u8) -> u16 {
    vf as u16 + 1
}

/// PF driver and the states of its VFs.
#[derive(Debug, Clone)]
pub struct AvfPf {
    vfs: Vec<AvfVfState>,
    /// VFs that are throttled or quarantined, or have a delayed request, a bit each. A run of the PF driver checks the
    /// throttles of only these VFs.
    held: u64,
    /// VFs without credit for work of the PF driver, a bit each: their resets wait.
    unpaid: u64,
    mail: PfAdminQueues,
    /// Link speed of the port in Mb/s; `None` while it is down.
    wire: Option<u32>,
}

impl AvfPf {
    /// Sets up the admin queues, and lets VFs 0..`vfs` start, at most 64. The link is down until [`AvfPf::set_link`].
    ///
    /// # Errors
    /// [`OutOfDmaMemory`].
    pub fn probe<H: CardControlHal>(hal: &mut H, vfs: u8) -> Result<Self, OutOfDmaMemory> {
        let count = usize::from(vfs).min(MAX_VFS);
        let vfs = (0..count).map(|_| AvfVfState::new()).collect();
        let mut pf =
            Self { vfs, held: 0, unpaid: 0, mail: PfAdminQueues::new(hal, count as u16)?, wire: None };
        for vf in 0..count as u8 {
            pf.reset_vf(hal, vf);
        }
        Ok(pf)
    }

    /// Serves VFs 0..`vfs` from now on, at most 64, if that is more than before. New VFs have the default policy,
    /// and no driver has used them since the card's power-on.
    pub fn grow(&mut self, vfs: u8) {
        let count = usize::from(vfs).min(MAX_VFS).max(self.vfs.len());
        self.vfs.resize_with(count, AvfVfState::new);
        self.mail.grow(count as u16);
    }

    /// Returns the numbers of the VFs that the driver serves.
    pub fn vfs(&self) -> impl Iterator<Item = u8> + use<> {
        0..self.vfs.len() as u8
    }

    /// Returns a VF's MAC address, if the VF has one.
    #[must_use]
    pub fn vf_mac(&self, vf: u8) -> Option<MacAddress> {
        self.vfs.get(usize::from(vf))?.mac
    }

    /// Returns the VLANs that a VF is a member of; 0 stands for untagged frames.
    pub fn vf_vlans(&self, vf: u8) -> impl Iterator<Item = u16> {
        self.vfs.get(usize::from(vf)).into_iter().flat_map(|state| state.vlans.iter())
    }

    /// Returns the use of a VF's quota of a kind of filters. Each VF has tables of its own, so its quota is guaranteed.
    #[must_use]
    pub fn filter_use(&self, vf: u8, kind: FilterKind) -> Option<FilterUse> {
        let state = self.vfs.get(usize::from(vf))?;
        let used = match kind {
            FilterKind::Mac => state.addresses.len(),
            FilterKind::Vlan => state.vlans.iter().filter(|vlan| *vlan != 0).count(),
        };
        let most = filters::quota(&state.decided.policy, kind);
        Some(FilterUse { used: used as u16, guaranteed: most, most })
    }

    /// Returns true if a VF is active: its driver has requested resources since the last reset.
    #[must_use]
    pub fn vf_is_active(&self, vf: u8) -> bool {
        self.vfs.get(usize::from(vf)).is_some_and(|state| state.stage == VfDriverStage::Active)
    }

    /// Returns the number of a VF's queue pairs.
    #[must_use]
    pub fn vf_pairs(&self, vf: u8) -> u16 {
        self.vfs.get(usize::from(vf)).map_or(0, |state| state.pairs)
    }

    /// Returns the PF driver's counters of a VF.
    #[must_use]
    pub fn counters(&self, vf: u8) -> Option<&VirtchnlCounters> {
        self.vfs.get(usize::from(vf)).map(|state| &state.counters)
    }

    /// Returns the state of a VF that is known to exist, since the VF numbers in messages are checked on arrival.
    fn state(&self, vf: u8) -> &AvfVfState {
        &self.vfs[usize::from(vf)]
    }

    fn state_mut(&mut self, vf: u8) -> &mut AvfVfState {
        &mut self.vfs[usize::from(vf)]
    }
}
