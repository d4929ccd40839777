//! Machines as TOML files: topology, wires, scheduler, and constants of the cost table. A value of the file is a setting
//! of the catalogue: `sockets` in the section `machine` is `machine.sockets`. The papers' machines are such files, which
//! experiments read.
//!
//! | module | contents |
//! |---|---|
//! | `file` | a file's machine, and the check that it can be built |
//! | `keys` | the settings that a file may have |
//! | `parse` | a file's text, with errors that name line and nearest key |
//! | `text` | a machine's complete values as text, and the schema of files |

mod file;
mod keys;
mod parse;
#[cfg(test)]
mod tests;
mod text;

pub use file::{DescribedMachine, MachineFile};
pub use parse::MachineFileError;
pub use text::schema;

use crate::experiments::topology;

/// Returns the names of the papers' machines.
pub fn names() -> impl Iterator<Item = &'static str> {
    topology::files().map(|(name, _)| name)
}
