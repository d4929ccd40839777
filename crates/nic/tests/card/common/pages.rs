//! Pages of a VF's BAR0 that are mapped as memory, and a guest that loads and stores there. Like a port, the bench applies
//! the guest's stores before it answers a trapped access, and publishes the registers' new values afterwards.

use super::{CardFixture, index};
use i82576::Time;
use i82576::window::MAPPED;
use nic::Nic;
use nic::doorbell::Doorbells;
use pcie::Function;
use pcie::pages::GuestRegisterPages;
use std::cell::{Cell, RefCell};

/// Memory of a VF's mapped pages, by dword.
#[derive(Clone)]
pub(crate) struct TestGuestPages(RefCell<Vec<u32>>);

/// Mapped pages of a VF, and the values that the card has published there.
#[derive(Clone)]
pub(super) struct MappedVfPages {
    pages: TestGuestPages,
    doorbells: Doorbells,
}

impl TestGuestPages {
    fn place(offset: u32) -> usize {
        assert!(MAPPED.contains(&offset) && offset.is_multiple_of(4), "{offset:#x}");
        (offset - MAPPED.start) as usize / 4
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

/// Mapped pages of a VF whose guest makes `stores` between two loads by the card.
struct RacingPages<'a> {
    pages: &'a TestGuestPages,
    /// Number of loads by the card that remain until the guest makes its stores.
    loads: Cell<usize>,
    stores: &'a [(u32, u32)],
}

impl GuestRegisterPages for RacingPages<'_> {
    fn load(&self, offset: u32) -> u32 {
        match self.loads.get().checked_sub(1) {
            Some(left) => self.loads.set(left),
            None if self.loads.replace(usize::MAX) == 0 => {
                self.stores.iter().for_each(|(offset, value)| self.pages.store(*offset, *value));
            }
            None => {}
        }
        self.pages.load(offset)
    }

    fn store(&self, offset: u32, value: u32) {
        self.pages.store(offset, value);
    }

    fn replace(&self, offset: u32, old: u32, new: u32) -> bool {
        self.pages.replace(offset, old, new)
    }
}

impl CardFixture {
    /// Maps the VF's BAR0 pages as memory.
    pub(crate) fn map(&mut self, vf: u8) {
        let pages = TestGuestPages(RefCell::new(vec![0x5555_5555; (MAPPED.end - MAPPED.start) as usize / 4]));
        let doorbells = Doorbells::renew(&self.nic, index(vf), &pages, self.now);
        self.mapped.push((vf, MappedVfPages { pages, doorbells }));
    }

    /// Has the card take over the VFs' mapped pages with their published values, as a successor does.
    pub(crate) fn adopt_pages(&mut self) {
        for (vf, mapped) in &mut self.mapped {
            mapped.doorbells = Doorbells::adopt(&self.nic, index(*vf), self.now);
        }
    }

    /// Has the card take over the VFs' mapped pages and publish its own values, as a new card does.
    pub(crate) fn renew_pages(&mut self) {
        for (vf, mapped) in &mut self.mapped {
            mapped.doorbells = Doorbells::renew(&self.nic, index(*vf), &mapped.pages, self.now);
        }
    }

    /// Returns the mapped memory of a register, or `None` for a trapped one.
    pub(super) fn page_of(&self, function: Function, offset: u32) -> Option<&TestGuestPages> {
        let mapped = self.mapped.iter().find(|(vf, _)| Function::Vf(*vf) == function);
        mapped.filter(|_| MAPPED.contains(&offset)).map(|(_, mapped)| &mapped.pages)
    }

    /// Has the card read the mapped pages and apply the guests' stores. Returns true if there were any stores.
    pub(crate) fn read_doorbells(&mut self) -> bool {
        let mut any = false;
        for (_, MappedVfPages { pages, doorbells }) in &mut self.mapped {
            let has_stores = doorbells.has_stores(pages);
            let seen = self.nic.read_doorbells(doorbells, pages, self.now);
            assert_eq!(has_stores, seen, "read_doorbells finds stores exactly when has_stores reports them");
            any |= seen;
        }
        any
    }

    /// Has the card read the mapped pages while the guest makes `stores` after the card's first `loads` loads. Then
    /// polls the card.
    pub(crate) fn poll_while(&mut self, loads: usize, stores: &[(u32, u32)]) {
        for (_, MappedVfPages { pages, doorbells }) in &mut self.mapped {
            let racing = RacingPages { pages, loads: Cell::new(loads), stores };
            self.nic.read_doorbells(doorbells, &racing, self.now);
        }
        self.nic.poll(self.now, self.budget, &mut self.world.bus, &mut self.world.wire);
    }

    /// Has the card publish its registers in the mapped pages.
    pub(crate) fn publish_registers(&mut self) {
        for (_, MappedVfPages { pages, doorbells }) in &mut self.mapped {
            self.nic.publish_registers(doorbells, pages, self.now);
        }
    }

    /// Makes a register access that traps, as a port does: after a read of the mapped pages, and before the registers
    /// are published.
    pub(super) fn access<T>(&mut self, access: impl FnOnce(&mut Nic, Time) -> T) -> T {
        self.read_doorbells();
        let answer = access(&mut self.nic, self.now);
        self.publish_registers();
        answer
    }
}
