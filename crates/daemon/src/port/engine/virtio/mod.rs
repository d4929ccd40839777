//! Card of a port whose VFs are virtio network devices behind vhost-user. The VMM provides each PCI device, its
//! configuration space and control queue. The card serves only the rings, so there is no PF driver and no mailbox.
//!
//! | module | content |
//! |---|---|
//! | `applied` | policy, conduct and link, applied to the devices |
//! | `rules` | the forwarding rules that follow from a policy |
//! | `parts` | parts of the card, which workers run |
//! | `held` | offences of VFs, throttles and quarantines |
//! | `saved` | creates, saves and restores a port |
//! | `report` | counters and status |

mod applied;
mod held;
mod parts;
mod report;
mod rules;
pub(in crate::port) mod saved;
#[cfg(test)]
mod tests;

use super::bus::GuestBus;
use super::decided::VfPolicyState;
use super::error::CardChangeRefusal;
use super::family::{PfDriverRunResult, PortCard, RefusedPolicy, ReportedVfState, VfDriverState};
use super::owed_work::OwedWork;
use super::page_memory::VfRegisterPages;
use super::revocation::loses_right;
use super::switch_policy::SwitchPolicyState;
use super::uplink::PortUplink;
use super::workers::{BUDGET, DividedCard, FrameWorkers, PortWorkers, WorkerFailure};
use crate::config::coalesce::CoalescingConfig;
use crate::config::{self, PortConfig};
use crate::control::status::WorkerStatus;
use crate::state::SavedStateError;
use crate::state::port::{ClientState, ConfiguredPolicies};
use driver::conduct::{VfConductMonitor, VfConductVerdict};
use host::confine::PreparedSandbox;
use i82576::Time;
use iovm::VirtualFunctionState;
use nic::{PollResult, PoolCounters};
use pcie::{Function, VfIndex, VfSet};
use plane::ForwardingPlane;
use plane::guard::GuardedPlane;
use plane::uplink::UplinkTally;
use policy::{PolicyError, PortPolicy, VfPolicy};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use units::WorkCost;
use vfio_user::types::SparseArea;
use virtio_nic::{InterruptIntervals, MAX_VFS, Nic};

/// Applies the configured joining of frames and interrupts to a card.
pub(in crate::port) fn set_coalescing(nic: &mut Nic, config: &CoalescingConfig) {
    let CoalescingConfig { gro, rx_usecs, tx_usecs } = *config;
    nic.coalesce_segments(gro);
    let [receive, transmit] = [rx_usecs, tx_usecs].map(|micros| Duration::from_micros(micros.into()));
    nic.moderate_interrupts(InterruptIntervals { receive, transmit });
}

/// Virtio card of a port: the devices of its VFs, their policies, and the plane between VFs and uplink.
#[derive(Debug)]
pub(in crate::port) struct VirtioCard {
    pub(super) card: Nic,
    pub(super) plane: Box<ForwardingPlane<MAX_VFS>>,
    pub(super) decided: Vec<VfPolicyState>,
    /// Record of each VF's offences.
    conduct: Vec<VfConductMonitor>,
    /// VFs that are throttled.
    throttled: VfSet,
    /// Number of resets of each VF.
    resets: [u64; MAX_VFS],
    pub(super) rules: SwitchPolicyState,
    configured: ConfiguredPolicies<PortPolicy>,
    /// VFs of the port that the card of another family serves.
    pub(super) others: VfSet,
    /// True if the port's mirror rules have changed since the switch's tables were made.
    pub(super) changed: bool,
    link: bool,
    /// Work for VFs that the port has not charged yet.
    owed: OwedWork,
    /// Threads that share the VFs; none if the port's own thread serves all of them.
    workers: Option<FrameWorkers<Nic>>,
}

impl PortCard for VirtioCard {
    fn family(&self) -> config::file::CardFamily {
        config::file::CardFamily::Virtio
    }

    fn virtio(&mut self) -> Option<&mut Nic> {
        Some(&mut self.card)
    }

    fn is_disconnected(&self, vf: VfIndex) -> bool {
        self.is_barred(vf, &self.decided[vf.index()].policy)
    }

    fn region(&self, _: Function, _: u32) -> usize {
        0
    }

    fn read(&mut self, _: Function, _: u32, _: u64, _: &mut [u8], _: Time) {}

    fn write(&mut self, _: Function, _: u32, _: u64, _: &[u8], _: Time) {}

    fn reset_function(&mut self, function: Function) -> bool {
        let Some(vf) = function.vf() else { return false };
        self.card.reset(vf.get());
        self.resets[vf.index()] += 1;
        true
    }

    fn settle_work(&mut self, charge: &mut dyn FnMut(VfIndex, WorkCost)) {
        self.owed.settle(charge);
    }

    /// Returns true if a ring of the VF's device is started, so that the card accesses the guest's memory.
    fn is_bus_master(&self, function: Function) -> bool {
        function.vf().is_some_and(|vf| self.card.has_ring(vf.get()))
    }

    fn mappable(&self, _: VfIndex) -> &'static [SparseArea] {
        &[]
    }

    fn share_pages(&mut self, _: VfIndex, _: &Arc<VfRegisterPages>, _: bool, _: Time) {}

    fn has_new_doorbells(&self, _: VfIndex, _: &VfRegisterPages) -> bool {
        false
    }

    fn read_doorbells(&mut self, _: VfIndex, _: &VfRegisterPages, _: Time) {}

    fn publish_registers(&mut self, _: VfIndex, _: &VfRegisterPages, _: Time) {}

    fn is_hosted(&self) -> bool {
        true
    }

    fn pending_requests(&mut self, _: Time) -> VfSet {
        VfSet::NONE
    }

    /// Ends the expired throttles of VFs. A virtio guest has no mailbox.
    fn visit(&mut self, _: &mut GuestBus, now: Time) -> PfDriverRunResult {
        PfDriverRunResult { deadline: self.end_throttles(now), ..PfDriverRunResult::default() }
    }

    fn judge(
        &mut self,
        vf: VfIndex,
        interrupts: u64,
        _: &mut GuestBus,
        now: Time,
    ) -> Option<VfConductVerdict> {
        self.watch(vf, interrupts, now)
    }

    fn poll(&mut self, now: Time, bus: &mut GuestBus, uplink: &mut PortUplink) -> PollResult {
        let has_changed = self.take_changed();
        let Self { card, plane, rules, workers, .. } = self;
        plane.now = now;
        (plane.uplink.link, plane.uplink.receives) = (self.link, true);
        if has_changed {
            card.apply_policy(plane, &rules.mirrors());
            workers.iter_mut().for_each(FrameWorkers::change_tables);
        }
        rules.pass_windows(plane);
        let from_workers = workers
            .as_mut()
            .filter(|workers| workers.are_divided())
            .is_some_and(|workers| workers.receive(&mut DividedCard { card, plane, bus }, uplink));
        // The card may stay whole for a while, such as for the messages of a client.
        workers.iter().flat_map(FrameWorkers::kicked_elsewhere).for_each(|vf| card.make_all_ready(vf));
        let from_uplink = card.arrive(plane, BUDGET, bus, uplink);
        let visits = FrameWorkers::begin_visits(workers.as_ref(), plane);
        let from_rings = card.visit_ready_vfs(plane, BUDGET, bus, uplink, visits);
        plane.tally = UplinkTally::default();
        let deadline = [card.due(), rules.watch(plane)].into_iter().flatten().min();
        bus.charge_interrupts(&mut plane.shares);
        PollResult { more: from_workers || from_uplink || from_rings, deadline }
    }

    fn polls_rings(&self) -> bool {
        self.card.polls_rings()
    }

    fn look_at_rings(&mut self, bus: &mut GuestBus) -> bool {
        self.card.look_at_rings(bus)
    }

    fn arm_rings(&mut self, bus: &mut GuestBus) -> bool {
        self.card.arm_rings(bus)
    }

    fn start_workers(&mut self, config: &PortConfig, threads: &PreparedSandbox) -> io::Result<()> {
        self.workers = Some(FrameWorkers::start(config, threads, &mut self.card)?);
        Ok(())
    }

    fn workers(&mut self) -> Option<&mut dyn PortWorkers> {
        self.workers.as_mut().map(|workers| workers as &mut dyn PortWorkers)
    }

    fn worker_status(&mut self, vfs: usize) -> Vec<WorkerStatus> {
        self.workers.as_mut().map_or_else(Vec::new, |workers| workers.status(vfs, &self.plane))
    }

    fn is_divided(&self) -> bool {
        self.workers.as_ref().is_some_and(FrameWorkers::are_divided)
    }

    fn has_changed(&self) -> bool {
        self.changed || self.card.has_changed()
    }

    fn gather(&mut self, bus: &mut GuestBus, uplink: &mut PortUplink) -> Result<(), WorkerFailure> {
        let Self { card, plane, workers, .. } = self;
        let card = &mut DividedCard { card, plane, bus };
        workers.as_mut().map_or(Ok(()), |workers| workers.gather(card, uplink))
    }

    fn assign(&mut self, bus: &mut GuestBus, alone: bool, now: Time) {
        // Storm control counts frames to groups on one plane.
        let alone = alone || self.rules.limits_storms();
        let Self { card, plane, workers, .. } = self;
        if let Some(workers) = workers {
            workers.decide(&DividedCard { card, plane, bus }, alone, now);
        }
    }

    fn divide(&mut self, bus: &mut GuestBus, takes_uncut: bool) -> Result<(), WorkerFailure> {
        let Self { card, plane, workers, .. } = self;
        let card = &mut DividedCard { card, plane, bus };
        workers.as_mut().map_or(Ok(()), |workers| workers.divide(card, takes_uncut))
    }

    fn link(&self) -> bool {
        self.link
    }

    fn set_link(&mut self, up: bool) {
        if std::mem::replace(&mut self.link, up) != up {
            self.enforce_all();
        }
    }

    fn guards(&self) -> &dyn GuardedPlane {
        &*self.plane
    }

    fn guards_mut(&mut self) -> &mut dyn GuardedPlane {
        self.workers.iter_mut().for_each(FrameWorkers::change_tables);
        &mut *self.plane
    }

    /// Applies a VF's link: a VF without a link moves no frame. The guest sees its link go down only when its client is
    /// disconnected.
    fn show_link(&mut self, vf: VfIndex, hidden: bool, _: &mut GuestBus, _: Time) -> Result<(), PolicyError> {
        self.decided[vf.index()].hidden = hidden;
        self.enforce(vf);
        Ok(())
    }

    /// Does nothing: vhost-user has no message for it.
    fn notify(&mut self, _: VfIndex, _: &mut GuestBus, _: Time) {}

    fn check(&self, vfs: &[VfPolicy]) -> Result<(), RefusedPolicy> {
        let mut policies = VfIndex::first(MAX_VFS).zip(vfs);
        policies.try_for_each(|(vf, policy)| {
            self.check_address(vf, policy, vfs).map_err(|error| (Some(vf), error))
        })
    }

    fn apply_policies(
        &mut self,
        port: &PortPolicy,
        vfs: &[VfPolicy],
        _: &mut GuestBus,
        _: Time,
    ) -> Result<(), RefusedPolicy> {
        self.check(vfs)?;
        for (vf, policy) in VfIndex::first(MAX_VFS).zip(vfs) {
            let decided = &mut self.decided[vf.index()];
            let is_distrusted = loses_right(&decided.policy, policy);
            decided.policy = *policy;
            if is_distrusted {
                self.revoke_address(vf);
            }
        }
        self.rules.policy = *port;
        self.configured = ConfiguredPolicies { port: *port, vfs: vfs.to_vec() };
        self.changed = true;
        self.enforce_all();
        Ok(())
    }

    fn quarantine(&mut self, vf: VfIndex, on: bool, _: &mut GuestBus, _: Time) {
        self.set_quarantine(vf, on);
    }

    fn offer(&mut self, vf: VfIndex, _: (&str, u8), _: Time) -> Result<(), CardChangeRefusal> {
        self.reset_function(vf.function());
        Ok(())
    }

    fn withdraw(&mut self, vf: VfIndex, _: (&str, u8), _: Time) -> Result<(), CardChangeRefusal> {
        self.reset_function(vf.function());
        Ok(())
    }

    /// Rebuilds the tables of the switch. The rings keep running, because a vhost-user client cannot be asked to start
    /// them again.
    fn reset(&mut self, _: &mut GuestBus, _: &mut PortUplink, _: Time) -> Result<(), CardChangeRefusal> {
        self.changed = true;
        Ok(())
    }

    fn remove(&mut self, _: &mut GuestBus, _: Time) {
        self.set_link(false);
    }

    fn counters(&mut self, function: Function) -> PoolCounters {
        function.vf().map_or_else(PoolCounters::default, |vf| self.vf_counters(vf))
    }

    fn port_policy(&self) -> Option<&PortPolicy> {
        Some(&self.rules.policy)
    }

    fn storms(&self) -> u64 {
        self.rules.storms
    }

    fn vf_status(&self, vf: VfIndex) -> Option<ReportedVfState> {
        Some(self.status(vf))
    }

    /// Returns `None`: the VMM provides the VF's PCI device, so the card knows no routing id.
    fn rid(&self, _: VfIndex) -> Option<String> {
        None
    }

    fn rings(&mut self, vf: VfIndex, _: Time) -> (Vec<u32>, Vec<u32>) {
        self.card.rings(vf.get())
    }

    fn is_active(&self, vf: VfIndex) -> bool {
        self.card.is_active(vf.get())
    }

    fn driver_state(&self, vf: VfIndex) -> Option<VfDriverState> {
        Some(self.state_of_driver(vf))
    }

    /// Returns an empty name: a virtio VF makes no requests that could be refused.
    fn reason(&self, _: usize) -> &'static str {
        ""
    }

    fn configuration(&self, _: Function) -> Option<VirtualFunctionState> {
        None
    }

    fn save_drivers(&mut self) -> Result<Vec<u8>, SavedStateError> {
        self.saved(None)
    }

    fn save_all(
        &mut self,
        watched: Time,
        functions: Vec<ClientState>,
        _: &mut GuestBus,
        _: Time,
    ) -> Result<Vec<u8>, SavedStateError> {
        self.at_rest(watched, functions)
    }
}
