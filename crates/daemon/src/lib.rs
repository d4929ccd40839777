//! The live host: port threads, configuration and the control socket.
//!
//! [`Host::start`] checks nothing that [`config`] has not checked, brings up every port or none, and then
//! each port runs in a thread of its own ([`port`]) while one more answers on the [`control`] socket. That one also
//! makes every change (`management`): it checks it against the whole, has it kept ([`store`]) and tells the ports.
//!
//! Left out: becoming a daemon, and logging's destination; those are the command's.

mod capture;
mod clock;
pub mod config;
pub mod confine;
pub mod control;
pub mod events;
mod flight;
mod host_process;
mod limit;
mod management;
mod pcapng;
mod pf_config;
pub mod port;
mod ring;
pub mod settings;
mod start_error;
pub mod state;
pub mod store;
mod totals;
pub mod vault;
mod volatile;

pub use flight::recording::{Entry, Recording};
pub use host_process::{Host, ReadyHost};
pub use management::Order;
pub use start_error::StartError;
