//! Whose each page is, and how many descriptors of the card refer to it. A page that a guest frees while the card may
//! still reach it is nobody's only when the last descriptor has been released. Left out: what is in the pages.

use super::{Buffer, Domain};

/// The pages of a machine.
#[derive(Debug)]
pub(crate) struct Pages(Vec<Page>);

#[derive(Debug, Clone, Copy, Default)]
struct Page {
    owner: Option<Domain>,
    references: u32,
    /// Its owner has freed it.
    freed: bool,
}

impl Pages {
    /// So many pages, nobody's.
    pub(crate) fn new(count: usize) -> Self {
        Self(vec![Page::default(); count])
    }

    /// Gives a page to a domain, if it is nobody's.
    pub(crate) fn give(&mut self, page: u64, to: Domain) -> bool {
        let free = self.0.get_mut(page as usize).filter(|page| page.owner.is_none() && page.references == 0);
        free.is_some_and(|page| {
            *page = Page { owner: Some(to), ..Page::default() };
            true
        })
    }

    /// A domain frees a page of its own. The page is nobody's once no descriptor refers to it.
    pub(crate) fn free(&mut self, page: u64, by: Domain) -> bool {
        let own = self.0.get_mut(page as usize).filter(|page| page.owner == Some(by) && !page.freed);
        own.is_some_and(|page| {
            if page.references == 0 {
                *page = Page::default();
            } else {
                page.freed = true;
            }
            true
        })
    }

    /// Whether all pages of a buffer are the domain's, and not freed.
    pub(crate) fn are_of(&self, buffer: Buffer, domain: Domain) -> bool {
        buffer.pages().all(|page| {
            self.0.get(page as usize).is_some_and(|page| page.owner == Some(domain) && !page.freed)
        })
    }

    /// Whether the card may reach all pages of a buffer in the name of a domain: they are still its own, freed or not.
    pub(crate) fn reaches(&self, buffer: Buffer, domain: Domain) -> bool {
        let reached = |page: u64| self.0.get(page as usize).is_some_and(|page| page.owner == Some(domain));
        buffer.pages().all(reached)
    }

    /// A descriptor refers to a buffer that was looked at.
    pub(crate) fn refer(&mut self, buffer: Buffer) {
        for page in buffer.pages() {
            self.0[page as usize].references += 1;
        }
    }

    /// A descriptor refers to a buffer no more.
    pub(crate) fn release(&mut self, buffer: Buffer) {
        for page in buffer.pages() {
            let page = &mut self.0[page as usize];
            page.references -= 1;
            if page.references == 0 && page.freed {
                *page = Page::default();
            }
        }
    }

    /// References to all pages together.
    pub(crate) fn references(&self) -> u64 {
        self.0.iter().map(|page| u64::from(page.references)).sum()
    }
}
