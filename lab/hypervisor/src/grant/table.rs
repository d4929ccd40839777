//! Pages and grant table of a domain, as the domain itself uses them.

use super::{GrantError, GrantReference};
use crate::domain::DomainId;
use alloc::vec;
use alloc::vec::Vec;

/// Bytes of a domain's page.
pub const PAGE: usize = 4096;

/// Access to a page that a grant entry permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantAccess {
    /// Access by the grantee: reading the page.
    Read,
    /// Access by the grantee: reading and writing the page.
    Write,
}

/// Entry of a domain's grant table.
#[derive(Debug, Clone, Copy)]
struct GrantEntry {
    to: DomainId,
    page: u32,
    access: GrantAccess,
    /// Number of existing mappings of the page that were made by this grant entry.
    mapped: u32,
}

/// Pages and grant table of a domain.
#[derive(Debug)]
pub struct DomainGrantTable {
    memory: Vec<u8>,
    entries: Vec<Option<GrantEntry>>,
    free: Vec<u32>,
}

impl DomainGrantTable {
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
    /// [`GrantError::Page`] if the domain has no such page.
    pub fn page(&self, page: u32) -> Result<&[u8], GrantError> {
        let start = page as usize * PAGE;
        self.memory.get(start..start + PAGE).ok_or(GrantError::Page)
    }

    /// Returns one of the domain's pages for writing.
    ///
    /// # Errors
    /// [`GrantError::Page`] if the domain has no such page.
    pub fn page_mut(&mut self, page: u32) -> Result<&mut [u8], GrantError> {
        let start = page as usize * PAGE;
        self.memory.get_mut(start..start + PAGE).ok_or(GrantError::Page)
    }

    /// Grants a page to a domain. The page's existence is checked at use.
    ///
    /// # Errors
    /// [`GrantError::Full`] if all entries are in use.
    pub fn grant(
        &mut self,
        to: DomainId,
        page: u32,
        access: GrantAccess,
    ) -> Result<GrantReference, GrantError> {
        let at = self.free.pop().ok_or(GrantError::Full)?;
        self.entries[at as usize] = Some(GrantEntry { to, page, access, mapped: 0 });
        Ok(GrantReference(at))
    }

    /// Ends a grant, so that the other domain loses access to the page.
    ///
    /// # Errors
    /// [`GrantError::Reference`] for an unused entry; [`GrantError::InUse`] while the page is mapped.
    pub fn end_access(&mut self, reference: GrantReference) -> Result<(), GrantError> {
        let entry = self.entries.get_mut(reference.0 as usize).ok_or(GrantError::Reference)?;
        match entry {
            None => Err(GrantError::Reference),
            Some(GrantEntry { mapped: 1.., .. }) => Err(GrantError::InUse),
            Some(_) => {
                *entry = None;
                self.free.push(reference.0);
                Ok(())
            }
        }
    }

    /// Returns the page that a grant entry names, if the entry permits domain `by` the access.
    pub(super) fn check(
        &self,
        reference: GrantReference,
        by: DomainId,
        access: GrantAccess,
    ) -> Result<u32, GrantError> {
        let entry =
            self.entries.get(reference.0 as usize).and_then(Option::as_ref).ok_or(GrantError::Reference)?;
        if entry.to != by {
            return Err(GrantError::NotGranted);
        }
        if access == GrantAccess::Write && entry.access == GrantAccess::Read {
            return Err(GrantError::ReadOnly);
        }
        self.page(entry.page).map(|_| entry.page)
    }

    pub(super) fn pin(&mut self, reference: GrantReference) {
        if let Some(Some(entry)) = self.entries.get_mut(reference.0 as usize) {
            entry.mapped += 1;
        }
    }

    pub(super) fn unpin(&mut self, reference: GrantReference) {
        if let Some(Some(entry)) = self.entries.get_mut(reference.0 as usize) {
            entry.mapped = entry.mapped.saturating_sub(1);
        }
    }

    /// Copies `length` bytes from one checked page and offset to another.
    pub(super) fn copy_within(&mut self, from: (u32, u16), to: (u32, u16), length: usize) {
        let at = |(page, offset): (u32, u16)| page as usize * PAGE + usize::from(offset);
        self.memory.copy_within(at(from)..at(from) + length, at(to));
    }
}
