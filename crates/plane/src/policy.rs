//! Changes of a running plane: its tables, and link-local frames. Left out: the tables (`switch`).

use crate::Plane;
use crate::switch::Tables;

impl<const N: usize> Plane<N> {
    /// From now on other tables are asked.
    pub fn set_tables(&mut self, mut tables: Tables<N>) {
        tables.forwards_link_local = self.tables.forwards_link_local;
        self.tables = tables;
        self.flows.forget();
    }

    /// Forwards link-local frames of guests, pause frames excepted, or drops them.
    pub fn forward_link_local(&mut self, on: bool) {
        self.tables.forwards_link_local = on;
        self.flows.forget();
    }

    /// From now on every frame is looked up anew.
    pub fn remember_no_flows(&mut self) {
        self.flows.never_remember();
    }
}
