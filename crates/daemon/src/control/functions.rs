//! A port's PCI functions: configuration space and rings, for `softiov lspci` and `softiov ethtool`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Functions of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PortFunctions {
    /// PF, then the VFs that the port offers.
    pub functions: Vec<PciFunction>,
}

/// PCI function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PciFunction {
    /// Name of its port, or of its VF.
    pub name: String,
    /// Routing id, as a PCI address without a domain.
    pub rid: String,
    /// Configuration space, byte by byte in hexadecimal.
    pub config: String,
    /// Descriptors of each receive ring that the driver has set up, by queue.
    pub rx_rings: Vec<u32>,
    /// Descriptors of each transmit ring that the driver has set up, by queue.
    pub tx_rings: Vec<u32>,
}
