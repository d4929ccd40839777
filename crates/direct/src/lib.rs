//! The drivers on an 82576 that Linux hands over, silicon or another's model: the same PF and VF drivers as on our
//! card, over VFIO. And the checks that show that they work there, and on VFs of our own card behind vfio-user sockets.
//!
//! | module | what it gives |
//! |---|---|
//! | [`hal`] | registers, memory and interrupts of a function behind VFIO |
//! | [`port`] | the PF with a thread that visits it, and its VFs |
//! | [`check`] | what is expected of the drivers on such a card, and what came |
//! | [`audit`] | registers that tell a guest what it should not believe |
//! | [`reset`] | a function reset before it changes its owner |
//!
//! Left out: TCP/IP, whose stack the caller brings ([`check::GuestStack`]). A run opens the functions, checks, and gives them back.
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
use vfio_client::HalError;

/// Why the drivers cannot be put to work.
#[derive(Debug, thiserror::Error)]
pub enum DirectError {
    /// Linux does not hand the function over.
    #[error(transparent)]
    Vfio(#[from] VfioError),
    /// Some other device.
    #[error("{address} is {:04x}:{:04x}, not {wanted} of an 82576", found.vendor, found.device)]
    NotOurs {
        /// The function.
        address: PciAddress,
        /// What it is.
        found: PciIds,
        /// What it should be.
        wanted: &'static str,
    },
    /// The socket is of a VF of another family.
    #[error("{} is no 82576, and only those are driven; name VFs of a port with family = \"82576\"", .0.display())]
    OtherFamily(PathBuf),
    /// Somebody may be using them.
    #[error("{0} has virtual functions already; write 0 to its sriov_numvfs if nobody uses them")]
    HasVirtualFunctions(PciAddress),
    /// Some other number of virtual functions than was asked for.
    #[error("{address} was given {wanted} virtual functions, and has {found}")]
    VirtualFunctions {
        /// The physical function.
        address: PciAddress,
        /// How many were asked for.
        wanted: u8,
        /// How many there are.
        found: usize,
    },
    /// The PF does not start.
    #[error("PF driver: {0}")]
    Pf(#[from] PfError),
    /// The PF driver does not take what a VF is to be allowed.
    #[error("PF driver: {0}")]
    Policy(#[from] PolicyError),
    /// A VF does not start.
    #[error("VF driver on {name}: {error}")]
    Vf {
        /// The function.
        name: String,
        /// Why.
        error: VfError,
    },
    /// A VF behind a socket cannot be had, or was lost.
    #[error(transparent)]
    Hal(#[from] HalError),
    /// It does not come to rest.
    #[error(
        "{0} still has transactions under way a second after it may start no more; switch the machine off and on"
    )]
    NotQuiet(PciAddress),
    /// There is no memory to share.
    #[error(transparent)]
    Memory(#[from] SharedMemoryError),
    /// The system refuses a thread or an eventfd.
    #[error(transparent)]
    System(#[from] std::io::Error),
}
