//! Saved driver state of a port (drivers and policies), which outlives the card. Each function's PCI configuration can
//! be saved without the rest. `journal` has the memory.

use crate::config::PortConfig;
use crate::port::clients::journal::{FunctionJournal, PortJournal};
use crate::port::engine::family::PortCard;
use crate::state::{self, SavedStateError};
use iovm::VirtualFunctionState;
use pcie::{Function, VfIndex};

/// Saves the PCI configuration of one function for the successor process. Saves the whole driver state if this part
/// cannot be saved alone.
pub(super) fn note_function(
    journal: &PortJournal,
    notes: &FunctionJournal,
    function: Function,
    card: &mut dyn PortCard,
) {
    let bytes = card.configuration(function).and_then(|state| state::write(&state).ok());
    if !bytes.is_some_and(|bytes| notes.note_configuration(&bytes)) {
        note_software(journal, card);
    }
}

/// Reads the PCI configuration of each VF that was saved after the driver state. Omits an unreadable one, so that the
/// VF gets the configuration in the driver state.
pub(super) fn configurations(
    config: &PortConfig,
    journal: &PortJournal,
) -> Vec<(VfIndex, VirtualFunctionState)> {
    let noted = |vf: VfIndex| {
        let bytes = journal.configuration(vf.function())?;
        let read = state::read(&bytes).map(|state| (vf, state));
        let older = |error: &SavedStateError| {
            tracing::error!(
                port = config.name,
                %error,
                "cannot read the latest saved configuration of {vf}; the port uses an older one"
            );
        };
        read.inspect_err(older).ok()
    };
    VfIndex::first(config.vfs.len()).filter_map(noted).collect()
}

/// Saves the driver state of a port for the successor process.
pub(super) fn note_software(journal: &PortJournal, card: &mut dyn PortCard) {
    let noted = card.save_drivers().is_ok_and(|bytes| journal.note_software(&bytes));
    if !noted {
        tracing::error!("cannot save the port's policy for the successor process");
    }
}
