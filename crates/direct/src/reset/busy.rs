//! A network card of Intel's that writes every frame it receives to its owner's pages: the few registers that all of them
//! have had since the 82542. Frames have to come from the wire. Left out: other devices, which stay idle.

use super::pages::{DESCRIPTORS, IOVA, RING_BYTES};
use crate::DirectError;
use crate::hal::PF_DEVICES;
use host::vfio::{Function, PciIds, Registers};
use i82576::bits::{mdic, status};
use i82576::ids::VENDOR;
use i82576::phy;
use i82576::register as r;

/// The 82574, which QEMU calls e1000e.
const DEVICE_82574: u16 = 0x10d3;
/// Queue 0's registers where all these cards have them; on an 82576 a second place.
const RDBAL: u32 = 0x2800;
const RDBAH: u32 = 0x2804;
const RDLEN: u32 = 0x2808;
const RDT: u32 = 0x2818;
const RXDCTL: u32 = 0x2828;

/// `CTRL`: set link up. `RCTL`: enable, and every address; buffers of 2 KiB.
const SET_LINK_UP: u32 = 1 << 6;
const EVERYTHING: u32 = 1 << 1 | 1 << 3 | 1 << 4 | 1 << 15;
/// `MDIC`: the PHY is to negotiate, which some do only when told to.
const NEGOTIATE: u32 = mdic::WRITE
    | phy::ADDRESS << mdic::PHY_SHIFT
    | (phy::CONTROL as u32) << mdic::REGISTER_SHIFT
    | (phy::control::NEGOTIATE | phy::control::RESTART) as u32;
/// `RXDCTL`: enable this queue. Reserved on the 82574.
const QUEUE_ENABLE: u32 = 1 << 25;

/// The registers of a card that can be made busy; nothing of any other device.
pub(super) fn registers(function: &Function, ids: PciIds) -> Result<Option<Registers>, DirectError> {
    let known = ids.device == DEVICE_82574 || PF_DEVICES.contains(&ids.device);
    if ids.vendor == VENDOR && known { Ok(Some(function.registers(0)?)) } else { Ok(None) }
}

/// Has the card receive into the pages.
pub(super) fn receive(registers: &Registers, ids: PciIds) {
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
