//! Orders: what the control thread has decided for a running port, checked first and carried out whole or not at all.
//! VFs come with an order; they are withdrawn apart from it, because their clients cannot be brought back. Left out:
//! what is kept, and what other ports do.

use super::connection::Over;
use super::hal::PfHal;
use super::keeping::Keeping;
use super::side::{Hosted, vf};
use super::slot::{Place, Slot};
use super::{LISTENERS, Port, PortError, RefusedChange};
use crate::config::VfConfig;
use crate::settings::SettingError;
use crate::vault::PortVault;
use driver::pf::{Cause, PortPolicy, VfPolicy};
use host::poll::Interest;
use host::socket::Listener;
use i82576::VfIndex;
use pcie::Function;

/// The policies of a port and of the VFs that it offers, by index. VFs beyond them are about to be withdrawn.
#[derive(Debug, Clone)]
pub struct Order {
    /// The port's.
    pub policy: PortPolicy,
    /// The VFs'.
    pub vfs: Vec<VfOrder>,
}

/// What is decided for a VF.
#[derive(Debug, Clone, Copy)]
pub struct VfOrder {
    /// Its policy.
    pub policy: VfPolicy,
    /// Shut it in, or let it out; or leave it as it is.
    pub quarantine: Option<bool>,
}

/// A VF's socket, ready for a port to offer it. Opening one may take time, so no port does it.
#[derive(Debug)]
pub struct OpenVf {
    config: VfConfig,
    listener: Listener,
}

impl OpenVf {
    /// Makes the socket.
    ///
    /// # Errors
    /// [`PortError::Socket`].
    pub(crate) fn open(vf: &VfConfig, vault: &PortVault) -> Result<Self, PortError> {
        Ok(Self { config: vf.clone(), listener: Place::of_vf(vf).listen(vault)? })
    }
}

impl Order {
    /// A policy for each VF that the card and the PF driver may know of.
    fn policies(&self, offered: usize) -> Vec<(VfIndex, VfPolicy)> {
        let count = offered.max(self.vfs.len());
        let nothing = VfPolicy { enabled: false, ..VfPolicy::default() };
        let policy = |n: usize| self.vfs.get(n).map_or(nothing, |vf| vf.policy);
        VfIndex::all().take(count).map(|vf| (vf, policy(vf.index()))).collect()
    }
}

impl Port {
    /// Whether an order could be carried out now.
    pub(super) fn check(&mut self, order: &Order) -> Result<(), RefusedChange> {
        let (name, offered) = (&self.name, self.slots.len());
        let Some(Hosted { pf, .. }) = self.side.hosted() else { return Err(RefusedChange::Guests) };
        order.policy.check().map_err(|error| refused(name, None, error))?;
        let checked = pf.check_policies(&order.policies(offered));
        checked.map_err(|(vf, error)| refused(name, Some(vf), error))
    }

    /// Carries out an order, whole or not at all.
    pub(super) fn carry(&mut self, order: &Order, new: Vec<OpenVf>) -> Result<(), RefusedChange> {
        self.check(order)?;
        let before = self.slots.len();
        let carried = self.offer(new).and_then(|()| {
            let (name, offered) = (&self.name, self.slots.len());
            let Some(Hosted { pf, .. }) = self.side.hosted() else { return Err(RefusedChange::Guests) };
            let set = pf.set_policies(&mut PfHal(&mut self.nic), &order.policies(offered));
            set.map_err(|(vf, error)| refused(name, Some(vf), error))?;
            let set = pf.set_port_policy(&mut PfHal(&mut self.nic), order.policy);
            set.map_err(|error| refused(name, None, error))
        });
        if let Err(why) = carried {
            self.withdraw(before);
            return Err(why);
        }
        let Some(Hosted { pf, .. }) = self.side.hosted() else { return Err(RefusedChange::Guests) };
        for (index, vf) in VfIndex::all().zip(&order.vfs) {
            match vf.quarantine {
                Some(true) => pf.quarantine(&mut PfHal(&mut self.nic), index, Cause::Administrator),
                Some(false) => pf.release(&mut PfHal(&mut self.nic), index),
                None => {}
            }
        }
        self.show_links();
        self.note_software();
        Ok(())
    }

    /// Offers VFs beyond those that there are.
    fn offer(&mut self, new: Vec<OpenVf>) -> Result<(), RefusedChange> {
        for OpenVf { config, listener } in new {
            let (index, place) = (config.index, Place::of_vf(&config));
            let keeping = Keeping::new(&self.journal, Function::Vf(index.get()), &self.vault, &self.bus);
            let slot = Slot::new(&place, listener, keeping);
            self.poller.add(&slot.listener, LISTENERS + self.slots.len() as u64, Interest::READ)?;
            self.slots.push(slot);
            let count = self.slots.len() as u8;
            let Some(hosted) = self.side.hosted() else { return Err(RefusedChange::Guests) };
            hosted.offer(&mut self.nic, index)?;
            let resized = hosted.pf.resize(&mut PfHal(&mut self.nic), count);
            resized.map_err(|error| RefusedChange::Resize { name: self.name.clone(), error })?;
        }
        Ok(())
    }

    /// Offers only so many VFs from now on.
    pub(super) fn withdraw(&mut self, count: usize) {
        while self.slots.len() > count {
            let last = self.slots.len() - 1;
            self.slots[last].next = None;
            self.disconnect(last, &Over::Ended);
            let Some(slot) = self.slots.pop() else { return };
            self.vault.forget_named(&slot.kept_listener());
            // Closing the descriptor removes it from the poller too; a failure here has no consequence.
            let _ = self.poller.remove(&slot.listener);
            let (Some(hosted), Some(vf)) = (self.side.hosted(), vf(slot.function)) else { continue };
            if let Err(error) = hosted.withdraw(&mut self.nic, vf) {
                tracing::warn!(function = slot.name, %error, "the VF was not cleaned");
            }
            if let Err(error) = hosted.pf.resize(&mut PfHal(&mut self.nic), last as u8) {
                tracing::warn!(function = slot.name, %error, "the PF driver keeps the VF");
            }
        }
        self.show_links();
        self.note_software();
    }
}

fn refused(port: &str, vf: Option<VfIndex>, error: impl Into<SettingError>) -> RefusedChange {
    let name = vf.map_or_else(|| port.to_owned(), |vf| format!("{port}{vf}"));
    RefusedChange::Setting { name, error: error.into() }
}
