//! The reset ladder: what happens to a function between two owners (Dong et al., "Towards high-quality I/O
//! virtualization", SYSTOR 2009). Stop it, wait for its last request, reset it, silence its interrupts.
//!
//! Left out: the rungs below a function level reset. A VF has no power states of its own, and a bus reset
//! would take its siblings' owners down with it; so a function without it is refused.

use crate::Device;
use pcie::capability::msix;
use pcie::{Function, ladder as rungs, walk};

/// A function that could not be made safe for another owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LadderError {
    /// Requests are still on their way.
    #[error("{0} still has requests on their way: try the reset again once they have arrived")]
    Busy(Function),
    /// It cannot be reset alone.
    #[error("{0} has no function level reset: it can serve one owner until the whole port is reset")]
    NoReset(Function),
}

/// Climbs the ladder. Afterwards the function makes no request, holds nothing of its last owner, and signals
/// nobody.
///
/// # Errors
/// [`LadderError`]; the function is stopped all the same.
pub fn climb<D: Device>(device: &mut D, function: Function) -> Result<(), LadderError> {
    device.set_bus_master(function, false);
    if !device.quiesce(function) {
        return Err(LadderError::Busy(function));
    }
    if !can_reset(device, function) {
        return Err(LadderError::NoReset(function));
    }
    device.function_level_reset(function);
    if let Some(at) = walk::find(|at| device.config_read(function, at, 4), msix::ID) {
        device.config_write(function, at + msix::CONTROL, 2, 0);
    }
    Ok(())
}

/// Whether the function itself is what [`rungs`] names first.
fn can_reset<D: Device>(device: &mut D, function: Function) -> bool {
    let found = rungs::Device::of(|at| device.config_read(function, at, 4), None);
    found.rung() == Some(rungs::Rung::Function)
}
