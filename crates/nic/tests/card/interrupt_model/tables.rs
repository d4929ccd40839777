//! The MSI-X tables at which the card's messages arrive, and a model of their masks (PCIe Base Specification, 6.1.4). A
//! message to a masked vector sets its pending bit once, and is sent when vector and function are unmasked. A function
//! without MSI-X discards messages. Addresses and data of the tables are not modelled.

use pcie::Function::{self, Pf, Vf};
use pcie::msix::{ENTRY, MsiXControl, MsiXTable};
use std::collections::BTreeSet;

/// Returns a function's index in the arrays of [`ModelTables`].
fn slot(function: Function) -> usize {
    match function {
        Vf(n) => usize::from(n),
        Pf => 8,
    }
}

/// MSI-X table of a function, and the model of its masks and pending bits.
struct ModelTable {
    table: MsiXTable,
    masked: BTreeSet<u16>,
    pending: BTreeSet<u16>,
    control: MsiXControl,
}

/// MSI-X tables of VFs 0 to 7 and of the PF.
pub(super) struct ModelTables([ModelTable; 9]);

impl ModelTable {
    /// Creates an MSI-X table and its model, with MSI-X enabled and no vector masked.
    fn new() -> Self {
        let mut table = MsiXTable::new(super::rules::VECTORS as u16);
        let control = MsiXControl { enabled: true, masked: false };
        table.set_control(control);
        for vector in 0..table.vectors() {
            table.write(u64::from(vector) * ENTRY as u64 + 12, &[0]);
        }
        Self { table, masked: BTreeSet::new(), pending: BTreeSet::new(), control }
    }

    /// Sends the pending messages that a change of a mask or of the control word permits, the lowest vector first, and
    /// asserts that table and model agree.
    fn agree(&mut self) {
        if !self.control.enabled {
            self.pending.clear();
        }
        let holds = |vector: &u16| self.control.masked || self.masked.contains(vector);
        let (held, leave): (BTreeSet<_>, BTreeSet<_>) = self.pending.iter().copied().partition(holds);
        let left: Vec<u16> = core::iter::from_fn(|| Some(self.table.release()?.0)).collect();
        assert_eq!(left, leave.into_iter().collect::<Vec<_>>());
        self.pending = held;
        let mut bits = [0; 4];
        self.table.read_pending(0, &mut bits);
        let expected: u32 = self.pending.iter().map(|vector| 1 << vector).sum();
        assert_eq!(u32::from_le_bytes(bits), expected);
    }
}

impl ModelTables {
    pub(super) fn new() -> Self {
        Self(core::array::from_fn(|_| ModelTable::new()))
    }

    /// Receives the card's message to a vector: it is sent or becomes pending.
    pub(super) fn arrives(&mut self, (function, vector): (Function, u16)) {
        let side = &mut self.0[slot(function)];
        let held = side.control.masked || side.masked.contains(&vector);
        assert_eq!(side.table.signal(vector).is_some(), side.control.enabled && !held);
        if held {
            side.pending.insert(vector);
        }
        side.agree();
    }

    /// Sets the MSI-X mask of a vector.
    pub(super) fn mask(&mut self, function: Function, vector: u16, masked: bool) {
        let side = &mut self.0[slot(function)];
        side.table.write(u64::from(vector) * ENTRY as u64 + 12, &[u8::from(masked)]);
        if masked {
            side.masked.insert(vector)
        } else {
            side.masked.remove(&vector)
        };
        side.agree();
    }

    /// Changes a function's MSI-X control word (enable, function mask).
    pub(super) fn control(&mut self, function: Function, change: impl FnOnce(&mut MsiXControl)) {
        let side = &mut self.0[slot(function)];
        change(&mut side.control);
        side.table.set_control(side.control);
        side.agree();
    }
}
