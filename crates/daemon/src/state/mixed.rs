//! Saved state of a port with VFs of several families: the states of its cards.

use crate::config::file::CardFamily;
use serde::{Deserialize, Serialize};

/// Saved state of a port with VFs of the families AVF and virtio. Each part has an envelope with a version of its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "MixedState")]
pub struct MixedPortState {
    /// Family of each VF, by index.
    pub families: Vec<CardFamily>,
    /// Encoded state of the AVF card ([`super::AvfPortState`]), with the traffic of the port's switch.
    pub avf: Vec<u8>,
    /// Encoded state of the virtio card ([`super::VirtioPortState`]).
    pub virtio: Vec<u8>,
}
