//! The reset ladder ([`pcie::ladder`]) on a function that Linux hands over: its old owner's device is made to write to
//! memory, it is reset by the first rung that it has, and then the same addresses lead to pages of a new owner, in which
//! nothing may change.
//!
//! | module | what it gives |
//! |---|---|
//! | `pages` | an owner's pages, and how many of them a device has changed |
//! | `busy` | a network card that writes what it receives |
//! | `steps` | each step of the ladder, done |
//! | `report` | what came of it |
//!
//! Left out: the next owner's driver.

mod busy;
mod pages;
mod report;
mod steps;

pub use report::{ResetReport, StepReport};

use crate::DirectError;
use host::poll::Clock;
use host::vfio::{Function, Pci, PciAddress};
use pages::Pages;
use pcie::ladder::{Action, Device, plan};
use std::time::Duration;
use steps::Handover;

/// How long the device may take to write something for its old owner, and how long the new one's pages are watched.
const BUSY_PATIENCE: Duration = Duration::from_secs(4);
const WATCH: Duration = Duration::from_millis(300);
const LOOK: Duration = Duration::from_millis(1);

/// A run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The function.
    pub function: PciAddress,
    /// What the device is taken not to have, so that the next rung is tried.
    pub hidden: Hidden,
    /// Leave the reset out, and do everything else: what it is for.
    pub without_reset: bool,
}

/// Rungs that are left out.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hidden {
    /// Function-level reset.
    pub flr: bool,
    /// D3hot and back.
    pub d3hot: bool,
    /// The bus.
    pub bus: bool,
}

impl Hidden {
    fn from(self, device: Device) -> Device {
        Device {
            flr: device.flr && !self.flr,
            power: device.power.filter(|_| !self.d3hot),
            bus: device.bus.filter(|_| !self.bus),
        }
    }
}

/// Takes the function, makes it busy, resets it and watches the new owner's pages. A device without a rung is not touched.
///
/// # Errors
/// [`DirectError`]: the function cannot be had, or a step cannot be done.
pub fn run(pci: &Pci, todo: &Plan) -> Result<ResetReport, DirectError> {
    let address = todo.function;
    let ids = pci.ids(address)?;
    if !pci.virtual_of(address).is_empty() {
        return Err(DirectError::HasVirtualFunctions(address));
    }
    let function = Function::open(pci, address, None)?;
    let found = Device::of(|at| steps::dword(&function, at), function.owns_its_bus()?);
    let device = todo.hidden.from(found);
    let mut report = ResetReport::new(address, ids, &device);
    let Some(actions) = plan(&device) else { return Ok(report) };
    let old = Pages::new()?;
    let mut handover = Handover::begin(function, &old)?;
    if let Some(registers) = busy::registers(handover.function(), ids)? {
        busy::receive(&registers, ids);
        report.busy_pages = Some(until_changed(&old));
    }
    let begin = Clock.now_ns();
    for action in actions {
        if todo.without_reset && matches!(action, Action::Reset(_)) {
            continue;
        }
        let start = Clock.now_ns();
        handover.act(action)?;
        report.did(action, start, Clock.now_ns());
    }
    report.took(begin, Clock.now_ns());
    std::thread::sleep(WATCH);
    report.late_pages = handover.new_pages().map_or(0, Pages::changed);
    Ok(report)
}

/// How many pages the device has changed as soon as it has changed any.
fn until_changed(pages: &Pages) -> u32 {
    let end = Clock.now_ns() + BUSY_PATIENCE.as_nanos() as u64;
    loop {
        let changed = pages.changed();
        if changed > 0 || Clock.now_ns() >= end {
            return changed;
        }
        std::thread::sleep(LOOK);
    }
}
