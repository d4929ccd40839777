//! Who gets a frame. A frame from the uplink or from a port is matched against the tables, and the answer is a set of
//! ports and whether it goes to the uplink. The rules are those of the 82576 (datasheet 7.10.3, packet switching), in
//! plain values; what another family says of its ports is put into the same tables.
//!
//! Left out: how fast frames may leave (`pacing`), and what becomes of them at a port (`forward`).

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
