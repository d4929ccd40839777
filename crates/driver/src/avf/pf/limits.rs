//! Limits of the AVF family for policies, and the longest frame of a VF.

use ::avf::ids::{LINK_SPEED, MAX_FRAME, MAX_VFS};
use policy::{CardFamilyLimits, FilterTables, VfPolicy};
use units::{FCS, LAST_VLAN};

/// Policy limits of Adaptive Virtual Functions.
pub const LIMITS: CardFamilyLimits = CardFamilyLimits {
    family: "avf",
    vfs: MAX_VFS,
    link_speed: LINK_SPEED,
    mtu: STANDARD_FRAME - AROUND..=MAX_FRAME as u16 - HEADER - TAG,
    max_frame: MAX_FRAME as u16,
    frame_overhead: AROUND,
    interrupts: Err(
        "a port with family = \"avf\" does not limit interrupts, because the guest moderates them; remove \
         the setting, or use family = \"82576\"",
    ),
    rss: Err(
        "a VF of family = \"avf\" spreads received frames over its queues as its driver asks (RSS); remove \
         the setting, or use family = \"82576\"",
    ),
    storm_blocks: (1 << 19) - 1,
    filters: Ok(FilterTables { mac: MORE_ADDRESSES, vlan: LAST_VLAN, is_shared: false }),
};

/// Default address quota of a trusted VF, and the highest quota.
pub(super) const MORE_ADDRESSES: u16 = 128;
/// Length of a VLAN tag in bytes.
const TAG: u16 = 4;
/// Bytes of an Ethernet header without tags, together with the frame check sequence.
const HEADER: u16 = 14 + FCS as u16;
/// Bytes that an AVF driver adds to a packet's length for its frame: header with two tags, and check sequence.
pub(super) const AROUND: u16 = HEADER + 2 * TAG;
/// Longest frame in bytes that every Ethernet carries, with tag and frame check sequence (IEEE 802.3).
const STANDARD_FRAME: u16 = 1522;

/// Returns the longest frame in bytes for the VF's driver. The tag of a port VLAN, which the driver never sees,
/// must fit as well.
pub(super) fn longest_frame(policy: &VfPolicy) -> u16 {
    policy.longest_frame(&LIMITS).min(LIMITS.max_frame - if policy.vlan.is_some() { TAG } else { 0 })
}
