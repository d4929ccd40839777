//! The SR-IOV manager: enables VFs, gives each a full configuration space, assigns, resets and removes it.
//!
//! A VF answers no bus scan and shows neither ids nor BARs. The manager works out where it is, adds it, and
//! presents what a guest can drive: an ordinary endpoint. It reaches the card through [`Device`] only, so it
//! runs on a card in the same process, in virtual time, or on silicon.
//!
//! Left out: a VF's registers and frames (the card), its policy (the PF driver), and who the owners are.
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

pub use device::Device;
pub use function::{FunctionState, VirtualFunction};
pub use ladder::LadderError;
pub use manager::{
    AssignmentError, DiscoverError, EnableError, Hierarchy, Manager, ManagerState, Owner, RestoreError,
    SlotState, State,
};
