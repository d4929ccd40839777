//! A port's PCI functions: configuration space and rings, for `softiov lspci` and `softiov ethtool`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The functions of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Functions {
    /// The PF, then those of its VFs that the port offers.
    pub functions: Vec<PciFunction>,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PciFunction {
    /// Its name: that of its port, or of its VF.
    pub name: String,
    /// Its routing id, as a PCI address without a domain.
    pub rid: String,
    /// Its configuration space, byte by byte in hexadecimal.
    pub config: String,
    /// How many descriptors each of its receive rings has that are set up, by queue.
    pub rx_rings: Vec<u32>,
    /// The same of its transmit rings.
    pub tx_rings: Vec<u32>,
}
