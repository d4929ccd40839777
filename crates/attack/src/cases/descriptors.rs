//! Cases on transmit descriptors of the 82576 and of Adaptive Virtual Functions. Several are patterns of published flaws of other
//! cards' models: packets of no bytes (CVE-2015-6815, CVE-2021-20257), rings without an end (CVE-2016-8910), lengths that wrap
//! (CVE-2018-17963), descriptors in registers (CVE-2021-20255), checksums of short packets (CVE-2024-3567), headers that are cut
//! off (CVE-2016-6835), rings beyond their memory (CVE-2021-20203).

use super::guest_memory::{
    AVF_END, AVF_LENGTH, AVF_RING, CONTEXT, DATA, END, PAYLOAD, RING, SEGMENTED, TDBAH, TDH, TDLEN, TDT,
};
use super::remedies::{AVF_TRANSMIT, SEGMENTS, TRANSMIT};
use crate::case::Attack::Frames;
use crate::case::AttackCase;
use crate::case::FrameFate::{Delivered, Dropped, Either};
use crate::case::row;
use crate::family::AttackedFamily::{Avf, I82576};
use crate::field::Field::{self, At, Bytes, Fill, NeighbourMac, OwnMac, Repeat as Fields, U64};
use crate::guest::GuestStart::{Driver, Known};
use crate::guest::GuestStep::{Settle, Store, Write};
use avf::register::QTX_TAIL;

/// Frame of 86 bytes.
pub(super) const FRAME: &[Field] =
    &[NeighbourMac, OwnMac, Bytes(&[0x88, 0xb5]), Bytes(b"attack-frame"), Fill(0, 60)];
const LENGTH: u64 = 86;
/// Offset of the frame in the guest's memory, as an address.
const BUFFER: Field = At(0x8000);
/// Context descriptor of an AVF, and its segmentation, length and segment size.
const AVF_CONTEXT: u64 = 1;
const AVF_TSO: u64 = 1 << 4;
const AVF_TSO_LENGTH: u32 = 30;
const AVF_SEGMENT: u32 = 50;

/// Row of descriptors in an 82576's ring of 8, and of what becomes of the frame.
macro_rules! ring {
    ($name:literal, $rule:literal, $remedy:expr, $descriptors:expr, $tail:expr, $fate:expr $(,)?) => {
        row(
            $name,
            I82576,
            $rule,
            $remedy,
            Frames(
                Driver,
                &[RING, Store(0x8000, FRAME), Store(0, $descriptors), Write(TDT, $tail), Settle],
                $fate,
            ),
        )
    };
}

/// Row of descriptors in an AVF's ring of 64, and of what becomes of the frame.
macro_rules! avf {
    ($name:literal, $rule:literal, $descriptors:expr, $tail:expr, $fate:expr $(,)?) => {
        row(
            $name,
            Avf,
            $rule,
            AVF_TRANSMIT,
            Frames(
                Known,
                &[AVF_RING, Store(0x8000, FRAME), Store(0, $descriptors), Write(QTX_TAIL, $tail), Settle],
                $fate,
            ),
        )
    };
}

pub(super) const CASES: &[AttackCase] = &[
    ring!(
        "frame-in-one-descriptor",
        "A frame that breaks no rule arrives: the attack's own road works",
        TRANSMIT,
        &[BUFFER, U64(DATA | END | LENGTH | LENGTH << PAYLOAD)],
        1,
        Delivered
    ),
    ring!(
        "frame-in-two-descriptors",
        "A frame in two buffers is one frame",
        TRANSMIT,
        &[BUFFER, U64(DATA | 20 | LENGTH << PAYLOAD), At(0x8014), U64(DATA | END | 66)],
        2,
        Delivered
    ),
    ring!(
        "frame-of-no-bytes",
        "A packet of no bytes is dropped, and does not loop",
        TRANSMIT,
        &[Fields(7, &[BUFFER, U64(DATA | END)])],
        7,
        Dropped
    ),
    ring!(
        "frame-of-one-byte",
        "A frame shorter than its addresses is dropped",
        TRANSMIT,
        &[BUFFER, U64(DATA | END | 1 | 1 << PAYLOAD)],
        1,
        Dropped
    ),
    ring!(
        "frame-beyond-its-memory",
        "A buffer that ends behind the guest's memory is a DMA fault",
        TRANSMIT,
        &[U64((1 << 32) + (16 << 20) - 32), U64(DATA | END | LENGTH | LENGTH << PAYLOAD)],
        1,
        Dropped
    ),
    ring!(
        "frame-in-the-registers",
        "Registers are no memory: a buffer there is a DMA fault",
        TRANSMIT,
        &[U64(0xfebc_0000), U64(DATA | END | LENGTH | LENGTH << PAYLOAD)],
        1,
        Dropped
    ),
    ring!(
        "frame-of-every-bit",
        "A descriptor of all ones is malformed or a DMA fault",
        TRANSMIT,
        &[Fill(0xff, 112)],
        7,
        Dropped
    ),
    ring!(
        "descriptors-of-a-reserved-type",
        "A descriptor of a reserved type sends nothing",
        TRANSMIT,
        &[BUFFER, U64(1 << 20 | 1 << 29 | END | LENGTH | LENGTH << PAYLOAD)],
        1,
        Dropped
    ),
    ring!(
        "seven-buffers-of-64-kib",
        "A packet of 448 KiB is dropped, and its length does not wrap",
        TRANSMIT,
        &[Fields(6, &[BUFFER, U64(DATA | 0xffff | 0x3_ffff << PAYLOAD)]), BUFFER, U64(DATA | END | 0xffff)],
        7,
        Dropped
    ),
    ring!(
        "payload-longer-than-its-buffers",
        "The buffers' lengths count, and not the length that the packet claims",
        TRANSMIT,
        &[BUFFER, U64(DATA | END | LENGTH | 0x3_ffff << PAYLOAD)],
        1,
        Either
    ),
    ring!(
        "checksum-of-a-short-packet",
        "A checksum behind the end of a packet is not written",
        SEGMENTS,
        &[U64(20 | 14 << 9), U64(CONTEXT | 2 << 11), BUFFER, U64(DATA | END | 20 | 1 << 41 | 20 << PAYLOAD)],
        2,
        Dropped
    ),
    ring!(
        "segments-of-a-header-alone",
        "Segmentation of a packet without a payload makes no segment without end",
        SEGMENTS,
        &[
            U64(20 | 14 << 9),
            U64(CONTEXT | 1 << 9 | 1 << 11 | 20 << 40 | 100 << 48),
            BUFFER,
            U64(DATA | END | SEGMENTED | 54)
        ],
        2,
        Either
    ),
    ring!(
        "segments-with-a-header-cut-off",
        "Headers that end behind the packet are not read there",
        SEGMENTS,
        &[
            U64(20 | 14 << 9),
            U64(CONTEXT | 1 << 9 | 1 << 11 | 20 << 40 | 100 << 48),
            BUFFER,
            U64(DATA | END | SEGMENTED | 30 | 10 << PAYLOAD)
        ],
        2,
        Dropped
    ),
    ring!(
        "segments-without-a-context",
        "Segmentation needs a context: a former one has no effect on others",
        SEGMENTS,
        &[BUFFER, U64(DATA | END | SEGMENTED | LENGTH | LENGTH << PAYLOAD)],
        1,
        Either
    ),
    row(
        "ring-beyond-its-memory",
        I82576,
        "A ring that is longer than the guest's memory is read up to the end of the memory",
        TRANSMIT,
        Frames(Driver, &[RING, Write(TDLEN, 0xf_ff80), Write(TDT, 0xfff0), Settle], Either),
    ),
    row(
        "ring-at-the-end-of-addresses",
        I82576,
        "A ring at the end of the address space does not wrap to address 0",
        TRANSMIT,
        Frames(Driver, &[RING, Write(TDBAH, u32::MAX), Write(TDT, 7), Settle], Dropped),
    ),
    row(
        "head-that-runs-into-its-tail",
        I82576,
        "A head that the guest moves while the ring runs sends no descriptor twice without end",
        TRANSMIT,
        Frames(
            Driver,
            &[
                RING,
                Store(0, &[Fields(8, &[BUFFER, U64(DATA | END)])]),
                Write(TDT, 7),
                Write(TDH, 3),
                Write(TDT, 2),
                Settle,
            ],
            Dropped,
        ),
    ),
    avf!(
        "avf-frame-in-one-descriptor",
        "A frame that breaks no rule arrives: the attack's own road works",
        &[BUFFER, U64(AVF_END | LENGTH << AVF_LENGTH)],
        1,
        Delivered
    ),
    avf!(
        "avf-frame-in-two-descriptors",
        "A frame in two buffers is one frame",
        &[BUFFER, U64(20 << AVF_LENGTH), At(0x8014), U64(AVF_END | 66 << AVF_LENGTH)],
        2,
        Delivered
    ),
    avf!(
        "avf-frame-of-one-byte",
        "A frame shorter than its addresses is malformed",
        &[BUFFER, U64(AVF_END | 1 << AVF_LENGTH)],
        1,
        Dropped
    ),
    avf!(
        "avf-frame-beyond-its-memory",
        "A buffer that ends behind the guest's memory is a DMA fault",
        &[U64((1 << 32) + (16 << 20) - 32), U64(AVF_END | LENGTH << AVF_LENGTH)],
        1,
        Dropped
    ),
    avf!(
        "avf-frame-that-wraps-addresses",
        "A buffer at the end of the address space is not read at address 0",
        &[U64(u64::MAX - 8), U64(AVF_END | LENGTH << AVF_LENGTH)],
        1,
        Dropped
    ),
    avf!(
        "avf-frame-in-the-registers",
        "Registers are no memory: a buffer there is a DMA fault",
        &[U64(0xfebc_0000), U64(AVF_END | LENGTH << AVF_LENGTH)],
        1,
        Dropped
    ),
    avf!(
        "avf-descriptor-of-a-reserved-type",
        "A descriptor of a reserved type sends nothing",
        &[BUFFER, U64(7 | AVF_END | LENGTH << AVF_LENGTH)],
        1,
        Dropped
    ),
    avf!(
        "avf-frame-in-nine-descriptors",
        "A packet of more buffers than the card takes is malformed",
        &[Fields(9, &[BUFFER, U64(10 << AVF_LENGTH)]), BUFFER, U64(AVF_END | 10 << AVF_LENGTH)],
        10,
        Dropped
    ),
    avf!(
        "avf-ring-without-an-end",
        "A ring of buffers without an end sends nothing, and is bounded work",
        &[Fields(63, &[BUFFER, U64(LENGTH << AVF_LENGTH)])],
        63,
        Dropped
    ),
    avf!(
        "avf-contexts-alone",
        "A ring of contexts without a packet is bounded work",
        &[Fields(63, &[U64(0), U64(AVF_CONTEXT)])],
        63,
        Dropped
    ),
    avf!(
        "avf-segments-of-no-bytes",
        "Segmentation into no bytes is malformed, and does not loop",
        &[
            U64(0),
            U64(AVF_CONTEXT | AVF_TSO | 4000 << AVF_TSO_LENGTH),
            BUFFER,
            U64(AVF_END | 4054 << AVF_LENGTH)
        ],
        2,
        Dropped
    ),
    avf!(
        "avf-segments-of-one-byte",
        "A segment size below the card's least is malformed",
        &[
            U64(0),
            U64(AVF_CONTEXT | AVF_TSO | 4000 << AVF_TSO_LENGTH | 1 << AVF_SEGMENT),
            BUFFER,
            U64(AVF_END | 4054 << AVF_LENGTH)
        ],
        2,
        Dropped
    ),
    avf!(
        "avf-segments-beyond-the-packet",
        "The buffers' lengths count, and not the length that a context claims",
        &[
            U64(0),
            U64(AVF_CONTEXT | AVF_TSO | 0x3_ffff << AVF_TSO_LENGTH | 1000 << AVF_SEGMENT),
            BUFFER,
            U64(AVF_END | LENGTH << AVF_LENGTH)
        ],
        2,
        Either
    ),
];
