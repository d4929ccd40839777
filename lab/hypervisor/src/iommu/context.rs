//! Context tables: map a PCI function's routing id to its domain, one table per bus (VT-d 3.4). Address width
//! and type are the same for all functions.

use crate::domain::DomainId;
use alloc::boxed::Box;
use alloc::vec::Vec;
use pcie::Rid;

type ContextTable = [Option<DomainId>; 256];

/// Domains of PCI functions by routing id, one table per bus.
#[derive(Debug, Clone, Default)]
pub struct IommuContextTables {
    buses: Vec<Option<Box<ContextTable>>>,
}

impl IommuContextTables {
    /// Returns the domain of a PCI function, or `None` if it has no domain.
    #[must_use]
    pub fn get(&self, rid: Rid) -> Option<DomainId> {
        let bus = self.buses.get(usize::from(rid.0 >> 8))?.as_ref()?;
        bus[usize::from(rid.0 & 0xff)]
    }

    /// Sets or clears the domain of a PCI function.
    pub fn set(&mut self, rid: Rid, domain: Option<DomainId>) {
        let bus = usize::from(rid.0 >> 8);
        if self.buses.len() <= bus {
            self.buses.resize_with(bus + 1, || None);
        }
        let functions = self.buses[bus].get_or_insert_with(|| Box::new([None; 256]));
        functions[usize::from(rid.0 & 0xff)] = domain;
    }
}
