//! Limits of policies for virtio ports. No hardware register sets them: they follow from the forwarding plane and from
//! the longest frame of a ring.

use policy::CardFamilyLimits;
use units::FCS;
use virtio_nic::{LONGEST_FRAME, MAX_VFS};

/// Bytes of a frame around its packet: Ethernet's header, a VLAN tag, the frame check sequence.
const AROUND: u16 = 14 + 4 + FCS as u16;
/// Longest frame of the family in bytes, frame check sequence included.
const MAX_FRAME: u16 = (LONGEST_FRAME + FCS) as u16;
/// Smallest MTU in bytes (IPv4, RFC 791).
const LEAST_MTU: u16 = 68;

/// Policy limits of virtio ports. The link has no speed of its own; 100 Gb/s is the highest rate that is worth a limit.
pub(crate) const LIMITS: CardFamilyLimits = CardFamilyLimits {
    family: "virtio",
    vfs: MAX_VFS,
    link_speed: 100_000,
    mtu: LEAST_MTU..=MAX_FRAME - AROUND,
    max_frame: MAX_FRAME,
    frame_overhead: AROUND,
    interrupts: Err(
        "a port with family = \"virtio\" does not limit interrupts, because its guests suppress them; remove the \
         setting, or use family = \"82576\"",
    ),
    rss: Err(
        "a port with family = \"virtio\" chooses the receive queues by itself; remove the setting, or use family = \
         \"82576\"",
    ),
    storm_blocks: (1 << 19) - 1,
    filters: Err(
        "a VF of family = \"virtio\" has no filters that its guest requests, because it receives by the address that it \
         sends from; remove the setting, or use family = \"82576\" or \"avf\"",
    ),
};
