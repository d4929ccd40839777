//! Saved state of a vhost-user client, for a planned hand-over of its port.

use super::envelope::{SavedState, SavedStateError, write, write_version};
use i82576::MacAddress;
use serde::{Deserialize, Serialize};
use virtio_nic::PausedPacket;

/// Saved state of a vhost-user client. Its socket, eventfds and files of guest memory are kept beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VhostClientState {
    /// Encoded session ([`vhost_user::backend::BackendSession::save`]).
    pub session: Vec<u8>,
    /// Position of each ring that has run, by the ring's number, as vhost-user's ring base.
    pub positions: Vec<(u32, u32)>,
    /// Address that the VF has learned from its guest.
    pub address: Option<MacAddress>,
    /// True if the guest has moved here from another card and has not used an address yet.
    pub has_arrived: bool,
    /// Packet of the guest that waits for its VF's rate between two of its segments.
    pub paused: Option<SavedPausedPacket>,
}

/// Packet that is paused between two of its segments, as [`virtio_nic::PausedPacket`] has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "PausedPacket")]
pub struct SavedPausedPacket {
    /// Queue pair of the packet's transmit ring.
    pub queue: u8,
    /// Number of segments that have left.
    pub sent: u32,
    /// Number of payload bytes per segment.
    pub segment_size: u16,
    /// Bytes of the whole packet.
    pub bytes: Vec<u8>,
}

impl From<PausedPacket> for SavedPausedPacket {
    fn from(packet: PausedPacket) -> Self {
        let PausedPacket { queue, sent, segment_size, bytes } = packet;
        Self { queue, sent, segment_size, bytes }
    }
}

impl From<SavedPausedPacket> for PausedPacket {
    fn from(saved: SavedPausedPacket) -> Self {
        let SavedPausedPacket { queue, sent, segment_size, bytes } = saved;
        Self { queue, sent, segment_size, bytes }
    }
}

/// Saved state of a vhost-user client in version 1, which has no packet that waits.
#[derive(Serialize, Deserialize)]
pub(super) struct VhostClientStateV1 {
    session: Vec<u8>,
    positions: Vec<(u32, u32)>,
    address: Option<MacAddress>,
    has_arrived: bool,
}

impl From<VhostClientStateV1> for VhostClientState {
    fn from(state: VhostClientStateV1) -> Self {
        let VhostClientStateV1 { session, positions, address, has_arrived } = state;
        Self { session, positions, address, has_arrived, paused: None }
    }
}

impl VhostClientState {
    /// Encodes the state for the successor process: in version 1 if no packet waits, so that an earlier program continues the client
    /// too.
    ///
    /// # Errors
    /// [`SavedStateError::Unwritable`].
    pub fn encode(self) -> Result<Vec<u8>, SavedStateError> {
        if self.paused.is_some() {
            return write(&self);
        }
        let Self { session, positions, address, has_arrived, .. } = self;
        write_version(Self::KIND, 1, &VhostClientStateV1 { session, positions, address, has_arrived })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::read;

    #[test]
    fn earlier_program_reads_a_client_without_waiting_packet() {
        let waits = SavedPausedPacket { queue: 0, sent: 1, segment_size: 500, bytes: vec![1; 1_000] };
        let client =
            VhostClientState { session: vec![1, 2], has_arrived: true, ..VhostClientState::default() };
        for (paused, version) in [(None, 1), (Some(waits), 2)] {
            let client = VhostClientState { paused, ..client.clone() };
            let bytes = client.clone().encode().unwrap();
            assert_eq!((bytes[12], read::<VhostClientState>(&bytes)), (version, Ok(client)));
        }
    }
}
