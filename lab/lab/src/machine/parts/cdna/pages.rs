//! Ownership of memory pages, and references to them by descriptors. A page freed while the card may access
//! it becomes free only when its last reference is released.

use super::{GuestNumber, PageBuffer};

/// Owner and number of descriptor references of each page of a machine.
#[derive(Debug)]
pub(crate) struct PageOwners(Vec<CdnaPageState>);

#[derive(Debug, Clone, Copy, Default)]
struct CdnaPageState {
    owner: Option<GuestNumber>,
    references: u32,
    /// The owner has freed the page, which may still have references.
    freed: bool,
}

impl PageOwners {
    /// Creates `count` memory pages without an owner.
    pub(crate) fn new(count: usize) -> Self {
        Self(vec![CdnaPageState::default(); count])
    }

    /// Gives a free page to a domain. Returns `false` if the page is not free.
    pub(crate) fn give(&mut self, page: u64, to: GuestNumber) -> bool {
        let free = self.0.get_mut(page as usize).filter(|page| page.owner.is_none() && page.references == 0);
        free.is_some_and(|page| {
            *page = CdnaPageState { owner: Some(to), ..CdnaPageState::default() };
            true
        })
    }

    /// Frees a page that the domain `by` owns. The page becomes free once no descriptor references it.
    /// Returns `false` if the page belongs to another domain or was freed already.
    pub(crate) fn free(&mut self, page: u64, by: GuestNumber) -> bool {
        let own = self.0.get_mut(page as usize).filter(|page| page.owner == Some(by) && !page.freed);
        own.is_some_and(|page| {
            if page.references == 0 {
                *page = CdnaPageState::default();
            } else {
                page.freed = true;
            }
            true
        })
    }

    /// Returns `true` if all pages of a buffer belong to the domain and are not freed.
    pub(crate) fn are_of(&self, buffer: PageBuffer, domain: GuestNumber) -> bool {
        buffer.pages().all(|page| {
            self.0.get(page as usize).is_some_and(|page| page.owner == Some(domain) && !page.freed)
        })
    }

    /// Returns `true` if the card may access all pages of a buffer for the domain: the pages belong to the
    /// domain, freed or not.
    pub(crate) fn reaches(&self, buffer: PageBuffer, domain: GuestNumber) -> bool {
        let reached = |page: u64| self.0.get(page as usize).is_some_and(|page| page.owner == Some(domain));
        buffer.pages().all(reached)
    }

    /// Adds a descriptor's reference to the pages of a checked buffer.
    pub(crate) fn refer(&mut self, buffer: PageBuffer) {
        for page in buffer.pages() {
            self.0[page as usize].references += 1;
        }
    }

    /// Removes a descriptor's reference from the pages of a buffer.
    pub(crate) fn release(&mut self, buffer: PageBuffer) {
        for page in buffer.pages() {
            let page = &mut self.0[page as usize];
            page.references -= 1;
            if page.references == 0 && page.freed {
                *page = CdnaPageState::default();
            }
        }
    }

    /// Returns the number of descriptor references to all pages together.
    pub(crate) fn references(&self) -> u64 {
        self.0.iter().map(|page| u64::from(page.references)).sum()
    }
}
