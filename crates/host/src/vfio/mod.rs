//! PCI functions that Linux hands over to a program: VFIO, as type 1 of the IOMMU behind a container of each
//! function's own.
//!
//! | module | what it gives |
//! |---|---|
//! | [`Pci`] | what sysfs says of a function, and how many virtual ones it has |
//! | [`Function`] | a function that is ours: registers, interrupts, memory that it reaches |
//! | [`Registers`] | a region of its registers, mapped |
//!
//! A container for each function, not one for all: a function then reaches its own memory only, and one that uses
//! another's identity on the bus is stopped by the IOMMU instead of going unnoticed.
//!
//! Left out: noiommu groups (their devices reach all of the machine's memory, by addresses that a program does not
//! know), iommufd, MSI and INTx, hot plug, and what the function is.

mod address;
mod error;
mod function;
mod owner;
mod registers;
mod request;
mod sysfs;
#[cfg(test)]
mod tests;

pub use address::{NotAnAddress, PciAddress};
pub use error::VfioError;
pub use function::{Function, Token};
pub use registers::Registers;
pub use sysfs::{Pci, PciIds};
