//! Configuration spaces of the 82576, bit for bit as in silicon: one of the PF, one of each VF. The second port,
//! flash, expansion ROM and VPD are omitted. [`pcie::ConfigWriteEffects`] reports writes by software to the card.

pub mod pf;
#[cfg(test)]
mod tests;
pub mod vf;

use crate::ids;
use pcie::capability::aer::AerCapability;
use pcie::capability::express::ExpressCapability;
use pcie::config::{ConfigRegister, ConfigSpaceBuilder, FunctionIds, offset};

/// Offset of the MSI-X capability, in PF and VF.
pub const MSIX: u8 = 0x70;
/// Offset of the PCI Express capability, in PF and VF.
pub const EXPRESS: u8 = 0xa0;
/// Offset of advanced error reporting, in PF and VF.
pub const AER: u16 = 0x100;
/// Offset of alternative routing-id interpretation, in PF and VF.
pub const ARI: u16 = 0x150;

/// Number of the BAR with MSI-X table and pending bits.
pub const MSIX_BAR: u8 = 3;
/// Offset of the MSI-X table in its BAR.
pub const MSIX_TABLE: u32 = 0;
/// Offset of the pending bits in the MSI-X BAR.
pub const MSIX_PBA: u32 = 0x2000;

/// Returns the PCI ids of the PF.
#[must_use]
pub const fn identity() -> FunctionIds {
    FunctionIds {
        vendor: ids::VENDOR,
        device: ids::DEVICE_PF,
        class: ids::CLASS,
        revision: ids::REVISION,
        subsystem_vendor: ids::VENDOR,
        subsystem: 0,
    }
}

/// Adds the scratch registers of every configuration header, which only software writes and reads: cache line size and
/// interrupt line.
#[must_use]
pub fn scratch(builder: ConfigSpaceBuilder) -> ConfigSpaceBuilder {
    builder
        .register(ConfigRegister::byte(offset::CACHE_LINE, 0).writable(0xff))
        .register(ConfigRegister::byte(offset::INTERRUPT_LINE, 0).writable(0xff))
}

/// Returns the PCI Express capability: 512-byte payload, role-based error reporting, function level reset; 2.5 GT/s
/// x4, L0s and L1; completion timeout ranges A to D.
fn express(virtual_function: bool) -> ExpressCapability {
    ExpressCapability {
        device_capabilities: 0x1000_8cc2,
        link_capabilities: 0x0003_6c41,
        link_status: 0x1041,
        device_capabilities_2: 0x0000_001f,
        virtual_function,
    }
}

fn aer(virtual_function: bool) -> AerCapability {
    AerCapability { severity: 0x0006_2011, correctable_mask: 0x2000, virtual_function }
}
