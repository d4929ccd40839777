//! The control socket: how commands reach a running host.

pub mod client;
pub mod protocol;
pub mod server;
pub mod status;
pub mod tap;
