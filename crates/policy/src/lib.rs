//! Policies that the administrator sets for a port and for each of its VFs, the same for every family of cards. A
//! family states in [`CardFamilyLimits`] which of them it supports; [`VfPolicy::check`] and [`PortPolicy::check`] compare a
//! policy with that.
//!
//! | module | contents |
//! |---|---|
//! | `vf` | the policy of one VF |
//! | `port` | the policy of a port: mirror rules, storm control, limits of conduct |
//! | `vlan` | VLAN ids and sets of them |
//! | `conduct` | kinds of conduct, and their thresholds |
//! | `guards` | guards of a VF's frames |
//! | `filters` | receive filters that guests request, and their quotas |
//! | `quota` | the check of a VF's quotas |
//! | `guarantees` | filters guaranteed to the VFs of a port |
//! | `limits` | abilities of a family |
//! | `error` | refusals, each with its setting |
//!
//! `daemon::settings` has the text of settings. `driver` makes a card follow a policy, and knows whether an address
//! is in use or a VLAN filter is left.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::cast_lossless, clippy::cast_possible_truncation, clippy::cast_sign_loss))]

extern crate alloc;

mod conduct;
mod error;
mod filters;
mod guarantees;
mod guards;
mod limits;
mod port;
mod quota;
mod vf;
mod vlan;

pub use conduct::{ConductLimits, DEFAULT_CONDUCT, KINDS, Offence, OffenceAction, OffenceThresholds};
pub use error::{AddressOwner, PolicyError, RefusedVf};
pub use filters::{FilterKind, FilterQuota, FilterQuotas, FilterTables, FilterUse};
pub use guarantees::check_guarantees;
pub use guards::{FrameGuards, MOST_IPS, SourceIps};
pub use limits::{CardFamilyLimits, WINDOWS_MS};
pub use port::{MIRROR_RULES, PortPolicy, STORM_BLOCK, StormControl, VfMirrorRule};
pub use vf::{InterruptBounds, VfLinkPolicy, VfPolicy};
pub use vlan::{PRIORITIES, PortVlan, VLANS, VlanSet};
