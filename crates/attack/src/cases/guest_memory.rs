//! Cases on a guest's rings and buffers: descriptors, lengths and addresses that no driver writes.

use super::remedies::{AVF_TRANSMIT, RECEIVE, SEGMENTS, TRANSMIT, VHOST_REGIONS, VIRTIO_CARD};
use crate::case::Attack::{Guest, Socket};
use crate::case::AttackCase;
use crate::case::row;
use crate::family::AttackedFamily::{Avf, I82576, Virtio};
use crate::field::Field::{self, At, Fill, Repeat as Fields, U16, U32, U64, Vsi};
use crate::guest::GuestStart::{Driver, Known};
use crate::guest::GuestStep::{self, Message, Repeat, Settle, Store, Write, WriteAddress};
use crate::guest::PfAnswer::Accepted;
use crate::socket::AttachedFile::{EmptyMemory, Eventfd};
use crate::socket::ExpectedAnswer;
use crate::socket::SocketStep::{Expect, Greet, Message as Request};
use avf::register::{QRX_TAIL, QTX_TAIL};
use i82576::bits::dctl::ENABLE;
use i82576::register::vf::{RX_BLOCK, TX_BLOCK};
use i82576::register::{rx, tx};

pub(super) const TDBAL: u32 = TX_BLOCK + tx::TDBAL;
pub(super) const TDBAH: u32 = TX_BLOCK + tx::TDBAH;
pub(super) const TDLEN: u32 = TX_BLOCK + tx::TDLEN;
pub(super) const TDH: u32 = TX_BLOCK + tx::TDH;
pub(super) const TDT: u32 = TX_BLOCK + tx::TDT;
pub(super) const TXDCTL: u32 = TX_BLOCK + tx::TXDCTL;
const RDBAH: u32 = RX_BLOCK + rx::RDBAH;
const RDLEN: u32 = RX_BLOCK + rx::RDLEN;
const RDH: u32 = RX_BLOCK + rx::RDH;
const RDT: u32 = RX_BLOCK + rx::RDT;
const RXDCTL: u32 = RX_BLOCK + rx::RXDCTL;
/// Parts of the second word of an 82576's transmit descriptor: data or context, end of packet, report, segmentation.
pub(super) const DATA: u64 = 3 << 20 | 1 << 29;
pub(super) const CONTEXT: u64 = 2 << 20 | 1 << 29;
pub(super) const END: u64 = 1 << 24 | 1 << 25 | 1 << 27;
pub(super) const SEGMENTED: u64 = 1 << 31;
/// Position of the packet's length in the second word.
pub(super) const PAYLOAD: u32 = 46;
/// Parts of the second word of an AVF's transmit descriptor: end of packet and report, position of the buffer's length.
pub(super) const AVF_END: u64 = 3 << 4;
pub(super) const AVF_LENGTH: u32 = 34;

/// Sets up an 82576's transmit ring of 8 descriptors at offset 0 of the guest's memory.
pub(super) const RING: GuestStep = GuestStep::Steps(&[
    Write(TXDCTL, 0),
    WriteAddress(TDBAL, TDBAH, 0),
    Write(TDLEN, 128),
    Write(TDH, 0),
    Write(TDT, 0),
    Write(TXDCTL, ENABLE),
]);

/// Body of the message that sets up an AVF's queue pair: a transmit ring of 8 descriptors at offset 0, a receive ring of 32
/// at 0x1000.
const PAIR: &[Field] = &[
    Vsi,
    U16(1),
    U32(0),
    Vsi,
    U16(0),
    U16(64),
    U16(0),
    At(0),
    U64(0),
    Vsi,
    U16(0),
    U32(64),
    U16(0),
    U16(0),
    U32(2048),
    U32(1522),
    U32(0),
    At(0x1000),
    U64(0),
];

/// Sets up and enables an AVF's queue pair.
pub(super) const AVF_RING: GuestStep =
    GuestStep::Steps(&[Message(6, PAIR, Accepted), Message(8, &[Vsi, U16(0), U32(1), U32(1)], Accepted)]);

pub(super) const CASES: &[AttackCase] = &[
    row(
        "transmit-buffer-outside-memory",
        I82576,
        "A frame in memory that the client has not shared is a DMA fault, and stops the ring",
        TRANSMIT,
        Guest(
            Driver,
            &[RING, Store(0, &[U64(0xdead_0000_0000), U64(DATA | END | 60 | 60 << PAYLOAD)]), Write(TDT, 1)],
        ),
    ),
    row(
        "transmit-buffer-at-the-end-of-addresses",
        I82576,
        "A buffer that wraps the address space is a DMA fault, and not read at address 0",
        TRANSMIT,
        Guest(
            Driver,
            &[RING, Store(0, &[U64(u64::MAX - 8), U64(DATA | END | 60 | 60 << PAYLOAD)]), Write(TDT, 1)],
        ),
    ),
    row(
        "transmit-tail-beyond-the-ring",
        I82576,
        "A tail beyond the ring sends nothing: it is not taken modulo the length",
        TRANSMIT,
        Guest(Driver, &[RING, Write(TDT, 8), Settle, Write(TDT, 0xffff), Settle]),
    ),
    row(
        "transmit-head-beyond-the-ring",
        I82576,
        "A head beyond the ring sends nothing",
        TRANSMIT,
        Guest(Driver, &[RING, Write(TXDCTL, 0), Write(TDH, 0xffff), Write(TXDCTL, ENABLE), Write(TDT, 3)]),
    ),
    row(
        "transmit-ring-of-no-bytes",
        I82576,
        "A ring of no bytes has no descriptor to read",
        TRANSMIT,
        Guest(Driver, &[RING, Write(TDLEN, 0), Write(TDT, 1)]),
    ),
    row(
        "transmit-ring-shrunk-below-its-head",
        I82576,
        "A ring that shrinks while it runs is not read beyond its new length",
        TRANSMIT,
        Guest(Driver, &[RING, Write(TDH, 7), Write(TDT, 7), Write(TDLEN, 0x80 / 2), Write(TDT, 1)]),
    ),
    row(
        "transmit-ring-outside-memory",
        I82576,
        "Descriptors in memory that the client has not shared are a DMA fault, and stop the ring",
        TRANSMIT,
        Guest(Driver, &[RING, Write(TDBAH, 0x1234), Write(TDT, 4)]),
    ),
    row(
        "packet-without-an-end",
        I82576,
        "A ring full of buffers of one packet without its end is bounded, and sends nothing",
        TRANSMIT,
        Guest(
            Driver,
            &[
                RING,
                Store(0, &[Fields(8, &[At(0x2000), U64(DATA | 1024 | 8192 << PAYLOAD)])]),
                Repeat(20, &[Write(TDT, 7), Settle, Write(TDT, 0), Settle]),
            ],
        ),
    ),
    row(
        "segments-of-no-bytes",
        I82576,
        "Segmentation with a segment size of zero is refused, and does not loop",
        SEGMENTS,
        Guest(
            Driver,
            &[
                RING,
                Store(
                    0,
                    &[
                        U64(20 | 14 << 9),
                        U64(CONTEXT | 1 << 9 | 1 << 11),
                        At(0x2000),
                        U64(DATA | END | SEGMENTED | 4096 | 4000 << PAYLOAD),
                    ],
                ),
                Write(TDT, 2),
            ],
        ),
    ),
    row(
        "segments-of-one-byte",
        I82576,
        "A packet of 64 KB in segments of one byte takes a bounded time of each poll",
        SEGMENTS,
        Guest(
            Driver,
            &[
                RING,
                Store(
                    0,
                    &[
                        U64(20 | 14 << 9),
                        U64(CONTEXT | 1 << 9 | 1 << 11 | 20 << 40 | 1 << 48),
                        At(0x2000),
                        U64(DATA | END | SEGMENTED | 0xffff | 65_000 << PAYLOAD),
                    ],
                ),
                Write(TDT, 2),
            ],
        ),
    ),
    row(
        "headers-longer-than-the-packet",
        I82576,
        "Headers that a context places beyond the packet read no byte behind it",
        SEGMENTS,
        Guest(
            Driver,
            &[
                RING,
                Store(
                    0,
                    &[
                        U64(511 | 127 << 9),
                        U64(CONTEXT | 1 << 9 | 1 << 11 | 255 << 40 | 1460 << 48),
                        At(0x2000),
                        U64(DATA | END | SEGMENTED | 64 | 10 << PAYLOAD),
                    ],
                ),
                Write(TDT, 2),
            ],
        ),
    ),
    row(
        "contexts-without-a-packet",
        I82576,
        "A ring of context descriptors only is bounded work for each poll",
        TRANSMIT,
        Guest(
            Driver,
            &[
                RING,
                Store(0, &[Fields(8, &[U64(0), U64(CONTEXT)])]),
                Repeat(50, &[Write(TDT, 7), Write(TDT, 0)]),
            ],
        ),
    ),
    row(
        "receive-buffers-outside-memory",
        I82576,
        "A frame for a buffer outside the client's memory is a DMA fault of that guest only",
        RECEIVE,
        Guest(
            Driver,
            &[Write(RXDCTL, 0), Write(RDBAH, 0x1234), Write(RDH, 0), Write(RXDCTL, ENABLE), Write(RDT, 100)],
        ),
    ),
    row(
        "receive-ring-of-one-block",
        I82576,
        "A receive tail beyond a ring of 8 descriptors posts no buffer",
        RECEIVE,
        Guest(
            Driver,
            &[
                Write(RXDCTL, 0),
                Write(RDLEN, 128),
                Write(RDH, 0),
                Write(RXDCTL, ENABLE),
                Write(RDT, 200),
                Settle,
            ],
        ),
    ),
    row(
        "transmit-ring-over-its-own-buffers",
        I82576,
        "A descriptor whose buffer is the ring is read once: what the write-back changes is not read again",
        TRANSMIT,
        Guest(
            Driver,
            &[RING, Store(0, &[Fields(8, &[At(0), U64(DATA | END | 128 | 128 << PAYLOAD)])]), Write(TDT, 7)],
        ),
    ),
    row(
        "avf-buffer-outside-memory",
        Avf,
        "A frame in memory that the client has not shared is a DMA fault",
        AVF_TRANSMIT,
        Guest(
            Known,
            &[
                AVF_RING,
                Store(0, &[U64(0xdead_0000_0000), U64(AVF_END | 60 << AVF_LENGTH)]),
                Write(QTX_TAIL, 1),
            ],
        ),
    ),
    row(
        "avf-tail-beyond-the-ring",
        Avf,
        "A tail beyond the ring sends nothing",
        AVF_TRANSMIT,
        Guest(
            Known,
            &[
                AVF_RING,
                Write(QTX_TAIL, 64),
                Settle,
                Write(QTX_TAIL, u32::MAX),
                Settle,
                Write(QRX_TAIL, u32::MAX),
            ],
        ),
    ),
    row(
        "avf-buffer-of-no-bytes",
        Avf,
        "A buffer of no bytes is a malformed packet, and does not loop",
        AVF_TRANSMIT,
        Guest(Known, &[AVF_RING, Store(0, &[Fields(63, &[At(0x2000), U64(AVF_END)])]), Write(QTX_TAIL, 63)]),
    ),
    row(
        "avf-descriptors-of-every-bit",
        Avf,
        "Descriptors with all bits set are malformed, and stop at the ring's tail",
        AVF_TRANSMIT,
        Guest(Known, &[AVF_RING, Store(0, &[Fill(0xff, 63 * 16)]), Write(QTX_TAIL, 63)]),
    ),
    row(
        "avf-tails-of-queues-without-a-ring",
        Avf,
        "The tail of a queue that has no ring moves nothing",
        AVF_TRANSMIT,
        Guest(Known, &[Write(QTX_TAIL + 4 * 15, 7), Write(QRX_TAIL + 4 * 15, 7), Write(QTX_TAIL, 7)]),
    ),
    row(
        "virtio-memory-of-no-bytes",
        Virtio,
        "A region beyond the end of its file is refused: an access would end the host",
        VHOST_REGIONS,
        Socket(&[
            Greet,
            Request(5, 8, &[U32(1), U32(0), U64(0), U64(1 << 20), U64(1 << 32), U64(0)], &[EmptyMemory]),
            Expect(ExpectedAnswer::Refused),
        ]),
    ),
    row(
        "virtio-kick-without-a-ring",
        Virtio,
        "A kick of a ring that has no addresses moves nothing",
        VIRTIO_CARD,
        Socket(&[Greet, Request(12, 8, &[U64(1)], &[Eventfd]), Expect(ExpectedAnswer::Accepted)]),
    ),
];
