//! Cases on descriptors of a virtio ring. Several are patterns of published flaws of QEMU, DPDK and Linux's vhost: ranges that
//! leave a region (CVE-2018-1059), chains without an end (CVE-2016-6490), headers across descriptors (CVE-2022-2132), indexes
//! beyond the ring (CVE-2020-10726).

use super::remedies::{VIRTIO_CARD, VIRTIO_HEADER};
use super::steps::VIRTIO_RING;
use crate::case::Attack::Ring;
use crate::case::AttackCase;
use crate::case::FrameFate::{Delivered, Dropped};
use crate::case::row;
use crate::family::AttackedFamily::Virtio;
use crate::field::Field::{self, Bytes, Fill, NeighbourMac, OwnMac, U16, U32, U64};
use crate::socket::SocketStep::{Kick, Repeat as Again, Store};

/// Header without offloads, and a frame behind it: 98 bytes.
const PACKET: &[Field] =
    &[Fill(0, 12), NeighbourMac, OwnMac, Bytes(&[0x88, 0xb5]), Bytes(b"attack-frame"), Fill(0, 60)];
const LENGTH: u32 = 98;
/// Address of the packet, beyond the ring.
const AT: u64 = 0x8000;
/// Flags of a descriptor.
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
/// Available ring with one chain that begins at descriptor 0.
const ONE: &[Field] = &[U16(0), U16(1), U16(0)];

/// Row of descriptors (address, length, flags, next), of the available ring, and of what becomes of the packet.
macro_rules! ring {
    ($name:literal, $rule:literal, $remedy:expr, [$($descriptor:expr),*], $available:expr, $fate:expr $(,)?) => {
        row(
            $name,
            Virtio,
            $rule,
            $remedy,
            Ring(
                &[
                    VIRTIO_RING,
                    Store(AT, PACKET),
                    Store(
                        0,
                        &[$(U64($descriptor.0), U32($descriptor.1), U16($descriptor.2), U16($descriptor.3)),*],
                    ),
                    Store(0x1000, $available),
                    Kick,
                ],
                $fate,
            ),
        )
    };
}

pub(super) const CASES: &[AttackCase] = &[
    ring!(
        "packet-in-one-descriptor",
        "A packet that breaks no rule arrives: the attack's own road works",
        VIRTIO_CARD,
        [(AT, LENGTH, 0, 0)],
        ONE,
        Delivered
    ),
    ring!(
        "header-across-descriptors",
        "A header may lie in several descriptors, and is read whole",
        VIRTIO_CARD,
        [(AT, 5, NEXT, 1), (AT + 5, LENGTH - 5, 0, 0)],
        ONE,
        Delivered
    ),
    ring!(
        "packet-outside-memory",
        "A descriptor of memory that no region has stops the ring or its packet",
        VIRTIO_CARD,
        [(1u64 << 40, LENGTH, 0, 0)],
        ONE,
        Dropped
    ),
    ring!(
        "packet-that-wraps-addresses",
        "A descriptor at the end of the address space is not read at address 0",
        VIRTIO_CARD,
        [(u64::MAX - 8, LENGTH, 0, 0)],
        ONE,
        Dropped
    ),
    ring!(
        "packet-across-the-end-of-a-region",
        "A descriptor that begins in a region and ends outside is not read",
        VIRTIO_CARD,
        [((1 << 20) - 64, LENGTH, 0, 0)],
        ONE,
        Dropped
    ),
    ring!(
        "descriptor-of-four-gib",
        "A length of 4 GiB allocates nothing, and its packet is dropped",
        VIRTIO_CARD,
        [(AT, u32::MAX, 0, 0)],
        ONE,
        Dropped
    ),
    ring!(
        "packet-of-128-kib",
        "A packet longer than any frame is dropped",
        VIRTIO_CARD,
        [(AT, 0x2_0000, 0, 0)],
        ONE,
        Dropped
    ),
    ring!(
        "packet-of-no-bytes",
        "A chain without a byte has no header, and is malformed",
        VIRTIO_HEADER,
        [(AT, 0, 0, 0)],
        ONE,
        Dropped
    ),
    ring!(
        "header-cut-off",
        "A chain shorter than its header is malformed",
        VIRTIO_HEADER,
        [(AT, 5, 0, 0)],
        ONE,
        Dropped
    ),
    ring!(
        "header-without-a-frame",
        "A header without a frame is malformed",
        VIRTIO_HEADER,
        [(AT, 12, 0, 0)],
        ONE,
        Dropped
    ),
    ring!(
        "frame-without-an-address",
        "A frame shorter than its Ethernet header is malformed",
        VIRTIO_HEADER,
        [(AT, 25, 0, 0)],
        ONE,
        Dropped
    ),
    ring!(
        "next-beyond-the-ring",
        "A chain that leaves the ring is not followed",
        VIRTIO_CARD,
        [(AT, LENGTH, NEXT, 8)],
        ONE,
        Dropped
    ),
    ring!(
        "next-at-65535",
        "A chain that leaves the ring is not followed",
        VIRTIO_CARD,
        [(AT, LENGTH, NEXT, 0xffff)],
        ONE,
        Dropped
    ),
    ring!(
        "chain-that-ends-in-itself",
        "A chain has at most as many descriptors as its ring",
        VIRTIO_CARD,
        [(AT, 12, NEXT, 0)],
        ONE,
        Dropped
    ),
    ring!(
        "chain-of-two-in-a-circle",
        "A chain has at most as many descriptors as its ring",
        VIRTIO_CARD,
        [(AT, 12, NEXT, 1), (AT, 12, NEXT, 0)],
        ONE,
        Dropped
    ),
    ring!(
        "circle-of-no-bytes",
        "A circle of descriptors without a byte is followed once",
        VIRTIO_CARD,
        [(AT, 0, NEXT, 1), (AT, 0, NEXT, 0)],
        ONE,
        Dropped
    ),
    ring!(
        "chain-for-the-device-to-write",
        "A packet that the device may only write is not read",
        VIRTIO_CARD,
        [(AT, LENGTH, WRITE, 0)],
        ONE,
        Dropped
    ),
    ring!(
        "chain-that-is-read-after-it-is-written",
        "Parts to read come before parts to write",
        VIRTIO_CARD,
        [(AT, LENGTH, NEXT | WRITE, 1), (AT, LENGTH, 0, 0)],
        ONE,
        Dropped
    ),
    ring!(
        "indirect-table-that-was-not-offered",
        "An indirect table that was not negotiated is not followed",
        VIRTIO_CARD,
        [(AT, 16, INDIRECT, 0)],
        ONE,
        Dropped
    ),
    ring!(
        "indirect-table-with-a-next",
        "A descriptor is either indirect or has a next one",
        VIRTIO_CARD,
        [(AT, 16, INDIRECT | NEXT, 1), (AT, LENGTH, 0, 0)],
        ONE,
        Dropped
    ),
    ring!(
        "packet-over-its-own-ring",
        "Descriptors that are read as a packet are bytes",
        VIRTIO_CARD,
        [(0, LENGTH, 0, 0)],
        ONE,
        Dropped
    ),
    ring!(
        "head-beyond-the-ring",
        "A chain's first descriptor lies in the ring",
        VIRTIO_CARD,
        [(AT, LENGTH, 0, 0)],
        &[U16(0), U16(1), U16(8)],
        Dropped
    ),
    ring!(
        "head-at-65535",
        "A chain's first descriptor lies in the ring",
        VIRTIO_CARD,
        [(AT, LENGTH, 0, 0)],
        &[U16(0), U16(1), U16(0xffff)],
        Dropped
    ),
    ring!(
        "index-far-ahead",
        "More chains than the ring has descriptors break the ring: none is read",
        VIRTIO_CARD,
        [(AT, LENGTH, 0, 0)],
        &[U16(0), U16(0x7fff), U16(0)],
        Dropped
    ),
    ring!(
        "index-one-beyond-the-ring",
        "More chains than the ring has descriptors break the ring: none is read",
        VIRTIO_CARD,
        [(AT, LENGTH, 0, 0)],
        &[U16(0), U16(9), Fill(0, 16)],
        Dropped
    ),
    row(
        "kicks-without-a-chain",
        Virtio,
        "Kicks without a new chain move nothing",
        VIRTIO_CARD,
        Ring(&[VIRTIO_RING, Store(AT, PACKET), Again(500, &[Kick])], Dropped),
    ),
    row(
        "chain-that-changes-under-the-device",
        Virtio,
        "A chain that changes while the device reads it disturbs its own guest alone",
        VIRTIO_CARD,
        Ring(
            &[
                VIRTIO_RING,
                Store(0x1000, ONE),
                Again(
                    100,
                    &[
                        Store(0, &[U64(AT), U32(12), U16(NEXT), U16(1)]),
                        Kick,
                        Store(0, &[U64(1 << 50), U32(u32::MAX), U16(NEXT), U16(0xffff)]),
                    ],
                ),
            ],
            Dropped,
        ),
    ),
];
