//! The configuration spaces that the card itself answers: the PF's, and each VF's bare one. `function` carries out the
//! effects of writes. The SR-IOV manager composes the full space of a VF that a guest sees.

use crate::damaged::InvalidStateError;
use crate::interrupt::single::InterruptMode;
use i82576::ids::MAX_VFS;
use i82576::{MacAddress, config};
use pcie::capability::power::PowerState;
use pcie::config::ConfigSpaceState;
use pcie::{Endpoint, Function};
use serde::{Deserialize, Serialize};

/// Configuration spaces of PF and VFs, for the accesses that the card itself answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "SavedConfigSpaces", try_from = "SavedConfigSpaces")]
pub(crate) struct ConfigSpaces {
    /// MAC address in the PF's PCIe device serial number. The layout of the PF's configuration space is computed from
    /// this address and `iov`, and is not saved.
    mac: MacAddress,
    /// True if the PF's configuration space has an SR-IOV capability.
    iov: bool,
    pf: Endpoint,
    vfs: [Endpoint; MAX_VFS],
}

/// Saved form of the configuration spaces of PF and VFs.
#[derive(Serialize, Deserialize)]
#[serde(rename = "SavedSpaces")]
struct SavedConfigSpaces {
    mac: MacAddress,
    iov: bool,
    pf: ConfigSpaceState,
    vfs: [ConfigSpaceState; MAX_VFS],
}

impl From<ConfigSpaces> for SavedConfigSpaces {
    fn from(spaces: ConfigSpaces) -> Self {
        let ConfigSpaces { mac, iov, pf, vfs } = spaces;
        Self { mac, iov, pf: pf.save(), vfs: vfs.each_ref().map(Endpoint::save) }
    }
}

impl TryFrom<SavedConfigSpaces> for ConfigSpaces {
    type Error = InvalidStateError;

    fn try_from(saved: SavedConfigSpaces) -> Result<Self, InvalidStateError> {
        let mut spaces = Self::new(saved.mac, saved.iov);
        let mut whole = spaces.pf.load(&saved.pf);
        for (space, state) in spaces.vfs.iter_mut().zip(&saved.vfs) {
            whole &= space.load(state);
        }
        if whole {
            Ok(spaces)
        } else {
            Err(InvalidStateError("the saved bytes of a configuration space exceed its size"))
        }
    }
}

impl ConfigSpaces {
    pub(crate) fn new(mac: MacAddress, iov: bool) -> Self {
        let (pf, vfs) = (config::pf::endpoint(mac, iov), core::array::from_fn(|_| config::vf::endpoint()));
        Self { mac, iov, pf, vfs }
    }

    /// Returns the number of VFs that the SR-IOV capability enables.
    pub(crate) fn active_vfs(&self) -> u8 {
        self.pf.sriov().map_or(0, active)
    }

    /// Returns true if the PF is in D3hot, and its VFs with it (Single Root I/O Virtualization specification 1.1, chapter 5).
    pub(crate) fn sleep(&self) -> bool {
        self.pf.power() == PowerState::D3Hot
    }

    /// Returns the kind of interrupt that the PF uses. `several` is GPIE.MULTIPLE_MSIX.
    pub(crate) fn form(&self, several: bool) -> InterruptMode {
        match (self.pf.msix(), self.pf.msi()) {
            _ if self.sleep() => InterruptMode::Silent,
            (Some(msix), _) if msix.enabled && several => InterruptMode::Vectors,
            (Some(msix), _) if msix.enabled => InterruptMode::OneVector,
            (_, msi) if msi.enabled && msi.masked => InterruptMode::Silent,
            (_, msi) if msi.enabled => InterruptMode::Msi,
            _ if self.pf.intx() => InterruptMode::Pin,
            _ => InterruptMode::Silent,
        }
    }

    /// Updates the PF's status of a `due` interrupt: Interrupt Status for the pin, the pending bit for masked MSI.
    pub(crate) fn show_interrupt(&mut self, due: bool, silent: bool) {
        let msi = self.pf.msi().enabled;
        let msix = self.pf.msix().is_some_and(|msix| msix.enabled);
        self.pf.show_interrupt(due && !msi && !msix, due && msi && silent);
    }

    /// Returns the function's configuration space, if the function exists.
    pub(crate) fn of(&mut self, function: Function, vfs: u8) -> Option<&mut Endpoint> {
        match function {
            Function::Pf => Some(&mut self.pf),
            Function::Vf(n) if n < vfs => self.vfs.get_mut(usize::from(n)),
            Function::Vf(_) => None,
        }
    }

    /// Resets the configuration spaces of all VFs.
    pub(crate) fn reset_vfs(&mut self) {
        self.vfs.iter_mut().for_each(Endpoint::reset);
    }

    /// Resets the configuration spaces of PF and VFs to their state after power-on.
    pub(crate) fn reset(&mut self) {
        self.pf.reset();
        self.vfs.iter_mut().for_each(Endpoint::reset);
    }
}

/// Returns the number of VFs that an SR-IOV capability enables, at most 8.
pub(crate) fn active(sriov: pcie::sriov::SrIovSettings) -> u8 {
    sriov.active().min(MAX_VFS as u16) as u8
}
