//! From a routing id to its domain: a table of buses, each a table of functions (VT-d 3.4). Left out: address
//! width and type, which are the same for all here.

use crate::domain::DomainId;
use alloc::boxed::Box;
use alloc::vec::Vec;
use pcie::Rid;

type Bus = [Option<DomainId>; 256];

/// The domain of every function.
#[derive(Debug, Clone, Default)]
pub struct Contexts {
    buses: Vec<Option<Box<Bus>>>,
}

impl Contexts {
    /// The domain of a function; None if it has none.
    #[must_use]
    pub fn get(&self, rid: Rid) -> Option<DomainId> {
        let bus = self.buses.get(usize::from(rid.0 >> 8))?.as_ref()?;
        bus[usize::from(rid.0 & 0xff)]
    }

    /// Sets or clears the domain of a function.
    pub fn set(&mut self, rid: Rid, domain: Option<DomainId>) {
        let bus = usize::from(rid.0 >> 8);
        if self.buses.len() <= bus {
            self.buses.resize_with(bus + 1, || None);
        }
        let functions = self.buses[bus].get_or_insert_with(|| Box::new([None; 256]));
        functions[usize::from(rid.0 & 0xff)] = domain;
    }
}
