//! Decides which saved state of the previous host process is used. A successor process that fails because of bad saved
//! state must not be followed by others without end, so each failed attempt reduces the trust.

use crate::config::PortConfig;
use crate::config::file::CardFamily;
use crate::port::clients::journal::{JournalError, PortJournal};
use crate::port::error::PortStartError;
use crate::state::{self, AvfPortState, MixedPortState, PortSoftwareState, VirtioPortState};
use crate::vault::PortFileDescriptorStore;
use std::os::fd::AsFd;

/// Name under which the port's journal is kept for the successor process.
pub(in crate::port) const JOURNAL: &str = "journal";
/// Number of attempts to start the port from the saved state of the whole port. After that many without a completed
/// round of its loop, the driver state is used instead.
const TRUST_REST: u64 = 2;
/// Number of attempts to start the port from any saved state. After that many, the port starts anew, and its former
/// clients are disconnected.
const TRUST_NOTES: u64 = 4;

/// Part of the previous host process's saved state that this process trusts and uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::port) enum SavedStateTrust {
    /// No previous host process has left saved state.
    Nothing,
    Everything,
    Notes,
    /// The addresses that VFs hold are used, and the sockets of clients, to disconnect these clients: the journal has
    /// another format, or too little room.
    Addresses,
    /// Only the sockets of the previous host process's clients are used, and only to disconnect these clients.
    Clients,
}

impl SavedStateTrust {
    /// Returns true if the previous host process's clients are resumed.
    pub(in crate::port) fn has_clients(self) -> bool {
        matches!(self, Self::Everything | Self::Notes)
    }

    /// Returns true if the VFs hold the addresses that they held in the previous host process.
    pub(in crate::port) fn has_addresses(self) -> bool {
        self.has_clients() || self == Self::Addresses
    }
}

/// Opens the journal that the previous host process left, or creates a new one. Decides how far the saved state is
/// trusted.
pub(super) fn open(
    config: &PortConfig,
    vault: &PortFileDescriptorStore,
) -> Result<(PortJournal, SavedStateTrust), JournalError> {
    let mut trust = SavedStateTrust::Nothing;
    if let Some(fd) = vault.copy_named(JOURNAL) {
        let adopted =
            PortJournal::adopt(fd).and_then(|journal| journal.check_room(config.vfs.len()).map(|()| journal));
        trust = match adopted {
            Ok(journal) => {
                let attempt = journal.attempt();
                let trust = match attempt {
                    _ if !is_of_family(config, &journal.software()) => SavedStateTrust::Clients,
                    attempt if attempt <= TRUST_REST => SavedStateTrust::Everything,
                    attempt if attempt <= TRUST_NOTES => SavedStateTrust::Notes,
                    _ => SavedStateTrust::Clients,
                };
                tracing::info!(
                    port = config.name,
                    attempt,
                    "restoring the port from the state of the previous host process"
                );
                if trust.has_clients() {
                    return Ok((journal, trust));
                }
                tracing::error!(
                    port = config.name,
                    "the saved state of the previous host process is not used: earlier processes failed with the \
                     state, or the card family has changed"
                );
                SavedStateTrust::Clients
            }
            Err(error) => {
                tracing::error!(
                    port = config.name,
                    %error,
                    "cannot use the saved state of the previous host process; clients are disconnected"
                );
                SavedStateTrust::Addresses
            }
        };
    }
    let journal = PortJournal::new(config.family.limits().vfs)?;
    vault.keep_named(JOURNAL, journal.as_fd());
    Ok((journal, trust))
}

/// Checks that this program reads what the previous host process has saved of a port. The port's journal is that process's.
///
/// # Errors
/// [`PortStartError`]: of another version, or damaged.
pub(in crate::port) fn check_versions(vault: &PortFileDescriptorStore) -> Result<(), PortStartError> {
    let Some(fd) = vault.copy_named(JOURNAL) else { return Ok(()) };
    let journal = PortJournal::adopt(fd)?;
    let states = [journal.software(), journal.rest().read().unwrap_or_default()];
    states.iter().filter(|bytes| !bytes.is_empty()).try_for_each(|bytes| Ok(state::check_version(bytes)?))
}

/// Returns true unless the previous host process's driver state is that of another card family, or of VFs with other
/// families.
fn is_of_family(config: &PortConfig, software: &[u8]) -> bool {
    software.is_empty()
        || match config.family {
            _ if config.is_mixed() => {
                state::read::<MixedPortState>(software).is_ok_and(|state| state.families == config.families())
            }
            CardFamily::I82576 => state::is_kind::<PortSoftwareState>(software),
            CardFamily::Avf => state::is_kind::<AvfPortState>(software),
            CardFamily::Virtio => state::is_kind::<VirtioPortState>(software),
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{SavedState, SavedStateError};
    use crate::vault::FileDescriptorStore;

    /// Keeps a journal whose driver state is the kept state of a version, with another version's number.
    fn keep(vault: &PortFileDescriptorStore, version: u32) {
        let state = include_bytes!("../../../tests/states/soft-v2.hex");
        let digits: Vec<u8> = state
            .iter()
            .filter_map(|digit| char::from(*digit).to_digit(16))
            .map(|digit| digit as u8)
            .collect();
        let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        let journal = PortJournal::new(8).unwrap();
        let sealed = state::seal(PortSoftwareState::KIND, version, &bytes[28..]);
        assert!(journal.note_software(&sealed));
        vault.keep_named(JOURNAL, journal.as_fd());
    }

    #[test]
    fn living_predecessor_keeps_a_port_of_a_later_version() {
        let vault = PortFileDescriptorStore::new(&FileDescriptorStore::default(), "pf0");
        assert!(check_versions(&vault).is_ok(), "a new port");
        for version in 1..=PortSoftwareState::VERSION {
            keep(&vault, version);
            assert!(check_versions(&vault).is_ok(), "version {version}");
        }
        keep(&vault, PortSoftwareState::VERSION + 1);
        let refused = check_versions(&vault).unwrap_err();
        assert!(
            matches!(refused, PortStartError::SavedState(SavedStateError::Version { found: 3, newest: 2 })),
            "{refused}"
        );
    }
}
