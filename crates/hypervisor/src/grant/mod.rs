//! Grant tables: how a paravirtual domain lets another reach single pages of its memory (Xen's first form). An
//! entry of a domain's table names a page, the domain that may reach it, and how. The other domain maps the page,
//! or has the hypervisor copy to or from it.
//!
//! - [`table`]: a domain's pages and its entries;
//! - here: using them, which is where everything is checked. A table is its domain's own memory, so what it says
//!   is believed only then.
//!
//! Left out: what hypercalls and copies cost, transfer of pages, sub-page grants, transitive grants.

pub mod table;
#[cfg(test)]
mod tests;

pub use table::{Access, PAGE, Table};

use crate::domain::DomainId;
use alloc::vec::Vec;

/// An entry of a domain's grant table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference(pub u32);

/// A mapping of a granted page, in the hands of who mapped it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle(u32);

/// A place in a granted page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Whose page.
    pub owner: DomainId,
    /// The entry that grants it.
    pub reference: Reference,
    /// Bytes from the page's beginning.
    pub offset: u16,
}

/// Why a grant cannot be used, or not be withdrawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The domain has no grant table.
    #[error("domain has no grant table")]
    Domain,
    /// No such entry, or it grants nothing.
    #[error("nothing is granted there")]
    Reference,
    /// The entry grants to another domain.
    #[error("page is granted to another domain")]
    NotGranted,
    /// The entry names a page that its domain does not have.
    #[error("page is not the granting domain's")]
    Page,
    /// The entry allows reading only.
    #[error("page is granted for reading only")]
    ReadOnly,
    /// The bytes do not lie in one page.
    #[error("access crosses the end of a page")]
    Bounds,
    /// Somebody still maps the page.
    #[error("page is still mapped")]
    InUse,
    /// No such mapping, or another domain's.
    #[error("no such mapping")]
    Handle,
    /// Every entry, or every mapping that a domain may have, is in use.
    #[error("no room for more")]
    Full,
}

/// A mapping.
#[derive(Debug, Clone, Copy)]
struct Mapping {
    by: DomainId,
    owner: DomainId,
    reference: Reference,
    page: u32,
    access: Access,
}

/// Mappings that all domains may have together.
const MAPPINGS: usize = 1 << 16;

/// The grant tables of a machine, and the memory they speak of.
#[derive(Debug, Default)]
pub struct Grants {
    tables: Vec<Option<Table>>,
    mappings: Vec<Option<Mapping>>,
    free: Vec<u32>,
}

impl Grants {
    /// A machine without domains.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives a domain so many pages of memory, zeroed, and a table of so many entries, which grant nothing.
    pub fn add_domain(&mut self, domain: DomainId, pages: u32, entries: u32) {
        let at = domain.index();
        if self.tables.len() <= at {
            self.tables.resize_with(at + 1, || None);
        }
        self.tables[at] = Some(Table::new(pages, entries));
    }

    /// A domain's own memory and table.
    ///
    /// # Errors
    /// [`Error::Domain`].
    pub fn domain(&mut self, domain: DomainId) -> Result<&mut Table, Error> {
        self.tables.get_mut(domain.index()).and_then(Option::as_mut).ok_or(Error::Domain)
    }

    fn table(&self, domain: DomainId) -> Result<&Table, Error> {
        self.tables.get(domain.index()).and_then(Option::as_ref).ok_or(Error::Domain)
    }

    /// Maps a granted page. Until it is unmapped, its owner cannot end the grant.
    ///
    /// # Errors
    /// [`Error::Domain`], [`Error::Reference`], [`Error::NotGranted`], [`Error::Page`], [`Error::ReadOnly`],
    /// [`Error::Full`].
    pub fn map(
        &mut self,
        by: DomainId,
        owner: DomainId,
        reference: Reference,
        access: Access,
    ) -> Result<Handle, Error> {
        let page = self.table(owner)?.check(reference, by, access)?;
        let at = match self.free.pop() {
            Some(at) => at,
            None if self.mappings.len() < MAPPINGS => {
                self.mappings.push(None);
                self.mappings.len() as u32 - 1
            }
            None => return Err(Error::Full),
        };
        self.domain(owner)?.pin(reference);
        self.mappings[at as usize] = Some(Mapping { by, owner, reference, page, access });
        Ok(Handle(at))
    }

    /// Ends a mapping.
    ///
    /// # Errors
    /// [`Error::Handle`].
    pub fn unmap(&mut self, by: DomainId, handle: Handle) -> Result<(), Error> {
        let Mapping { owner, reference, .. } = *self.mapping(by, handle)?;
        self.mappings[handle.0 as usize] = None;
        self.free.push(handle.0);
        self.domain(owner)?.unpin(reference);
        Ok(())
    }

    /// A mapped page, to be read.
    ///
    /// # Errors
    /// [`Error::Handle`], [`Error::Page`].
    pub fn mapped(&self, by: DomainId, handle: Handle) -> Result<&[u8], Error> {
        let mapping = self.mapping(by, handle)?;
        self.table(mapping.owner)?.page(mapping.page)
    }

    /// A mapped page, to be written.
    ///
    /// # Errors
    /// [`Error::Handle`], [`Error::ReadOnly`], [`Error::Page`].
    pub fn mapped_mut(&mut self, by: DomainId, handle: Handle) -> Result<&mut [u8], Error> {
        let Mapping { owner, page, access, .. } = *self.mapping(by, handle)?;
        if access == Access::Read {
            return Err(Error::ReadOnly);
        }
        self.domain(owner)?.page_mut(page)
    }

    fn mapping(&self, by: DomainId, handle: Handle) -> Result<&Mapping, Error> {
        let found = self.mappings.get(handle.0 as usize).and_then(Option::as_ref);
        found.filter(|mapping| mapping.by == by).ok_or(Error::Handle)
    }

    /// Copies bytes of `by` into a granted page.
    ///
    /// # Errors
    /// All but [`Error::InUse`], [`Error::Handle`] and [`Error::Full`]; nothing is copied then.
    pub fn copy_to(&mut self, by: DomainId, to: Place, from: &[u8]) -> Result<(), Error> {
        let range = range(to.offset, from.len())?;
        let page = self.table(to.owner)?.check(to.reference, by, Access::Write)?;
        self.domain(to.owner)?.page_mut(page)?[range].copy_from_slice(from);
        Ok(())
    }

    /// Copies bytes of a granted page to `by`.
    ///
    /// # Errors
    /// As [`Grants::copy_to`], without [`Error::ReadOnly`].
    pub fn copy_from(&self, by: DomainId, from: Place, into: &mut [u8]) -> Result<(), Error> {
        let range = range(from.offset, into.len())?;
        let table = self.table(from.owner)?;
        let page = table.check(from.reference, by, Access::Read)?;
        into.copy_from_slice(&table.page(page)?[range]);
        Ok(())
    }

    /// Copies from one granted page to another, both granted to `by`.
    ///
    /// # Errors
    /// As [`Grants::copy_to`].
    pub fn copy(&mut self, by: DomainId, from: Place, to: Place, length: usize) -> Result<(), Error> {
        let (source, target) = (range(from.offset, length)?, range(to.offset, length)?);
        let from_page = self.table(from.owner)?.check(from.reference, by, Access::Read)?;
        let to_page = self.table(to.owner)?.check(to.reference, by, Access::Write)?;
        if from.owner == to.owner {
            self.domain(to.owner)?.copy_within((from_page, from.offset), (to_page, to.offset), length);
            return Ok(());
        }
        let pair = self.tables.get_disjoint_mut([from.owner.index(), to.owner.index()]);
        let [Some(reads), Some(writes)] = pair.map_err(|_| Error::Domain)? else { return Err(Error::Domain) };
        writes.page_mut(to_page)?[target].copy_from_slice(&reads.page(from_page)?[source]);
        Ok(())
    }
}

/// Bytes of one page.
fn range(offset: u16, length: usize) -> Result<core::ops::Range<usize>, Error> {
    let start = usize::from(offset);
    let end = start.checked_add(length).filter(|end| *end <= PAGE).ok_or(Error::Bounds)?;
    Ok(start..end)
}
