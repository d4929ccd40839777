//! Keeps file descriptors beyond the life of a process, and passes them to its successor process.
//!
//! A VMM cannot reconnect to a vfio-user device, so its sockets must survive this process. A keeper holds a copy of
//! each descriptor under a name ([`KeeperConnection`]) and sends all of them to the successor process
//! ([`InheritedFileDescriptors`]). That is [`keeper`], a supervisor of this program, and behind it systemd where the unit
//! has a file descriptor store. Both use systemd's messages (`sd_notify(3)`: `FDSTORE=1`, `FDNAME=`, `FDSTOREREMOVE=1`,
//! `READY=1`, `MAINPID=`), with at most one descriptor each.
//!
//! The module does not interpret the descriptors.

mod backing;
mod heritage;
pub mod keeper;
mod message;
mod process;
mod starter;
mod store;
#[cfg(test)]
mod tests;

pub use backing::is_same;
pub use heritage::{
    FileDescriptorSender, HandOverChannel, InheritedFileDescriptors, InheritedFileDescriptorsError, STARTED,
    number,
};
pub use message::KeptFileDescriptors;
pub use store::KeeperConnection;
