//! Ethernet addresses and moments: what the card, the forwarding plane and the drivers all speak of, and nothing of any
//! one of them. Left out: numbers that a device gives to its parts, which are that device's.
#![no_std]
#![forbid(unsafe_code)]

pub mod mac;
pub mod time;

pub use mac::MacAddress;
pub use time::Time;

/// The last VLAN id of cards and policies. IEEE 802.1Q reserves 4095; Linux's drivers take it all the same
/// (`igb_ndo_set_vf_vlan`, `I40E_MAX_VLANID`), and so does iproute2.
pub const LAST_VLAN: u16 = 4095;
/// Bytes of the frame check sequence: counted in lengths and octets, seldom delivered.
pub const FCS: usize = 4;
