//! Builds capabilities as data: id and registers, relative to the capability's offset. Each file has one capability:
//! its `ID`, offsets, bits, and a builder. VPD, ATS, PASID, ACS and others are not provided, since no modelled function
//! has them.

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

use crate::config::ConfigRegister;
use alloc::vec::Vec;

/// Capability in the list of a configuration space that begins at offset 34h.
#[derive(Debug, Clone)]
pub struct Capability {
    /// Number by which software finds the capability (capability id).
    pub id: u8,
    /// Registers of the capability from its byte 2 on; their offsets count from the capability's start.
    pub body: Vec<ConfigRegister>,
}

/// Extended capability in the list of a configuration space that begins at offset 100h.
#[derive(Debug, Clone)]
pub struct ExtendedCapability {
    /// Number by which software finds the extended capability (extended capability id).
    pub id: u16,
    /// Version of the extended capability's register layout.
    pub version: u8,
    /// Registers from offset 4 on, relative to the capability's offset.
    pub body: Vec<ConfigRegister>,
}
