//! The PF driver of Adaptive Virtual Functions: it answers the requests of VFs by the rules of Linux i40e, resets VFs,
//! tells them of the link, and holds them to their policy. Mailbox and resets it drives through the registers of an
//! X710; the rest it has the card do ([`avf::control`]).
//!
//! It takes no interrupts: [`Pf::visit`] is called when the port's loop has time. Linux's probe looks for a reply once,
//! 4 to 30 ms after the request, and a miss costs it a second: so visits must be at most 3 ms apart while a request
//! may come, and closer together where more than eight VFs may ask at once: a request of one of n VFs is answered by
//! visit (n + 31) / 16 at the latest.
//!
//! | module | what it does |
//! |---|---|
//! | `mail` | the admin queues: K messages a visit, replies |
//! | `reset` | function level resets, and those that the PF makes |
//! | `requests` | which request is whose, version, resources, scaling |
//! | `queues` | rings, vectors, switching on and off |
//! | `filters` | addresses, promiscuity |
//! | `vlans` | VLANs and tags |
//! | `policy`, `limits`, `decided` | policies of VFs put to work, held to the family's abilities, kept in a state |
//! | `held` | VFs that do too much |
//! | `link` | what a VF is told of the link |
//! | `state`, `earlier` | the driver set aside, and continued; as earlier versions wrote it |
//!
//! Left out: a PF data path, and what of a real X710 stands behind [`avf::control`].

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

pub use counters::{Counters, Refusal};
pub use limits::LIMITS;
pub use mail::Visit;
pub use state::{PfState, RestoreError};

use crate::conduct::Monitor;
use crate::hal::{DmaHal, OutOfDmaMemory};
use ::avf::control::Control;
use ::avf::ids::MAX_VFS;
use ::avf::virtchnl::{Capabilities, Version};
use alloc::vec::Vec;
use decided::Decided;
use i82576::MacAddress;
use mail::Mail;
use serde::{Deserialize, Serialize};

/// What the PF driver needs: registers, time, memory, and a card that does what it is told.
pub trait Card: DmaHal + Control {}

impl<T: DmaHal + Control> Card for T {}

/// What a VF is offered.
pub const OFFERED: Capabilities = Capabilities::L2
    .and(Capabilities::REQ_QUEUES)
    .and(Capabilities::ADV_LINK_SPEED)
    .and(Capabilities::CRC)
    .and(Capabilities::VLAN)
    .and(Capabilities::VLAN_V2)
    .and(Capabilities::RX_POLLING)
    .and(Capabilities::RSS_PF)
    .and(Capabilities::RX_FLEX_DESC);

/// How far a VF's driver has come since the last reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    /// It has not asked what it has.
    Reset,
    /// It has.
    Active,
}

/// What the PF knows of a VF.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "AvfVfState")]
struct VfState {
    #[serde(rename = "policy")]
    decided: Decided,
    stage: Stage,
    /// What it said last. A reset does not take it back: drivers do not say it again.
    version: Version,
    agreed: Capabilities,
    /// Queue pairs that it has.
    pairs: u16,
    /// The address it is known by. A reset does not take it back.
    mac: Option<MacAddress>,
    /// What it receives by, its own among them.
    addresses: Vec<MacAddress>,
    vlans: Vec<u16>,
    /// VLANs that it asked for and its policy denies it.
    withheld: Vec<u16>,
    /// Queues that run.
    rx: u16,
    tx: u16,
    /// Received tags are taken out; sent ones may be put in.
    strip: bool,
    insert: bool,
    counters: Counters,
    /// Its conduct, which is saved beside the driver: it outlives the card.
    #[serde(skip)]
    monitor: Monitor,
}

impl VfState {
    fn new() -> Self {
        let decided = Decided::default();
        Self {
            stage: Stage::Reset,
            version: Version::V1_1,
            agreed: Capabilities::default(),
            pairs: decided.pairs,
            mac: None,
            addresses: Vec::new(),
            vlans: Vec::new(),
            withheld: Vec::new(),
            rx: 0,
            tx: 0,
            strip: false,
            insert: false,
            counters: Counters::default(),
            monitor: Monitor::default(),
            decided,
        }
    }

    fn has(&self, capability: Capabilities) -> bool {
        self.agreed.has(capability)
    }

    /// The number of its VSI, which its requests name.
    fn vectors(&self) -> u16 {
        self.pairs + 1
    }
}

/// The number by which a VF's requests name its VSI.
const fn vsi(vf: u8) -> u16 {
    vf as u16 + 1
}

/// The physical function's driver and what it knows of its VFs.
#[derive(Debug, Clone)]
pub struct Pf {
    vfs: Vec<VfState>,
    /// VFs that are throttled or quarantined, or have a request that may not be served yet, a bit each. A visit looks at the
    /// conduct of no others.
    held: u64,
    mail: Mail,
    /// The link of the port: Mb/s, while it is up.
    wire: Option<u32>,
}

impl Pf {
    /// Sets the admin queues up, and lets VFs 0..`vfs` start; a port has 64 at most. The link is down until
    /// [`Pf::set_link`].
    ///
    /// # Errors
    /// [`OutOfDmaMemory`].
    pub fn probe<H: Card>(hal: &mut H, vfs: u8) -> Result<Self, OutOfDmaMemory> {
        let count = usize::from(vfs).min(MAX_VFS);
        let vfs = (0..count).map(|_| VfState::new()).collect();
        let mut pf = Self { vfs, held: 0, mail: Mail::new(hal, count as u16)?, wire: None };
        for vf in 0..count as u8 {
            pf.reset_vf(hal, vf);
        }
        Ok(pf)
    }

    /// Serves VFs 0..`vfs` from now on, if those were fewer before; a port has 64 at most. The new ones have the default
    /// policy, and no driver has run them since the card's power-on.
    pub fn grow(&mut self, vfs: u8) {
        let count = usize::from(vfs).min(MAX_VFS).max(self.vfs.len());
        self.vfs.resize_with(count, VfState::new);
        self.mail.grow(count as u16);
    }

    /// The VFs that there are.
    pub fn vfs(&self) -> impl Iterator<Item = u8> + use<> {
        0..self.vfs.len() as u8
    }

    /// The address a VF is known by, if it has one.
    #[must_use]
    pub fn vf_mac(&self, vf: u8) -> Option<MacAddress> {
        self.vfs.get(usize::from(vf))?.mac
    }

    /// The VLANs that a VF is a member of; 0 stands for untagged.
    pub fn vf_vlans(&self, vf: u8) -> impl Iterator<Item = u16> {
        self.vfs.get(usize::from(vf)).into_iter().flat_map(|state| state.vlans.iter().copied())
    }

    /// Returns the number of addresses that a VF receives by, and the most that it may have.
    #[must_use]
    pub fn vf_addresses(&self, vf: u8) -> Option<(usize, usize)> {
        let state = self.vfs.get(usize::from(vf))?;
        Some((state.addresses.len(), filters::address_quota(state.decided.policy.trust)))
    }

    /// Whether a driver runs the VF: it has asked what it has, and no reset came since.
    #[must_use]
    pub fn vf_is_active(&self, vf: u8) -> bool {
        self.vfs.get(usize::from(vf)).is_some_and(|state| state.stage == Stage::Active)
    }

    /// Queue pairs that a VF has.
    #[must_use]
    pub fn vf_pairs(&self, vf: u8) -> u16 {
        self.vfs.get(usize::from(vf)).map_or(0, |state| state.pairs)
    }

    /// What was counted for a VF.
    #[must_use]
    pub fn counters(&self, vf: u8) -> Option<&Counters> {
        self.vfs.get(usize::from(vf)).map(|state| &state.counters)
    }

    /// A VF that there is: numbers are checked where they come in.
    fn state(&self, vf: u8) -> &VfState {
        &self.vfs[usize::from(vf)]
    }

    fn state_mut(&mut self, vf: u8) -> &mut VfState {
        &mut self.vfs[usize::from(vf)]
    }
}
