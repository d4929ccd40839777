//! Faults that the simulation has to find: each changes a piece of the host's source. One program has all of them, and its
//! environment chooses one.

mod administration;
mod clients;
mod frames;
mod row;
mod succession;

pub(super) use row::CHOSEN;
use row::SeededFault;

/// Folder of the files that faults change.
pub(super) const FOLDER: &str = "crates";

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
