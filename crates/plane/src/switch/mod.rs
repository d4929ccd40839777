//! The switch: matches a frame from the uplink or from a port against the tables, and decides which ports get it and whether the
//! uplink does. The rules are those of the 82576 (datasheet 7.10.3, packet switching). Every family fills the same tables.
//!
//! Rates are in `pacing`, the delivery in `forward`.

mod addresses;
mod claims;
mod decide;
mod flows;
mod guards;
mod inspect;
mod kept;
mod mirror;
mod shared_addresses;
mod stations;
mod storm;
mod storm_parts;
mod tables;
mod vlans;

pub use addresses::{ExactFilter, HashFilter};
pub use claims::{AddressClaims, ClaimCounts};
pub use decide::{FrameMetadata, FrameOrigin, SwitchDecision, SwitchDropReason};
pub(crate) use flows::FlowCache;
pub use guards::PortGuard;
pub(crate) use guards::PortGuards;
pub use kept::ResetCounts;
pub use mirror::{PortMirrorRule, PortMirrorRules};
pub use shared_addresses::SharedAddresses;
pub use stations::saved::SavedStations;
pub use storm::{StormKind, StormLimit, StormLimits, StormState, StormWindowTraffic};
pub use storm_parts::StormPart;
pub(crate) use storm_parts::StormParts;
pub use tables::{MaxFrameLength, SwitchTables, TagInsertion};
pub use vlans::VlanTable;
