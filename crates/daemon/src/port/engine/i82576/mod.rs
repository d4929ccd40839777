//! 82576 card of a port. The host runs the PF driver and guests have the VFs, or a guest has the PF (`pf_owner`).

mod hal;
mod pf_owner;
mod report;
mod restore;
#[cfg(test)]
mod tests;
mod work;

use super::bus::GuestBus;
use super::error::CardChangeRefusal;
use super::family::{
    PfDriverRunResult, PortCard, RefusedPolicy, ReportedVfState, VfDriverState, conduct, offence_counts,
};
use super::owed_work::OwedWork;
use super::page_memory::VfRegisterPages;
use super::uplink::PortUplink;
use crate::config;
use crate::control::status::PacketBufferStatus;
use crate::settings::VfSettings;
use crate::state::port::{ClientState, ConfiguredPolicies, I82576PortState};
use crate::state::{self, CardState, SavedStateError};
use driver::Hal;
use driver::conduct::{QuarantineCause, VfConductVerdict};
use driver::pf::{MailboxRefusal, SavedPortPolicy};
use hal::{BUDGET, I82576PfHal, RunningCardHal};
use i82576::bits::mbvficr;
use i82576::config::pf::IO_SIZE;
use i82576::ids::{BAR3_SIZE, MAX_VFS, PF_BAR0_SIZE, VF_BAR0_SIZE};
use i82576::register::{self, rx, rx_block, tx, tx_block};
use i82576::window::MAPPED;
use i82576::{PoolIndex, QueueIndex, Time};
use iovm::VirtualFunctionState;
use nic::doorbell::Doorbells;
use nic::{Nic, PollResult, PoolCounters};
use pcie::{Function, VfIndex, VfSet};
use pf_owner::{HostedPf, PfOwner, vf};
use policy::{PolicyError, PortPolicy, VfPolicy};
use report::{filters, mailbox, quotas};
use std::sync::Arc;
use units::WorkCost;
use vfio_user::types::SparseArea;
use vfio_user::wire::pci_region;

/// Bytes of a receive or transmit descriptor.
const DESCRIPTOR: u32 = 16;

/// Ranges of a VF's BAR0 that its client may map.
const AREAS: &[SparseArea] =
    &[SparseArea { offset: MAPPED.start as u64, size: (MAPPED.end - MAPPED.start) as u64 }];

/// 82576 card of a port, and the owner of its PF.
#[derive(Debug)]
pub(in crate::port) struct I82576Card {
    nic: Nic,
    pf_owner: PfOwner,
    /// Doorbells in the register pages of each VF whose client has received these pages to map.
    doorbells: [Option<Doorbells>; MAX_VFS],
    /// Work of the PF driver for VFs that the port has not charged yet.
    owed: OwedWork,
}

impl I82576Card {
    fn new(nic: Nic, pf_owner: PfOwner) -> Self {
        Self { nic, pf_owner, doorbells: [const { None }; MAX_VFS], owed: OwedWork::default() }
    }

    fn pages_of(&self, vf: VfIndex) -> Option<&Doorbells> {
        self.doorbells.get(vf.index())?.as_ref()
    }

    fn hosted(&self) -> Option<&HostedPf> {
        match &self.pf_owner {
            PfOwner::Host(hosted) => Some(hosted),
            PfOwner::Guest(_) => None,
        }
    }
}

impl PortCard for I82576Card {
    fn region(&self, function: Function, index: u32) -> usize {
        let is_vf = vf(function).is_some();
        match index {
            pci_region::BAR0 if is_vf => VF_BAR0_SIZE,
            pci_region::BAR0 => PF_BAR0_SIZE,
            pci_region::BAR2 if !is_vf => IO_SIZE as usize,
            pci_region::BAR3 => BAR3_SIZE,
            pci_region::CONFIG => pcie::config::SIZE,
            _ => 0,
        }
    }

    fn read(&mut self, function: Function, region: u32, offset: u64, data: &mut [u8], now: Time) {
        match region {
            pci_region::BAR0 => self.nic.read_bytes(function, offset, data, now),
            pci_region::BAR2 => self.nic.io_read(offset, data, now),
            pci_region::BAR3 => self.pf_owner.msix_read(function, offset, data),
            pci_region::CONFIG => self.pf_owner.config_read(&mut self.nic, function, offset, data),
            _ => {}
        }
    }

    fn write(&mut self, function: Function, region: u32, offset: u64, data: &[u8], now: Time) {
        match region {
            pci_region::BAR0 => self.nic.write_bytes(function, offset, data, now),
            pci_region::BAR2 => self.nic.io_write(offset, data, now),
            pci_region::BAR3 => self.pf_owner.msix_write(function, offset, data),
            pci_region::CONFIG => self.pf_owner.config_write(&mut self.nic, function, offset, data),
            _ => {}
        }
    }

    fn reset_function(&mut self, function: Function) -> bool {
        self.pf_owner.reset(&mut self.nic, function)
    }

    fn take_work(&mut self) -> WorkCost {
        self.nic.take_work()
    }

    fn hold_requests(&mut self, vfs: VfSet) {
        if let Some(HostedPf { pf, .. }) = self.pf_owner.hosted() {
            pf.hold_requests(vfs.bits() as u8);
        }
    }

    fn settle_work(&mut self, charge: &mut dyn FnMut(VfIndex, WorkCost)) {
        self.owed.settle(charge);
    }

    fn is_bus_master(&self, function: Function) -> bool {
        self.nic.is_bus_master(function)
    }

    fn mappable(&self, _: VfIndex) -> &'static [SparseArea] {
        AREAS
    }

    fn share_pages(&mut self, vf: VfIndex, pages: &Arc<VfRegisterPages>, exactly: bool, now: Time) {
        let Some(vf) = card_vf(vf) else { return };
        self.doorbells[vf.index()] = Some(match exactly {
            true => Doorbells::adopt(&self.nic, vf, now),
            false => Doorbells::renew(&self.nic, vf, &**pages, now),
        });
    }

    fn has_new_doorbells(&self, vf: VfIndex, pages: &VfRegisterPages) -> bool {
        self.pages_of(vf).is_some_and(|doorbells| doorbells.has_stores(pages))
    }

    fn read_doorbells(&mut self, vf: VfIndex, pages: &VfRegisterPages, now: Time) {
        if let Some(Some(doorbells)) = self.doorbells.get_mut(vf.index()) {
            self.nic.read_doorbells(doorbells, pages, now);
        }
    }

    fn publish_registers(&mut self, vf: VfIndex, pages: &VfRegisterPages, now: Time) {
        if let Some(Some(doorbells)) = self.doorbells.get_mut(vf.index()) {
            self.nic.publish_registers(doorbells, pages, now);
        }
    }

    fn family(&self) -> config::file::CardFamily {
        config::file::CardFamily::I82576
    }

    fn is_hosted(&self) -> bool {
        self.hosted().is_some()
    }

    fn pending_requests(&mut self, now: Time) -> VfSet {
        let causes = I82576PfHal::new(&mut self.nic, now).read(register::MBVFICR);
        VfSet::new((causes >> mbvficr::VFREQ_SHIFT & 0xff).into())
    }

    fn visit(&mut self, _: &mut GuestBus, now: Time) -> PfDriverRunResult {
        let Some(HostedPf { pf, .. }) = self.pf_owner.hosted() else { return PfDriverRunResult::default() };
        let visit = pf.visit(&mut I82576PfHal::new(&mut self.nic, now));
        self.note_work(&visit.work);
        let deadline = if visit.work.unpaid != 0 { Some(now) } else { visit.deadline };
        let served = VfSet::new(visit.served.into());
        PfDriverRunResult { served, link_changed: visit.link_changed, deadline }
    }

    fn judge(
        &mut self,
        vf: VfIndex,
        interrupts: u64,
        _: &mut GuestBus,
        now: Time,
    ) -> Option<VfConductVerdict> {
        let vf = card_vf(vf)?;
        let totals = offence_counts(&self.nic.counters()[vf.index()], interrupts);
        self.pf_owner.hosted()?.pf.watch(&mut I82576PfHal::new(&mut self.nic, now), vf, totals)
    }

    fn poll(&mut self, now: Time, bus: &mut GuestBus, uplink: &mut PortUplink) -> PollResult {
        let poll = self.nic.poll(now, BUDGET, bus, uplink);
        bus.charge_interrupts(self.nic.shares_mut());
        poll
    }

    fn link(&self) -> bool {
        self.nic.link()
    }

    fn set_link(&mut self, up: bool) {
        self.nic.set_link(up);
    }

    fn guards(&self) -> &dyn plane::guard::GuardedPlane {
        self.nic.guards()
    }

    fn guards_mut(&mut self) -> &mut dyn plane::guard::GuardedPlane {
        self.nic.guards_mut()
    }

    fn show_link(&mut self, vf: VfIndex, hidden: bool, _: &mut GuestBus, _: Time) -> Result<(), PolicyError> {
        if let (Some(HostedPf { pf, .. }), Some(vf)) = (self.pf_owner.hosted(), card_vf(vf)) {
            self.nic.set_vf_link(vf, if hidden { Some(false) } else { pf.link_override(vf) });
        }
        Ok(())
    }

    fn notify(&mut self, vf: VfIndex, _: &mut GuestBus, now: Time) {
        if let (Some(HostedPf { pf, .. }), Some(vf)) = (self.pf_owner.hosted(), card_vf(vf)) {
            pf.notify(&mut I82576PfHal::new(&mut self.nic, now), vf);
        }
    }

    fn check(&self, vfs: &[VfPolicy]) -> Result<(), RefusedPolicy> {
        let Some(HostedPf { pf, .. }) = self.hosted() else { return Ok(()) };
        pf.check_policies(vfs).map_err(|(vf, error)| (Some(vf), error))
    }

    fn apply_policies(
        &mut self,
        port: &PortPolicy,
        vfs: &[VfPolicy],
        _: &mut GuestBus,
        now: Time,
    ) -> Result<(), RefusedPolicy> {
        let Some(HostedPf { pf, configured, .. }) = self.pf_owner.hosted() else { return Ok(()) };
        let mut hal = I82576PfHal::new(&mut self.nic, now);
        pf.set_policies(&mut hal, vfs).map_err(|(vf, error)| (Some(vf), error))?;
        *configured = ConfiguredPolicies { port: SavedPortPolicy(*port), vfs: vfs.to_vec() };
        // The card accepts every valid port policy. So this step cannot fail, and either all policies are set or none.
        pf.set_port_policy(&mut hal, *port).map_err(|error| (None, error))
    }

    fn quarantine(&mut self, vf: VfIndex, on: bool, _: &mut GuestBus, now: Time) {
        let (Some(hosted), Some(vf)) = (self.pf_owner.hosted(), card_vf(vf)) else { return };
        hosted.set_quarantine(&mut I82576PfHal::new(&mut self.nic, now), vf, on);
    }

    fn offer(&mut self, vf: VfIndex, offered: (&str, u8), now: Time) -> Result<(), CardChangeRefusal> {
        let (Some(hosted), Some(vf)) = (self.pf_owner.hosted(), card_vf(vf)) else {
            return Err(CardChangeRefusal::Guests);
        };
        hosted.offer(&mut self.nic, vf)?;
        hosted.resize(&mut self.nic, offered, now)
    }

    fn withdraw(&mut self, vf: VfIndex, offered: (&str, u8), now: Time) -> Result<(), CardChangeRefusal> {
        let (Some(hosted), Some(vf)) = (self.pf_owner.hosted(), card_vf(vf)) else { return Ok(()) };
        // The PF driver serves one VF less even if this VF was not withdrawn cleanly.
        let cleaned = hosted.withdraw(&mut self.nic, vf);
        hosted.resize(&mut self.nic, offered, now)?;
        Ok(cleaned?)
    }

    fn reset(
        &mut self,
        bus: &mut GuestBus,
        uplink: &mut PortUplink,
        now: Time,
    ) -> Result<(), CardChangeRefusal> {
        let Self { nic, pf_owner, .. } = self;
        let Some(HostedPf { pf, .. }) = pf_owner.hosted() else { return Err(CardChangeRefusal::Guests) };
        Ok(pf.reset(&mut RunningCardHal { nic, bus, uplink, now })?)
    }

    fn remove(&mut self, _: &mut GuestBus, now: Time) {
        match self.pf_owner.hosted() {
            Some(HostedPf { pf, .. }) => pf.remove(&mut I82576PfHal::new(&mut self.nic, now)),
            None => self.nic.set_link(false),
        }
    }

    /// Returns the frame counters of a function. A PF that a guest drives has all pools.
    fn counters(&mut self, function: Function) -> PoolCounters {
        let counters = self.nic.counters();
        match vf(function) {
            Some(vf) => counters[vf.index()],
            None => counters.iter().fold(PoolCounters::default(), |sum, pool| sum + *pool),
        }
    }

    fn waiting(&self, function: Function) -> PacketBufferStatus {
        let of = |pool: &PoolIndex| vf(function).is_none_or(|vf| vf.index() == pool.index());
        PoolIndex::EVERY.iter().filter(|pool| of(pool)).fold(PacketBufferStatus::default(), |sum, pool| {
            let (frames, bytes) = self.nic.waiting(*pool);
            PacketBufferStatus { frames: sum.frames + frames as u64, bytes: sum.bytes + bytes as u64 }
        })
    }

    fn port_policy(&self) -> Option<&PortPolicy> {
        self.hosted().map(|hosted| hosted.pf.port_policy())
    }

    fn storms(&self) -> u64 {
        self.hosted().map_or(0, |hosted| hosted.pf.storms())
    }

    fn vf_status(&self, vf: VfIndex) -> Option<ReportedVfState> {
        let (HostedPf { pf, .. }, vf) = (self.hosted()?, card_vf(vf)?);
        let quarantined = pf.conduct(vf).quarantined() == Some(QuarantineCause::Administrator);
        Some(ReportedVfState {
            mac: pf.vf_mac(vf),
            vlans: pf.vf_vlans(vf).collect(),
            link: self.nic.vf_link(vf),
            active: pf.vf_is_active(vf),
            filters: filters(pf.vf_multicast(vf)),
            quotas: Some(quotas(pf, vf)),
            settings: VfSettings::of(pf.policy(vf), quarantined),
            conduct: conduct(pf.conduct(vf)),
            mailbox: mailbox(pf.counters(vf)),
        })
    }

    fn rid(&self, vf: VfIndex) -> Option<String> {
        self.hosted()?.manager.function(card_vf(vf)?).map(|function| function.rid().to_string())
    }

    fn rings(&mut self, vf: VfIndex, now: Time) -> (Vec<u32>, Vec<u32>) {
        let Some(pool) = PoolIndex::new(vf.get()) else { return Default::default() };
        let mut hal = I82576PfHal::new(&mut self.nic, now);
        let mut lengths = |block: fn(QueueIndex) -> u32, length: u32| -> Vec<u32> {
            // RDLEN and TDLEN hold bytes.
            let of = |which| hal.read(block(pool.queue(which)) + length) / DESCRIPTOR;
            [0, 1].map(of).into_iter().filter(|descriptors| *descriptors > 0).collect()
        };
        (lengths(rx_block, rx::RDLEN), lengths(tx_block, tx::TDLEN))
    }

    fn is_active(&self, vf: VfIndex) -> bool {
        self.hosted().zip(card_vf(vf)).is_some_and(|(hosted, vf)| hosted.pf.vf_is_active(vf))
    }

    fn driver_state(&self, vf: VfIndex) -> Option<VfDriverState> {
        let (HostedPf { pf, .. }, vf) = (self.hosted()?, card_vf(vf)?);
        let counters = pf.counters(vf);
        let count =
            |place: usize| MailboxRefusal::ALL.get(place).map_or(0, |reason| counters.refused(*reason));
        let refused = std::array::from_fn(count);
        let (active, link) = (pf.vf_is_active(vf), self.nic.vf_link(vf));
        Some(VfDriverState { active, link, cut: pf.vf_multicast(vf).1, resets: counters.resets, refused })
    }

    fn reason(&self, place: usize) -> &'static str {
        MailboxRefusal::ALL.get(place).map_or("", |reason| reason.name())
    }

    fn configuration(&self, function: Function) -> Option<VirtualFunctionState> {
        Some(self.hosted()?.manager.function(vf(function)?)?.save())
    }

    fn save_drivers(&mut self) -> Result<Vec<u8>, SavedStateError> {
        state::write(&self.pf_owner.save_drivers(&mut self.nic))
    }

    fn save_all(
        &mut self,
        watched: Time,
        functions: Vec<ClientState>,
        _: &mut GuestBus,
        _: Time,
    ) -> Result<Vec<u8>, SavedStateError> {
        let (pf, manager, configured, table) = match &self.pf_owner {
            PfOwner::Host(hosted) => {
                (Some(&hosted.pf), Some(&hosted.manager), Some(hosted.configured.clone()), None)
            }
            PfOwner::Guest(table) => (None, None, None, Some(table.save())),
        };
        let card = CardState::of(&self.nic, pf, manager);
        state::write(&I82576PortState { card, table, configured, watched, functions })
    }
}

/// Returns a VF's index as the 82576 model numbers it, or `None` beyond the card's VFs, which no 82576 port offers.
fn card_vf(vf: VfIndex) -> Option<i82576::VfIndex> {
    vf.try_into().ok()
}
