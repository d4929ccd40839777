//! A VF's doorbells as memory. The world does what a port does with such pages: before it answers an access by message it takes
//! what the guest has stored, and afterwards it puts the registers' new values there.

use super::world::World;
use avf::ids::{BAR0_SIZE, MAPPED};
use avf_nic::Card;
use avf_nic::doorbell::Doorbells;
use pcie::pages::Pages;
use std::cell::RefCell;

/// Memory in the place of BAR 0.
#[derive(Clone)]
pub(crate) struct Memory(RefCell<Vec<u32>>);

/// One VF's pages, and what the card knows of them.
#[derive(Clone)]
pub(crate) struct Mapped {
    pub(crate) pages: Memory,
    pub(crate) doorbells: Doorbells,
}

fn is_mapped(offset: u32) -> bool {
    MAPPED.iter().any(|pages| pages.contains(&offset))
}

impl Memory {
    fn place(offset: u32) -> usize {
        assert!(is_mapped(offset) && offset.is_multiple_of(4), "{offset:#x}");
        offset as usize / 4
    }
}

impl Pages for Memory {
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

impl World {
    /// From now on the VF has its doorbells as memory.
    pub(crate) fn map(&mut self, vf: u8) {
        let pages = Memory(RefCell::new(vec![0x5555_5555; BAR0_SIZE / 4]));
        let doorbells = Doorbells::renew(&self.card, vf, &pages);
        self.mapped.insert(vf, Mapped { pages, doorbells });
    }

    /// The memory that holds a register of a VF, if it is in any.
    pub(crate) fn page_of(&self, vf: u8, offset: u32) -> Option<&Memory> {
        self.mapped.get(&vf).filter(|_| is_mapped(offset)).map(|mapped| &mapped.pages)
    }

    /// Takes what was stored. Answers whether there was anything.
    pub(crate) fn look(&mut self) -> bool {
        let mut any = false;
        for Mapped { pages, doorbells } in self.mapped.values_mut() {
            let stirred = doorbells.stirred(pages);
            let seen = self.card.look(doorbells, pages);
            assert_eq!(stirred, seen, "a look finds what there is");
            any |= seen;
        }
        any
    }

    /// Puts into the pages what is to be read there.
    pub(crate) fn show(&mut self) {
        for Mapped { pages, doorbells } in self.mapped.values_mut() {
            self.card.show(doorbells, pages);
        }
    }

    /// An access that reaches the card.
    pub(crate) fn hear<T>(&mut self, access: impl FnOnce(&mut Card) -> T) -> T {
        self.look();
        let answer = access(&mut self.card);
        self.show();
        answer
    }
}
