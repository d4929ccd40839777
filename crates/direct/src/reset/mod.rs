//! Applies the reset ladder ([`pcie::ladder`]) to a function behind VFIO. The device is made to write to its old
//! owner's memory, and is reset by the first method that it supports. Then the same addresses lead to pages of a new
//! owner, which must not change.
//!
//! | module | contents |
//! |---|---|
//! | `pages` | an owner's pages, and the count of those that a device has changed |
//! | `busy` | a network card that writes received frames |
//! | `steps` | the execution of the ladder's steps |
//! | `report` | the report of the run |
//!
//! The next owner's driver is not part of the run.

mod busy;
mod pages;
mod report;
mod steps;

pub use report::{ResetReport, ResetStepReport};

use crate::DriverStartError;
use host::poll::MonotonicClock;
use host::vfio::{PciAddress, PciSysfs, VfioFunction};
use pages::OwnerMemoryPages;
use pcie::ladder::{ResetAction, ResetCapabilities, plan};
use std::time::Duration;
use steps::FunctionOwnerChange;

/// Timeout until the device writes to its old owner's pages.
const BUSY_PATIENCE: Duration = Duration::from_secs(4);
/// Time for which the new owner's pages are watched.
const WATCH: Duration = Duration::from_millis(300);
const LOOK: Duration = Duration::from_millis(1);

/// Plan of a reset between two owners of a function.
#[derive(Debug, Clone)]
pub struct ResetPlan {
    /// PCI address of the function to reset.
    pub function: PciAddress,
    /// Reset methods to ignore, so that the next method is used.
    pub hidden: IgnoredResetMethods,
    /// True to omit the reset but perform every other step, to show the effect of a missing reset.
    pub without_reset: bool,
}

/// Reset methods of the function that the plan ignores.
#[derive(Debug, Clone, Copy, Default)]
pub struct IgnoredResetMethods {
    /// True to ignore function-level reset.
    pub flr: bool,
    /// True to ignore the change to D3hot and back.
    pub d3hot: bool,
    /// True to ignore the reset of the bus.
    pub bus: bool,
}

impl IgnoredResetMethods {
    fn from(self, device: ResetCapabilities) -> ResetCapabilities {
        ResetCapabilities {
            flr: device.flr && !self.flr,
            power: device.power.filter(|_| !self.d3hot),
            bus: device.bus.filter(|_| !self.bus),
        }
    }
}

/// Takes the function from Linux, makes it write to its old owner's pages, resets it, and watches the new owner's
/// pages. A device without a reset method is not changed.
///
/// # Errors
/// [`DriverStartError`]: the function cannot be opened, or a step fails.
pub fn run(pci: &PciSysfs, todo: &ResetPlan) -> Result<ResetReport, DriverStartError> {
    let address = todo.function;
    let ids = pci.ids(address)?;
    if !pci.virtual_of(address).is_empty() {
        return Err(DriverStartError::HasVirtualFunctions(address));
    }
    let function = VfioFunction::open(pci, address, None)?;
    let found = ResetCapabilities::of(|at| steps::dword(&function, at), function.owns_its_bus()?);
    let device = todo.hidden.from(found);
    let mut report = ResetReport::new(address, ids, &device);
    let Some(actions) = plan(&device) else { return Ok(report) };
    let old = OwnerMemoryPages::new()?;
    let mut handover = FunctionOwnerChange::begin(function, &old)?;
    if let Some(registers) = busy::registers(handover.function(), ids)? {
        busy::receive(&registers, ids);
        report.busy_pages = Some(until_changed(&old));
    }
    let begin = MonotonicClock.now_ns();
    for action in actions {
        if todo.without_reset && matches!(action, ResetAction::Reset(_)) {
            continue;
        }
        let start = MonotonicClock.now_ns();
        handover.act(action)?;
        report.add_step(action, start, MonotonicClock.now_ns());
    }
    report.set_duration(begin, MonotonicClock.now_ns());
    std::thread::sleep(WATCH);
    report.late_pages = handover.new_pages().map_or(0, OwnerMemoryPages::changed);
    Ok(report)
}

/// Waits until the device changes a page, or the timeout passes, and returns the number of changed pages.
fn until_changed(pages: &OwnerMemoryPages) -> u32 {
    let end = MonotonicClock.now_ns() + BUSY_PATIENCE.as_nanos() as u64;
    loop {
        let changed = pages.changed();
        if changed > 0 || MonotonicClock.now_ns() >= end {
            return changed;
        }
        std::thread::sleep(LOOK);
    }
}
