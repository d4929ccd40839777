//! Row of the table of seeded faults.

/// Expression in a fault's piece of source that is true if the environment chooses the fault.
pub(in crate::simulate) const CHOSEN: &str = "FAULT";

/// Change of a source file that breaks a promise of the host.
#[derive(Debug)]
pub(in crate::simulate) struct SeededFault {
    pub(in crate::simulate) name: &'static str,
    /// Path of the file in the folder `crates`.
    pub(in crate::simulate) file: &'static str,
    /// Piece of source that occurs once in the file, and the piece that takes its place. In the latter [`CHOSEN`] stands for an
    /// expression that is true if this fault is chosen.
    pub(in crate::simulate) old: &'static str,
    pub(in crate::simulate) new: &'static str,
}

/// Creates a row of the table.
pub(super) const fn fault(
    name: &'static str,
    file: &'static str,
    old: &'static str,
    new: &'static str,
) -> SeededFault {
    SeededFault { name, file, old, new }
}
