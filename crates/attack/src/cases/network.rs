//! Cases on frames: what a guest may not send, and frames that are malformed.

use super::remedies::{LINK_CONTROL, OFFLOADS, SWITCH, VIRTIO_HEADER};
use crate::case::Attack::{Frames, Packets};
use crate::case::FrameFate::{Delivered, Dropped, Either};
use crate::case::row;
use crate::case::{AttackCase, VirtioPacket};
use crate::family::AttackedFamily::{Avf, I82576, Virtio};
use crate::field::Field::{self, Bytes, Fill, NeighbourMac, OwnMac};
use crate::guest::GuestStart::Driver;
use crate::guest::GuestStep::Send;
use crate::guest::PLAIN;
use driver::vf::TxOffload;
use virtio::net::NetHeader;

/// Mark of an attack's frames, and padding to the shortest frame.
pub(super) const MARKED: Field = Bytes(b"attack-frame");
pub(super) const PAD: Field = Fill(0, 60);
/// Ethernet type of the frames, and of MAC control.
pub(super) const TYPE: Field = Bytes(&[0x88, 0xb5]);
/// Segmentation into 100 bytes.
pub(super) const SEGMENTS: TxOffload =
    TxOffload { ip_checksum: true, l4_checksum: true, tso: Some(100), vlan: None };
/// Checksums without segmentation.
pub(super) const CHECKSUMS: TxOffload =
    TxOffload { ip_checksum: true, l4_checksum: true, tso: None, vlan: None };
/// Header of a packet without offloads, and one that asks for a checksum.
pub(super) const NONE: NetHeader = NetHeader {
    flags: 0,
    gso_type: 0,
    header_length: 0,
    gso_size: 0,
    checksum_start: 0,
    checksum_offset: 0,
    buffers: 0,
};
const CHECKSUM: NetHeader = NetHeader { flags: 1, ..NONE };
/// Plain frame of a virtio guest.
const FRAME: &[Field] = &[NeighbourMac, OwnMac, TYPE, MARKED, PAD];
/// IPv4 header without its length, for TCP.
const IPV4: Field =
    Bytes(&[0x08, 0x00, 0x45, 0, 0xff, 0xff, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
/// TCP header.
const TCP: Field = Bytes(&[0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0]);

pub(super) const CASES: &[AttackCase] = &[
    row(
        "plain-frame",
        I82576,
        "A frame that breaks no rule arrives: the attack's own road works",
        SWITCH,
        Frames(Driver, &[Send(&[NeighbourMac, OwnMac, TYPE, MARKED, PAD], PLAIN)], Delivered),
    ),
    row(
        "plain-avf-frame",
        Avf,
        "A frame that breaks no rule arrives: the attack's own road works",
        SWITCH,
        Frames(Driver, &[Send(&[NeighbourMac, OwnMac, TYPE, MARKED, PAD], PLAIN)], Delivered),
    ),
    row(
        "plain-virtio-packet",
        Virtio,
        "A packet that breaks no rule arrives: the attack's own road works",
        SWITCH,
        Packets(&[VirtioPacket { header: NONE, packet: FRAME }], Delivered),
    ),
    row(
        "neighbours-source-address",
        I82576,
        "A frame with a neighbour's source address does not leave its VF",
        SWITCH,
        Frames(Driver, &[Send(&[NeighbourMac, NeighbourMac, TYPE, MARKED, PAD], PLAIN)], Dropped),
    ),
    row(
        "neighbours-source-address-by-avf",
        Avf,
        "A frame with a neighbour's source address does not leave its VF",
        SWITCH,
        Frames(Driver, &[Send(&[NeighbourMac, NeighbourMac, TYPE, MARKED, PAD], PLAIN)], Dropped),
    ),
    row(
        "neighbours-source-address-by-virtio",
        Virtio,
        "A packet with a neighbour's source address does not leave its VF",
        SWITCH,
        Packets(
            &[VirtioPacket { header: NONE, packet: &[NeighbourMac, NeighbourMac, TYPE, MARKED, PAD] }],
            Dropped,
        ),
    ),
    row(
        "multicast-source-address",
        I82576,
        "A group address is no source address",
        SWITCH,
        Frames(Driver, &[Send(&[NeighbourMac, Fill(0xff, 6), TYPE, MARKED, PAD], PLAIN)], Dropped),
    ),
    row(
        "pause-frame",
        I82576,
        "A guest cannot pause the link of all others",
        LINK_CONTROL,
        Frames(
            Driver,
            &[Send(
                &[Bytes(&[1, 0x80, 0xc2, 0, 0, 1]), OwnMac, Bytes(&[0x88, 8, 0, 1, 0xff, 0xff]), MARKED, PAD],
                PLAIN,
            )],
            Dropped,
        ),
    ),
    row(
        "spanning-tree-frame",
        I82576,
        "Link-local frames of guests are dropped by default",
        SWITCH,
        Frames(
            Driver,
            &[Send(&[Bytes(&[1, 0x80, 0xc2, 0, 0, 0]), OwnMac, Bytes(&[0, 50]), MARKED, PAD], PLAIN)],
            Dropped,
        ),
    ),
    row(
        "ip-packet-longer-than-its-frame",
        I82576,
        "An IP length beyond the frame reads no byte behind it",
        OFFLOADS,
        Frames(Driver, &[Send(&[NeighbourMac, OwnMac, IPV4, TCP, MARKED, PAD], CHECKSUMS)], Either),
    ),
    row(
        "segments-of-an-ip-packet-with-a-wrong-length",
        I82576,
        "Segments get lengths of their own, whatever the packet's header says",
        OFFLOADS,
        Frames(Driver, &[Send(&[NeighbourMac, OwnMac, IPV4, TCP, MARKED, Fill(1, 3000)], SEGMENTS)], Either),
    ),
    row(
        "segments-of-an-avf-packet-with-a-wrong-length",
        Avf,
        "Segments get lengths of their own, whatever the packet's header says",
        OFFLOADS,
        Frames(Driver, &[Send(&[NeighbourMac, OwnMac, IPV4, TCP, MARKED, Fill(1, 3000)], SEGMENTS)], Either),
    ),
    row(
        "virtio-checksum-beyond-the-packet",
        Virtio,
        "A checksum field beyond the packet is a malformed packet, and writes nowhere",
        VIRTIO_HEADER,
        Packets(
            &[VirtioPacket {
                header: NetHeader { checksum_start: 0xffff, checksum_offset: 0xffff, ..CHECKSUM },
                packet: FRAME,
            }],
            Dropped,
        ),
    ),
    row(
        "virtio-checksum-at-the-last-byte",
        Virtio,
        "A checksum field of which one byte is inside the packet is malformed",
        VIRTIO_HEADER,
        Packets(
            &[VirtioPacket {
                header: NetHeader { checksum_start: 14, checksum_offset: 71, ..CHECKSUM },
                packet: FRAME,
            }],
            Dropped,
        ),
    ),
    row(
        "virtio-segments-of-no-bytes",
        Virtio,
        "Segmentation with a segment size of zero is malformed, and does not loop",
        VIRTIO_HEADER,
        Packets(
            &[VirtioPacket {
                header: NetHeader {
                    gso_type: 1,
                    gso_size: 0,
                    checksum_start: 34,
                    checksum_offset: 16,
                    ..CHECKSUM
                },
                packet: &[NeighbourMac, OwnMac, IPV4, TCP, MARKED, PAD],
            }],
            Dropped,
        ),
    ),
    row(
        "virtio-segmentation-of-an-unknown-type",
        Virtio,
        "An unknown type of segmentation is malformed",
        VIRTIO_HEADER,
        Packets(
            &[VirtioPacket {
                header: NetHeader { gso_type: 0x7f, gso_size: 100, ..CHECKSUM },
                packet: FRAME,
            }],
            Dropped,
        ),
    ),
    row(
        "virtio-segmentation-without-a-checksum",
        Virtio,
        "Segmentation without a checksum is malformed (VIRTIO 1.2, 5.1.6.2)",
        VIRTIO_HEADER,
        Packets(
            &[VirtioPacket {
                header: NetHeader { gso_type: 1, gso_size: 100, ..NONE },
                packet: &[NeighbourMac, OwnMac, IPV4, TCP, MARKED, PAD],
            }],
            Dropped,
        ),
    ),
];
