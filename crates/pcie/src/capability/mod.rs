//! The capabilities of a function as data: id and registers, relative to where they are placed. One file per
//! capability, all alike: `ID`, offsets, bits, and what builds it. Left out: VPD, ATS, PASID, ACS and others
//! that no function here has.

pub mod aer;
pub mod ari;
pub mod dsn;
pub mod express;
pub mod msi;
pub mod msix;
pub mod power;
pub mod sriov;
#[cfg(test)]
mod tests;

use crate::config::Register;
use alloc::vec::Vec;

/// A capability of the list that begins at offset 34h.
#[derive(Debug, Clone)]
pub struct Capability {
    /// Which one it is.
    pub id: u8,
    /// Its registers from offset 2 on, relative to the capability.
    pub body: Vec<Register>,
}

/// A capability of the list that begins at offset 100h.
#[derive(Debug, Clone)]
pub struct ExtendedCapability {
    /// Which one it is.
    pub id: u16,
    /// Version of its layout.
    pub version: u8,
    /// Its registers from offset 4 on, relative to the capability.
    pub body: Vec<Register>,
}
