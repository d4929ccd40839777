//! Ethernet addresses, VLAN ids, times and costs of work, which the card, the forwarding plane, the drivers and the host share.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::cast_lossless, clippy::cast_possible_truncation, clippy::cast_sign_loss))]

extern crate alloc;

pub mod ip;
pub mod mac;
pub mod pieces;
pub mod time;
pub mod vlans;
pub mod work;

pub use ip::{IpPrefix, IpPrefixError};
pub use mac::MacAddress;
pub use pieces::ExcessPieces;
pub use time::Time;
pub use vlans::{LAST_VLAN, VlanIdError, VlanIds};
pub use work::{WorkAccount, WorkCost};

/// Bytes of the Ethernet frame check sequence, which frame lengths and octet counters include and received frames
/// seldom contain.
pub const FCS: usize = 4;
