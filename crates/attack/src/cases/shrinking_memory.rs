//! Cases on memory files that VMMs shrink, grow, or never fill.

use super::remedies::{MAPPING, VHOST_REGIONS};
use super::steps::{CONFIG, DMA_MAP, DOORBELL, MAP, NO_FILE, READ, TRANSMIT, VIRTIO_RING, WRITE};
use crate::case::Attack::Socket;
use crate::case::AttackCase;
use crate::case::row;
use crate::family::AttackedFamily::{I82576, Virtio};
use crate::field::Field::{Fill, U16, U32, U64};
use crate::socket::AttachedFile::SparseMemory;
use crate::socket::ExpectedAnswer::Accepted;
use crate::socket::SocketStep::{Expect, Greet, Kick, Message, Repeat as Again, Store, Truncate};

pub(super) const CASES: &[AttackCase] = &[
    row(
        "window-cut-off-under-a-ring",
        I82576,
        "Memory that shrinks under a ring ends its client, and never the host",
        MAPPING,
        Socket(&[
            Greet,
            MAP,
            TRANSMIT,
            Store(0, &[Fill(0, 128)]),
            Truncate(0),
            Message(WRITE, 0, DOORBELL, NO_FILE),
            Again(3, &[Message(READ, 1 << 4, &[U64(0), U32(CONFIG), U32(4)], NO_FILE)]),
        ]),
    ),
    row(
        "window-cut-off-behind-its-ring",
        I82576,
        "Buffers beyond the end of a file that shrank end their client, and never the host",
        MAPPING,
        Socket(&[
            Greet,
            MAP,
            TRANSMIT,
            Store(0, &[U64(0x8000), U64(3 << 20 | 1 << 29 | 0xb << 24 | 60 | 60 << 46)]),
            Truncate(4096),
            Message(WRITE, 0, DOORBELL, NO_FILE),
        ]),
    ),
    row(
        "window-cut-off-and-grown-again",
        I82576,
        "Memory that shrinks and grows again is other memory: the host may end its client, and stays",
        MAPPING,
        Socket(&[
            Greet,
            MAP,
            TRANSMIT,
            Again(20, &[Truncate(0), Message(WRITE, 0, DOORBELL, NO_FILE), Truncate(1 << 20)]),
        ]),
    ),
    row(
        "region-cut-off-under-a-virtio-ring",
        Virtio,
        "Memory that shrinks under a ring ends its front end, and never the host",
        VHOST_REGIONS,
        Socket(&[VIRTIO_RING, Truncate(0), Kick, Message(11, 0, &[U32(1), U32(0)], NO_FILE)]),
    ),
    row(
        "region-cut-off-behind-a-virtio-ring",
        Virtio,
        "Buffers beyond the end of a file that shrank end their front end, and never the host",
        VHOST_REGIONS,
        Socket(&[
            VIRTIO_RING,
            Store(0, &[U64(0x8000), U32(80), U16(0), U16(0)]),
            Store(0x1000, &[U16(0), U16(1), U16(0)]),
            Truncate(0x4000),
            Kick,
        ]),
    ),
    row(
        "window-of-memory-without-pages",
        I82576,
        "A gigabyte of memory without a page costs the host no memory",
        MAPPING,
        Socket(&[
            Greet,
            Message(DMA_MAP, 0, &[U32(32), U32(3), U64(0), U64(0), U64(1 << 30)], &[SparseMemory]),
            Expect(Accepted),
            TRANSMIT,
            Message(WRITE, 0, DOORBELL, NO_FILE),
        ]),
    ),
    row(
        "memory-that-shrinks-between-kicks",
        Virtio,
        "Memory that shrinks and grows between kicks ends its front end at most",
        VHOST_REGIONS,
        Socket(&[VIRTIO_RING, Again(20, &[Kick, Truncate(0), Kick, Truncate(1 << 20)])]),
    ),
];
