//! Families of attacked VFs.

use std::fmt;

/// Family of the VF that a case attacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
pub enum AttackedFamily {
    /// VF of an Intel 82576, behind a vfio-user socket.
    #[serde(rename = "82576")]
    I82576,
    /// Adaptive Virtual Function, behind a vfio-user socket.
    #[serde(rename = "avf")]
    Avf,
    /// Virtio network function, behind a vhost-user socket.
    #[serde(rename = "virtio")]
    Virtio,
}

impl AttackedFamily {
    /// Families in the order of the host's ports.
    pub const ALL: [Self; 3] = [Self::I82576, Self::Avf, Self::Virtio];

    /// Returns the family's name in the host's configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::I82576 => "82576",
            Self::Avf => "avf",
            Self::Virtio => "virtio",
        }
    }

    /// Returns the number of the host's port that has VFs of this family.
    #[must_use]
    pub fn port(self) -> usize {
        self as usize
    }
}

impl fmt::Display for AttackedFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
