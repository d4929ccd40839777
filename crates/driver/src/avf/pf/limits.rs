//! The abilities of the family, to which policies are held, and the longest frame of a VF. Left out: policies themselves.

use ::avf::ids::{LINK_SPEED, MAX_FRAME, MAX_VFS};
use policy::{Limits, VfPolicy};
use units::FCS;

/// The abilities of the family.
pub const LIMITS: Limits = Limits {
    family: "avf",
    vfs: MAX_VFS,
    link_speed: LINK_SPEED,
    mtu: STANDARD_FRAME - AROUND..=MAX_FRAME as u16 - HEADER - TAG,
    max_frame: MAX_FRAME as u16,
    frame_overhead: AROUND,
    interrupts: Err(
        "the guest of a port with family = \"avf\" moderates its interrupts itself; leave it out, or use family = \"82576\"",
    ),
    rss: Err(
        "a VF of family = \"avf\" always spreads what it receives over its queue pairs; leave it out, or use family = \"82576\"",
    ),
    storm_blocks: (1 << 19) - 1,
};

/// Bytes of a VLAN tag.
const TAG: u16 = 4;
/// Bytes of addresses, type and frame check sequence.
const HEADER: u16 = 14 + FCS as u16;
/// Bytes around the packet in a frame, as drivers of AVF count them: with two tags.
pub(super) const AROUND: u16 = HEADER + 2 * TAG;
/// The longest frame that every Ethernet carries, tag and frame check sequence included.
const STANDARD_FRAME: u16 = 1522;

/// Returns the longest frame for the VF's driver. A port VLAN's tag, which the driver never sees, has to fit as well.
pub(super) fn longest_frame(policy: &VfPolicy) -> u16 {
    policy.longest_frame(&LIMITS).min(LIMITS.max_frame - if policy.vlan.is_some() { TAG } else { 0 })
}
