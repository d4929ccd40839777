//! Resets a function between two owners by a ladder of steps (Dong et al., "Towards high-quality I/O virtualization",
//! SYSTOR 2009): stops the function, waits for its last request, resets it, and disables its interrupts.
//!
//! A function without a function level reset is refused: a VF has no power states of its own, and a bus reset would
//! also reset the VFs of other owners.

use crate::SrIovDevice;
use pcie::capability::msix;
use pcie::{Function, ladder as rungs, walk};

/// Reason why a function could not be made safe for another owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FunctionResetError {
    /// The function still has memory requests in flight.
    #[error("{0} still has DMA requests in flight: try the reset again after they have finished")]
    Busy(Function),
    /// The function cannot be reset without also resetting other functions.
    #[error("{0} has no function-level reset: it can serve only one owner until the whole port is reset")]
    NoReset(Function),
}

/// Resets a function between two owners. Afterwards the function issues no request, keeps no state of its last owner,
/// and raises no interrupt.
///
/// # Errors
/// [`FunctionResetError`]; the function is stopped all the same.
pub fn climb<D: SrIovDevice>(device: &mut D, function: Function) -> Result<(), FunctionResetError> {
    device.set_bus_master(function, false);
    if !device.quiesce(function) {
        return Err(FunctionResetError::Busy(function));
    }
    if !can_reset(device, function) {
        return Err(FunctionResetError::NoReset(function));
    }
    device.function_level_reset(function);
    if let Some(at) = walk::find(|at| device.config_read(function, at, 4), msix::ID) {
        device.config_write(function, at + msix::CONTROL, 2, 0);
    }
    Ok(())
}

/// Returns true if the first reset that [`rungs`] tries is a reset of the function itself.
fn can_reset<D: SrIovDevice>(device: &mut D, function: Function) -> bool {
    let found = rungs::ResetCapabilities::of(|at| device.config_read(function, at, 4), None);
    found.rung() == Some(rungs::DeviceResetMethod::Function)
}
