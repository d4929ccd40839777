//! The live host: port threads, configuration and the control socket.
//!
//! [`Host::start`] checks nothing that [`config`] has not checked, brings up every port or none, and then
//! each port runs in a thread of its own ([`port`]) while one more answers on the [`control`] socket.
//!
//! Left out: becoming a daemon, and logging's destination; those are the command's.

pub mod config;
pub mod confine;
pub mod control;
mod host_process;
mod limit;
pub mod policy;
pub mod port;

pub use host_process::{Host, StartError};
