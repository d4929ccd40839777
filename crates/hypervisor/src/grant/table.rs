//! Pages and grant table of a domain, as the domain itself uses them.

use super::{Error, Reference};
use crate::domain::DomainId;
use alloc::vec;
use alloc::vec::Vec;

/// Bytes of a domain's page.
pub const PAGE: usize = 4096;

/// Access to a page that a grant entry permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The grantee may read the page.
    Read,
    /// The grantee may read and write the page.
    Write,
}

/// Entry of a domain's grant table.
#[derive(Debug, Clone, Copy)]
struct Entry {
    to: DomainId,
    page: u32,
    access: Access,
    /// Number of existing mappings of the page through this entry.
    mapped: u32,
}

/// Pages and grant table of a domain.
#[derive(Debug)]
pub struct Table {
    memory: Vec<u8>,
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
}

impl Table {
    pub(super) fn new(pages: u32, entries: u32) -> Self {
        Self {
            memory: vec![0; pages as usize * PAGE],
            entries: vec![None; entries as usize],
            free: (0..entries).rev().collect(),
        }
    }

    /// Returns one of the domain's pages for reading.
    ///
    /// # Errors
    /// [`Error::Page`] if the domain has no such page.
    pub fn page(&self, page: u32) -> Result<&[u8], Error> {
        let start = page as usize * PAGE;
        self.memory.get(start..start + PAGE).ok_or(Error::Page)
    }

    /// Returns one of the domain's pages for writing.
    ///
    /// # Errors
    /// [`Error::Page`] if the domain has no such page.
    pub fn page_mut(&mut self, page: u32) -> Result<&mut [u8], Error> {
        let start = page as usize * PAGE;
        self.memory.get_mut(start..start + PAGE).ok_or(Error::Page)
    }

    /// Grants a page to a domain. The page's existence is checked at use.
    ///
    /// # Errors
    /// [`Error::Full`] if all entries are in use.
    pub fn grant(&mut self, to: DomainId, page: u32, access: Access) -> Result<Reference, Error> {
        let at = self.free.pop().ok_or(Error::Full)?;
        self.entries[at as usize] = Some(Entry { to, page, access, mapped: 0 });
        Ok(Reference(at))
    }

    /// Ends a grant, so that the other domain loses access to the page.
    ///
    /// # Errors
    /// [`Error::Reference`] for an unused entry; [`Error::InUse`] while the page is mapped.
    pub fn end_access(&mut self, reference: Reference) -> Result<(), Error> {
        let entry = self.entries.get_mut(reference.0 as usize).ok_or(Error::Reference)?;
        match entry {
            None => Err(Error::Reference),
            Some(Entry { mapped: 1.., .. }) => Err(Error::InUse),
            Some(_) => {
                *entry = None;
                self.free.push(reference.0);
                Ok(())
            }
        }
    }

    /// Returns the page that a grant entry names, if the entry permits `by` the access.
    pub(super) fn check(&self, reference: Reference, by: DomainId, access: Access) -> Result<u32, Error> {
        let entry =
            self.entries.get(reference.0 as usize).and_then(Option::as_ref).ok_or(Error::Reference)?;
        if entry.to != by {
            return Err(Error::NotGranted);
        }
        if access == Access::Write && entry.access == Access::Read {
            return Err(Error::ReadOnly);
        }
        self.page(entry.page).map(|_| entry.page)
    }

    pub(super) fn pin(&mut self, reference: Reference) {
        if let Some(Some(entry)) = self.entries.get_mut(reference.0 as usize) {
            entry.mapped += 1;
        }
    }

    pub(super) fn unpin(&mut self, reference: Reference) {
        if let Some(Some(entry)) = self.entries.get_mut(reference.0 as usize) {
            entry.mapped = entry.mapped.saturating_sub(1);
        }
    }

    /// Copies `length` bytes between checked pages and offsets.
    pub(super) fn copy_within(&mut self, from: (u32, u16), to: (u32, u16), length: usize) {
        let at = |(page, offset): (u32, u16)| page as usize * PAGE + usize::from(offset);
        self.memory.copy_within(at(from)..at(from) + length, at(to));
    }
}
