//! Kinds of devices that the program attacks, and their well-behaved drivers.

use crate::family::AttackedFamily;
use crate::pf_rings::{self, PfRings};
use anyhow::{Context, Result, ensure};
use avf::register::VFGEN_RSTAT;
use driver::DmaHal;
use driver::any_vf::{AnyVf, AnyVfConfig, DeviceFamily};
use driver::vf::TxOffload;
use i82576::ids::{DEVICE_PF, VENDOR};
use i82576::register::vf::{RX_BLOCK, STATUS, TX_BLOCK};

/// Ends of the register blocks of a VF's first queue pair: a PF's blocks of a queue have this length.
const BLOCK: u32 = 0x40;
const RX_END: u32 = RX_BLOCK + BLOCK;
const TX_END: u32 = TX_BLOCK + BLOCK;

/// Kind of an attacked device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttackedDevice {
    /// VF of an 82576, or an Adaptive Virtual Function.
    Vf(DeviceFamily),
    /// PF of an 82576.
    Pf,
}

/// Driver of an attacked device that keeps the rules.
#[derive(Debug)]
pub enum WellBehavedDriver {
    /// Driver of a VF.
    Vf(AnyVf),
    /// Driver of an 82576's PF.
    Pf(PfRings),
}

impl AttackedDevice {
    /// All kinds of devices.
    pub const ALL: [Self; 3] = [Self::Vf(DeviceFamily::I82576), Self::Vf(DeviceFamily::Avf), Self::Pf];

    /// Returns the kind of a vendor and device id, or `None` if there are no cases for it.
    #[must_use]
    pub fn of(vendor: u16, device: u16) -> Option<Self> {
        match (vendor, device) {
            (VENDOR, DEVICE_PF) => Some(Self::Pf),
            _ => DeviceFamily::of(vendor, device).map(Self::Vf),
        }
    }

    /// Returns the family of the cases for this kind of device.
    #[must_use]
    pub fn family(self) -> AttackedFamily {
        match self {
            Self::Vf(DeviceFamily::I82576) | Self::Pf => AttackedFamily::I82576,
            Self::Vf(DeviceFamily::Avf) => AttackedFamily::Avf,
        }
    }

    /// Returns the byte offset of a register that never reads as all ones.
    #[must_use]
    pub fn status_register(self) -> u32 {
        match self {
            Self::Vf(DeviceFamily::I82576) | Self::Pf => STATUS,
            Self::Vf(DeviceFamily::Avf) => VFGEN_RSTAT,
        }
    }

    /// Returns the byte offset of a register that cases name by its offset in a VF. A PF has the rings of its first queue pair
    /// in other blocks.
    #[must_use]
    pub fn register(self, offset: u32) -> u32 {
        if self != Self::Pf {
            return offset;
        }
        match offset {
            RX_BLOCK..RX_END => pf_rings::RECEIVE + (offset - RX_BLOCK),
            TX_BLOCK..TX_END => pf_rings::TRANSMIT + (offset - TX_BLOCK),
            _ => offset,
        }
    }

    /// Returns true if a register of a VF, by its offset, means the same in this kind of device.
    #[must_use]
    pub fn has_register(self, offset: u32) -> bool {
        self != Self::Pf || self.register(offset) != offset
    }

    /// Starts frame reception and transmission of a device that has been reset.
    ///
    /// # Errors
    /// The device or its PF does not react as a driver expects.
    pub fn start_driver<H: DmaHal>(self, hal: &mut H) -> Result<WellBehavedDriver> {
        match self {
            Self::Vf(family) => {
                let mut driver = AnyVf::probe(hal, family, &AnyVfConfig::default())
                    .context("the well-behaved driver cannot probe the VF")?;
                driver.start(hal).context("the well-behaved driver cannot start the VF")?;
                Ok(WellBehavedDriver::Vf(driver))
            }
            Self::Pf => Ok(WellBehavedDriver::Pf(PfRings::start(hal)?)),
        }
    }
}

impl WellBehavedDriver {
    /// Returns the device's Ethernet address.
    #[must_use]
    pub fn mac(&self) -> [u8; 6] {
        match self {
            Self::Vf(driver) => driver.mac().0,
            Self::Pf(rings) => rings.mac(),
        }
    }

    /// Returns true if the transmit rings have room for any frame.
    pub fn has_room<H: DmaHal>(&mut self, hal: &mut H) -> bool {
        match self {
            Self::Vf(driver) => driver.has_room(hal, 64),
            Self::Pf(rings) => !rings.is_sending(hal),
        }
    }

    /// Sends a frame with offloads.
    ///
    /// # Errors
    /// The frame or its offloads are not possible, or the ring is full.
    pub fn send<H: DmaHal>(&mut self, hal: &mut H, frame: &[u8], offload: &TxOffload) -> Result<()> {
        match self {
            Self::Vf(driver) => {
                driver.transmit(hal, frame, offload)?;
                driver.flush(hal);
                Ok(())
            }
            Self::Pf(rings) => {
                ensure!(*offload == TxOffload::default(), "the PF's driver has no offloads");
                rings.send(hal, frame)
            }
        }
    }

    /// Returns true if the device has not completed all frames.
    pub fn is_sending<H: DmaHal>(&mut self, hal: &mut H) -> bool {
        match self {
            Self::Vf(driver) => {
                // Reclaims completed descriptors.
                driver.has_room(hal, usize::MAX);
                driver.tx_pending() > 0
            }
            Self::Pf(rings) => rings.is_sending(hal),
        }
    }

    /// Stops frame reception and transmission.
    pub fn stop<H: DmaHal>(&mut self, hal: &mut H) {
        match self {
            Self::Vf(driver) => driver.stop(hal),
            Self::Pf(rings) => rings.stop(hal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_of_a_vfs_rings_are_those_of_the_pfs_first_queues() {
        let vf = AttackedDevice::Vf(DeviceFamily::I82576);
        for (offset, in_pf) in [(0x2800, 0xc000), (0x2828, 0xc028), (0x3818, 0xe018)] {
            assert_eq!((vf.register(offset), AttackedDevice::Pf.register(offset)), (offset, in_pf));
            assert!(vf.has_register(offset) && AttackedDevice::Pf.has_register(offset));
        }
        assert!(vf.has_register(0x0c40) && !AttackedDevice::Pf.has_register(0x0c40), "the VF's mailbox");
    }

    #[test]
    fn devices_are_known_by_their_ids() {
        assert_eq!(AttackedDevice::of(0x8086, 0x10c9), Some(AttackedDevice::Pf));
        assert_eq!(AttackedDevice::of(0x8086, 0x1889), Some(AttackedDevice::Vf(DeviceFamily::Avf)));
        assert_eq!(AttackedDevice::of(0x1af4, 0x1041), None);
    }
}
