//! The switch: matches a frame from the uplink or from a port against the tables, and decides which ports get it and whether the
//! uplink does. The rules are those of the 82576 (datasheet 7.10.3, packet switching). Every family fills the same tables.
//!
//! Rates are in `pacing`, the delivery in `forward`.

mod addresses;
mod decide;
mod flows;
mod mirror;
mod storm;
mod tables;
mod vlans;

pub use addresses::{Exact, Inexact};
pub use decide::{Decision, Frame, Origin, Reason};
pub use flows::Flows;
pub use mirror::{Mirrors, Rule};
pub use storm::{Kind, Limit, Limits, Storm, Window};
pub use tables::{Fit, PortTag, Tables};
pub use vlans::{Ids, Vlans};
