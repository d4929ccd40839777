//! What an administrator may set for a VF ([`VfSettings`]) and for a port ([`PortSettings`]). Each setting is
//! declared once. The configuration file, the command line, the control protocol, the status, the difference that
//! `softiov apply` prints and the state file all use these structures. Names are iproute2's where it has one.
//!
//! [`layers`] says which value wins when several places set one. Left out: whether a policy makes sense (`policy`), and the
//! state file (`store`).

pub mod layers;
mod port;
mod setting;
mod vf;

pub use layers::{Layers, Origin};
pub use port::{Direction, Limit, MirrorRule, PortSettings, Storm};
pub use setting::{Leaves, SettingError, Settings};
pub use vf::{Coalesce, LinkState, VfSettings};
