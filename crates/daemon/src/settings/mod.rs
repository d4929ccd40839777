//! Settings of VFs ([`VfSettings`]) and ports ([`PortSettings`]) that an administrator may change. Each setting is
//! declared once. The configuration file, the command line, the control protocol, the status, the difference that
//! `softiov apply` prints and the state file all use these structures. Names are iproute2's where it has one.
//!
//! [`layers`] decides which value wins when several sources set one. `policy` checks the resulting policy, and `store`
//! keeps the state file.

mod argument;
mod ips;
pub mod layers;
mod port;
mod setting;
mod vf;

pub use layers::{SettingLayers, SettingOrigin};
pub use port::{
    ConductThresholds, LinkLocalPolicy, MirrorRule, PortSettings, StormControlSettings, UplinkDirection,
};
pub use setting::{SettingError, SettingValues, SettingsGroup};
pub use vf::{CoalesceMode, LinkState, VfSettings};
