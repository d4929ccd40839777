//! The live host: a process whose threads run the ports, with its configuration and its control socket.
//!
//! [`RunningHost::start`] takes a configuration that [`config`] has checked, and brings up every port or none. Then
//! each port runs in a thread of its own ([`port`]), and another thread answers on the [`control`] socket. One more
//! thread makes every change (`management`): it checks the change against the whole configuration, keeps it ([`store`])
//! and sends commands to the ports.
//!
//! The command `softiov serve` turns the process into a daemon and sets up the log.

mod capture;
mod clock;
pub mod config;
pub mod confine;
pub mod control;
mod disk_wait;
pub mod events;
mod file_calls;
mod flight;
mod host_process;
mod leftover;
mod limit;
mod management;
mod pcapng;
mod pf_config;
pub mod port;
mod ring;
pub mod settings;
mod socket_access;
mod start_error;
pub mod state;
pub mod store;
mod totals;
mod uplink_threads;
pub mod vault;
mod virtio_limits;
mod volatile;

pub use flight::recording::{FlightEntry, FlightRecording};
pub use host_process::{ReadyHost, RunningHost, SettleDelay};
pub use management::{MainThreadRequest, UpgradeFailure};
pub use start_error::HostStartError;
