//! Changes the settings of a running plane: its switch tables.

use crate::ForwardingPlane;
use crate::switch::SwitchTables;

impl<const N: usize> ForwardingPlane<N> {
    /// Replaces the switch tables. Equal tables keep the remembered flows: a guest that resets its function again and
    /// again must not slow down the frames of other guests.
    pub fn set_tables(&mut self, mut tables: SwitchTables<N>) {
        tables.forwards_link_local = self.tables.forwards_link_local;
        tables.set_guards(self.tables.guards.clone());
        self.claims.note_resets(core::mem::take(&mut tables.resets));
        tables.exact = self.claims.admit(tables.exact);
        if tables != self.tables {
            self.tables = tables;
            self.flows.forget();
        }
    }

    /// Takes over the switch tables of another plane of the same device, and its treatment of link-local frames. Equal tables keep
    /// the remembered flows.
    pub fn follow_tables(&mut self, other: &Self) {
        if other.tables != self.tables {
            self.tables = other.tables.clone();
            self.flows.forget();
        }
    }

    /// Stops remembering decisions for flows: the tables decide every frame.
    pub fn remember_no_flows(&mut self) {
        self.flows.never_remember();
    }
}

#[cfg(test)]
mod tests {
    use crate::guard::GuardedPlane;
    use crate::pacing::TransmitPacing;
    use crate::switch::{StormState, SwitchTables};
    use crate::{ForwardingPlane, PortCounters, PortSet};

    #[test]
    fn setting_equal_switch_tables_keeps_the_flow_cache() {
        let counters = [PortCounters::default(); 8];
        let mut plane = ForwardingPlane::new(
            SwitchTables::closed(0),
            TransmitPacing::new(None),
            StormState::default(),
            counters,
        );
        plane.forward_link_local(true);
        let remembered = plane.flows.generation();
        plane.set_tables(SwitchTables::closed(0));
        assert_eq!(
            plane.flows.generation(),
            remembered,
            "a reset that changes no table costs the others nothing"
        );
        let mut open = SwitchTables::closed(0);
        open.broadcast = PortSet::new(1);
        plane.set_tables(open.clone());
        assert_ne!(plane.flows.generation(), remembered);
        assert_eq!(plane.tables().broadcast, open.broadcast);
    }

    #[test]
    fn parts_of_a_device_treat_link_local_frames_alike() {
        let closed = || {
            ForwardingPlane::<8>::new(
                SwitchTables::closed(0),
                TransmitPacing::new(None),
                StormState::default(),
                [PortCounters::default(); 8],
            )
        };
        let (mut whole, mut part) = (closed(), closed());
        whole.forward_link_local(true);
        part.follow_tables(&whole);
        assert_eq!(part.tables(), whole.tables());
        let remembered = part.flows.generation();
        part.follow_tables(&whole);
        assert_eq!(part.flows.generation(), remembered);
    }
}
