//! AVF card with the register pages that its guests map, and parts of it, which workers run. A part has only VFs whose guests
//! ring by memory. Messages, the mailbox and the PF driver need the whole card.

use crate::port::engine::page_memory::VfRegisterPages;
use crate::port::engine::workers::{BUDGET, CardPlane, DivisibleCard, ShardRoundOutcome};
use avf::ids::MAX_VFS;
use avf_nic::doorbell::Doorbells;
use avf_nic::{DetachedVf, Nic};
use pcie::{Bus, VfIndex};
use plane::{FrameTrunk, PortSet, TrunkBatch, UplinkWire};
use std::ops::Range;
use std::sync::Arc;
use vfio_user::types::SparseArea;

/// Ranges of a VF's BAR0 that its client may map.
pub(super) const AREAS: &[SparseArea] = &{
    let [tails, vectors] = avf::ids::MAPPED;
    [area(&tails), area(&vectors)]
};

const fn area(pages: &Range<u32>) -> SparseArea {
    SparseArea { offset: pages.start as u64, size: (pages.end - pages.start) as u64 }
}

/// Doorbells in the register pages of a VF whose client has received these pages to map.
#[derive(Debug)]
pub(in crate::port::engine) struct MappedDoorbells {
    doorbells: Doorbells,
    pages: Arc<VfRegisterPages>,
}

/// AVF card, or a part of it.
#[derive(Debug)]
pub(in crate::port::engine) struct AvfCardPart {
    pub(in crate::port::engine) nic: Nic,
    /// Doorbells of each VF in the part.
    mapped: [Option<Box<MappedDoorbells>>; MAX_VFS],
}

/// VF that is in no part of the card.
#[derive(Debug)]
pub(in crate::port) struct DetachedMappedVf {
    index: usize,
    vf: DetachedVf,
    mapped: Option<Box<MappedDoorbells>>,
}

impl AvfCardPart {
    /// Creates the whole card, without register pages.
    pub(super) fn new(nic: Nic) -> Self {
        Self { nic, mapped: [const { None }; MAX_VFS] }
    }

    /// Begins to use the register pages of a VF. If `exactly`, the pages are as the card left them.
    pub(super) fn share_pages(&mut self, vf: VfIndex, pages: &Arc<VfRegisterPages>, exactly: bool) {
        let doorbells = match exactly {
            true => Doorbells::adopt(&self.nic, vf.get()),
            false => Doorbells::renew(&self.nic, vf.get(), &**pages),
        };
        self.mapped[vf.index()] = Some(Box::new(MappedDoorbells { doorbells, pages: pages.clone() }));
    }

    /// Ends the use of a VF's register pages.
    pub(super) fn unshare_pages(&mut self, vf: VfIndex) {
        self.mapped[vf.index()] = None;
    }

    /// Returns true if a guest has stored a doorbell of a VF in this part since the last read.
    pub(super) fn has_new_doorbells(&self, vf: VfIndex) -> bool {
        self.mapped[vf.index()].as_ref().is_some_and(|own| own.doorbells.has_stores(&*own.pages))
    }

    /// Reads the doorbells of a VF, if the VF is in this part.
    pub(super) fn read_doorbells(&mut self, vf: VfIndex) {
        if let Some(MappedDoorbells { doorbells, pages }) = self.mapped[vf.index()].as_deref_mut() {
            self.nic.read_doorbells(doorbells, &**pages);
        }
    }

    /// Stores registers of a VF into its register pages, if the VF is in this part.
    pub(super) fn publish_registers(&mut self, vf: VfIndex) {
        if let Some(MappedDoorbells { doorbells, pages }) = self.mapped[vf.index()].as_deref_mut() {
            self.nic.publish_registers(doorbells, &**pages);
        }
    }
}

impl DivisibleCard for AvfCardPart {
    type Device = DetachedMappedVf;

    fn new_part() -> Self {
        let mut nic = Nic::new(MAX_VFS as u8);
        nic.leave_to_others(PortSet::new(u64::MAX));
        Self::new(nic)
    }

    fn set_trunk(&mut self, trunk: Box<dyn FrameTrunk>) {
        self.nic.set_trunk(Some(trunk));
    }

    /// Returns true if a VF rings by memory and its rings run. The doorbells of other VFs are messages.
    fn may_detach(&self, vf: u8) -> bool {
        self.mapped.get(usize::from(vf)).is_some_and(Option::is_some) && self.nic.may_detach(vf)
    }

    fn detach(&mut self, vf: u8) -> Option<DetachedMappedVf> {
        let index = usize::from(vf);
        let vf = self.nic.detach(vf)?;
        Some(DetachedMappedVf { index, vf, mapped: self.mapped.get_mut(index)?.take() })
    }

    fn attach(&mut self, DetachedMappedVf { index, vf, mapped }: DetachedMappedVf) {
        self.nic.attach(vf);
        if let Some(place) = self.mapped.get_mut(index) {
            *place = mapped;
        }
    }

    /// Does nothing: a part knows of its own VFs only.
    fn follow(&mut self, _: &Self) {}

    fn read_doorbells(&mut self) {
        for MappedDoorbells { doorbells, pages } in self.mapped.iter_mut().flatten().map(Box::as_mut) {
            self.nic.read_doorbells(doorbells, &**pages);
        }
    }

    fn leave_trunk<B: Bus>(&mut self, plane: &mut CardPlane, batch: &mut TrunkBatch, bus: &mut B) {
        self.nic.leave_trunk(plane, batch, bus);
    }

    fn flush_trunk(&mut self) -> bool {
        self.nic.flush_trunk()
    }

    fn give_back<B: Bus>(&mut self, _: &mut CardPlane, bus: &mut B) {
        self.nic.give_back(bus);
    }

    fn move_frames<B: Bus, W: UplinkWire>(
        &mut self,
        plane: &mut CardPlane,
        bus: &mut B,
        uplink: &mut W,
        mut after_vf: impl FnMut(),
    ) -> ShardRoundOutcome {
        plane.shares.begin_round();
        let more = self.nic.visit_ready_vfs(plane, BUDGET, bus, uplink, |_, _| after_vf());
        let interrupt = self.nic.send_interrupts(plane.now, bus);
        for MappedDoorbells { doorbells, pages } in self.mapped.iter_mut().flatten().map(Box::as_mut) {
            self.nic.publish_registers(doorbells, &**pages);
        }
        ShardRoundOutcome { more, deadline: [interrupt, self.nic.due()].into_iter().flatten().min() }
    }

    fn polls_pages(&self) -> bool {
        self.mapped.iter().any(Option::is_some)
    }

    fn look<B: Bus>(&mut self, _: &mut B) -> bool {
        self.mapped.iter().flatten().any(|own| own.doorbells.has_stores(&*own.pages))
    }
}
