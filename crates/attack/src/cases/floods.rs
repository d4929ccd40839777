//! Cases on floods: the costly operations of each family at full speed, during which the neighbours must exchange frames. Counted
//! are their round trips, not their time.

use super::descriptors::FRAME;
use super::guest_memory::{AVF_END, AVF_RING, CONTEXT, DATA, END, PAYLOAD, RING, SEGMENTED, TDT};
use super::remedies::{AVF_BRAKE, CONDUCT, CONNECTIONS, VHOST_APPLY, WINDOWS, WORK};
use super::steps::{BAR0, CONFIG, DMA_MAP, NO_FILE, READ, VIRTIO_RING, WRITE};
use crate::case::Attack::{GuestFlood, SocketFlood};
use crate::case::AttackCase;
use crate::case::row;
use crate::family::AttackedFamily::{Avf, I82576, Virtio};
use crate::field::Field::{At, Bytes, Fill, OwnMac, Repeat as Fields, U16, U32, U64, Vsi};
use crate::guest::GuestStart::{Driver, Known, Reset};
use crate::guest::GuestStep::{Check, Mail, Message, Repeat, Send, Settle, Store, Write};
use crate::guest::PLAIN;
use crate::guest::PfAnswer::{NotAwaited, Reply};
use crate::socket::AttachedFile::{Eventfd, Memory};
use crate::socket::ExpectedAnswer::{Accepted, Reply as AnyReply};
use crate::socket::SocketStep::{
    Bytes as Raw, Expect, Greet, Kick, Message as Request, Repeat as Again, Store as Put,
};
use avf::register::QTX_TAIL;
use i82576::bits::v2p;
use i82576::mailbox::{INFO_SHIFT, id};
use i82576::register::vf::{CTRL, V2PMAILBOX, VTEIMS};

/// Row of a guest's flood.
macro_rules! guest {
    ($name:literal, $family:expr, $rule:literal, $remedy:expr, $start:expr, $steps:expr $(,)?) => {
        row($name, $family, $rule, $remedy, GuestFlood($start, $steps))
    };
}

/// Row of a flood of a VMM's messages.
macro_rules! vmm {
    ($name:literal, $family:expr, $rule:literal, $remedy:expr, $steps:expr $(,)?) => {
        row($name, $family, $rule, $remedy, SocketFlood($steps))
    };
}

pub(super) const CASES: &[AttackCase] = &[
    guest!(
        "flood-of-mailbox-doorbells",
        I82576,
        "Doorbells of the mailbox at full speed do not stop the neighbours",
        CONDUCT,
        Reset,
        &[Repeat(100, &[Write(V2PMAILBOX, v2p::REQ)]), Settle]
    ),
    guest!(
        "flood-of-vlan-requests",
        I82576,
        "Requests for VLANs at full speed do not stop the neighbours",
        CONDUCT,
        Known,
        &[Repeat(20, &[Mail(&[id::SET_VLAN | 1 << INFO_SHIFT, 5], NotAwaited)]), Settle]
    ),
    guest!(
        "flood-of-register-reads",
        I82576,
        "Register reads at full speed do not stop the neighbours",
        WORK,
        Reset,
        &[Repeat(100, &[Check(CTRL + 0x0c00, 0, 0)])]
    ),
    guest!(
        "flood-of-interrupt-masks",
        I82576,
        "Interrupt masks at full speed do not stop the neighbours",
        WORK,
        Driver,
        &[Repeat(200, &[Write(VTEIMS, 7)]), Settle]
    ),
    guest!(
        "flood-of-contexts",
        I82576,
        "Context descriptors at full speed do not stop the neighbours",
        WORK,
        Driver,
        &[
            RING,
            Store(0, &[Fields(8, &[U64(0), U64(CONTEXT)])]),
            Repeat(100, &[Write(TDT, 7), Write(TDT, 0)]),
            Settle
        ]
    ),
    guest!(
        "flood-of-malformed-packets",
        I82576,
        "Malformed packets at full speed do not stop the neighbours",
        WORK,
        Driver,
        &[
            RING,
            Store(0, &[Fields(8, &[At(0x8000), U64(DATA | END)])]),
            Repeat(100, &[Write(TDT, 7), Write(TDT, 0)]),
            Settle
        ]
    ),
    guest!(
        "flood-of-dma-faults",
        I82576,
        "DMA faults at full speed do not stop the neighbours",
        WORK,
        Driver,
        &[Repeat(
            10,
            &[RING, Store(0, &[U64(1 << 50), U64(DATA | END | 60 | 60 << PAYLOAD)]), Write(TDT, 1), Settle]
        )]
    ),
    guest!(
        "flood-of-small-segments",
        I82576,
        "Packets of 64 KB in segments of one byte do not stop the neighbours",
        WORK,
        Driver,
        &[
            RING,
            Store(0x8000, FRAME),
            Store(
                0,
                &[
                    U64(20 | 14 << 9),
                    U64(CONTEXT | 1 << 9 | 1 << 11 | 20 << 40 | 1 << 48),
                    At(0x8000),
                    U64(DATA | END | SEGMENTED | 0xffff | 65_000 << PAYLOAD)
                ]
            ),
            Write(TDT, 2),
            Settle
        ]
    ),
    guest!(
        "flood-of-short-frames",
        Avf,
        "Frames of the shortest length at full speed do not stop the neighbours",
        WORK,
        Driver,
        &[Repeat(64, &[Send(&[Fill(2, 6), OwnMac, Bytes(&[0x88, 0xb6]), Fill(0, 46)], PLAIN)])]
    ),
    guest!(
        "flood-of-avf-malformed-packets",
        Avf,
        "Malformed packets of an AVF at full speed do not stop the neighbours",
        WORK,
        Known,
        &[AVF_RING, Store(0, &[Fields(63, &[At(0x8000), U64(AVF_END)])]), Write(QTX_TAIL, 63), Settle]
    ),
    guest!(
        "flood-of-queue-switches",
        Avf,
        "Queues that are enabled and disabled at full speed do not stop the neighbours",
        AVF_BRAKE,
        Known,
        &[
            Message(8, &[Vsi, U16(0), U32(1), U32(1)], Reply),
            Message(9, &[Vsi, U16(0), U32(1), U32(1)], Reply)
        ]
    ),
    guest!(
        "flood-of-address-lists",
        Avf,
        "Lists of addresses at full speed do not stop the neighbours",
        AVF_BRAKE,
        Known,
        &[Message(10, &[Vsi, U16(400), Fields(400, &[Bytes(&[2, 0, 0, 9, 9, 9]), U16(0)])], Reply)]
    ),
    guest!(
        "flood-of-unknown-requests",
        Avf,
        "Unknown requests at full speed do not stop the neighbours",
        AVF_BRAKE,
        Known,
        &[Message(9999, &[Fill(0, 4096)], Reply)]
    ),
    vmm!(
        "flood-of-large-reads",
        I82576,
        "Reads of all of BAR0 at full speed do not stop the neighbours",
        WORK,
        &[
            Greet,
            Again(20, &[Request(READ, 0, &[U64(0), U32(BAR0), U32(0x4000)], NO_FILE), Expect(Accepted)])
        ]
    ),
    vmm!(
        "flood-of-configuration-writes",
        I82576,
        "Writes of configuration space at full speed do not stop the neighbours",
        WORK,
        &[
            Greet,
            Again(
                20,
                &[
                    Request(WRITE, 0, &[U64(0), U32(CONFIG), U32(4096), Fill(0, 4096)], NO_FILE),
                    Expect(Accepted)
                ]
            )
        ]
    ),
    vmm!(
        "flood-of-resets-by-message",
        Avf,
        "Function resets at full speed do not stop the neighbours",
        WORK,
        &[Greet, Again(10, &[Request(13, 0, &[], NO_FILE), Expect(Accepted)])]
    ),
    vmm!(
        "flood-of-windows",
        I82576,
        "Windows that come and go at full speed do not stop the neighbours",
        WINDOWS,
        &[
            Greet,
            Again(
                10,
                &[
                    Request(DMA_MAP, 0, &[U32(32), U32(3), U64(0), U64(0), U64(8192)], &[Memory]),
                    Expect(Accepted),
                    Request(3, 0, &[U32(24), U32(2), U64(0), U64(0)], NO_FILE),
                    Expect(Accepted)
                ]
            )
        ]
    ),
    vmm!(
        "flood-of-vectors",
        I82576,
        "Interrupts that are assigned at full speed do not stop the neighbours",
        WORK,
        &[
            Greet,
            Again(
                10,
                &[Request(8, 0, &[U32(20), U32(0x24), U32(2), U32(0), U32(1)], &[Eventfd]), Expect(Accepted)]
            )
        ]
    ),
    vmm!(
        "flood-of-refused-requests",
        I82576,
        "Requests that are refused at full speed do not stop the neighbours",
        WORK,
        &[Greet, Again(100, &[Request(0xffff, 0, &[], NO_FILE), Expect(AnyReply)])]
    ),
    vmm!(
        "flood-of-connections-within-a-message",
        Avf,
        "Clients that leave within a message at full speed do not stop the neighbours",
        CONNECTIONS,
        &[Greet, Raw(&[U16(1), U16(2), U32(48)], &[Memory])]
    ),
    vmm!(
        "flood-of-memory-tables",
        Virtio,
        "Tables of regions at full speed do not stop the neighbours",
        VHOST_APPLY,
        &[
            Greet,
            Again(
                10,
                &[
                    Request(5, 8, &[U32(1), U32(0), U64(0), U64(1 << 20), U64(0), U64(0)], &[Memory]),
                    Expect(Accepted)
                ]
            )
        ]
    ),
    vmm!(
        "flood-of-kicks",
        Virtio,
        "Kicks at full speed do not stop the neighbours",
        VHOST_APPLY,
        &[VIRTIO_RING, Again(1000, &[Kick])]
    ),
    vmm!(
        "flood-of-chains-in-a-circle",
        Virtio,
        "Chains in a circle at full speed do not stop the neighbours",
        VHOST_APPLY,
        &[
            VIRTIO_RING,
            Put(0, &[U64(0x8000), U32(12), U16(1), U16(0)]),
            Put(0x1000, &[U16(0), U16(8), Fill(0, 16)]),
            Again(100, &[Kick])
        ]
    ),
    vmm!(
        "flood-of-positions",
        Virtio,
        "Rings that are stopped and started at full speed do not stop the neighbours",
        VHOST_APPLY,
        &[
            VIRTIO_RING,
            Again(
                20,
                &[
                    Request(11, 0, &[U32(1), U32(0)], NO_FILE),
                    Expect(AnyReply),
                    Request(12, 8, &[U64(1)], &[Eventfd]),
                    Expect(Accepted)
                ]
            )
        ]
    ),
];
