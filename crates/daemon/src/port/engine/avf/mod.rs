//! Card of a port with Adaptive Virtual Functions (AVF). The host runs the PF, which is not visible as a PCI device.
//!
//! | module | content |
//! |---|---|
//! | `access` | configuration space and registers, as clients reach them |
//! | `parts` | register pages that guests map; parts of the card, which workers run |
//! | `hal`, `pf` | the PF driver's access to the card; runs of the driver |
//! | `saved` | creates, saves and restores a port |
//! | `report` | counters and status |

mod access;
mod hal;
mod parts;
mod pf;
mod report;
mod saved;
#[cfg(test)]
mod tests;

use super::bus::GuestBus;
use super::decided::VfPolicyState;
use super::error::CardChangeRefusal;
use super::family::{PfDriverRunResult, PortCard, RefusedPolicy, ReportedVfState, VfDriverState};
use super::page_memory::VfRegisterPages;
use super::switch_policy::SwitchPolicyState;
use super::uplink::PortUplink;
use super::workers::{BUDGET, DividedCard, FrameWorkers, PortWorkers, WorkerFailure};
use crate::config::{self, PortConfig};
use crate::control::status::WorkerStatus;
use crate::state::SavedStateError;
use crate::state::port::{ClientState, ConfiguredPolicies};
use avf::ids::{BAR0_SIZE, BAR3_SIZE, LINK_SPEED, MAX_VFS};
use avf_nic::Nic;
use driver::avf::pf::AvfPf;
use driver::conduct::{QuarantineCause, VfConductVerdict};
use hal::PfDmaMemory;
use host::confine::PreparedSandbox;
use i82576::Time;
use iovm::{VirtualFunction, VirtualFunctionState};
use nic::{PollResult, PoolCounters};
use parts::{AREAS, AvfCardPart};
use pcie::{Function, VfIndex, VfSet};
use plane::ForwardingPlane;
use policy::{PolicyError, PortPolicy, VfPolicy};
use std::io;
use std::sync::Arc;
use units::WorkCost;
use vfio_user::types::SparseArea;
use vfio_user::wire::pci_region;

/// AVF card of a port: the PF driver, the plane between VFs and uplink, and the VFs' configuration spaces.
#[derive(Debug)]
pub(in crate::port) struct AvfCard {
    pub(super) card: AvfCardPart,
    pub(super) pf: AvfPf,
    pub(super) pf_memory: PfDmaMemory,
    pub(super) plane: Box<ForwardingPlane<MAX_VFS>>,
    functions: Vec<VirtualFunction>,
    pub(super) decided: Vec<VfPolicyState>,
    rules: SwitchPolicyState,
    configured: ConfiguredPolicies<PortPolicy>,
    /// VFs with a mailbox message that the PF driver has not handled yet.
    pub(super) asking: VfSet,
    pub(super) link: bool,
    /// True if the PF driver has left requests or resets to its next run, which follows at once.
    unfinished: bool,
    /// True if the port's link has changed since the PF driver has run.
    link_changed: bool,
    /// Threads that share the VFs; none if the port's own thread serves all of them.
    workers: Option<FrameWorkers<AvfCardPart>>,
}

impl PortCard for AvfCard {
    fn region(&self, function: Function, index: u32) -> usize {
        match index {
            _ if function == Function::Pf => 0,
            pci_region::BAR0 => BAR0_SIZE,
            pci_region::BAR3 => BAR3_SIZE,
            pci_region::CONFIG => pcie::config::SIZE,
            _ => 0,
        }
    }

    fn read(&mut self, function: Function, region: u32, offset: u64, data: &mut [u8], _: Time) {
        let Some(vf) = function.vf() else { return };
        match region {
            pci_region::BAR0 => self.read_registers(vf, offset, data),
            pci_region::BAR3 => self.functions[vf.index()].msix_read(offset, data),
            pci_region::CONFIG => self.functions[vf.index()].config_read(offset, data),
            _ => {}
        }
    }

    fn write(&mut self, function: Function, region: u32, offset: u64, data: &[u8], _: Time) {
        let Some(vf) = function.vf() else { return };
        match region {
            pci_region::BAR0 => self.write_registers(vf, offset, data),
            pci_region::BAR3 => self.functions[vf.index()].msix_write(offset, data),
            pci_region::CONFIG => self.config_write(vf, offset, data),
            _ => {}
        }
    }

    fn reset_function(&mut self, function: Function) -> bool {
        let Some(vf) = function.vf() else { return false };
        self.functions[vf.index()].reset();
        self.reset_card(vf, Nic::reset_for_next_owner);
        true
    }

    fn reset_for_next_client(&mut self, function: Function) -> bool {
        function.vf().into_iter().for_each(|vf| self.pf.forget_guest(vf.get()));
        self.reset_function(function)
    }

    fn take_work(&mut self) -> WorkCost {
        self.card.nic.take_work()
    }

    fn hold_requests(&mut self, vfs: VfSet) {
        self.card.nic.hold_mail(vfs);
        self.pf.hold_resets(vfs.bits());
    }

    fn settle_work(&mut self, charge: &mut dyn FnMut(VfIndex, WorkCost)) {
        self.card.nic.settle_work(charge);
    }

    fn is_bus_master(&self, function: Function) -> bool {
        function.vf().is_some_and(|vf| self.card.nic.is_bus_master(vf.get()))
    }

    fn mappable(&self, _: VfIndex) -> &'static [SparseArea] {
        AREAS
    }

    fn share_pages(&mut self, vf: VfIndex, pages: &Arc<VfRegisterPages>, exactly: bool, _: Time) {
        self.card.share_pages(vf, pages, exactly);
    }

    fn unshare_pages(&mut self, vf: VfIndex) {
        self.card.unshare_pages(vf);
    }

    fn has_new_doorbells(&self, vf: VfIndex, _: &VfRegisterPages) -> bool {
        self.card.has_new_doorbells(vf)
    }

    fn read_doorbells(&mut self, vf: VfIndex, _: &VfRegisterPages, _: Time) {
        self.card.read_doorbells(vf);
    }

    fn publish_registers(&mut self, vf: VfIndex, _: &VfRegisterPages, _: Time) {
        self.card.publish_registers(vf);
    }

    fn family(&self) -> config::file::CardFamily {
        config::file::CardFamily::Avf
    }

    fn is_hosted(&self) -> bool {
        true
    }

    fn pending_requests(&mut self, _: Time) -> VfSet {
        self.asking
    }

    fn visit(&mut self, bus: &mut GuestBus, now: Time) -> PfDriverRunResult {
        self.link_changed = false;
        let link = self.link.then_some(LINK_SPEED);
        let visit = self.with_pf(bus, now, |pf, hal| {
            pf.set_link(hal, link);
            hal.charges = true;
            pf.visit(hal)
        });
        let answered = VfSet::new(visit.answered);
        let served = self.asking.and(answered);
        // Requests that a reset has made void need no answer.
        let void = VfSet::new(visit.resets | visit.unpaid);
        self.asking = if visit.more { self.asking.without(answered.or(void)) } else { VfSet::NONE };
        self.unfinished = visit.more;
        let deadline = if visit.more { Some(now) } else { visit.deadline };
        PfDriverRunResult { served, link_changed: false, deadline }
    }

    fn judge(
        &mut self,
        vf: VfIndex,
        interrupts: u64,
        bus: &mut GuestBus,
        now: Time,
    ) -> Option<VfConductVerdict> {
        let (totals, limits) = (self.offence_totals(vf, interrupts), self.rules.policy.limits);
        self.with_pf(bus, now, |pf, hal| pf.watch(hal, vf.get(), totals, &limits))
    }

    fn poll(&mut self, now: Time, bus: &mut GuestBus, uplink: &mut PortUplink) -> PollResult {
        let has_changed = self.take_changed(0, VfSet::NONE);
        let Self { card, plane, rules, pf_memory, workers, .. } = self;
        (plane.now, plane.uplink.link, plane.uplink.receives) = (now, self.link, true);
        if has_changed {
            card.nic.apply_policy(plane, &rules.mirrors());
            workers.iter_mut().for_each(FrameWorkers::change_tables);
        }
        rules.pass_windows(plane);
        let from_workers = workers
            .as_mut()
            .filter(|workers| workers.are_divided())
            .is_some_and(|workers| workers.receive(&mut DividedCard { card, plane, bus }, uplink));
        let from_uplink = card.nic.arrive(plane, BUDGET, bus, uplink);
        let visits = FrameWorkers::begin_visits(workers.as_ref(), plane);
        let from_queues = card.nic.visit_ready_vfs(plane, BUDGET, bus, uplink, visits);
        std::mem::take(&mut plane.tally);
        let poll = card.nic.poll(now, &mut pf_memory.bus(bus));
        self.asking = self.asking.or(VfSet::new(poll.for_pf));
        bus.charge_interrupts(&mut plane.shares);
        let more = from_workers || from_uplink || from_queues || poll.more || poll.for_pf != 0;
        let deadline = [poll.deadline, card.nic.due(), rules.watch(plane)].into_iter().flatten().min();
        PollResult { more, deadline }
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

    /// Returns true if filters or rates have changed, or if the PF driver has a request to answer, a reset that waits for credit,
    /// or a new link to report.
    fn has_changed(&self) -> bool {
        self.pf_memory.changed || self.link_changed || self.unfinished || !self.asking.is_empty()
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
        self.link_changed |= std::mem::replace(&mut self.link, up) != up;
    }

    fn guards(&self) -> &dyn plane::guard::GuardedPlane {
        &*self.plane
    }

    fn guards_mut(&mut self) -> &mut dyn plane::guard::GuardedPlane {
        self.workers.iter_mut().for_each(FrameWorkers::change_tables);
        &mut *self.plane
    }

    fn show_link(
        &mut self,
        vf: VfIndex,
        hidden: bool,
        bus: &mut GuestBus,
        now: Time,
    ) -> Result<(), PolicyError> {
        let decided = &mut self.decided[vf.index()];
        if std::mem::replace(&mut decided.hidden, hidden) == hidden {
            return Ok(());
        }
        self.enforce(vf, bus, now)
    }

    /// Does nothing: a change of the link state that a VF sees already notifies the VF's driver.
    fn notify(&mut self, _: VfIndex, _: &mut GuestBus, _: Time) {}

    fn check(&self, vfs: &[VfPolicy]) -> Result<(), RefusedPolicy> {
        self.pf.check_policies(vfs).map_err(|(vf, error)| (Some(vf), error))
    }

    fn apply_policies(
        &mut self,
        port: &PortPolicy,
        vfs: &[VfPolicy],
        bus: &mut GuestBus,
        now: Time,
    ) -> Result<(), RefusedPolicy> {
        self.enforce_all(vfs, bus, now).map_err(|(vf, error)| (Some(vf), error))?;
        self.rules.policy = *port;
        self.configured = ConfiguredPolicies { port: *port, vfs: vfs.to_vec() };
        self.pf_memory.changed = true;
        Ok(())
    }

    fn quarantine(&mut self, vf: VfIndex, on: bool, bus: &mut GuestBus, now: Time) {
        self.with_pf(bus, now, |pf, hal| match on {
            true => pf.quarantine(hal, vf.get(), QuarantineCause::Administrator),
            false => pf.release(hal, vf.get()),
        });
    }

    fn offer(&mut self, vf: VfIndex, _: (&str, u8), _: Time) -> Result<(), CardChangeRefusal> {
        self.reset_for_next_client(vf.function());
        Ok(())
    }

    fn withdraw(&mut self, vf: VfIndex, _: (&str, u8), _: Time) -> Result<(), CardChangeRefusal> {
        self.reset_for_next_client(vf.function());
        Ok(())
    }

    fn reset(&mut self, bus: &mut GuestBus, _: &mut PortUplink, now: Time) -> Result<(), CardChangeRefusal> {
        self.with_pf(bus, now, |pf, hal| pf.reset_all(hal));
        Ok(())
    }

    fn remove(&mut self, bus: &mut GuestBus, now: Time) {
        self.link = false;
        self.with_pf(bus, now, |pf, hal| pf.set_link(hal, None));
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
        Some(self.vf_facts(vf))
    }

    fn rid(&self, vf: VfIndex) -> Option<String> {
        Some(self.functions[vf.index()].rid().to_string())
    }

    fn rings(&mut self, vf: VfIndex, _: Time) -> (Vec<u32>, Vec<u32>) {
        self.card.nic.rings(vf.get())
    }

    fn is_active(&self, vf: VfIndex) -> bool {
        self.pf.vf_is_active(vf.get())
    }

    fn driver_state(&self, vf: VfIndex) -> Option<VfDriverState> {
        self.state_of_driver(vf)
    }

    fn reason(&self, place: usize) -> &'static str {
        driver::avf::pf::VirtchnlRefusal::NAMES.get(place).copied().unwrap_or("")
    }

    fn configuration(&self, function: Function) -> Option<VirtualFunctionState> {
        Some(self.functions.get(function.vf()?.index())?.save())
    }

    fn save_drivers(&mut self) -> Result<Vec<u8>, SavedStateError> {
        self.saved()
    }

    fn save_all(
        &mut self,
        watched: Time,
        functions: Vec<ClientState>,
        bus: &mut GuestBus,
        now: Time,
    ) -> Result<Vec<u8>, SavedStateError> {
        self.at_rest(watched, functions, bus, now)
    }
}
