//! Pages of a VF's BAR0 that its client may map: their memory, and what the card knows of it.
//!
//! Each client has memory of its own, so that none can ring the doorbells of the next. A client that never asks for the
//! memory has none of it mapped, and is served as if there were no such pages.
//!
//! Left out: what a store means (`nic::doorbell`), and when to look for one (`waiting`).

use super::Port;
use super::hal::now;
use host::shared::{SharedMemory, SharedMemoryError};
use i82576::VfIndex;
use i82576::ids::VF_BAR0_SIZE;
use i82576::window::MAPPED;
use nic::Nic;
use nic::doorbell::{Doorbells, Pages};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use vfio_user::types::SparseArea;

/// What of BAR0 may be mapped. The file is as long as the BAR, so offsets are the same.
pub(super) const AREAS: &[SparseArea] =
    &[SparseArea { offset: MAPPED.start as u64, size: (MAPPED.end - MAPPED.start) as u64 }];

/// A VF's pages.
#[derive(Debug)]
pub(super) struct SharedPages {
    memory: Memory,
    vf: VfIndex,
    /// There from the moment at which the client has the memory.
    doorbells: Option<Doorbells>,
}

#[derive(Debug)]
struct Memory(SharedMemory);

impl Pages for Memory {
    fn load(&self, offset: u32) -> u32 {
        self.0.memory().load_dword(offset.into()).unwrap_or(u32::MAX)
    }

    fn store(&self, offset: u32, value: u32) {
        // The memory is as long as the BAR, and nobody can shorten it.
        let _ = self.0.memory().store_dword(offset.into(), value);
    }

    fn replace(&self, offset: u32, old: u32, new: u32) -> bool {
        self.0.memory().replace_dword(offset.into(), old, new).unwrap_or(true)
    }
}

impl SharedPages {
    /// Memory for a new client.
    pub(super) fn new(vf: VfIndex) -> Result<Self, SharedMemoryError> {
        Ok(Self { memory: Memory(SharedMemory::new(VF_BAR0_SIZE as u64)?), vf, doorbells: None })
    }

    /// The memory that a predecessor's client may have. If the card is `exactly` as the predecessor left it, what the
    /// guest has stored since is found there; else all of it becomes what a new card's registers are.
    pub(super) fn adopt(fd: OwnedFd, vf: VfIndex, nic: &Nic, exactly: bool) -> Option<Self> {
        let memory = SharedMemory::adopt(fd).ok()?;
        let memory = Memory(memory).checked()?;
        let doorbells = match exactly {
            true => Doorbells::adopt(nic, vf, now()),
            false => Doorbells::renew(nic, vf, &memory, now()),
        };
        Some(Self { memory, vf, doorbells: Some(doorbells) })
    }

    /// A copy of the descriptor.
    pub(super) fn fd(&self) -> io::Result<OwnedFd> {
        self.memory.0.as_fd().try_clone_to_owned()
    }

    /// The client gets the memory: from now on its guest may store there.
    pub(super) fn give(&mut self, nic: &Nic) -> io::Result<OwnedFd> {
        if self.doorbells.is_none() {
            self.doorbells = Some(Doorbells::renew(nic, self.vf, &self.memory, now()));
        }
        self.fd()
    }

    /// Whether the client has the memory.
    pub(super) fn are_given(&self) -> bool {
        self.doorbells.is_some()
    }

    /// Whether the guest has stored anything since the last look.
    pub(super) fn stirred(&self) -> bool {
        self.doorbells.as_ref().is_some_and(|doorbells| doorbells.stirred(&self.memory))
    }

    /// The card takes what the guest has stored.
    pub(super) fn look(&mut self, nic: &mut Nic) -> bool {
        self.doorbells.as_mut().is_some_and(|doorbells| nic.look(doorbells, &self.memory, now()))
    }

    /// The card puts there what the guest is to read.
    pub(super) fn show(&mut self, nic: &Nic) {
        if let Some(doorbells) = &mut self.doorbells {
            nic.show(doorbells, &self.memory, now());
        }
    }

    /// A store of the client's that came as a message, into pages that it has: it counts as one into the memory. Answers
    /// whether it was one.
    pub(super) fn store(&self, offset: u64, data: &[u8]) -> bool {
        let pages = u64::from(MAPPED.start)..u64::from(MAPPED.end);
        let end = offset.saturating_add(data.len() as u64);
        if !self.are_given() || !pages.contains(&offset) || end > pages.end {
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

impl Memory {
    /// Nothing else than what [`SharedPages::new`] makes.
    fn checked(self) -> Option<Self> {
        (self.0.memory().len() == VF_BAR0_SIZE as u64).then_some(self)
    }
}

impl Port {
    /// The card takes what guests have stored into their pages since the last look.
    pub(super) fn look(&mut self) {
        for pages in self.slots.iter_mut().filter_map(|slot| slot.pages.as_mut()) {
            pages.look(&mut self.nic);
        }
    }

    /// The card puts into the pages what guests are to read.
    pub(super) fn show(&mut self) {
        for pages in self.slots.iter_mut().filter_map(|slot| slot.pages.as_mut()) {
            pages.show(&self.nic);
        }
    }

    /// Whether a guest has stored anything since the last look.
    pub(super) fn stirred(&self) -> bool {
        self.slots.iter().filter_map(|slot| slot.pages.as_ref()).any(SharedPages::stirred)
    }

    /// Whether a guest may store something that nobody would hear of, and that the card would act on.
    pub(super) fn must_look(&self) -> bool {
        let given = |slot: &super::slot::Slot| slot.pages.as_ref().is_some_and(SharedPages::are_given);
        self.slots.iter().any(|slot| given(slot) && self.nic.is_bus_master(slot.function))
    }
}
