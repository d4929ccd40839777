//! The administrator's decisions for a port and for each of its VFs, the same for every family of cards. A family states in
//! [`Limits`] which of them it can carry out, and [`VfPolicy::check`] and [`PortPolicy::check`] hold a policy to that.
//!
//! | module | contents |
//! |---|---|
//! | `vf` | the policy of one VF |
//! | `port` | the policy of a port: mirror rules, storm control, limits of conduct |
//! | `vlan` | VLAN ids and sets of them |
//! | `conduct` | kinds of conduct and their thresholds |
//! | `limits` | the abilities of a family |
//! | `error` | refusals, each with its setting |
//!
//! Left out: how a setting is written (`daemon::settings`), and how a card is made to follow it (`driver`), which also knows
//! whether an address is in use or a filter is left.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod conduct;
mod error;
mod limits;
mod port;
mod vf;
mod vlan;

pub use conduct::{Action, ConductLimits, DEFAULT_CONDUCT, KINDS, Offence, Thresholds};
pub use error::{AddressOwner, PolicyError, RefusedVf};
pub use limits::{Limits, WINDOWS_MS};
pub use port::{MIRROR_RULES, Mirror, PortPolicy, STORM_BLOCK, StormControl};
pub use vf::{InterruptBounds, Link, VfPolicy};
pub use vlan::{PRIORITIES, PortVlan, VLANS, VlanSet};
