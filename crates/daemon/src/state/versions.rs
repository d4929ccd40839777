//! Check that this program reads the saved states of a port and its clients, before it takes the port from a process that still runs.

use super::envelope::{SavedState, SavedStateError, read, unseal};
use super::{
    AvfPortState, I82576PortState, MixedPortState, PortSoftwareState, VhostClientState, VirtioPortState,
};

/// Kinds of the saved states of ports and clients, with their newest versions.
const NEWEST: [([u8; 4], u32); 6] = [
    (I82576PortState::KIND, I82576PortState::VERSION),
    (PortSoftwareState::KIND, PortSoftwareState::VERSION),
    (AvfPortState::KIND, AvfPortState::VERSION),
    (VirtioPortState::KIND, VirtioPortState::VERSION),
    (MixedPortState::KIND, MixedPortState::VERSION),
    (VhostClientState::KIND, VhostClientState::VERSION),
];

/// Checks that the saved state of a port or a client has a version that this program reads.
///
/// # Errors
/// [`SavedStateError`]: the state is damaged, of a later version, or of another kind.
pub fn check_version(bytes: &[u8]) -> Result<(), SavedStateError> {
    let (kind, found, _) = unseal(bytes)?;
    let newest = NEWEST.iter().find(|(known, _)| *known == kind).map(|(_, newest)| *newest);
    let newest = newest.ok_or(SavedStateError::UnknownKind { found: kind })?;
    if !(1..=newest).contains(&found) {
        return Err(SavedStateError::Version { found, newest });
    }
    if kind == MixedPortState::KIND {
        let state: MixedPortState = read(bytes)?;
        check_version(&state.avf)?;
        check_version(&state.virtio)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::envelope::seal;

    #[test]
    fn unknown_kind_of_state_is_refused_by_its_name() {
        let refused = check_version(&seal(*b"next", 1, &[])).unwrap_err();
        assert_eq!(refused, SavedStateError::UnknownKind { found: *b"next" });
        assert!(refused.to_string().contains("kind of saved state: next;"), "{refused}");
    }
}
