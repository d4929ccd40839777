//! The functions' configuration spaces, as far as the card itself answers: the PF's, and each VF's bare one.
//! Left out: the full space a guest sees of a VF, which the SR-IOV manager makes up.

use crate::Nic;
use crate::interrupt::single::{Form, is_due};
use crate::saved::Damaged;
use crate::state::Card;
use i82576::bits::gpie;
use i82576::ids::MAX_VFS;
use i82576::register as r;
use i82576::table::Forms;
use i82576::{MacAddress, VfIndex, config};
use pcie::capability::power::PowerState;
use pcie::config::SpaceState;
use pcie::{ConfigAccess, Effects, Endpoint, Function};
use serde::{Deserialize, Serialize};

/// All of the card's configuration spaces.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "SavedSpaces", try_from = "SavedSpaces")]
pub(crate) struct Spaces {
    /// What the layout of the PF's space follows from.
    mac: MacAddress,
    iov: bool,
    pf: Endpoint,
    vfs: [Endpoint; MAX_VFS],
}

/// The spaces as they are saved.
#[derive(Serialize, Deserialize)]
struct SavedSpaces {
    mac: MacAddress,
    iov: bool,
    pf: SpaceState,
    vfs: [SpaceState; MAX_VFS],
}

impl From<Spaces> for SavedSpaces {
    fn from(spaces: Spaces) -> Self {
        let Spaces { mac, iov, pf, vfs } = spaces;
        Self { mac, iov, pf: pf.save(), vfs: vfs.each_ref().map(Endpoint::save) }
    }
}

impl TryFrom<SavedSpaces> for Spaces {
    type Error = Damaged;

    fn try_from(saved: SavedSpaces) -> Result<Self, Damaged> {
        let mut spaces = Self::new(saved.mac, saved.iov);
        let mut whole = spaces.pf.load(&saved.pf);
        for (space, state) in spaces.vfs.iter_mut().zip(&saved.vfs) {
            whole &= space.load(state);
        }
        if whole { Ok(spaces) } else { Err(Damaged("a configuration space names bytes that there are not")) }
    }
}

impl Spaces {
    pub(crate) fn new(mac: MacAddress, iov: bool) -> Self {
        let (pf, vfs) = (config::pf::endpoint(mac, iov), core::array::from_fn(|_| config::vf::endpoint()));
        Self { mac, iov, pf, vfs }
    }

    /// VFs that exist, as the SR-IOV capability says.
    pub(crate) fn active_vfs(&self) -> u8 {
        self.pf.sriov().map_or(0, active)
    }

    /// The PF sleeps, and with it its VFs (Single root I/O virtualization specification 1.1, chapter 5).
    pub(crate) fn sleep(&self) -> bool {
        self.pf.power() == PowerState::D3Hot
    }

    /// All of them as after power-on.
    pub(super) fn reset(&mut self) {
        self.pf.reset();
        self.vfs.iter_mut().for_each(Endpoint::reset);
    }
}

/// VFs that exist by the capability.
fn active(sriov: pcie::sriov::State) -> u8 {
    sriov.active().min(MAX_VFS as u16) as u8
}

impl Card {
    /// How the PF interrupts.
    pub(crate) fn form(&self) -> Form {
        let pf = &self.spaces.pf;
        let several = self.file.get(r::GPIE) & gpie::MULTIPLE_MSIX != 0;
        match (pf.msix(), pf.msi()) {
            _ if self.spaces.sleep() => Form::Silent,
            (Some(msix), _) if msix.enabled && several => Form::Vectors,
            (Some(msix), _) if msix.enabled => Form::OneVector,
            (_, msi) if msi.enabled && msi.masked => Form::Silent,
            (_, msi) if msi.enabled => Form::Msi,
            _ if pf.intx() => Form::Pin,
            _ => Form::Silent,
        }
    }
}

impl Nic {
    /// The function's space, if the function exists.
    fn space(&mut self, function: Function) -> Option<&mut Endpoint> {
        match function {
            Function::Pf => Some(&mut self.state.spaces.pf),
            Function::Vf(n) if n < self.state.owners.vfs => self.state.spaces.vfs.get_mut(usize::from(n)),
            Function::Vf(_) => None,
        }
    }

    /// The PF's space shows what its interrupt is at this moment.
    fn show_interrupt(&mut self) {
        let due = is_due(&self.state.file, &self.state.owners);
        let msi = self.state.spaces.pf.msi().enabled;
        let msix = self.state.spaces.pf.msix().is_some_and(|msix| msix.enabled);
        self.state
            .spaces
            .pf
            .show_interrupt(due && !msi && !msix, due && msi && self.state.form() == Form::Silent);
    }

    /// Reads a function's configuration space; where nothing answers, all bits are ones.
    pub fn config_read_bytes(&mut self, function: Function, offset: u64, into: &mut [u8]) {
        self.show_interrupt();
        match self.space(function) {
            Some(space) => space.read_bytes(offset, into),
            None => into.fill(0xff),
        }
    }

    /// Writes a function's configuration space, and answers what that set off, which is done already.
    pub fn config_write_bytes(&mut self, function: Function, offset: u64, from: &[u8]) -> Effects {
        let effects = self.space(function).map(|space| space.write_bytes(offset, from)).unwrap_or_default();
        self.follow(function, effects);
        effects
    }

    fn follow(&mut self, function: Function, effects: Effects) {
        if effects.function_reset {
            self.reset_function(function);
        }
        if (effects.bus_master, effects.power) != (None, None) {
            let masters = self.space(function).is_some_and(|s| s.bus_master() && s.power() == PowerState::D0);
            self.set_bus_master(function, masters);
        }
        if let Some(sriov) = effects.sriov {
            self.state.vf_memory = sriov.memory;
            self.set_vfs(active(sriov));
        }
    }

    /// The PF sleeps, and with it its VFs.
    pub(crate) fn sleeps(&self) -> bool {
        self.state.spaces.sleep()
    }

    /// How many VFs exist, as the SR-IOV capability says. VFs that come or go are reset; what is beyond them
    /// is the PF's.
    fn set_vfs(&mut self, vfs: u8) {
        if vfs != self.state.owners.vfs {
            let most = vfs.max(self.state.owners.vfs);
            VfIndex::all().filter(|vf| vf.get() < most).for_each(|vf| self.renew_vf(vf));
            self.state.spaces.vfs.iter_mut().for_each(Endpoint::reset);
            self.state.owners.vfs = vfs;
            self.state.owners.masters &= crate::interrupt::master_bit(Function::Pf);
            self.derived.stale.add(Forms::SWITCH);
        }
    }

    /// The function's space goes back to what it is after a function-level reset.
    pub(super) fn reset_space(&mut self, function: Function) {
        if let Some(space) = self.space(function) {
            space.function_level_reset();
        }
        if function == Function::Pf {
            self.set_vfs(0);
        }
        self.set_bus_master(function, false);
    }
}

impl ConfigAccess for Nic {
    fn config_read(&mut self, function: Function, offset: u16, size: u8) -> u32 {
        self.show_interrupt();
        self.space(function).map_or(u32::MAX, |space| space.read(offset, size))
    }

    fn config_write(&mut self, function: Function, offset: u16, size: u8, value: u32) {
        if let Some(effects) = self.space(function).map(|space| space.write(offset, size, value)) {
            self.follow(function, effects);
        }
    }
}
