//! Decides which saved state of the previous host process is used. A successor process that fails because of bad saved
//! state must not be followed by others without end, so each failed attempt reduces the trust.

use crate::config::file::CardFamily;
use crate::config::{PortConfig, VfConfig};
use crate::port::clients::journal::{JournalError, PortJournal};
use crate::port::clients::vhost::saved::load;
use crate::port::error::PortStartError;
use crate::state::{self, AvfPortState, MixedPortState, PortSoftwareState, VirtioPortState};
use crate::vault::PortFileDescriptorStore;
use std::os::fd::AsFd;

/// Name under which the port's journal is kept for the successor process.
pub(in crate::port) const JOURNAL: &str = "journal";
/// Number of attempts to start the port from the saved state of the whole port. After that many without a completed
/// round of its loop and without a hand-over, the driver state is used instead.
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

/// Checks that this program reads what the previous host process has saved of a port and its vhost-user clients. The port's journal
/// is that process's.
///
/// # Errors
/// [`PortStartError`]: of another version, or damaged.
pub(in crate::port) fn check_versions(
    config: &PortConfig,
    vault: &PortFileDescriptorStore,
) -> Result<(), PortStartError> {
    let Some(fd) = vault.copy_named(JOURNAL) else { return Ok(()) };
    let journal = PortJournal::adopt(fd)?;
    let software = journal.software();
    // Clients do not outlive a change of the family.
    let clients =
        if is_of_family(config, &software) { front_ends(config, vault, &journal) } else { Vec::new() };
    let states = [software, journal.rest().read().unwrap_or_default()].into_iter().chain(clients);
    states.filter(|bytes| !bytes.is_empty()).try_for_each(|bytes| Ok(state::check_version(&bytes)?))
}

/// Returns the saved states of a port's vhost-user clients.
fn front_ends(config: &PortConfig, vault: &PortFileDescriptorStore, journal: &PortJournal) -> Vec<Vec<u8>> {
    let is_saved =
        |vf: &&VfConfig| vf.family == CardFamily::Virtio && journal.check_room(vf.index.index() + 1).is_ok();
    let saved = config.vfs.iter().filter(is_saved).filter_map(|vf| {
        let progress = journal.function(vf.index.function()).progress();
        let memory = vault.copy(progress.replies).filter(|_| progress.stream != 0)?;
        load(memory).ok()
    });
    saved.collect()
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
    use crate::config::HostConfig;
    use crate::port::clients::journal::ClientMessageProgress;
    use crate::port::clients::vhost::saved::store;
    use crate::state::{SavedState, SavedStateError, VhostClientState};
    use crate::vault::FileDescriptorStore;
    use pcie::VfIndex;
    use std::path::Path;

    /// Returns the bytes of a kept state.
    fn kept(digits: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            digits.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
        digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    fn port(family: CardFamily) -> PortConfig {
        let text = format!("[[port]]\nfamily = \"{}\"\nvfs = 3\n", family.name());
        let config = HostConfig::check(HostConfig::parse(&text).unwrap(), Path::new("/run/softiov"));
        config.unwrap().ports.remove(0)
    }

    /// Keeps a journal whose driver state is the kept state of a version, with another version's number.
    fn keep(vault: &PortFileDescriptorStore, version: u32) {
        let bytes = kept(include_str!("../../../tests/states/soft-v2.hex"));
        let journal = PortJournal::new(8).unwrap();
        let sealed = state::seal(PortSoftwareState::KIND, version, &bytes[28..]);
        assert!(journal.note_software(&sealed));
        vault.keep_named(JOURNAL, journal.as_fd());
    }

    #[test]
    fn living_predecessor_keeps_a_port_of_a_later_version() {
        let (vault, port) =
            (PortFileDescriptorStore::new(&FileDescriptorStore::default(), "pf0"), port(CardFamily::I82576));
        assert!(check_versions(&port, &vault).is_ok(), "a new port");
        for version in 1..=PortSoftwareState::VERSION {
            keep(&vault, version);
            assert!(check_versions(&port, &vault).is_ok(), "version {version}");
        }
        keep(&vault, PortSoftwareState::VERSION + 1);
        let refused = check_versions(&port, &vault).unwrap_err();
        assert!(
            matches!(refused, PortStartError::SavedState(SavedStateError::Version { found: 3, newest: 2 })),
            "{refused}"
        );
    }

    #[test]
    fn living_predecessor_keeps_a_client_of_a_later_version() {
        let vault = PortFileDescriptorStore::new(&FileDescriptorStore::default(), "pf0");
        let journal = PortJournal::new(8).unwrap();
        assert!(journal.note_software(&kept(include_str!("../../../tests/states/vios-v1.hex"))));
        vault.keep_named(JOURNAL, journal.as_fd());
        let mut client = journal.function(VfIndex::of_field(2).function());
        for version in 1..=VhostClientState::VERSION + 1 {
            let memory = store(&state::seal(VhostClientState::KIND, version, &[])).unwrap();
            vault.keep(8, memory.as_fd());
            client.step(ClientMessageProgress { stream: 7, replies: 8, ..ClientMessageProgress::default() });
            let checked = check_versions(&port(CardFamily::Virtio), &vault);
            let is_later = version > VhostClientState::VERSION;
            assert_eq!(checked.is_err(), is_later, "version {version}: {checked:?}");
            // Clients do not outlive a change of the family.
            assert!(check_versions(&port(CardFamily::Avf), &vault).is_ok());
        }
    }
}
