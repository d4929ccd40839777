//! Orders: what the control thread has decided for a running port, checked first and carried out whole or not at all.
//! VFs come with an order; they are withdrawn apart from it, because their clients cannot be brought back. Left out:
//! what is kept, and what other ports do.

use super::bus::Means;
use super::connection::Over;
use super::family::Unfit;
use super::hal::now;
use super::keeping::Keeping;
use super::slot::{Place, Slot};
use super::{LISTENERS, Port, PortError, RefusedChange};
use crate::config::VfConfig;
use crate::confine::Threads;
use crate::vault::PortVault;
use host::poll::Interest;
use host::socket::Listener;
use pcie::VfIndex;
use policy::{PortPolicy, VfPolicy};

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
    /// Quarantine it, or release it; or leave it as it is.
    pub quarantine: Option<bool>,
}

/// A VF's socket and what else it takes, ready for a port to offer it. Opening one may take time, so no port does it.
#[derive(Debug)]
pub struct OpenVf {
    config: VfConfig,
    listener: Listener,
    means: Means,
}

impl OpenVf {
    /// Makes the sockets of VFs, and takes what their functions need.
    ///
    /// # Errors
    /// [`PortError::Socket`], [`PortError::Confine`], [`PortError::NoMappings`].
    pub(crate) fn open_all(
        vfs: &[VfConfig],
        vault: &PortVault,
        threads: &Threads,
    ) -> Result<Vec<Self>, PortError> {
        let functions: Vec<_> = vfs.iter().map(|vf| vf.index.function()).collect();
        let means = Means::take(&functions, vault.port(), &threads.helper)?;
        let open = |(vf, means): (&VfConfig, Means)| {
            Ok(Self { config: vf.clone(), listener: Place::of_vf(vf).listen(vault)?, means })
        };
        vfs.iter().zip(means).map(open).collect()
    }
}

/// The policy of a VF that is not offered: it moves nothing.
pub(super) fn nothing() -> VfPolicy {
    VfPolicy { enabled: false, ..VfPolicy::default() }
}

impl Order {
    /// A policy for each VF that guests may have had of `offered`, and for those to come.
    fn policies(&self, offered: usize) -> Vec<VfPolicy> {
        let mut policies: Vec<_> = self.vfs.iter().map(|vf| vf.policy).collect();
        policies.resize_with(offered.max(policies.len()), nothing);
        policies
    }
}

impl Port {
    /// Checks that an order could be carried out now.
    pub(super) fn check(&mut self, order: &Order) -> Result<(), RefusedChange> {
        if !self.card.is_hosted() {
            return Err(RefusedChange::Guests);
        }
        let room = self.journal.check_room(order.vfs.len());
        room.map_err(|error| RefusedChange::Room { name: self.name.clone(), error })?;
        let checked = self.card.check(&order.policies(self.slots.len()));
        checked.map_err(|unfit| refused(&self.name, unfit))
    }

    /// Carries out an order, whole or not at all.
    pub(super) fn carry(&mut self, order: &Order, new: Vec<OpenVf>) -> Result<(), RefusedChange> {
        let before = self.slots.len();
        let carried = self.offer(new).and_then(|()| {
            let policies = order.policies(self.slots.len());
            let set = self.card.carry(&order.policy, &policies, &mut self.bus);
            set.map_err(|unfit| refused(&self.name, unfit))
        });
        if let Err(why) = carried {
            self.withdraw(before);
            return Err(why);
        }
        for (index, vf) in VfIndex::first(order.vfs.len()).zip(&order.vfs) {
            if let Some(on) = vf.quarantine {
                self.card.quarantine(index, on, &mut self.bus);
            }
        }
        self.show_links();
        self.note_software();
        Ok(())
    }

    /// Offers VFs beyond those that there are.
    fn offer(&mut self, new: Vec<OpenVf>) -> Result<(), RefusedChange> {
        for OpenVf { config, listener, means } in new {
            let (index, place) = (config.index, Place::of_vf(&config));
            self.poller.add(&listener, LISTENERS + self.slots.len() as u64, Interest::READ)?;
            self.bus.add_vf(means);
            let keeping = Keeping::new(&self.journal, index.function(), &self.vault, &self.bus);
            self.slots.push(Slot::new(&place, listener, keeping));
            let count = self.slots.len() as u8;
            self.card.offer(index, count, &self.name)?;
        }
        Ok(())
    }

    /// Offers only so many VFs from now on.
    pub(super) fn withdraw(&mut self, count: usize) {
        while self.slots.len() > count {
            let last = self.slots.len() - 1;
            self.slots[last].next = None;
            self.disconnect(last, &Over::Ended);
            let Some(mut slot) = self.slots.pop() else { return };
            self.vault.forget_named(&slot.kept_listener());
            // Closing the descriptor removes it from the poller too; a failure here has no consequence.
            let _ = self.poller.remove(&slot.listener);
            if let Some(vf) = slot.function.vf()
                && let Err(error) = self.card.withdraw(vf, last as u8, &self.name)
            {
                slot.log.warn(now(), &slot.name, "the VF was not given back cleanly", &error);
            }
            self.bus.remove_vf();
        }
        self.show_links();
        self.note_software();
    }
}

fn refused(port: &str, (vf, error): Unfit) -> RefusedChange {
    let name = vf.map_or_else(|| port.to_owned(), |vf| format!("{port}{vf}"));
    RefusedChange::Setting { name, error: error.into() }
}
