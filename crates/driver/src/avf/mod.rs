//! The drivers of the second family, Intel's Adaptive Virtual Function: what a PF does for its VFs, and a VF's own.
//!
//! | module | what it is |
//! |---|---|
//! | [`pf`] | the PF driver: requests, policy, resets |
//! | [`queue`] | an admin receive queue in memory, as its driver reads it |
//! | [`inbox`] | messages from VFs to a PF that takes no interrupt: a bounded number a visit, in order, none from before a reset |
//! | [`vf`] | the VF driver: several queue pairs, by polling or interrupts |
//!
//! Left out: what of a real X710 the PF would drive besides (host memory cache, NVM, PHY); `avf::control` stands in its
//! place.

pub mod inbox;
pub mod pf;
pub mod queue;
pub mod vf;

#[cfg(test)]
mod tests;
