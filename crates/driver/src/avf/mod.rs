//! Drivers of Intel's Adaptive Virtual Function (AVF): of the PF for its VFs, and of a VF.
//!
//! | module | contents |
//! |---|---|
//! | [`pf`] | the PF driver: requests, policy, resets |
//! | [`queue`] | an admin receive queue in memory, as its driver reads it |
//! | [`inbox`] | messages of VFs for a PF without interrupts: bounded per visit, in order, none from before a reset
//! |
//! | [`vf`] | the VF driver: several queue pairs, by polling or interrupts |
//!
//! [`avf::control`] replaces the parts of a real X710 that a PF would drive besides (host memory cache, NVM, PHY).

pub mod inbox;
pub mod pf;
pub mod queue;
pub mod vf;

#[cfg(test)]
mod tests;
