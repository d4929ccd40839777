//! Processes of an earlier program, which leave the saved states of that program. Their successors are of today's program.

use super::SimulatedHost;
use crate::port::clients::journal::PortJournal;
use crate::port::moments::death;
use crate::port::succession::JOURNAL;
use crate::state::earlier::{EARLIER_PROGRAMS, EarlierProgram};
use crate::vault::PortFileDescriptorStore;

/// Earlier program of the processes that end, and their number.
#[derive(Debug, Default)]
pub(in super::super) struct EarlierProcesses {
    /// `None` for processes of today's program.
    program: Option<&'static EarlierProgram>,
    /// Number of hand-overs whose saved states were those of the earlier program.
    pub(in super::super) hand_overs: u64,
}

impl EarlierProcesses {
    /// Chooses the program by its index in [`EARLIER_PROGRAMS`], or today's.
    pub(in super::super) fn set_program(&mut self, index: Option<usize>) {
        self.program = index.map(|index| &EARLIER_PROGRAMS[index]);
    }
}

impl SimulatedHost {
    /// Replaces the saved states that a process has left by those of the earlier program. Returns true if they differ.
    pub(super) fn leave_earlier_states(&mut self) -> bool {
        let Some(program) = self.earlier.program else { return false };
        // The process has ended: no further moment of it comes.
        death::set(None);
        let vault = PortFileDescriptorStore::new(&self.vault, &self.settings.ports[0].name);
        // A process that dies while it opens the port for the first time leaves no journal.
        let Some(fd) = vault.copy_named(JOURNAL) else { return false };
        let journal = PortJournal::adopt(fd).expect("the process has left a journal");
        journal.rewrite(|state| program.rewrite(state))
    }
}
