//! The physical function's configuration space. Left out: flash (BAR 1) and expansion ROM, which boards need
//! not have, and the second port: header type and ARI's next function say that there is one function.

use super::{AER, ARI, EXPRESS, MSIX, MSIX_BAR, MSIX_PBA, MSIX_TABLE};
use crate::{MacAddress, ids};
use pcie::Endpoint;
use pcie::capability::msix::MsiX;
use pcie::capability::power::Power;
use pcie::capability::sriov::SrIov;
use pcie::capability::{ari, dsn, msi};
use pcie::config::{Bar, Builder, ConfigSpace, Register, offset};

/// Where the power management capability is.
pub const POWER: u8 = 0x40;
/// Where the MSI capability is.
pub const MSI: u8 = 0x50;
/// Where the serial number is.
pub const SERIAL: u16 = 0x140;
/// Where the SR-IOV capability is.
pub const SRIOV: u16 = 0x160;

/// MSI-X vectors of the PF, as a board's NVM usually asks for.
pub const VECTORS: u16 = 10;
/// Bytes of the I/O BAR: IOADDR and IODATA.
pub const IO_SIZE: u32 = 32;
/// First VF offset where the hierarchy does not route by ARI: one bus further up.
const FIRST_OFFSET: u16 = 0x180;
/// First VF offset where it does.
const FIRST_OFFSET_ARI: u16 = 0x80;
/// VFs of the two ports take turns on the bus.
const STRIDE: u16 = 2;
/// What one VF decodes.
const VF_BARS: &[(u8, Bar)] =
    &[(0, Bar::memory64(ids::VF_BAR0_SIZE as u32)), (MSIX_BAR, Bar::memory64(ids::BAR3_SIZE as u32))];

/// The PF's configuration space after power-on. `mac` is the port's, for the serial number; `iov` is what the
/// NVM says of I/O virtualization (word 0x25, bit 0): without it there is no SR-IOV capability.
#[must_use]
pub fn space(mac: MacAddress, iov: bool) -> ConfigSpace {
    let command = offset::COMMAND_IO
        | offset::COMMAND_MEMORY
        | offset::COMMAND_BUS_MASTER
        | offset::COMMAND_PARITY
        | offset::COMMAND_SERR
        | offset::COMMAND_INTX_DISABLE;
    let header = Builder::new(super::identity(), command)
        .bar(0, Bar::memory32(ids::PF_BAR0_SIZE as u32))
        .bar(2, Bar::io(IO_SIZE))
        .bar(MSIX_BAR, Bar::memory32(ids::BAR3_SIZE as u32))
        .register(Register::byte(offset::INTERRUPT_PIN, 1));
    let msix = MsiX { vectors: VECTORS, bar: MSIX_BAR, table: MSIX_TABLE, pba: MSIX_PBA };
    let space = super::scratch(header)
        .capability(POWER, Power { capabilities: 0xc823, data_scale: 1, data: 0x1a }.capability())
        .capability(MSI, msi::capability())
        .capability(MSIX, msix.capability())
        .capability(EXPRESS, super::express(false).capability())
        .extended(AER, super::aer(false).capability())
        .extended(SERIAL, dsn::from_mac(mac.0))
        .extended(ARI, ari::capability(0));
    let space = if iov { space.extended(SRIOV, sriov().capability()) } else { space };
    space.build()
}

/// The PF's configuration space with its side effects.
#[must_use]
pub fn endpoint(mac: MacAddress, iov: bool) -> Endpoint {
    Endpoint::with_ari_offset(space(mac, iov), FIRST_OFFSET_ARI)
}

fn sriov() -> SrIov {
    SrIov {
        total_vfs: ids::MAX_VFS as u16,
        function: 0,
        first_offset: FIRST_OFFSET,
        stride: STRIDE,
        vf_device: ids::DEVICE_VF,
        pages: 0x553,
        bars: VF_BARS,
    }
}
