//! Faults that the simulation has to find: each changes a piece of the host's source. One program has all of them, and its
//! environment chooses one.

mod administration;
mod clients;
mod frames;
mod succession;

/// Folder of the files that faults change.
pub(super) const FOLDER: &str = "crates";

/// Expression in a fault's piece of source that is true if the environment chooses the fault.
pub(super) const CHOSEN: &str = "FAULT";

/// Change of a source file that breaks a promise of the host.
#[derive(Debug)]
pub(super) struct SeededFault {
    pub(super) name: &'static str,
    /// Path of the file in [`FOLDER`].
    pub(super) file: &'static str,
    /// Piece of source that occurs once in the file, and the piece that takes its place. In the latter [`CHOSEN`] stands for an
    /// expression that is true if this fault is chosen.
    pub(super) old: &'static str,
    pub(super) new: &'static str,
}

/// Creates a row of the table.
const fn fault(name: &'static str, file: &'static str, old: &'static str, new: &'static str) -> SeededFault {
    SeededFault { name, file, old, new }
}

/// Returns all faults, with their numbers.
pub(super) fn faults() -> impl Iterator<Item = (usize, &'static SeededFault)> + Clone {
    let tables = [clients::FAULTS, succession::FAULTS, administration::FAULTS, frames::FAULTS];
    tables.into_iter().flatten().enumerate()
}

#[cfg(test)]
mod tests {
    use super::{CHOSEN, FOLDER, faults};
    use crate::metadata;

    #[test]
    fn each_seeded_fault_has_one_place() {
        let root = metadata::workspace_root().unwrap();
        for (_, fault) in faults() {
            let text = std::fs::read_to_string(root.join(FOLDER).join(fault.file)).unwrap();
            assert_eq!(text.matches(fault.old).count(), 1, "{fault:?}");
            assert!(fault.new.contains(CHOSEN), "{fault:?}");
            // Without its line break a piece would become part of a comment above.
            let breaks = [fault.old, fault.new].map(|piece| piece.starts_with('\n'));
            assert_eq!(breaks[0], breaks[1], "{fault:?}");
        }
    }
}
