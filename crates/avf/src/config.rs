//! Configuration space of an Adaptive Virtual Function as its guest sees the function: an ordinary endpoint with two
//! BARs, MSI-X and function level reset. Offsets and sizes are those observed on X710 VFs; drivers find them through
//! the capability lists.
//!
//! A VF's space on its own bus, without ids and BARs, and the PF's space are elsewhere. [`pcie::ConfigWriteEffects`]
//! announces the software writes that the card must act on.

use crate::ids;
use pcie::capability::aer::AerCapability;
use pcie::capability::ari;
use pcie::capability::express::ExpressCapability;
use pcie::capability::msix::MsiXCapability;
use pcie::config::{Bar, BarKind, ConfigRegister, ConfigSpace, ConfigSpaceBuilder, FunctionIds, offset};
use pcie::low::low_dword;

/// Offset of the MSI-X capability.
pub const MSIX: u8 = 0x70;
/// Offset of the PCI Express capability.
pub const EXPRESS: u8 = 0xa0;
/// Offset of the advanced error reporting capability.
pub const AER: u16 = 0x100;
/// Offset of the alternative routing-id interpretation (ARI) capability.
pub const ARI: u16 = 0x150;
/// Index of the BAR that holds the MSI-X table and the pending bits.
pub const MSIX_BAR: u8 = 3;
/// Offset of the MSI-X table in its BAR.
pub const MSIX_TABLE: u32 = 0;
/// Offset of the pending bits in the MSI-X BAR.
pub const MSIX_PBA: u32 = 0x2000;

/// PCI ids of an Adaptive Virtual Function.
pub const IDENTITY: FunctionIds = FunctionIds {
    vendor: ids::VENDOR,
    device: ids::DEVICE,
    class: ids::CLASS,
    revision: ids::REVISION,
    subsystem_vendor: ids::VENDOR,
    subsystem: 0,
};

/// PCI Express capability of a VF: 512-byte payload, role-based error reporting, function level reset; 8 GT/s x8.
const LINK: ExpressCapability = ExpressCapability {
    device_capabilities: 0x1000_8cc2,
    link_capabilities: 0x0003_6c83,
    link_status: 0x1083,
    device_capabilities_2: 0x0000_001f,
    virtual_function: false,
};

/// Creates a VF's configuration space in its state after power-on.
#[must_use]
pub fn space() -> ConfigSpace {
    let command = offset::COMMAND_MEMORY
        | offset::COMMAND_BUS_MASTER
        | offset::COMMAND_PARITY
        | offset::COMMAND_SERR
        | offset::COMMAND_INTX_DISABLE;
    let vectors = u16::from(ids::VECTORS);
    let msix = MsiXCapability { vectors, bar: MSIX_BAR, table: MSIX_TABLE, pba: MSIX_PBA };
    let aer = AerCapability { severity: 0x0006_2011, correctable_mask: 0x2000, virtual_function: false };
    ConfigSpaceBuilder::new(IDENTITY, command)
        .register(ConfigRegister::byte(offset::CACHE_LINE, 0).writable(0xff))
        .register(ConfigRegister::byte(offset::INTERRUPT_LINE, 0).writable(0xff))
        .bar(0, memory(ids::BAR0_SIZE))
        .bar(MSIX_BAR, memory(ids::BAR3_SIZE))
        .capability(MSIX, msix.capability())
        .capability(EXPRESS, LINK.capability())
        .extended(AER, aer.capability())
        .extended(ARI, ari::capability(0))
        .build()
}

/// Creates a 64-bit prefetchable memory BAR, as drivers and firmware of the family expect.
const fn memory(bytes: usize) -> Bar {
    Bar { kind: BarKind::Memory64, prefetchable: true, size: low_dword(bytes as u64) }
}

#[cfg(test)]
mod tests {
    use super::space;
    use pcie::Endpoint;
    use pcie::capability::msix::MsiXControl;

    #[test]
    fn vf_configuration_space_has_avf_ids_and_capabilities() {
        let space = space();
        for (offset, expected) in [
            (0x00, 0x1889_8086),
            (0x04, 0x0010_0000),
            (0x08, 0x0200_0002),
            (0x2c, 0x0000_8086),
            (0x34, 0x0000_0070),
            (0x3c, 0x0000_0000),
            (0x70, 0x0010_a011),
            (0x74, 0x0000_0003),
            (0x78, 0x0000_2003),
            (0xa0, 0x0002_0010),
            (0x100, 0x1501_0001),
            (0x150, 0x0001_000e),
        ] {
            assert_eq!(space.dword(offset), expected, "dword {offset:#x}: {:#010x}", space.dword(offset));
        }
    }

    #[test]
    fn avf_bars_are_64_kb_of_registers_and_16_kb_of_msi_x() {
        let mut space = space();
        space.write_bytes(0x10, &[0xff; 24]);
        let bars = [0x10, 0x14, 0x18, 0x1c, 0x20, 0x24].map(|at| space.dword(at));
        assert_eq!(bars, [0xffff_000c, u32::MAX, 0, 0xffff_c00c, u32::MAX, 0]);
    }

    #[test]
    fn function_level_reset_of_an_avf_clears_bus_master_and_msix() {
        let mut vf = Endpoint::new(space());
        vf.write(0x04, 2, 0x0006);
        vf.write(0x72, 2, 0x8000);
        assert!(vf.bus_master() && vf.memory());
        let effects = vf.write(0xa8, 2, 0x8000);
        assert!(effects.function_reset);
        assert_eq!((effects.bus_master, effects.msix), (Some(false), Some(MsiXControl::default())));
    }
}
