//! The functions' configuration spaces, as far as the card itself answers: the PF's, and each VF's bare one.
//! Left out: what a write sets off (`function`), and the full space a guest sees of a VF, which the SR-IOV manager makes up.

use crate::damaged::Damaged;
use crate::interrupt::single::Form;
use i82576::ids::MAX_VFS;
use i82576::{MacAddress, config};
use pcie::capability::power::PowerState;
use pcie::config::SpaceState;
use pcie::{Endpoint, Function};
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

    /// How the PF interrupts. `several`: GPIE has it use several MSI-X vectors.
    pub(crate) fn form(&self, several: bool) -> Form {
        match (self.pf.msix(), self.pf.msi()) {
            _ if self.sleep() => Form::Silent,
            (Some(msix), _) if msix.enabled && several => Form::Vectors,
            (Some(msix), _) if msix.enabled => Form::OneVector,
            (_, msi) if msi.enabled && msi.masked => Form::Silent,
            (_, msi) if msi.enabled => Form::Msi,
            _ if self.pf.intx() => Form::Pin,
            _ => Form::Silent,
        }
    }

    /// Shows in the PF's space that an interrupt is `due`, on the pin or behind the mask of MSI.
    pub(crate) fn show_interrupt(&mut self, due: bool, silent: bool) {
        let msi = self.pf.msi().enabled;
        let msix = self.pf.msix().is_some_and(|msix| msix.enabled);
        self.pf.show_interrupt(due && !msi && !msix, due && msi && silent);
    }

    /// Returns the function's space, if the function exists.
    pub(crate) fn of(&mut self, function: Function, vfs: u8) -> Option<&mut Endpoint> {
        match function {
            Function::Pf => Some(&mut self.pf),
            Function::Vf(n) if n < vfs => self.vfs.get_mut(usize::from(n)),
            Function::Vf(_) => None,
        }
    }

    /// Resets the VFs' spaces.
    pub(crate) fn reset_vfs(&mut self) {
        self.vfs.iter_mut().for_each(Endpoint::reset);
    }

    /// All of them as after power-on.
    pub(crate) fn reset(&mut self) {
        self.pf.reset();
        self.vfs.iter_mut().for_each(Endpoint::reset);
    }
}

/// VFs that exist by the capability.
pub(crate) fn active(sriov: pcie::sriov::State) -> u8 {
    sriov.active().min(MAX_VFS as u16) as u8
}
