//! PCI functions that Linux provides to a program: by VFIO, with a type 1 IOMMU container for each function, or by sysfs.
//!
//! | type | contents |
//! |---|---|
//! | [`PciSysfs`] | description of a function in sysfs, and its number of VFs |
//! | [`VfioFunction`] | opened function: registers, interrupts, DMA memory |
//! | [`SysfsFunction`] | function opened without VFIO: registers, configuration space, reset |
//! | [`MappedRegisters`] | mapped register region |
//!
//! Each function has its own container: it reaches its own memory only, and the IOMMU stops a function that uses
//! another's requester id.
//!
//! Not supported: noiommu groups (their devices reach all of the machine's memory, by addresses that a program does
//! not know), iommufd, MSI, INTx and hot plug.

mod address;
mod error;
mod function;
mod owner;
mod registers;
mod request;
mod sysfs;
mod sysfs_function;
#[cfg(test)]
mod tests;

pub use address::{InvalidPciAddress, PciAddress};
pub use error::VfioError;
pub use function::{VfToken, VfioFunction};
pub use registers::MappedRegisters;
pub use sysfs::{PciIds, PciSysfs};
pub use sysfs_function::SysfsFunction;
