//! Cases on frames that no guest of any family may send, or that no parser may read too far. Each frame is sent by a guest of each
//! family.

use super::network::{CHECKSUMS, MARKED, NONE, PAD, TYPE};
use super::remedies::{LINK_CONTROL, OFFLOADS, SWITCH};
use crate::case::Attack::{Frames, Packets};
use crate::case::FrameFate::{Delivered, Dropped, Either};
use crate::case::row;
use crate::case::{AttackCase, VirtioPacket};
use crate::family::AttackedFamily::{Avf, I82576, Virtio};
use crate::field::Field::{self, Bytes, Fill, NeighbourMac, OwnMac};
use crate::guest::GuestStart::Driver;
use crate::guest::GuestStep::Send;
use crate::guest::PLAIN;

/// Rows of one frame: by an 82576, by an AVF, and by a virtio function.
macro_rules! frame {
    ($name:literal, $rule:literal, $remedy:expr, $offload:expr, $frame:expr, $fate:expr $(,)?) => {
        [
            row(
                concat!($name, "-by-82576"),
                I82576,
                $rule,
                $remedy,
                Frames(Driver, &[Send($frame, $offload)], $fate),
            ),
            row(
                concat!($name, "-by-avf"),
                Avf,
                $rule,
                $remedy,
                Frames(Driver, &[Send($frame, $offload)], $fate),
            ),
            row(
                concat!($name, "-by-virtio"),
                Virtio,
                $rule,
                $remedy,
                Packets(&[VirtioPacket { header: NONE, packet: $frame }], $fate),
            ),
        ]
    };
}

/// Rows of one tagged frame: by an 82576 and by an AVF, whose VLANs the PF knows. A virtio function sends any tag unless `vlans`
/// names its VLANs.
macro_rules! tagged {
    ($name:literal, $rule:literal, $frame:expr, $fate:expr $(,)?) => {
        [
            row(
                concat!($name, "-by-82576"),
                I82576,
                $rule,
                SWITCH,
                Frames(Driver, &[Send($frame, PLAIN)], $fate),
            ),
            row(concat!($name, "-by-avf"), Avf, $rule, SWITCH, Frames(Driver, &[Send($frame, PLAIN)], $fate)),
        ]
    };
}

const IPV4_TYPE: Field = Bytes(&[0x08, 0x00]);
const IPV6_TYPE: Field = Bytes(&[0x86, 0xdd]);

const FRAMES: [[AttackCase; 3]; 17] = [
    frame!(
        "source-zero",
        "Zero is no source address",
        SWITCH,
        PLAIN,
        &[NeighbourMac, Fill(0, 6), TYPE, MARKED, PAD],
        Dropped
    ),
    frame!(
        "source-of-a-stranger",
        "A frame with a source address that the VF does not have does not leave it",
        SWITCH,
        PLAIN,
        &[NeighbourMac, Bytes(&[2, 0x99, 0, 0, 0, 1]), TYPE, MARKED, PAD],
        Dropped
    ),
    frame!(
        "source-of-a-group",
        "A group address is no source address",
        SWITCH,
        PLAIN,
        &[NeighbourMac, Bytes(&[3, 0, 0, 0, 0, 1]), TYPE, MARKED, PAD],
        Dropped
    ),
    frame!(
        "lacp",
        "Link aggregation frames of guests are dropped",
        SWITCH,
        PLAIN,
        &[Bytes(&[1, 0x80, 0xc2, 0, 0, 2]), OwnMac, Bytes(&[0x88, 9]), MARKED, PAD],
        Dropped
    ),
    frame!(
        "lldp",
        "Link discovery frames of guests are dropped",
        SWITCH,
        PLAIN,
        &[Bytes(&[1, 0x80, 0xc2, 0, 0, 0x0e]), OwnMac, Bytes(&[0x88, 0xcc]), MARKED, PAD],
        Dropped
    ),
    frame!(
        "port-access",
        "Port access frames of guests are dropped",
        SWITCH,
        PLAIN,
        &[Bytes(&[1, 0x80, 0xc2, 0, 0, 3]), OwnMac, Bytes(&[0x88, 0x8e]), MARKED, PAD],
        Dropped
    ),
    frame!(
        "pause",
        "A guest cannot pause the link of all others",
        LINK_CONTROL,
        PLAIN,
        &[Bytes(&[1, 0x80, 0xc2, 0, 0, 1]), OwnMac, Bytes(&[0x88, 8, 1, 1, 0xff, 0xff]), MARKED, PAD],
        Dropped
    ),
    frame!(
        "short-frame",
        "A short frame is padded with zeros, and arrives",
        SWITCH,
        PLAIN,
        &[NeighbourMac, OwnMac, TYPE, MARKED],
        Delivered
    ),
    frame!(
        "broadcast",
        "A broadcast reaches the neighbours",
        SWITCH,
        PLAIN,
        &[Fill(0xff, 6), OwnMac, TYPE, MARKED, PAD],
        Delivered
    ),
    frame!(
        "length-of-65535",
        "A length in the place of a type is not believed",
        OFFLOADS,
        PLAIN,
        &[NeighbourMac, OwnMac, Bytes(&[0xff, 0xff]), MARKED, PAD],
        Either
    ),
    frame!(
        "ipv4-header-of-no-words",
        "An IP header of no words is not parsed",
        OFFLOADS,
        PLAIN,
        &[NeighbourMac, OwnMac, IPV4_TYPE, Bytes(&[0x40, 0, 0, 60]), Fill(0, 16), MARKED, PAD],
        Either
    ),
    frame!(
        "ipv4-header-of-fifteen-words",
        "An IP header that ends behind its frame is not parsed",
        OFFLOADS,
        PLAIN,
        &[NeighbourMac, OwnMac, IPV4_TYPE, Bytes(&[0x4f, 0, 0, 60, 0, 0, 0, 0, 64, 6]), Fill(0, 10), MARKED],
        Either
    ),
    frame!(
        "ipv4-of-no-bytes",
        "An IP length below its header's is not subtracted",
        OFFLOADS,
        CHECKSUMS,
        &[
            NeighbourMac,
            OwnMac,
            IPV4_TYPE,
            Bytes(&[0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17]),
            Fill(0, 10),
            MARKED,
            PAD
        ],
        Either
    ),
    frame!(
        "tcp-header-of-fifteen-words",
        "A TCP header that ends behind its frame is not parsed",
        OFFLOADS,
        PLAIN,
        &[
            NeighbourMac,
            OwnMac,
            IPV4_TYPE,
            Bytes(&[0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6]),
            Fill(0, 22),
            Bytes(&[0xf0]),
            MARKED
        ],
        Either
    ),
    frame!(
        "udp-of-65535-bytes",
        "A UDP length beyond the frame reads no byte behind it",
        OFFLOADS,
        CHECKSUMS,
        &[
            NeighbourMac,
            OwnMac,
            IPV4_TYPE,
            Bytes(&[0x45, 0, 0, 60, 0, 0, 0, 0, 64, 17]),
            Fill(0, 14),
            Fill(0xff, 4),
            MARKED,
            PAD
        ],
        Either
    ),
    frame!(
        "ipv6-extensions-in-a-row",
        "A chain of extension headers is followed up to the end of the frame",
        OFFLOADS,
        PLAIN,
        &[
            NeighbourMac,
            OwnMac,
            IPV6_TYPE,
            Bytes(&[0x60, 0, 0, 0, 0xff, 0xff, 0, 64]),
            Fill(0, 32),
            Fill(0, 600),
            MARKED
        ],
        Either
    ),
    frame!(
        "arp-cut-off",
        "A request for an address that is cut off is not parsed",
        SWITCH,
        PLAIN,
        &[Fill(0xff, 6), OwnMac, Bytes(&[8, 6, 0, 1, 8, 0, 6, 4]), MARKED],
        Either
    ),
];

const TAGGED: [[AttackCase; 2]; 3] = [
    tagged!(
        "vlan-of-others",
        "A tag of a VLAN that the neighbours are not in reaches none of them",
        &[NeighbourMac, OwnMac, Bytes(&[0x81, 0, 0, 5]), TYPE, MARKED, PAD],
        Dropped
    ),
    tagged!(
        "vlan-4095",
        "VLAN 4,095 is reserved, and no VF is in it",
        &[NeighbourMac, OwnMac, Bytes(&[0x81, 0, 0x0f, 0xff]), TYPE, MARKED, PAD],
        Dropped
    ),
    tagged!(
        "two-vlan-tags",
        "A second tag does not hide the first",
        &[NeighbourMac, OwnMac, Bytes(&[0x81, 0, 0, 5, 0x81, 0, 0, 6]), TYPE, MARKED, PAD],
        Dropped
    ),
];

/// Rows of all tagged frames.
pub(super) const TAGGED_CASES: &[AttackCase] = TAGGED.as_flattened();
/// Rows of all frames without a tag.
pub(super) const CASES: &[AttackCase] = FRAMES.as_flattened();
