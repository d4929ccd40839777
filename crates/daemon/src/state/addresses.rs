//! Saved addresses that the VFs of a port hold, for a successor process.

use i82576::MacAddress;
use serde::{Deserialize, Serialize};

/// Ethernet addresses that the VFs of a port hold: they have them, or had them before a reset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldAddresses {
    /// Index of a VF, and an address of it.
    pub vfs: Vec<(u8, MacAddress)>,
}
