//! A port's PCI functions: configuration space and rings, for `softiov lspci` and `softiov ethtool`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// PCI functions of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PortFunctions {
    /// PF, if it has a configuration space, and then the VFs that the port offers, by index.
    pub functions: Vec<PciFunction>,
}

/// PCI function of a port: its configuration space and its rings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PciFunction {
    /// Name of the function: of the port for a PF, such as pf0, or of the VF, such as pf0vf3.
    pub name: String,
    /// Routing id as a PCI address without a domain, in hexadecimal: bus:device.function; empty for a virtio VF, whose
    /// PCI function is its VMM's.
    pub rid: String,
    /// Configuration space, two hexadecimal digits for each byte, in the order of the addresses; empty for a virtio VF.
    pub config: String,
    /// Size in descriptors of each receive ring that the guest's driver has set up, by queue; empty for a PF.
    pub rx_rings: Vec<u32>,
    /// Size in descriptors of each transmit ring that the guest's driver has set up, by queue; empty for a
    /// PF.
    pub tx_rings: Vec<u32>,
}
