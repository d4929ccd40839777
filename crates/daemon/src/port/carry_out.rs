//! Carries out the commands to a port, which `management` sends: reports, changes of policies, uplink and VFs, resets,
//! disconnects, the end. `pause` has the pause before a hand-over.

use super::clients::errand::BlockingCallQueue;
use super::clients::holdings::ClientResources;
use super::clients::listening::{FunctionSocketConfig, kept_listener};
use super::clients::slot::OfferedFunction;
use super::command::{PortCommandInbox, PortThreadCommand};
use super::engine::error::CardChangeRefusal;
use super::engine::family::RefusedPolicy;
use super::error::PortChangeRefusal;
use super::moments::pass_moment;
use super::policy_update::{PortPolicyUpdate, PreparedVf};
use super::refit::{PortReconfiguration, ReconfigurationResult};
use super::run::{OpenPort, PortPhase};
use super::status::PortStatusSource;
use crate::clock::TimeSource;
use crate::control::status::PortStatus;
use host::cpus::CpuList;
use i82576::Time;
use pcie::VfIndex;
use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc::TryRecvError;

impl OpenPort {
    /// Carries out the commands that arrived since the last call. A pause may wait, and the commands after it too.
    pub(super) fn carry_out_commands(&mut self, inbox: &PortCommandInbox, clock: &dyn TimeSource) {
        while self.continue_pause(inbox, clock) && self.phase != PortPhase::Outdated {
            let command = match inbox.commands.try_recv() {
                Ok(command) => command,
                Err(TryRecvError::Disconnected) => PortThreadCommand::Stop,
                Err(TryRecvError::Empty) => return,
            };
            let now = clock.now();
            match command {
                PortThreadCommand::Pause(time, answer) => self.begin_pause(time, answer, now),
                PortThreadCommand::Stop => return self.end(now),
                PortThreadCommand::OpenAgain if self.phase == PortPhase::Serving => {
                    return self.phase = PortPhase::Outdated;
                }
                command => self.carry_out(command, now),
            }
        }
    }

    fn carry_out(&mut self, command: PortThreadCommand, now: Time) {
        // The sender may have given up waiting for the answer, so a failed send has no consequence.
        match command {
            PortThreadCommand::Status(answer) => {
                let _ = answer.send(self.status(now));
            }
            PortThreadCommand::Functions(answer) => {
                let _ = answer.send(self.report(now).functions());
            }
            PortThreadCommand::Flight(vf, answer) => {
                let _ = answer.send(self.clients.flight(vf, &mut self.engine, now));
            }
            PortThreadCommand::Capture(capture) => self.engine.capture(capture),
            PortThreadCommand::Check(order, answer) => {
                let _ = answer.send(self.check(&order));
            }
            PortThreadCommand::ApplyPolicies(order, new, answer) => {
                let _ = answer.send(self.apply_policies(&order, new, now));
            }
            PortThreadCommand::Refit(refit, answer) => {
                let _ = answer.send(self.refit(*refit, now));
            }
            PortThreadCommand::Withdraw(count, answer) => {
                self.withdraw(count, now);
                let _ = answer.send(());
            }
            PortThreadCommand::Reset(answer) => {
                let _ = answer.send(self.reset(now).map(|()| self.status(now)));
            }
            PortThreadCommand::Import(vf, counters, answer) => {
                let own = self.report(now).status();
                self.succession.import_counters(vf, *counters, &own);
                // Publishing a status saves the counters for a successor process.
                let _ = self.status(now);
                let _ = answer.send(());
            }
            PortThreadCommand::Disconnect(vf, answer) => {
                let _ = answer.send(self.disconnect_vf(vf, now).map(|()| self.status(now)));
            }
            #[cfg(test)]
            PortThreadCommand::Panic => panic!("a test asked for this panic"),
            #[cfg(test)]
            PortThreadCommand::Stall(until) => until.recv().unwrap_or_default(),
            // `Resume` and `Leave` answer a pause, which is over. `carry_out_commands` carries out the others.
            PortThreadCommand::OpenAgain
            | PortThreadCommand::Resume
            | PortThreadCommand::Leave
            | PortThreadCommand::Pause(..)
            | PortThreadCommand::Stop => {}
        }
    }

    /// Returns the port's status, with counters that include those of the previous host processes. Saves the counters
    /// for a successor process.
    pub(super) fn status(&mut self, now: Time) -> PortStatus {
        let mut status = self.report(now).status();
        let uplink = self.engine.configured_uplink();
        self.succession.publish(&mut status, uplink, self.clients.save_answers());
        status
    }

    /// Returns the parts of the port that its status report reads.
    pub(super) fn report(&mut self, now: Time) -> PortStatusSource<'_> {
        let Self { name, mac, cpus, clients, engine, .. } = self;
        PortStatusSource { name, mac: *mac, cpus, clients, engine, now }
    }

    /// Begins the end of the port: takes every VF's link down first, so that guests are notified, and then disconnects
    /// every client.
    pub(super) fn end(&mut self, now: Time) {
        if self.phase != PortPhase::Serving {
            return;
        }
        self.phase = PortPhase::Ending;
        self.engine.remove(now);
        self.clients.show_links(&mut self.engine, now);
        self.clients.end(now);
    }

    /// Resets the card and sets it up again with its policy. Guests are notified first, and their drivers restart.
    fn reset(&mut self, now: Time) -> Result<(), PortChangeRefusal> {
        self.engine.reset(now)?;
        tracing::info!(port = self.name, "the port was reset");
        self.clients.disconnect_after_reset(&mut self.engine, now);
        self.clients.show_links(&mut self.engine, now);
        Ok(())
    }

    /// Takes a VF's link down for its guest, serves the client until it is silent, and disconnects the client.
    fn disconnect_vf(&mut self, index: VfIndex, now: Time) -> Result<(), PortChangeRefusal> {
        let place = self.clients.place(index);
        let connected = |place: &usize| self.clients.slots()[*place].connection().is_some();
        let place = place.filter(connected).ok_or(PortChangeRefusal::NoClient)?;
        self.clients.wind_down(place, now);
        self.clients.show_links(&mut self.engine, now);
        self.engine.notify(index, now);
        Ok(())
    }

    /// Checks that the port can apply the new policies of an update now.
    fn check(&mut self, order: &PortPolicyUpdate) -> Result<(), PortChangeRefusal> {
        let card = self.engine.card();
        if !card.is_hosted() {
            return Err(CardChangeRefusal::Guests.into());
        }
        let room = self.succession.check_room(order.vfs.len());
        room.map_err(|error| PortChangeRefusal::Room { name: self.name.clone(), error })?;
        let checked = card.check(&order.policies(self.clients.slots().len()));
        checked.map_err(|refusal| refused_policy(&self.name, refusal))
    }

    /// Adds new VFs, and applies new policies of the port and its VFs, whole or not at all.
    fn apply_policies(
        &mut self,
        order: &PortPolicyUpdate,
        new: Vec<PreparedVf>,
        now: Time,
    ) -> Result<(), PortChangeRefusal> {
        let before = self.clients.slots().len();
        let carried = self.offer(new, now).and_then(|()| {
            let policies = order.policies(self.clients.slots().len());
            let set = self.engine.apply_policies(&order.policy, &policies, now);
            set.map_err(|refusal| refused_policy(&self.name, refusal))?;
            self.engine.set_guards(self.mac, &policies);
            Ok(())
        });
        if let Err(why) = carried {
            self.withdraw(before, now);
            return Err(why);
        }
        for (index, vf) in VfIndex::first(order.vfs.len()).zip(&order.vfs) {
            if let Some(on) = vf.quarantine {
                self.engine.quarantine(index, on, now);
            }
        }
        self.clients.show_links(&mut self.engine, now);
        self.succession.note_software(self.engine.card_mut());
        Ok(())
    }

    /// Adds new VFs after the VFs that the port already offers.
    fn offer(&mut self, new: Vec<PreparedVf>, now: Time) -> Result<(), PortChangeRefusal> {
        for PreparedVf { config, endpoint, resources } in new {
            let (index, place) = (config.index, FunctionSocketConfig::of_vf(&config));
            let function = index.function();
            self.engine.add_vf(resources, config.family);
            let reach = self.engine.reach_mut(function);
            reach.set_records(self.succession.ring_records(function));
            let worker = reach.worker().clone();
            let successor = self.succession.of_client(function, worker.clone());
            let errands = BlockingCallQueue::new(function, worker, self.desk.clone());
            let slot = OfferedFunction::new(&place, endpoint, ClientResources::new(successor, errands));
            let (vault, kept) = (self.succession.vault(), kept_listener(&slot.name));
            // A port that was opened again since the socket was opened has forgotten the socket.
            if let Some(listener) = slot.endpoint.listener()
                && vault.copy_named(&kept).is_none()
            {
                pass_moment();
                vault.keep_named(&kept, listener.as_fd());
            }
            if let Err(error) = self.clients.add(slot) {
                self.engine.remove_vf();
                return Err(error.into());
            }
            let count = self.clients.slots().len() as u8;
            self.engine.card_mut().offer(index, (&self.name, count), now)?;
        }
        Ok(())
    }

    /// Withdraws the port's VFs from index `count` on, and disconnects their clients.
    pub(super) fn withdraw(&mut self, count: usize, now: Time) {
        while self.clients.slots().len() > count {
            let Some(mut slot) = self.clients.remove_last(&mut self.engine, now) else { return };
            self.succession.vault().forget_named(&kept_listener(&slot.name));
            let left = self.clients.slots().len() as u8;
            if let Some(vf) = slot.function.vf() {
                // A VF that is added later has another guest.
                self.engine.quarantine(vf, false, now);
                if let Err(error) = self.engine.card_mut().withdraw(vf, (&self.name, left), now) {
                    slot.warn(now, "cannot withdraw the removed VF from the card", &error);
                }
                self.engine.release_claims(vf);
            }
            self.engine.remove_vf();
        }
        self.clients.show_links(&mut self.engine, now);
        self.succession.note_software(self.engine.card_mut());
    }

    /// Changes the port's uplink, link or processors, whole or not at all. Returns the former values, which undo the
    /// change.
    fn refit(&mut self, refit: PortReconfiguration, now: Time) -> ReconfigurationResult {
        let PortReconfiguration { uplink, stages, link, link_local, cpus } = refit;
        let before = self.cpus.clone();
        if let Err(error) = self.run_on(cpus.clone()) {
            let refit = PortReconfiguration { uplink, stages, link, link_local, cpus };
            return Err((self.refused("cpus", error), Box::new(refit)));
        }
        let policy = self.engine.set_link_policy(link);
        let poller = self.clients.poller();
        let replaced = uplink.map(|next| self.engine.replace_uplink(next, poller, now)).transpose();
        self.engine.share_addresses();
        match replaced {
            Ok(uplink) => {
                if uplink.is_some() {
                    self.succession.forget_uplink_counters();
                }
                self.engine.set_link_policy(link);
                self.engine.renew_link();
                let stages = stages.map(|stages| self.engine.set_stages(stages));
                let link_local = self.engine.set_link_local(link_local);
                Ok(Box::new(PortReconfiguration { uplink, stages, link: policy, link_local, cpus: before }))
            }
            Err(refused) => {
                let (next, error) = *refused;
                self.engine.set_link_policy(policy);
                // The thread ran on these processors a moment ago.
                let _ = self.run_on(before);
                Err((
                    self.refused("uplink", error),
                    Box::new(PortReconfiguration { uplink: Some(next), stages, link, link_local, cpus }),
                ))
            }
        }
    }

    /// Pins the port's threads to `cpus`. An empty set means all processors of the host.
    pub(super) fn run_on(&mut self, cpus: CpuList) -> io::Result<()> {
        if self.cpus != cpus {
            let allowed = if cpus.is_empty() { &self.anywhere } else { &cpus };
            allowed.pin()?;
            self.engine.run_workers_on(allowed);
            self.cpus = cpus;
        }
        Ok(())
    }

    fn refused(&self, key: &'static str, source: io::Error) -> PortChangeRefusal {
        PortChangeRefusal::Refit { name: self.name.clone(), key, source }
    }
}

fn refused_policy(port: &str, (vf, error): RefusedPolicy) -> PortChangeRefusal {
    let name = vf.map_or_else(|| port.to_owned(), |vf| format!("{port}{vf}"));
    PortChangeRefusal::Setting { name, error: error.into() }
}
