//! Cases on regions of the vfio-user protocol: ranges that no VMM reads or writes. After each the
//! stream is in step: a plain read is answered.

use super::remedies::{CONFIG_SPACE, REGION};
use super::steps::{BAR0, CONFIG, NO_FILE, READ, WRITE};
use crate::case::AttackCase;
use crate::family::AttackedFamily::{Avf, I82576};
use crate::field::Field::{Fill, Repeat as Fields, U8, U32, U64};
use crate::socket::ExpectedAnswer::{Accepted, Refused, Reply};

const WRITE_MULTI: u32 = 15;
/// Region of the MSI-X tables.
const BAR3: u32 = 3;

/// Row of a request, its answer, and a plain read after it.
macro_rules! request {
    ($name:literal, $family:expr, $rule:literal, $remedy:expr, $code:expr, $body:expr, $files:expr, $answer:expr $(,)?) => {
        $crate::case::row(
            $name,
            $family,
            $rule,
            $remedy,
            $crate::case::Attack::Socket(&[
                $crate::socket::SocketStep::Greet,
                $crate::socket::SocketStep::Message($code, 0, $body, $files),
                $crate::socket::SocketStep::Expect($answer),
                $crate::socket::SocketStep::Message(
                    $crate::cases::steps::READ,
                    0,
                    $crate::cases::steps::PLAIN_READ,
                    $crate::cases::steps::NO_FILE,
                ),
                $crate::socket::SocketStep::Expect($crate::socket::ExpectedAnswer::Accepted),
            ]),
        )
    };
}
pub(super) use request;

pub(super) const CASES: &[AttackCase] = &[
    request!(
        "read-of-no-bytes",
        I82576,
        "A read of no bytes is answered without data",
        REGION,
        READ,
        &[U64(0), U32(BAR0), U32(0)],
        NO_FILE,
        Accepted
    ),
    request!(
        "read-across-the-end-of-bar0",
        I82576,
        "A read that only begins in a region reads ones whole",
        REGION,
        READ,
        &[U64(0x3ffc), U32(BAR0), U32(8)],
        NO_FILE,
        Accepted
    ),
    request!(
        "read-of-three-bytes",
        I82576,
        "A read of three bytes within a register is answered",
        REGION,
        READ,
        &[U64(1), U32(BAR0), U32(3)],
        NO_FILE,
        Accepted
    ),
    request!(
        "read-of-all-of-bar0",
        Avf,
        "A read of a whole region takes turns, and is answered",
        REGION,
        READ,
        &[U64(0), U32(BAR0), U32(0x1_0000)],
        NO_FILE,
        Accepted
    ),
    request!(
        "read-of-the-rom",
        I82576,
        "A region without memory reads ones",
        REGION,
        READ,
        &[U64(0), U32(6), U32(4096)],
        NO_FILE,
        Accepted
    ),
    request!(
        "read-of-vga",
        I82576,
        "A region that the function lacks reads ones",
        REGION,
        READ,
        &[U64(0), U32(8), U32(4096)],
        NO_FILE,
        Accepted
    ),
    request!(
        "read-behind-the-vectors",
        I82576,
        "Addresses behind the MSI-X tables read ones",
        REGION,
        READ,
        &[U64(0xffff_0000), U32(BAR3), U32(8)],
        NO_FILE,
        Accepted
    ),
    request!(
        "read-with-half-a-body",
        I82576,
        "A read without its count is refused",
        REGION,
        READ,
        &[U64(0), U32(CONFIG)],
        NO_FILE,
        Refused
    ),
    request!(
        "write-of-no-bytes",
        I82576,
        "A write of no bytes changes nothing",
        REGION,
        WRITE,
        &[U64(0), U32(BAR0), U32(0)],
        NO_FILE,
        Accepted
    ),
    request!(
        "write-of-one-byte-to-a-register",
        I82576,
        "A write of a part of a register is no write of the rest",
        REGION,
        WRITE,
        &[U64(3), U32(BAR0), U32(1), U8(0xff)],
        NO_FILE,
        Accepted
    ),
    request!(
        "write-across-the-end-of-bar0",
        I82576,
        "A write that only begins in a region is left out whole",
        REGION,
        WRITE,
        &[U64(0x3ffc), U32(BAR0), U32(8), U64(u64::MAX)],
        NO_FILE,
        Accepted
    ),
    request!(
        "write-that-wraps-the-address-space",
        I82576,
        "A write at the end of the address space does not wrap to offset 0",
        REGION,
        WRITE,
        &[U64(u64::MAX - 3), U32(CONFIG), U32(8), U64(0)],
        NO_FILE,
        Accepted
    ),
    request!(
        "write-to-an-unknown-region",
        I82576,
        "A write to a region that does not exist is ignored",
        REGION,
        WRITE,
        &[U64(0), U32(u32::MAX), U32(4), U32(1)],
        NO_FILE,
        Accepted
    ),
    request!(
        "write-with-half-a-body",
        I82576,
        "A write without its count is refused",
        REGION,
        WRITE,
        &[U64(0)],
        NO_FILE,
        Refused
    ),
    request!(
        "write-of-all-of-bar0",
        I82576,
        "A write over all registers breaks no other function",
        REGION,
        WRITE,
        &[U64(0), U32(BAR0), U32(0x4000), Fill(0xff, 0x4000)],
        NO_FILE,
        Accepted
    ),
    request!(
        "write-of-all-of-an-avf",
        Avf,
        "A write over all registers breaks no other function",
        REGION,
        WRITE,
        &[U64(0), U32(BAR0), U32(0x1_0000), Fill(0xff, 0x1_0000)],
        NO_FILE,
        Accepted
    ),
    request!(
        "write-of-all-vectors",
        I82576,
        "A write over the MSI-X tables breaks no interrupt of others",
        REGION,
        WRITE,
        &[U64(0), U32(BAR3), U32(0x4000), Fill(0xff, 0x4000)],
        NO_FILE,
        Accepted
    ),
    request!(
        "write-multi-of-no-writes",
        I82576,
        "A list of no writes is answered",
        REGION,
        WRITE_MULTI,
        &[U64(0)],
        NO_FILE,
        Accepted
    ),
    request!(
        "write-multi-without-a-count",
        I82576,
        "A list without its count is refused",
        REGION,
        WRITE_MULTI,
        &[U32(0)],
        NO_FILE,
        Refused
    ),
    request!(
        "write-multi-outside-of-regions",
        I82576,
        "Writes outside of regions are left out, one by one",
        REGION,
        WRITE_MULTI,
        &[U64(100), Fields(100, &[U64(u64::MAX), U32(99), U32(8), U64(0)])],
        NO_FILE,
        Accepted
    ),
    request!(
        "write-multi-counts-less-than-it-has",
        I82576,
        "Writes beyond the count are not carried out",
        REGION,
        WRITE_MULTI,
        &[U64(1), Fields(2, &[U64(0), U32(CONFIG), U32(4), U64(0)])],
        NO_FILE,
        Reply
    ),
    request!(
        "bars-of-every-bit",
        I82576,
        "A base address of all ones reads its size, and maps nothing",
        CONFIG_SPACE,
        WRITE,
        &[U64(0x10), U32(CONFIG), U32(24), Fill(0xff, 24)],
        NO_FILE,
        Accepted
    ),
    request!(
        "command-of-every-bit",
        I82576,
        "Command bits that a VF lacks stay clear",
        CONFIG_SPACE,
        WRITE,
        &[U64(4), U32(CONFIG), U32(4), U32(u32::MAX)],
        NO_FILE,
        Accepted
    ),
    request!(
        "rom-of-every-bit",
        I82576,
        "A VF has no ROM to enable",
        CONFIG_SPACE,
        WRITE,
        &[U64(0x30), U32(CONFIG), U32(4), U32(u32::MAX)],
        NO_FILE,
        Accepted
    ),
    request!(
        "capabilities-of-every-bit",
        Avf,
        "Capabilities keep their read-only fields",
        CONFIG_SPACE,
        WRITE,
        &[U64(0x40), U32(CONFIG), U32(0xc0), Fill(0xff, 0xc0)],
        NO_FILE,
        Accepted
    ),
    request!(
        "extended-capabilities-of-every-bit",
        I82576,
        "Extended capabilities keep their links",
        CONFIG_SPACE,
        WRITE,
        &[U64(0x100), U32(CONFIG), U32(0xf00), Fill(0xff, 0xf00)],
        NO_FILE,
        Accepted
    ),
];
