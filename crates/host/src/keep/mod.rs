//! Descriptors that outlive a process: how they are kept elsewhere, and how a successor gets them.
//!
//! A VMM cannot reconnect to a vfio-user device. If this process dies, its sockets must not: somebody else holds a
//! copy of each descriptor under a name ([`Store`]), and hands all of them to the next process ([`Heritage`]). That is
//! [`keeper`], a supervisor of our own, and behind it systemd where the unit has a file descriptor store. Both are told
//! in the same words, systemd's (`sd_notify(3)`: `FDSTORE=1`, `FDNAME=`, `FDSTOREREMOVE=1`, `READY=1`, `MAINPID=`), a
//! message with at most one descriptor each.
//!
//! Left out: what the descriptors are.

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
pub use heritage::{From, Heritage, HeritageError, Line, STARTED, number};
pub use message::Shelf;
pub use store::Store;
