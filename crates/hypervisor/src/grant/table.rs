//! One domain's pages and its grant table, as the domain itself uses them. Left out: other domains.

use super::{Error, Reference};
use crate::domain::DomainId;
use alloc::vec;
use alloc::vec::Vec;

/// Bytes of a page.
pub const PAGE: usize = 4096;

/// What is allowed to be done to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}

/// An entry.
#[derive(Debug, Clone, Copy)]
struct Entry {
    to: DomainId,
    page: u32,
    access: Access,
    /// How often the page is mapped by way of this entry.
    mapped: u32,
}

/// A domain's pages and its grant table.
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

    /// One of the domain's pages.
    ///
    /// # Errors
    /// [`Error::Page`].
    pub fn page(&self, page: u32) -> Result<&[u8], Error> {
        let start = page as usize * PAGE;
        self.memory.get(start..start + PAGE).ok_or(Error::Page)
    }

    /// One of the domain's pages, to be written.
    ///
    /// # Errors
    /// [`Error::Page`].
    pub fn page_mut(&mut self, page: u32) -> Result<&mut [u8], Error> {
        let start = page as usize * PAGE;
        self.memory.get_mut(start..start + PAGE).ok_or(Error::Page)
    }

    /// Grants a page to a domain. Whether there is such a page turns out when it is used.
    ///
    /// # Errors
    /// [`Error::Full`].
    pub fn grant(&mut self, to: DomainId, page: u32, access: Access) -> Result<Reference, Error> {
        let at = self.free.pop().ok_or(Error::Full)?;
        self.entries[at as usize] = Some(Entry { to, page, access, mapped: 0 });
        Ok(Reference(at))
    }

    /// Withdraws a grant.
    ///
    /// # Errors
    /// [`Error::Reference`]; [`Error::InUse`] while the page is mapped.
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

    /// The page behind an entry, if `by` may reach it so.
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

    /// Copies `length` bytes from a page and an offset in it to another; both were checked.
    pub(super) fn copy_within(&mut self, from: (u32, u16), to: (u32, u16), length: usize) {
        let at = |(page, offset): (u32, u16)| page as usize * PAGE + usize::from(offset);
        self.memory.copy_within(at(from)..at(from) + length, at(to));
    }
}
