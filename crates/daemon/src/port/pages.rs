//! Pages of a VF's BAR0 that its client may map: their memory, and what the card knows of it.
//!
//! Each client has memory of its own, so that none can ring the doorbells of the next. A client that never asks for the
//! memory has none of it mapped, and is served as if there were no such pages.
//!
//! Left out: what a store means (`nic::doorbell`, `avf_nic::doorbell`), and when to look for one (`waiting`).

use super::Port;
use super::family::Family;
use super::slot::Slot;
use host::shared::{SharedMemory, SharedMemoryError};
use pcie::VfIndex;
use pcie::pages::Pages;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use vfio_user::types::SparseArea;
use vfio_user::wire::pci_region;

/// A VF's pages.
#[derive(Debug)]
pub(super) struct SharedPages {
    memory: Memory,
    vf: VfIndex,
    /// What of BAR0 may be mapped.
    pub(super) areas: &'static [SparseArea],
    /// The client has the memory.
    given: bool,
}

/// Memory as long as BAR0, so that offsets are the same in both.
#[derive(Debug)]
pub(super) struct Memory(SharedMemory);

impl Pages for Memory {
    fn load(&self, offset: u32) -> u32 {
        self.0.memory().load_dword(offset.into()).unwrap_or(u32::MAX)
    }

    fn load_run(&self, offset: u32, into: &mut [u32]) {
        if self.0.memory().load_dwords(offset.into(), into).is_err() {
            into.fill(u32::MAX);
        }
    }

    fn store(&self, offset: u32, value: u32) {
        // The memory is as long as the BAR, and sealed against a change of its length.
        let _ = self.0.memory().store_dword(offset.into(), value);
    }

    fn replace(&self, offset: u32, old: u32, new: u32) -> bool {
        self.0.memory().replace_dword(offset.into(), old, new).unwrap_or(true)
    }
}

fn bar0(card: &dyn Family, vf: VfIndex) -> u64 {
    card.region(vf.function(), pci_region::BAR0) as u64
}

impl SharedPages {
    /// Memory for a new client; none if the card has nothing to map.
    pub(super) fn new(vf: VfIndex, card: &dyn Family) -> Result<Option<Self>, SharedMemoryError> {
        let areas = card.mappable();
        if areas.is_empty() {
            return Ok(None);
        }
        let memory = Memory(SharedMemory::new(bar0(card, vf))?);
        Ok(Some(Self { memory, vf, areas, given: false }))
    }

    /// The memory that a predecessor's client may have. If the card is `exactly` as the predecessor left it, what the
    /// guest has stored since is found there; else all of it becomes what a new card's registers are.
    pub(super) fn adopt(fd: OwnedFd, vf: VfIndex, card: &mut dyn Family, exactly: bool) -> Option<Self> {
        let (memory, areas) = (SharedMemory::adopt(fd).ok()?, card.mappable());
        // Nothing else than what `new` makes.
        let is_ours = !areas.is_empty() && memory.memory().len() == bar0(card, vf);
        let memory = Memory(memory);
        is_ours.then(|| card.share(vf, &memory, exactly))?;
        Some(Self { memory, vf, areas, given: true })
    }

    /// A copy of the descriptor.
    pub(super) fn fd(&self) -> io::Result<OwnedFd> {
        self.memory.0.as_fd().try_clone_to_owned()
    }

    /// The client gets the memory: from now on its guest may store there.
    pub(super) fn give(&mut self, card: &mut dyn Family) -> io::Result<OwnedFd> {
        if !self.given {
            card.share(self.vf, &self.memory, false);
            self.given = true;
        }
        self.fd()
    }

    /// Whether the guest has stored anything since the last look.
    fn stirred(&self, card: &dyn Family) -> bool {
        self.given && card.stirred(self.vf, &self.memory)
    }

    /// The card takes what the guest has stored.
    pub(super) fn look(&self, card: &mut dyn Family) {
        if self.given {
            card.look(self.vf, &self.memory);
        }
    }

    /// The card puts there what the guest is to read.
    pub(super) fn show(&self, card: &mut dyn Family) {
        if self.given {
            card.show(self.vf, &self.memory);
        }
    }

    /// A store of the client's that came as a message, into pages that it has: it counts as one into the memory. Answers
    /// whether it was one.
    pub(super) fn store(&self, offset: u64, data: &[u8]) -> bool {
        let end = offset.saturating_add(data.len() as u64);
        let within = |area: &SparseArea| offset >= area.offset && end <= area.offset + area.size;
        if !self.given || !self.areas.iter().any(within) {
            return false;
        }
        match <[u8; 4]>::try_from(data) {
            Ok(dword) if offset.is_multiple_of(4) => {
                self.memory.store(offset as u32, u32::from_le_bytes(dword));
            }
            // Inside, as was checked.
            _ => drop(self.memory.0.memory().write(offset, data)),
        }
        true
    }
}

impl Port {
    /// The card takes what guests have stored into their pages since the last look.
    pub(super) fn look(&mut self) {
        for pages in self.slots.iter().filter_map(|slot| slot.pages.as_ref()) {
            pages.look(&mut *self.card);
        }
    }

    /// The card puts into the pages what guests are to read.
    pub(super) fn show(&mut self) {
        for pages in self.slots.iter().filter_map(|slot| slot.pages.as_ref()) {
            pages.show(&mut *self.card);
        }
    }

    /// Whether a guest has stored anything since the last look.
    pub(super) fn stirred(&self) -> bool {
        self.slots.iter().filter_map(|slot| slot.pages.as_ref()).any(|pages| pages.stirred(&*self.card))
    }

    /// Whether the port has to poll pages: a client has some, and the card may act on what its guest stores there.
    pub(super) fn must_look(&self) -> bool {
        self.slots.iter().any(|slot| has_pages(slot) && self.card.is_bus_master(slot.function))
    }

    /// Whether a client has no pages, and rings by message.
    pub(super) fn must_hear(&self) -> bool {
        self.slots.iter().any(|slot| slot.connection.is_some() && !has_pages(slot))
    }
}

/// Whether the function's client has its pages.
fn has_pages(slot: &Slot) -> bool {
    slot.pages.as_ref().is_some_and(|pages| pages.given)
}
