//! Mapped doorbell pages of a VF in the tests. As a live port does, the test reads the guest's stores before it handles
//! a register access by message, and publishes the registers afterwards.

use super::world::CardFixture;
use avf::ids::{BAR0_SIZE, MAPPED};
use avf_nic::Nic;
use avf_nic::doorbell::Doorbells;
use pcie::pages::GuestRegisterPages;
use std::cell::RefCell;

/// Memory of a VF's mapped BAR 0, by dword.
#[derive(Clone)]
pub(crate) struct TestGuestPages(RefCell<Vec<u32>>);

/// Mapped pages of a VF, and the values that the card has published there.
#[derive(Clone)]
pub(crate) struct MappedVfPages {
    pub(crate) pages: TestGuestPages,
    pub(crate) doorbells: Doorbells,
}

fn is_mapped(offset: u32) -> bool {
    MAPPED.iter().any(|pages| pages.contains(&offset))
}

impl TestGuestPages {
    fn place(offset: u32) -> usize {
        assert!(is_mapped(offset) && offset.is_multiple_of(4), "{offset:#x}");
        offset as usize / 4
    }
}

impl GuestRegisterPages for TestGuestPages {
    fn load(&self, offset: u32) -> u32 {
        self.0.borrow()[Self::place(offset)]
    }

    fn store(&self, offset: u32, value: u32) {
        self.0.borrow_mut()[Self::place(offset)] = value;
    }

    fn replace(&self, offset: u32, old: u32, new: u32) -> bool {
        let is_old = self.load(offset) == old;
        if is_old {
            self.store(offset, new);
        }
        is_old
    }
}

impl CardFixture {
    /// Maps the doorbell pages of a VF as memory.
    pub(crate) fn map(&mut self, vf: u8) {
        let pages = TestGuestPages(RefCell::new(vec![0x5555_5555; BAR0_SIZE / 4]));
        let doorbells = Doorbells::renew(&self.card, vf, &pages);
        self.mapped.insert(vf, MappedVfPages { pages, doorbells });
    }

    /// Returns the mapped page memory of a VF's register, or `None` if the guest does not map the register.
    pub(crate) fn page_of(&self, vf: u8, offset: u32) -> Option<&TestGuestPages> {
        self.mapped.get(&vf).filter(|_| is_mapped(offset)).map(|mapped| &mapped.pages)
    }

    /// Makes the card read the doorbells of all VFs that map them. Returns `true` if a guest had stored anything.
    pub(crate) fn read_doorbells(&mut self) -> bool {
        let mut any = false;
        for MappedVfPages { pages, doorbells } in self.mapped.values_mut() {
            let has_stores = doorbells.has_stores(pages);
            let seen = self.card.read_doorbells(doorbells, pages);
            assert_eq!(has_stores, seen, "read_doorbells finds stores exactly when has_stores reports them");
            any |= seen;
        }
        any
    }

    /// Makes the card publish its registers in the mapped pages of all VFs.
    pub(crate) fn publish_registers(&mut self) {
        for MappedVfPages { pages, doorbells } in self.mapped.values_mut() {
            self.card.publish_registers(doorbells, pages);
        }
    }

    /// Performs a register access by message, as the port does: after a read of the doorbells, and before the registers
    /// are published.
    pub(crate) fn access<T>(&mut self, access: impl FnOnce(&mut Nic) -> T) -> T {
        self.read_doorbells();
        let value = access(&mut self.card);
        self.publish_registers();
        value
    }
}
