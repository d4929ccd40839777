//! Transition of the running host to a changed configuration, whole or not at all: every port checks its part first,
//! then the change is saved on disk, and only then it takes effect.

use super::refit::{ReconfigurationsByPort, retire};
use super::{ControlRequestResult, HostManager, refused};
use crate::config::{HostConfig, PortConfig};
use crate::port::{
    PortCommandInbox, PortHandle, PortPolicyUpdate, PortThreadCommand, PreparedPort, PreparedVf,
    VfPolicyUpdate,
};
use crate::uplink_threads::UplinkThreads;
use crate::vault::PortFileDescriptorStore;
use crate::volatile;
use std::collections::BTreeMap;
use std::time::Instant;

/// New policies of the running ports whose policies change, with the ports' names.
type ChangedPolicies = Vec<(String, PortPolicyUpdate)>;

/// Opened ports, VFs and uplinks of a changed configuration that are not in use yet.
#[derive(Debug, Default)]
struct PreparedConfigChange {
    /// Opened ports that the new configuration adds.
    ports: Vec<(PortConfig, (PreparedPort, PortCommandInbox, PortHandle))>,
    /// New VFs of running ports, by port name.
    vfs: BTreeMap<String, Vec<PreparedVf>>,
    /// Prepared changes of running ports' uplinks, links and processors, by port name.
    refits: ReconfigurationsByPort,
    /// Uplink threads of the ports that the new configuration adds, also of one that failed to open.
    threads: Vec<(String, UplinkThreads)>,
}

impl HostManager {
    /// Applies the configuration `next` to the running host, or changes nothing. `let_out` names a VF to release from
    /// quarantine, whether the administrator or the host has quarantined it.
    pub(super) fn transition_to(
        &mut self,
        next: HostConfig,
        let_out: Option<&str>,
    ) -> ControlRequestResult<()> {
        let changed = self.check_change(&next, let_out)?;
        self.make_change(next, &changed)
    }

    /// Checks that the running host can change to the configuration `next`. Returns the new policies of the ports whose policies
    /// change.
    fn check_change(
        &self,
        next: &HostConfig,
        let_out: Option<&str>,
    ) -> ControlRequestResult<ChangedPolicies> {
        self.refuse_what_cannot_change(next)?;
        self.refuse_addresses_in_use(next)?;
        let changed = self.changed(next, let_out);
        for (name, order) in &changed {
            let order = order.clone();
            self.ports.ask(name, |answer| PortThreadCommand::Check(order, answer))?.map_err(refused)?;
        }
        Ok(changed)
    }

    /// Changes the running host to the checked configuration `next`, or changes nothing: a guest may since have taken what a port
    /// needs.
    fn make_change(
        &mut self,
        next: HostConfig,
        changed: &[(String, PortPolicyUpdate)],
    ) -> ControlRequestResult<()> {
        self.ports.await_ends(|name| next.has_port(name))?;
        let mut prepared = self.prepare(&next)?;
        if let Err(error) = self.state_file.keep(&next, &self.config) {
            self.discard(prepared, &next);
            return Err(refused(error));
        }
        if let Err(failure) = self.put_to_work(&next, changed, &mut prepared) {
            if let Err(error) = self.state_file.take_back(&self.config, &next) {
                tracing::error!(
                    %error,
                    "cannot remove a refused change from the state file; the next start would apply it"
                );
            }
            self.discard(prepared, &next);
            return Err(failure);
        }
        // The former parts of the ports.
        retire(prepared.refits);
        self.conclude(next);
        Ok(())
    }

    /// Ends the ports that the configuration `next`, which is in force, has not, and stores the configuration.
    fn conclude(&mut self, next: HostConfig) {
        let stays = |name: &str| next.ports.iter().any(|port| port.name == name);
        for port in self.config.ports.iter().filter(|port| !stays(&port.name)) {
            self.ports.end(&port.name);
        }
        next.ports.iter().for_each(|port| self.ports.configure(port));
        volatile::note(&next, self.ports.vault());
        self.config = next;
    }

    /// Refuses a configuration with changes for which a running port would have to disconnect the guests of all its
    /// VFs.
    fn refuse_what_cannot_change(&self, next: &HostConfig) -> ControlRequestResult<()> {
        for (old, new) in self.config.common_ports(next) {
            let same_sockets = old.all_vfs().map(|vf| &vf.socket).eq(new.all_vfs().map(|vf| &vf.socket));
            let modes = old.all_vfs().map(|vf| vf.socket_mode);
            let same_modes = modes.eq(new.all_vfs().map(|vf| vf.socket_mode));
            refuse_other_families(old, new)?;
            let parts = [
                ("mac", old.mac == new.mac),
                ("family", old.family == new.family),
                ("pf or socket", old.pf_socket == new.pf_socket),
                ("wait", old.wait == new.wait),
                ("workers", old.workers == new.workers),
                ("dispatcher", old.dispatcher == new.dispatcher),
                ("gro, rx_usecs or tx_usecs", old.coalescing == new.coalescing),
                ("vf.socket", same_sockets),
                ("socket_mode", same_modes),
                ("access", same_access(old, new)),
            ];
            if let Some((key, _)) = parts.iter().find(|(_, same)| !same) {
                let name = &old.name;
                return Err(refused(format!(
                    "{name}.{key} cannot change while the port runs; restart the host, or give the port \
                     another name, which takes {name} from its guests"
                )));
            }
        }
        Ok(())
    }

    /// Refuses a configuration with a new MAC address that a guest of another port uses by its own choice, without
    /// configuration. Each port checks the addresses of its own guests.
    fn refuse_addresses_in_use(&self, next: &HostConfig) -> ControlRequestResult<()> {
        for port in &next.ports {
            let old = self.config.ports.iter().find(|old| old.name == port.name);
            let had = |mac| old.is_some_and(|old| old.mac == mac || old.vfs.iter().any(|vf| vf.mac == mac));
            let vfs = port.vfs.iter().map(|vf| (&vf.name, vf.mac));
            let new: Vec<_> = vfs.chain([(&port.name, port.mac)]).filter(|(_, mac)| !had(*mac)).collect();
            if new.is_empty() {
                continue;
            }
            for (other, _) in self.config.common_ports(next).filter(|(other, _)| other.name != port.name) {
                // No guest sends from a port that was given up.
                if self.ports.is_given_up(&other.name) {
                    continue;
                }
                let status = self.ports.ask(&other.name, PortThreadCommand::Status)?;
                for vf in status.vfs {
                    // The configuration checks its own addresses, and this one may be about to change.
                    let chosen = other.vfs.iter().all(|known| known.mac.to_string() != vf.mac);
                    if let Some((name, mac)) = new.iter().find(|(_, mac)| chosen && mac.to_string() == vf.mac)
                    {
                        let message = format!(
                            "invalid setting {name}.mac: {mac} is used by {}; choose another",
                            vf.name
                        );
                        return Err(refused(message));
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the new policies of the running ports whose policies change, by port name.
    fn changed(&self, next: &HostConfig, let_out: Option<&str>) -> ChangedPolicies {
        let mut changed = Vec::new();
        for (old, new) in self.config.common_ports(next) {
            let lets_out = new.vfs.iter().any(|vf| Some(vf.name.as_str()) == let_out);
            if lets_out || old.policy != new.policy || !same_vfs(old, new) {
                changed.push((new.name.clone(), policy_update(Some(old), new, let_out)));
            }
        }
        changed
    }

    /// Opens the new ports, VFs and uplinks of a changed configuration, or nothing. [`Self::discard`] closes them.
    fn prepare(&self, next: &HostConfig) -> ControlRequestResult<PreparedConfigChange> {
        let mut prepared = PreparedConfigChange::default();
        match self.open_parts(next, &mut prepared) {
            Ok(()) => Ok(prepared),
            Err(failure) => {
                self.discard(prepared, next);
                Err(failure)
            }
        }
    }

    /// Opens the new parts of a changed configuration, up to the first one that fails.
    fn open_parts(&self, next: &HostConfig, prepared: &mut PreparedConfigChange) -> ControlRequestResult<()> {
        for port in &next.ports {
            let Some(old) = self.config.ports.iter().find(|old| old.name == port.name) else {
                let (inbox, handle) = PortCommandInbox::new().map_err(refused)?;
                prepared.threads.push((port.name.clone(), handle.uplink_threads().clone()));
                let opened = self.ports.open(port, &inbox);
                let opened =
                    opened.map_err(|error| refused(format!("cannot open port {}: {error}", port.name)))?;
                prepared.ports.push((port.clone(), (opened, inbox, handle)));
                continue;
            };
            let vault = PortFileDescriptorStore::new(self.ports.vault(), &port.name);
            let new = port.vfs.get(old.vfs.len()..).unwrap_or_default();
            let new = PreparedVf::open_all(new, &vault, &self.ports.threads).map_err(refused)?;
            prepared.vfs.insert(port.name.clone(), new);
        }
        for (old, new) in self.config.common_ports(next) {
            prepared.refits.extend(self.refit(old, new)?.map(|refit| (new.name.clone(), refit)));
        }
        Ok(())
    }

    /// Closes the ports, VFs and uplinks that were prepared for a refused configuration `next`. Waits for their devices and sockets,
    /// for at most the timeout of an answer: a second attempt would find them in use.
    fn discard(&self, prepared: PreparedConfigChange, next: &HostConfig) {
        let PreparedConfigChange { ports, vfs, refits, threads } = prepared;
        retire(refits);
        // A watcher of an uplink keeps file descriptors until its port is closed.
        drop((ports, vfs));
        let deadline = Instant::now() + self.ports.patience;
        for (port, threads) in threads {
            if !threads.devices.wait(deadline.saturating_duration_since(Instant::now())) {
                tracing::warn!(
                    port,
                    "a thread of the refused port's uplink waits for the kernel; its interface or socket is in use until then"
                );
            }
        }
        self.forget_added(next);
    }

    /// Releases the kept file descriptors of ports and VFs that a refused configuration `next` would have added: sockets and
    /// interfaces are free again, and a later port or VF of that name begins anew.
    fn forget_added(&self, next: &HostConfig) {
        for port in &next.ports {
            let vault = PortFileDescriptorStore::new(self.ports.vault(), &port.name);
            match self.config.ports.iter().find(|old| old.name == port.name) {
                None => vault.forget_all(),
                Some(old) => PreparedVf::forget(port.vfs.get(old.vfs.len()..).unwrap_or_default(), &vault),
            }
        }
    }

    /// Sends the ports their parts of a changed configuration. If a port refuses its part, all ports return to their
    /// former state.
    fn put_to_work(
        &self,
        next: &HostConfig,
        changed: &[(String, PortPolicyUpdate)],
        prepared: &mut PreparedConfigChange,
    ) -> ControlRequestResult<()> {
        self.ports.begin_change();
        for (done, (name, order)) in changed.iter().enumerate() {
            let (order, new) = (order.clone(), prepared.vfs.remove(name).unwrap_or_default());
            let carried = self.ports.ask(name, |answer| PortThreadCommand::ApplyPolicies(order, new, answer));
            if let Err(failure) = carried.and_then(|carried| carried.map_err(refused)) {
                // The port may only be late and still apply the policies, so it must return as well.
                self.go_back(next, &changed[..=done]);
                return Err(failure);
            }
        }
        if let Err(failure) = self.put_refits_to_work(&mut prepared.refits) {
            self.go_back(next, changed);
            return Err(failure);
        }
        for (place, (config, opened)) in prepared.ports.drain(..).enumerate() {
            if let Err(error) = self.ports.start(&config, opened) {
                let back = std::mem::take(&mut prepared.refits);
                self.take_refits_back(&mut prepared.refits, back);
                let added = next.ports.iter().filter(|port| !self.config.has_port(&port.name));
                added.take(place).for_each(|port| self.ports.end(&port.name));
                self.go_back(next, changed);
                return Err(refused(format!("{}: cannot start the port's thread: {error}", config.name)));
            }
        }
        for (old, new) in self.config.common_ports(next) {
            if new.vfs.len() >= old.vfs.len() {
                continue;
            }
            let withdrawn =
                self.ports.ask(&new.name, |answer| PortThreadCommand::Withdraw(new.vfs.len(), answer));
            if let Err(late) = withdrawn {
                tracing::warn!(
                    port = new.name,
                    why = late.message,
                    "the port has not yet withdrawn the removed VFs"
                );
            }
        }
        Ok(())
    }

    /// Returns the ports whose policies were changed to their former policies and VFs.
    fn go_back(&self, next: &HostConfig, carried: &[(String, PortPolicyUpdate)]) {
        for (old, new) in self.config.common_ports(next) {
            if !carried.iter().any(|(name, _)| *name == old.name) {
                continue;
            }
            let before = policy_update(Some(new), old, None);
            let back = self
                .ports
                .ask(&old.name, |answer| PortThreadCommand::ApplyPolicies(before, Vec::new(), answer));
            let back = back.and_then(|back| back.map_err(refused));
            let gone = self.ports.ask(&old.name, |answer| PortThreadCommand::Withdraw(old.vfs.len(), answer));
            if let Err(failure) = back.and(gone) {
                tracing::error!(
                    port = old.name,
                    why = failure.message,
                    "cannot undo a refused change of the port"
                );
            }
        }
    }
}

impl HostConfig {
    /// Returns the ports that both configurations contain, each with its old and its new configuration.
    fn common_ports<'a>(&'a self, next: &'a Self) -> impl Iterator<Item = (&'a PortConfig, &'a PortConfig)> {
        let pair = |old: &'a PortConfig| Some((old, next.ports.iter().find(|new| new.name == old.name)?));
        self.ports.iter().filter_map(pair)
    }

    fn has_port(&self, name: &str) -> bool {
        self.ports.iter().any(|port| port.name == name)
    }
}

/// Refuses another family of a VF, for a port that keeps its own.
fn refuse_other_families(old: &PortConfig, new: &PortConfig) -> ControlRequestResult<()> {
    let (before, after) = (old.families(), new.families());
    let changed = (0..before.len()).find(|vf| old.family == new.family && before[*vf] != after[*vf]);
    let Some(vf) = changed else { return Ok(()) };
    let [before, after] = [before[vf], after[vf]].map(|family| family.name());
    Err(refused(format!(
        "{}vf{vf}.family cannot change from \"{before}\" to \"{after}\" while the port runs; restart the host, or leave the VF's \
         family as it is",
        old.name
    )))
}

/// Returns true if both configurations of a port give its sockets the same owners, groups and modes. The host has given up the
/// rights to change them.
fn same_access(old: &PortConfig, new: &PortConfig) -> bool {
    let of_vfs =
        |port: &PortConfig| -> Vec<_> { port.vfs.iter().chain(&port.withheld).map(|vf| vf.access).collect() };
    let pf = old.pf_socket.is_none() || old.access == new.access;
    pf && of_vfs(old) == of_vfs(new)
}

fn same_vfs(old: &PortConfig, new: &PortConfig) -> bool {
    old.vfs.len() == new.vfs.len()
        && old.vfs.iter().zip(&new.vfs).all(|(a, b)| (a.policy, a.quarantine) == (b.policy, b.quarantine))
}

/// Returns the policy update that changes a port from the configuration `old` to `new`.
fn policy_update(old: Option<&PortConfig>, new: &PortConfig, let_out: Option<&str>) -> PortPolicyUpdate {
    let vfs = new.vfs.iter().enumerate().map(|(n, vf)| {
        let was = old.and_then(|old| old.vfs.get(n)).is_some_and(|old| old.quarantine);
        let released = Some(vf.name.as_str()) == let_out && !vf.quarantine;
        let quarantine = (vf.quarantine != was || released).then_some(vf.quarantine);
        VfPolicyUpdate { policy: vf.policy, quarantine }
    });
    PortPolicyUpdate { policy: new.policy, vfs: vfs.collect() }
}

#[cfg(test)]
mod tests;
