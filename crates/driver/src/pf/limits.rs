//! Limits of the 82576 for policies of its VFs.

use crate::moderation::MAX_INTERVAL_US;
use core::ops::RangeInclusive;
use i82576::ids::{FCS, LINK_SPEED, MAX_FRAME, MAX_VFS, RECEIVE_ADDRESSES, VLAN_FILTERS};
use policy::{CardFamilyLimits, FilterTables};

/// Policy limits of the 82576's VFs.
pub const LIMITS: CardFamilyLimits = CardFamilyLimits {
    family: "82576",
    vfs: MAX_VFS,
    link_speed: LINK_SPEED,
    mtu: LEAST_MTU..=MAX_FRAME as u16 - AROUND,
    max_frame: MAX_FRAME as u16,
    frame_overhead: AROUND,
    interrupts: Ok(CEILINGS_HZ),
    rss: Ok(()),
    storm_blocks: MOST_BLOCKS,
    filters: Ok(FilterTables {
        mac: SHARED_ADDRESSES as u16 - 1,
        vlan: VLAN_FILTERS as u16 - 1,
        is_shared: true,
    }),
};

/// Smallest MTU in bytes (IPv4, RFC 791).
const LEAST_MTU: u16 = 68;
/// Bytes that a frame has around its packet: addresses and type, a VLAN tag, the frame check sequence.
const AROUND: u16 = 14 + 4 + FCS as u16;
/// Range of interrupt rate limits in hertz that EITR can enforce: its intervals are whole microseconds, up to
/// a longest one.
const CEILINGS_HZ: RangeInclusive<u32> = 1_000_000u32.div_ceil(MAX_INTERVAL_US)..=1_000_000;
/// Highest threshold of BSCTRH and MSCTRH, which have 19 bits (82576 datasheet 8.18).
const MOST_BLOCKS: u32 = (1 << 19) - 1;
/// First entry of the receive-address table that may hold an address which a VF has added.
pub(super) const SHARED_FROM: usize = 4;
/// Number of receive addresses of all VFs: their own ones, and those that they add.
pub(super) const SHARED_ADDRESSES: usize = RECEIVE_ADDRESSES - SHARED_FROM;
