//! Makes an Intel network card write every received frame to its owner's pages, by the few registers that all these
//! cards have had since the 82542. The frames must come from the wire. Other devices stay idle.

use super::pages::{DESCRIPTORS, IOVA, RING_BYTES};
use crate::DriverStartError;
use crate::hal::PF_DEVICES;
use host::vfio::{MappedRegisters, PciIds, VfioFunction};
use i82576::bits::{mdic, status};
use i82576::ids::VENDOR;
use i82576::phy;
use i82576::register as r;

/// Device id of the 82574, which QEMU calls e1000e.
const DEVICE_82574: u16 = 0x10d3;
/// Offset of RDBAL, the low half of the descriptor base address of receive queue 0, in all cards of this module. The
/// queue's other registers follow; on an 82576 these offsets are aliases.
const RDBAL: u32 = 0x2800;
const RDBAH: u32 = 0x2804;
const RDLEN: u32 = 0x2808;
const RDT: u32 = 0x2818;
const RXDCTL: u32 = 0x2828;

/// Bit of `CTRL` that sets the link up.
const SET_LINK_UP: u32 = 1 << 6;
/// Bits of `RCTL` that enable the receiver, for every address and with buffers of 2 KiB.
const EVERYTHING: u32 = 1 << 1 | 1 << 3 | 1 << 4 | 1 << 15;
/// Value of `MDIC` that starts the PHY's autonegotiation, which some PHYs need.
const NEGOTIATE: u32 = mdic::WRITE
    | phy::ADDRESS << mdic::PHY_SHIFT
    | (phy::CONTROL as u32) << mdic::REGISTER_SHIFT
    | (phy::control::NEGOTIATE | phy::control::RESTART) as u32;
/// Bit of `RXDCTL` that enables the receive queue; reserved on the 82574.
const QUEUE_ENABLE: u32 = 1 << 25;

/// Returns the registers of a card whose receiver this module can program; `None` for any other device.
pub(super) fn registers(
    function: &VfioFunction,
    ids: PciIds,
) -> Result<Option<MappedRegisters>, DriverStartError> {
    let known = ids.device == DEVICE_82574 || PF_DEVICES.contains(&ids.device);
    if ids.vendor == VENDOR && known { Ok(Some(function.registers(0)?)) } else { Ok(None) }
}

/// Programs the card's receiver to write every frame into its owner's pages.
pub(super) fn receive(registers: &MappedRegisters, ids: PciIds) {
    registers.write(r::CTRL, registers.read(r::CTRL) | SET_LINK_UP);
    if registers.read(r::STATUS) & status::LU == 0 {
        registers.write(r::MDIC, NEGOTIATE);
    }
    registers.write(RDBAL, IOVA as u32);
    registers.write(RDBAH, (IOVA >> 32) as u32);
    registers.write(RDLEN, RING_BYTES);
    if ids.device != DEVICE_82574 {
        registers.write(RXDCTL, registers.read(RXDCTL) | QUEUE_ENABLE);
    }
    registers.write(r::RCTL, EVERYTHING);
    registers.write(RDT, DESCRIPTORS - 1);
}
