//! Runs the PF and VF drivers on an 82576 behind VFIO, which is silicon or a model of another project, and checks their
//! work. The same checks run on VFs of a SoftIOV card behind vfio-user sockets.
//!
//! | module | contents |
//! |---|---|
//! | [`hal`] | registers, memory and interrupts of a function behind VFIO |
//! | [`port`] | the PF with a thread that visits it, and its VFs |
//! | [`check`] | the checks of the drivers on such a card, and their report |
//! | [`audit`] | registers that reveal the machine to a guest |
//! | [`reset`] | a function reset before it changes its owner |
//!
//! A run opens the functions, checks, and returns them to Linux. The caller brings the TCP/IP stack
//! ([`check::GuestNetworkStack`]).
#![forbid(unsafe_code)]

pub mod audit;
pub mod check;
pub mod hal;
pub mod port;
pub mod reset;

use driver::pf::PfError;
use driver::vf::VfError;
use host::shared::SharedMemoryError;
use host::vfio::{PciAddress, PciIds, VfioError};
use policy::PolicyError;
use std::path::PathBuf;
use vfio_client::VfioUserHalError;

/// Reason why the drivers cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum DriverStartError {
    /// VFIO does not pass the function to this process.
    #[error(transparent)]
    Vfio(#[from] VfioError),
    /// The PCI function is another kind of device than the drivers need.
    #[error("device {address} has ID {:04x}:{:04x}, which is not {wanted} of an 82576", found.vendor, found.device)]
    NotOurs {
        /// PCI address of the rejected function.
        address: PciAddress,
        /// Vendor and device id of the rejected function.
        found: PciIds,
        /// Description of the device that the drivers need.
        wanted: &'static str,
    },
    /// The socket belongs to a VF of another device family.
    #[error(
        "the VF behind {} is not an 82576, the only supported family; name sockets of a port with family = \
         \"82576\"",
        .0.display()
    )]
    OtherFamily(PathBuf),
    /// The PF has virtual functions, which may be in use.
    #[error(
        "physical function {0} already has virtual functions; write 0 to its sriov_numvfs if none of them is \
         in use"
    )]
    HasVirtualFunctions(PciAddress),
    /// The kernel made another number of virtual functions than requested.
    #[error("physical function {address} has {found} virtual functions instead of the requested {wanted}")]
    VirtualFunctions {
        /// Address of the physical function.
        address: PciAddress,
        /// Number of virtual functions that were requested.
        wanted: u8,
        /// Number of virtual functions that exist.
        found: usize,
    },
    /// The driver cannot start the PF.
    #[error("the PF driver failed: {0}")]
    Pf(#[from] PfError),
    /// The PF driver refuses the policy of a VF.
    #[error("the PF driver refused the policy of a VF: {0}")]
    Policy(#[from] PolicyError),
    /// The driver cannot start a VF.
    #[error("the VF driver failed on {name}: {error}")]
    Vf {
        /// Name of the VF that cannot start.
        name: String,
        /// Error of the driver that cannot start the VF.
        error: VfError,
    },
    /// A VF behind a socket cannot be opened, or was lost.
    #[error(transparent)]
    Hal(#[from] VfioUserHalError),
    /// The function still has PCI Express transactions in flight.
    #[error(
        "function {0} still has transactions in flight a second after it was stopped; switch the machine off \
         and on"
    )]
    NotQuiet(PciAddress),
    /// The system refuses shared memory for a driver.
    #[error(transparent)]
    Memory(#[from] SharedMemoryError),
    /// The system refuses a thread or an eventfd for a driver.
    #[error(transparent)]
    System(#[from] std::io::Error),
}
