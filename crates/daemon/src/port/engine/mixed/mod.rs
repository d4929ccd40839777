//! Card of a port whose VFs are of two families: Adaptive Virtual Functions, and virtio network devices. A card of each
//! family serves the VFs of that family, by the same index. Both use one plane in turn, so the port has one switch, one
//! policy and one set of counters. A frame for a VF of the other card crosses in a trunk.
//!
//! | module | content |
//! |---|---|
//! | `switch` | one poll of both cards, the switch's tables, addresses |
//! | `trunk` | the ring for frames from one card to the other |
//! | `saved` | creates, saves and restores a port |

mod saved;
mod switch;
#[cfg(test)]
mod tests;
mod trunk;

use super::avf::AvfCard;
use super::bus::GuestBus;
use super::error::CardChangeRefusal;
use super::family::{
    PfDriverRunResult, PortCard, RefusedPolicy, ReportedVfState, VfDriverState, not_offered,
};
use super::page_memory::VfRegisterPages;
use super::uplink::PortUplink;
use super::virtio::VirtioCard;
use crate::config::file::CardFamily;
use crate::state::SavedStateError;
use crate::state::port::ClientState;
use driver::conduct::VfConductVerdict;
use i82576::Time;
use iovm::VirtualFunctionState;
use nic::{PollResult, PoolCounters};
use pcie::{Function, MAX_VFS, VfIndex, VfSet};
use plane::guard::GuardedPlane;
use policy::{PolicyError, PortPolicy, VfPolicy};
use std::sync::Arc;
use trunk::CardTrunkReceiver;
use units::WorkCost;
use vfio_user::types::SparseArea;

/// Card of a port with VFs of the families AVF and virtio.
#[derive(Debug)]
pub(in crate::port) struct MixedCard {
    /// Family of each VF, by index.
    families: [CardFamily; MAX_VFS],
    /// Family of the port.
    family: CardFamily,
    /// Card of the AVF VFs. Its policies of other VFs let them move no frame.
    avf: AvfCard,
    /// Card of the virtio VFs. Its plane is the port's switch, and its rules are those of the port.
    virtio: VirtioCard,
    /// Frames from the virtio card to the AVF card.
    to_avf: CardTrunkReceiver,
    /// Frames from the AVF card to the virtio card.
    to_virtio: CardTrunkReceiver,
}

impl MixedCard {
    /// Returns the card that serves a VF.
    fn of(&self, vf: VfIndex) -> &dyn PortCard {
        if self.is_avf(vf) { &self.avf } else { &self.virtio }
    }

    /// Returns the card that serves a function. The PF is that of the AVF card.
    fn of_function(&mut self, function: Function) -> &mut dyn PortCard {
        match function.vf() {
            Some(vf) if !self.is_avf(vf) => &mut self.virtio,
            _ => &mut self.avf,
        }
    }

    fn of_mut(&mut self, vf: VfIndex) -> &mut dyn PortCard {
        self.of_function(vf.function())
    }

    fn is_avf(&self, vf: VfIndex) -> bool {
        self.families[vf.index()] == CardFamily::Avf
    }

    /// Calls `act` with the AVF card while that card has the port's switch.
    fn with_switch<R>(&mut self, act: impl FnOnce(&mut AvfCard) -> R) -> R {
        std::mem::swap(&mut self.avf.plane, &mut self.virtio.plane);
        let result = act(&mut self.avf);
        std::mem::swap(&mut self.avf.plane, &mut self.virtio.plane);
        result
    }

    /// Returns the policies of the VFs for the AVF card, on which VFs of other families move no frame.
    fn of_avf(&self, vfs: &[VfPolicy]) -> Vec<VfPolicy> {
        let vfs = VfIndex::first(vfs.len()).zip(vfs);
        vfs.map(|(vf, policy)| if self.is_avf(vf) { *policy } else { not_offered() }).collect()
    }
}

impl PortCard for MixedCard {
    fn family(&self) -> CardFamily {
        self.family
    }

    fn vf_family(&self, vf: VfIndex) -> CardFamily {
        self.families[vf.index()]
    }

    fn virtio(&mut self) -> Option<&mut virtio_nic::Nic> {
        self.virtio.virtio()
    }

    fn is_disconnected(&self, vf: VfIndex) -> bool {
        self.of(vf).is_disconnected(vf)
    }

    fn region(&self, function: Function, index: u32) -> usize {
        function.vf().map_or(0, |vf| self.of(vf).region(function, index))
    }

    fn read(&mut self, function: Function, region: u32, offset: u64, data: &mut [u8], now: Time) {
        self.of_function(function).read(function, region, offset, data, now);
    }

    fn write(&mut self, function: Function, region: u32, offset: u64, data: &[u8], now: Time) {
        self.of_function(function).write(function, region, offset, data, now);
    }

    fn reset_function(&mut self, function: Function) -> bool {
        self.of_function(function).reset_function(function)
    }

    fn reset_for_next_client(&mut self, function: Function) -> bool {
        self.of_function(function).reset_for_next_client(function)
    }

    fn take_work(&mut self) -> WorkCost {
        self.avf.take_work()
    }

    fn hold_requests(&mut self, vfs: VfSet) {
        self.avf.hold_requests(vfs);
    }

    fn settle_work(&mut self, charge: &mut dyn FnMut(VfIndex, WorkCost)) {
        self.avf.settle_work(charge);
    }

    fn is_bus_master(&self, function: Function) -> bool {
        function.vf().is_some_and(|vf| self.of(vf).is_bus_master(function))
    }

    fn mappable(&self, vf: VfIndex) -> &'static [SparseArea] {
        self.of(vf).mappable(vf)
    }

    fn share_pages(&mut self, vf: VfIndex, pages: &Arc<VfRegisterPages>, exactly: bool, now: Time) {
        self.of_mut(vf).share_pages(vf, pages, exactly, now);
    }

    fn unshare_pages(&mut self, vf: VfIndex) {
        self.of_mut(vf).unshare_pages(vf);
    }

    fn has_new_doorbells(&self, vf: VfIndex, pages: &VfRegisterPages) -> bool {
        self.of(vf).has_new_doorbells(vf, pages)
    }

    fn read_doorbells(&mut self, vf: VfIndex, pages: &VfRegisterPages, now: Time) {
        self.of_mut(vf).read_doorbells(vf, pages, now);
    }

    fn publish_registers(&mut self, vf: VfIndex, pages: &VfRegisterPages, now: Time) {
        self.of_mut(vf).publish_registers(vf, pages, now);
    }

    fn is_hosted(&self) -> bool {
        true
    }

    fn pending_requests(&mut self, now: Time) -> VfSet {
        self.avf.pending_requests(now)
    }

    fn visit(&mut self, bus: &mut GuestBus, now: Time) -> PfDriverRunResult {
        // The AVF card's PF driver answers its guests now, and has to know the addresses of virtio VFs.
        self.follow_changes();
        let virtio = self.virtio.visit(bus, now).deadline;
        let avf = self.with_switch(|avf| avf.visit(bus, now));
        PfDriverRunResult { deadline: [avf.deadline, virtio].into_iter().flatten().min(), ..avf }
    }

    fn judge(
        &mut self,
        vf: VfIndex,
        interrupts: u64,
        bus: &mut GuestBus,
        now: Time,
    ) -> Option<VfConductVerdict> {
        if self.is_avf(vf) {
            return self.with_switch(|avf| avf.judge(vf, interrupts, bus, now));
        }
        self.virtio.judge(vf, interrupts, bus, now)
    }

    fn poll(&mut self, now: Time, bus: &mut GuestBus, uplink: &mut PortUplink) -> PollResult {
        self.move_frames(now, bus, uplink)
    }

    fn polls_rings(&self) -> bool {
        self.virtio.polls_rings()
    }

    fn look_at_rings(&mut self, bus: &mut GuestBus) -> bool {
        self.virtio.look_at_rings(bus)
    }

    fn arm_rings(&mut self, bus: &mut GuestBus) -> bool {
        self.virtio.arm_rings(bus)
    }

    fn link(&self) -> bool {
        self.avf.link()
    }

    fn set_link(&mut self, up: bool) {
        self.avf.set_link(up);
        self.virtio.set_link(up);
    }

    fn guards(&self) -> &dyn GuardedPlane {
        self.virtio.guards()
    }

    fn guards_mut(&mut self) -> &mut dyn GuardedPlane {
        self.virtio.guards_mut()
    }

    fn show_link(
        &mut self,
        vf: VfIndex,
        hidden: bool,
        bus: &mut GuestBus,
        now: Time,
    ) -> Result<(), PolicyError> {
        self.of_mut(vf).show_link(vf, hidden, bus, now)
    }

    fn notify(&mut self, vf: VfIndex, bus: &mut GuestBus, now: Time) {
        self.of_mut(vf).notify(vf, bus, now);
    }

    fn check(&self, vfs: &[VfPolicy]) -> Result<(), RefusedPolicy> {
        // The virtio card compares the addresses of all VFs with those that its guests have chosen.
        self.virtio.check(vfs)?;
        self.avf.check(&self.of_avf(vfs))
    }

    fn apply_policies(
        &mut self,
        port: &PortPolicy,
        vfs: &[VfPolicy],
        bus: &mut GuestBus,
        now: Time,
    ) -> Result<(), RefusedPolicy> {
        self.check(vfs)?;
        // The PF driver asks the port's switch which addresses others use.
        let of_avf = self.of_avf(vfs);
        self.with_switch(|avf| avf.apply_policies(port, &of_avf, bus, now))?;
        self.virtio.apply_policies(port, vfs, bus, now)
    }

    fn quarantine(&mut self, vf: VfIndex, on: bool, bus: &mut GuestBus, now: Time) {
        self.of_mut(vf).quarantine(vf, on, bus, now);
    }

    fn offer(&mut self, vf: VfIndex, offered: (&str, u8), now: Time) -> Result<(), CardChangeRefusal> {
        self.of_mut(vf).offer(vf, offered, now)
    }

    fn withdraw(&mut self, vf: VfIndex, offered: (&str, u8), now: Time) -> Result<(), CardChangeRefusal> {
        self.of_mut(vf).withdraw(vf, offered, now)
    }

    fn reset(
        &mut self,
        bus: &mut GuestBus,
        uplink: &mut PortUplink,
        now: Time,
    ) -> Result<(), CardChangeRefusal> {
        self.virtio.reset(bus, uplink, now)?;
        self.avf.reset(bus, uplink, now)
    }

    fn remove(&mut self, bus: &mut GuestBus, now: Time) {
        self.virtio.remove(bus, now);
        self.avf.remove(bus, now);
    }

    fn counters(&mut self, function: Function) -> PoolCounters {
        match function.vf() {
            Some(vf) if !self.is_avf(vf) => self.virtio.counters(function),
            _ => self.with_switch(|avf| avf.counters(function)),
        }
    }

    fn port_policy(&self) -> Option<&PortPolicy> {
        self.virtio.port_policy()
    }

    fn storms(&self) -> u64 {
        self.virtio.storms()
    }

    fn vf_status(&self, vf: VfIndex) -> Option<ReportedVfState> {
        self.of(vf).vf_status(vf)
    }

    fn rid(&self, vf: VfIndex) -> Option<String> {
        self.of(vf).rid(vf)
    }

    fn rings(&mut self, vf: VfIndex, now: Time) -> (Vec<u32>, Vec<u32>) {
        self.of_mut(vf).rings(vf, now)
    }

    fn is_active(&self, vf: VfIndex) -> bool {
        self.of(vf).is_active(vf)
    }

    fn driver_state(&self, vf: VfIndex) -> Option<VfDriverState> {
        self.of(vf).driver_state(vf)
    }

    fn reason(&self, place: usize) -> &'static str {
        self.avf.reason(place)
    }

    fn configuration(&self, function: Function) -> Option<VirtualFunctionState> {
        self.of(function.vf()?).configuration(function)
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
