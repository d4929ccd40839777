//! Grant tables: a paravirtualized domain grants other domains access to single pages (Xen's version 1). An
//! entry names a page, a domain and its rights. That domain maps the page, or the hypervisor copies on its
//! behalf.
//!
//! - [`table`]: a domain's pages and entries;
//! - here: use of grants, with all checks. A table is its domain's own memory, so its entries are checked at
//!   each use.
//!
//! The caller charges hypercalls and copies. Page transfer, sub-page and transitive grants are not supported.

pub mod table;
#[cfg(test)]
mod tests;

pub use table::{DomainGrantTable, GrantAccess, PAGE};

use crate::domain::DomainId;
use alloc::vec::Vec;

/// Index of an entry in a domain's grant table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GrantReference(pub u32);

/// Handle of a mapped granted page, by which the mapping domain refers to the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GrantHandle(u32);

/// Byte address in a granted page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantAddress {
    /// Domain that owns the granted page.
    pub owner: DomainId,
    /// Reference of the grant entry that permits access to the page.
    pub reference: GrantReference,
    /// Bytes from the start of the granted page.
    pub offset: u16,
}

/// Error of a grant operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// The domain has no grant table in this machine.
    #[error("the domain has no grant table")]
    Domain,
    /// The grant entry does not exist or grants no page.
    #[error("the grant entry is unused or out of range")]
    Reference,
    /// The grant entry permits access to a different domain.
    #[error("the page is granted to another domain")]
    NotGranted,
    /// The grant entry names a page that the granting domain does not have.
    #[error("the granted page does not exist in the granting domain")]
    Page,
    /// The grant permits the other domain only to read the page.
    #[error("the page is granted for reading only")]
    ReadOnly,
    /// The byte range exceeds the granted page.
    #[error("the byte range exceeds the granted page")]
    Bounds,
    /// The granted page is still mapped.
    #[error("the granted page is still mapped")]
    InUse,
    /// The mapping does not exist or belongs to another domain.
    #[error("the grant mapping does not exist")]
    Handle,
    /// All grant entries, or all mappings of the machine, are in use.
    #[error("the grant table or the mapping table is full")]
    Full,
}

/// Mapping of a granted page.
#[derive(Debug, Clone, Copy)]
struct GrantMapping {
    by: DomainId,
    owner: DomainId,
    reference: GrantReference,
    page: u32,
    access: GrantAccess,
}

/// Maximum number of grant mappings of all domains together.
const MAPPINGS: usize = 1 << 16;

/// Grant tables and page memory of a machine's domains.
#[derive(Debug, Default)]
pub struct GrantTables {
    tables: Vec<Option<DomainGrantTable>>,
    mappings: Vec<Option<GrantMapping>>,
    free: Vec<u32>,
}

impl GrantTables {
    /// Creates grant tables without domains.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a domain with `pages` zeroed pages and a grant table of `entries` unused entries.
    pub fn add_domain(&mut self, domain: DomainId, pages: u32, entries: u32) {
        let at = domain.index();
        if self.tables.len() <= at {
            self.tables.resize_with(at + 1, || None);
        }
        self.tables[at] = Some(DomainGrantTable::new(pages, entries));
    }

    /// Returns the pages and the grant table of a domain.
    ///
    /// # Errors
    /// [`GrantError::Domain`] if it has no table.
    pub fn domain(&mut self, domain: DomainId) -> Result<&mut DomainGrantTable, GrantError> {
        self.tables.get_mut(domain.index()).and_then(Option::as_mut).ok_or(GrantError::Domain)
    }

    fn table(&self, domain: DomainId) -> Result<&DomainGrantTable, GrantError> {
        self.tables.get(domain.index()).and_then(Option::as_ref).ok_or(GrantError::Domain)
    }

    /// Maps a granted page. The page's owner cannot end the grant until the page is unmapped.
    ///
    /// # Errors
    /// [`GrantError::Domain`], [`GrantError::Reference`], [`GrantError::NotGranted`], [`GrantError::Page`],
    /// [`GrantError::ReadOnly`], [`GrantError::Full`].
    pub fn map(
        &mut self,
        by: DomainId,
        owner: DomainId,
        reference: GrantReference,
        access: GrantAccess,
    ) -> Result<GrantHandle, GrantError> {
        let page = self.table(owner)?.check(reference, by, access)?;
        let at = match self.free.pop() {
            Some(at) => at,
            None if self.mappings.len() < MAPPINGS => {
                self.mappings.push(None);
                self.mappings.len() as u32 - 1
            }
            None => return Err(GrantError::Full),
        };
        self.domain(owner)?.pin(reference);
        self.mappings[at as usize] = Some(GrantMapping { by, owner, reference, page, access });
        Ok(GrantHandle(at))
    }

    /// Unmaps a granted page.
    ///
    /// # Errors
    /// [`GrantError::Handle`] if `by` has no such mapping.
    pub fn unmap(&mut self, by: DomainId, handle: GrantHandle) -> Result<(), GrantError> {
        let GrantMapping { owner, reference, .. } = *self.mapping(by, handle)?;
        self.mappings[handle.0 as usize] = None;
        self.free.push(handle.0);
        self.domain(owner)?.unpin(reference);
        Ok(())
    }

    /// Returns a granted page that domain `by` has mapped, for reading.
    ///
    /// # Errors
    /// [`GrantError::Handle`], [`GrantError::Page`].
    pub fn mapped(&self, by: DomainId, handle: GrantHandle) -> Result<&[u8], GrantError> {
        let mapping = self.mapping(by, handle)?;
        self.table(mapping.owner)?.page(mapping.page)
    }

    /// Returns a granted page that domain `by` has mapped, for writing.
    ///
    /// # Errors
    /// [`GrantError::Handle`], [`GrantError::ReadOnly`], [`GrantError::Page`].
    pub fn mapped_mut(&mut self, by: DomainId, handle: GrantHandle) -> Result<&mut [u8], GrantError> {
        let GrantMapping { owner, page, access, .. } = *self.mapping(by, handle)?;
        if access == GrantAccess::Read {
            return Err(GrantError::ReadOnly);
        }
        self.domain(owner)?.page_mut(page)
    }

    fn mapping(&self, by: DomainId, handle: GrantHandle) -> Result<&GrantMapping, GrantError> {
        let found = self.mappings.get(handle.0 as usize).and_then(Option::as_ref);
        found.filter(|mapping| mapping.by == by).ok_or(GrantError::Handle)
    }

    /// Copies bytes of domain `by` into a granted page.
    ///
    /// # Errors
    /// Any but [`GrantError::InUse`], [`GrantError::Handle`] and [`GrantError::Full`], with nothing copied.
    pub fn copy_to(&mut self, by: DomainId, to: GrantAddress, from: &[u8]) -> Result<(), GrantError> {
        let range = range(to.offset, from.len())?;
        let page = self.table(to.owner)?.check(to.reference, by, GrantAccess::Write)?;
        self.domain(to.owner)?.page_mut(page)?[range].copy_from_slice(from);
        Ok(())
    }

    /// Copies bytes of a granted page into memory of domain `by`.
    ///
    /// # Errors
    /// Returns the errors of [`GrantTables::copy_to`], without [`GrantError::ReadOnly`].
    pub fn copy_from(&self, by: DomainId, from: GrantAddress, into: &mut [u8]) -> Result<(), GrantError> {
        let range = range(from.offset, into.len())?;
        let table = self.table(from.owner)?;
        let page = table.check(from.reference, by, GrantAccess::Read)?;
        into.copy_from_slice(&table.page(page)?[range]);
        Ok(())
    }

    /// Copies bytes from one granted page to another. Both grants permit domain `by`.
    ///
    /// # Errors
    /// Returns the errors of [`GrantTables::copy_to`].
    pub fn copy(
        &mut self,
        by: DomainId,
        from: GrantAddress,
        to: GrantAddress,
        length: usize,
    ) -> Result<(), GrantError> {
        let (source, target) = (range(from.offset, length)?, range(to.offset, length)?);
        let from_page = self.table(from.owner)?.check(from.reference, by, GrantAccess::Read)?;
        let to_page = self.table(to.owner)?.check(to.reference, by, GrantAccess::Write)?;
        if from.owner == to.owner {
            self.domain(to.owner)?.copy_within((from_page, from.offset), (to_page, to.offset), length);
            return Ok(());
        }
        let pair = self.tables.get_disjoint_mut([from.owner.index(), to.owner.index()]);
        let [Some(reads), Some(writes)] = pair.map_err(|_| GrantError::Domain)? else {
            return Err(GrantError::Domain);
        };
        writes.page_mut(to_page)?[target].copy_from_slice(&reads.page(from_page)?[source]);
        Ok(())
    }
}

/// Checks that an access lies within a page, and returns its byte range.
fn range(offset: u16, length: usize) -> Result<core::ops::Range<usize>, GrantError> {
    let start = usize::from(offset);
    let end = start.checked_add(length).filter(|end| *end <= PAGE).ok_or(GrantError::Bounds)?;
    Ok(start..end)
}
