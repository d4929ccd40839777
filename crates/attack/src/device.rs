//! Kinds of devices that the program attacks, and their well-behaved drivers.

use crate::family::AttackedFamily;
use anyhow::{Context, Result};
use avf::register::VFGEN_RSTAT;
use driver::DmaHal;
use driver::any_vf::{AnyVf, AnyVfConfig, DeviceFamily};
use driver::vf::TxOffload;
use i82576::register::vf::STATUS;

/// Kind of an attacked device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttackedDevice {
    /// VF of an 82576, or an Adaptive Virtual Function.
    Vf(DeviceFamily),
}

/// Driver of an attacked device that keeps the rules.
#[derive(Debug)]
pub enum WellBehavedDriver {
    /// Driver of a VF.
    Vf(AnyVf),
}

impl AttackedDevice {
    /// All kinds of devices.
    pub const ALL: [Self; 2] = [Self::Vf(DeviceFamily::I82576), Self::Vf(DeviceFamily::Avf)];

    /// Returns the kind of a vendor and device id, or `None` if there are no cases for it.
    #[must_use]
    pub fn of(vendor: u16, device: u16) -> Option<Self> {
        DeviceFamily::of(vendor, device).map(Self::Vf)
    }

    /// Returns the family of the cases for this kind of device.
    #[must_use]
    pub fn family(self) -> AttackedFamily {
        match self {
            Self::Vf(DeviceFamily::I82576) => AttackedFamily::I82576,
            Self::Vf(DeviceFamily::Avf) => AttackedFamily::Avf,
        }
    }

    /// Returns the byte offset of a register that never reads as all ones.
    #[must_use]
    pub fn status_register(self) -> u32 {
        match self {
            Self::Vf(DeviceFamily::I82576) => STATUS,
            Self::Vf(DeviceFamily::Avf) => VFGEN_RSTAT,
        }
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
        }
    }
}

impl WellBehavedDriver {
    /// Returns the device's Ethernet address.
    #[must_use]
    pub fn mac(&self) -> [u8; 6] {
        match self {
            Self::Vf(driver) => driver.mac().0,
        }
    }

    /// Returns true if the transmit rings have room for any frame.
    pub fn has_room<H: DmaHal>(&mut self, hal: &mut H) -> bool {
        match self {
            Self::Vf(driver) => driver.has_room(hal, 64),
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
        }
    }

    /// Stops frame reception and transmission.
    pub fn stop<H: DmaHal>(&mut self, hal: &mut H) {
        match self {
            Self::Vf(driver) => driver.stop(hal),
        }
    }
}
