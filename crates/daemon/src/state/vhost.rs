//! Saved state of a vhost-user client, for a planned hand-over of its port.

use i82576::MacAddress;
use serde::{Deserialize, Serialize};

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
}
