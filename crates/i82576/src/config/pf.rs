//! Configuration space of the PF. Flash (BAR 1) and expansion ROM are optional on boards and omitted, and so is the
//! second port: header type and ARI's next function report a single function.

use super::{AER, ARI, EXPRESS, MSIX, MSIX_BAR, MSIX_PBA, MSIX_TABLE};
use crate::{MacAddress, ids};
use pcie::Endpoint;
use pcie::capability::msix::MsiXCapability;
use pcie::capability::power::PowerCapability;
use pcie::capability::sriov::SrIovParameters;
use pcie::capability::{ari, dsn, msi};
use pcie::config::{Bar, ConfigRegister, ConfigSpace, ConfigSpaceBuilder, offset};
use pcie::low::low_dword;

/// Offset of the power management capability.
pub const POWER: u8 = 0x40;
/// Offset of the MSI capability.
pub const MSI: u8 = 0x50;
/// Offset of the device serial number.
pub const SERIAL: u16 = 0x140;
/// Offset of the SR-IOV capability.
pub const SRIOV: u16 = 0x160;

/// MSI-X vectors of the PF, as set in a usual board's NVM (word 0x16).
pub const VECTORS: u16 = 10;
/// Bytes of the I/O BAR: IOADDR and IODATA.
pub const IO_SIZE: u32 = 32;
/// First VF offset without ARI: on the next bus.
const FIRST_OFFSET: u16 = 0x180;
/// Function number offset from the PF to its first VF with ARI.
const FIRST_OFFSET_ARI: u16 = 0x80;
/// Distance between the function numbers of consecutive VFs: VFs of the two ports alternate on the bus.
const STRIDE: u16 = 2;
/// BARs of one VF, each with its BAR number.
const VF_BARS: &[(u8, Bar)] = &[
    (0, Bar::memory64(low_dword(ids::VF_BAR0_SIZE as u64))),
    (MSIX_BAR, Bar::memory64(low_dword(ids::BAR3_SIZE as u64))),
];

/// Returns the PF's configuration space after power-on. `mac` is the port's, for the serial number; `iov` is the
/// NVM's I/O virtualization bit (word 0x25, bit 0): without it there is no SR-IOV capability.
#[must_use]
pub fn space(mac: MacAddress, iov: bool) -> ConfigSpace {
    let command = offset::COMMAND_IO
        | offset::COMMAND_MEMORY
        | offset::COMMAND_BUS_MASTER
        | offset::COMMAND_PARITY
        | offset::COMMAND_SERR
        | offset::COMMAND_INTX_DISABLE;
    let header = ConfigSpaceBuilder::new(super::identity(), command)
        .bar(0, Bar::memory32(low_dword(ids::PF_BAR0_SIZE as u64)))
        .bar(2, Bar::io(IO_SIZE))
        .bar(MSIX_BAR, Bar::memory32(low_dword(ids::BAR3_SIZE as u64)))
        .register(ConfigRegister::byte(offset::INTERRUPT_PIN, 1));
    let msix = MsiXCapability { vectors: VECTORS, bar: MSIX_BAR, table: MSIX_TABLE, pba: MSIX_PBA };
    let space = super::scratch(header)
        .capability(POWER, PowerCapability { capabilities: 0xc823, data_scale: 1, data: 0x1a }.capability())
        .capability(MSI, msi::capability())
        .capability(MSIX, msix.capability())
        .capability(EXPRESS, super::express(false).capability())
        .extended(AER, super::aer(false).capability())
        .extended(SERIAL, dsn::from_mac(mac.0))
        .extended(ARI, ari::capability(0));
    let space = if iov { space.extended(SRIOV, sriov().capability()) } else { space };
    space.build()
}

/// Returns the PF's configuration space after power-on, as an endpoint that applies software's writes.
#[must_use]
pub fn endpoint(mac: MacAddress, iov: bool) -> Endpoint {
    Endpoint::with_ari_offset(space(mac, iov), FIRST_OFFSET_ARI)
}

fn sriov() -> SrIovParameters {
    SrIovParameters {
        total_vfs: ids::VFS.into(),
        function: 0,
        first_offset: FIRST_OFFSET,
        stride: STRIDE,
        vf_device: ids::DEVICE_VF,
        pages: 0x553,
        bars: VF_BARS,
    }
}
