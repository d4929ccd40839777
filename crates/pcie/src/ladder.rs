//! How a device is reset before it changes its owner. First it may start nothing more, what it has started ends, and the
//! IOMMU forgets it; then the first rung of the ladder that the device has; at last its configuration is as at boot.
//! A device without a rung stays with its owner. Left out: doing it, which is for whoever has a device, real or modelled.

use crate::capability::{express, power};
use crate::walk;
use core::time::Duration;

/// What a device is capable of, and who shares its bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    /// Function-level reset.
    pub flr: bool,
    /// Power states D0 and D3hot; `No_Soft_Reset`, if it keeps its state between them.
    pub power: Option<NoSoftReset>,
    /// Below a bridge that can reset its secondary bus; whether every function there has one owner.
    pub bus: Option<OneOwner>,
}

/// The device keeps its state from D3hot to D0.
pub type NoSoftReset = bool;
/// All functions of a bus are of one owner.
pub type OneOwner = bool;

/// A rung of the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rung {
    /// Function-level reset.
    Function = 1,
    /// To D3hot and back.
    Power = 2,
    /// The bus below the bridge.
    Bus = 3,
}

impl Rung {
    /// How long software has to wait for it (PCI Express base specification).
    #[must_use]
    pub const fn time(self) -> Duration {
        match self {
            Rung::Function => Duration::from_millis(100),
            // 10 ms each way.
            Rung::Power => Duration::from_millis(20),
            // 2 ms held, 100 ms to the first access.
            Rung::Bus => Duration::from_millis(102),
        }
    }
}

impl Device {
    /// What configuration space says, given `read`, which answers the dword at a multiple of four; and what its owner knows
    /// of its bus.
    pub fn of(mut read: impl FnMut(u16) -> u32, bus: Option<OneOwner>) -> Self {
        let express = walk::find(&mut read, express::ID);
        let flr = express.is_some_and(|at| {
            read(at + express::DEVICE_CAPABILITIES) & express::DEVICE_CAPABILITIES_FLR != 0
        });
        let power = walk::find(&mut read, power::ID)
            .map(|at| read(at + power::CONTROL) & u32::from(power::CONTROL_NO_SOFT_RESET) != 0);
        Self { flr, power, bus }
    }

    /// The first rung that resets this device and disturbs nobody else.
    #[must_use]
    pub fn rung(&self) -> Option<Rung> {
        match self {
            Device { flr: true, .. } => Some(Rung::Function),
            Device { power: Some(false), .. } => Some(Rung::Power),
            Device { bus: Some(true), .. } => Some(Rung::Bus),
            _ => None,
        }
    }
}

/// What is done, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The command register's bus master bit.
    BusMasterOff,
    /// Until the device reports no pending transaction.
    Wait,
    /// The IOMMU's entries, and its cache.
    Unmap,
    /// The rung.
    Reset(Rung),
    /// The configuration of boot time; no vector of the MSI state is left.
    Restore,
    /// The pages are another's.
    HandOver,
}

impl Action {
    /// Its name in a report.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Action::BusMasterOff => "bus-master-off",
            Action::Wait => "wait",
            Action::Unmap => "unmap",
            Action::Reset(_) => "reset",
            Action::Restore => "restore",
            Action::HandOver => "hand-over",
        }
    }
}

/// What is to be done; `None` if the device has to stay where it is.
#[must_use]
pub fn plan(device: &Device) -> Option<[Action; 6]> {
    let rung = device.rung()?;
    Some([
        Action::BusMasterOff,
        Action::Wait,
        Action::Unmap,
        Action::Reset(rung),
        Action::Restore,
        Action::HandOver,
    ])
}

#[cfg(test)]
mod tests {
    use super::{Action, Device, Rung, plan};

    /// Every device there can be.
    #[test]
    fn a_device_is_reset_by_the_first_rung_that_disturbs_nobody_or_not_at_all() {
        let options = [None, Some(false), Some(true)];
        for flr in [false, true] {
            for power in options {
                for bus in options {
                    let device = Device { flr, power, bus };
                    let rung = device.rung();
                    assert_eq!(rung == Some(Rung::Function), flr);
                    assert!(rung != Some(Rung::Power) || power == Some(false));
                    assert!(rung != Some(Rung::Bus) || bus == Some(true), "another's functions are below");
                    assert_eq!(rung.is_none(), !flr && power != Some(false) && bus != Some(true));
                    assert_eq!(plan(&device).is_none(), rung.is_none());
                }
            }
        }
    }

    #[test]
    fn a_device_starts_nothing_more_before_it_is_reset_and_its_pages_go_last() {
        use Action::{BusMasterOff, HandOver, Reset, Restore, Unmap, Wait};
        let device = Device { flr: false, power: Some(true), bus: Some(true) };
        let steps = [BusMasterOff, Wait, Unmap, Reset(Rung::Bus), Restore, HandOver];
        assert_eq!(plan(&device), Some(steps));
        let names = ["bus-master-off", "wait", "unmap", "reset", "restore", "hand-over"];
        assert_eq!(steps.map(Action::name), names);
    }

    #[test]
    fn each_rung_takes_the_time_of_the_specification() {
        let times = [Rung::Function, Rung::Power, Rung::Bus].map(|rung| rung.time().as_millis());
        assert_eq!(times, [100, 20, 102]);
    }

    /// A PM capability at 0x40, PCI Express at 0x50.
    fn config(flr: bool, keeps: bool) -> impl Fn(u16) -> u32 {
        move |at| match at {
            0x04 => 1 << 20,
            0x34 => 0x40,
            0x40 => 0x5001,
            0x44 => u32::from(keeps) << 3,
            0x50 => 0x0010,
            0x54 => u32::from(flr) << 28,
            _ => 0,
        }
    }

    #[test]
    fn what_a_device_is_capable_of_is_read_in_its_configuration_space() {
        for flr in [false, true] {
            for keeps in [false, true] {
                let found = Device::of(config(flr, keeps), Some(true));
                assert_eq!(found, Device { flr, power: Some(keeps), bus: Some(true) });
            }
        }
        let nobody = Device::of(|_| u32::MAX, None);
        assert_eq!(nobody, Device { flr: false, power: None, bus: None });
    }
}
