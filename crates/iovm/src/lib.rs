//! The SR-IOV manager: enables VFs, gives each a full configuration space, and assigns, resets and removes each VF.
//!
//! A VF answers no bus scan and shows neither ids nor BARs. The manager computes its routing id, adds it, and
//! presents an ordinary endpoint, which a guest can drive. It accesses the card only through [`SrIovDevice`], so it
//! runs on a card in the same process, in virtual time, or on silicon.
//!
//! The card implements a VF's registers and frames, the PF driver its policy, and the caller knows the owners.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod device;
pub mod function;
pub mod ladder;
pub mod manager;
#[cfg(test)]
mod test_card;

pub use device::SrIovDevice;
pub use function::{VirtualFunction, VirtualFunctionState};
pub use ladder::FunctionResetError;
pub use manager::{
    BusRouting, EnabledVfState, ManagerRestoreError, SrIovManager, SrIovManagerState, VfAssignmentError,
    VfAssignmentState, VfDiscoveryError, VfEnableError, VfOwner,
};
