//! Cases on windows, interrupts and questions of the vfio-user protocol: ranges and flags that no VMM sends. After each the
//! stream is in step: a plain read is answered.

use super::regions::request;
use super::remedies::{FRAMING, INFORMATION, INTERRUPTS, REQUEST, VERSION_TEXT, WINDOWS};
use super::steps::{CONFIG, DMA_MAP, NO_FILE, READ};
use crate::case::Attack::Socket;
use crate::case::AttackCase;
use crate::case::row;
use crate::family::AttackedFamily::I82576;
use crate::field::Field::{Bytes, U8, U16, U32, U64};
use crate::socket::AttachedFile::{Eventfd, Memory};
use crate::socket::ExpectedAnswer::{Accepted, Refused, Reply};
use crate::socket::SocketStep::{Bytes as Raw, Expect, Greet, Message, Repeat as Again};

const DMA_UNMAP: u32 = 3;
const GET_INFO: u32 = 4;
const GET_REGION_INFO: u32 = 5;
const GET_IRQ_INFO: u32 = 7;
const SET_IRQS: u32 = 8;

/// Row of a VERSION request and its answer.
macro_rules! version {
    ($name:literal, $rule:literal, $text:literal, $answer:expr $(,)?) => {
        row(
            $name,
            I82576,
            $rule,
            VERSION_TEXT,
            Socket(&[Message(1, 0, &[U16(0), U16(1), Bytes($text)], NO_FILE), Expect($answer)]),
        )
    };
}

pub(super) const CASES: &[AttackCase] = &[
    request!(
        "device-information-cut-off",
        I82576,
        "A question without its fields is refused",
        INFORMATION,
        GET_INFO,
        &[U32(16), U32(0)],
        NO_FILE,
        Refused
    ),
    request!(
        "region-information-without-room",
        I82576,
        "A buffer of no bytes has no room for a region",
        INFORMATION,
        GET_REGION_INFO,
        &[U32(0), U32(0), U32(0), U32(0), U64(0), U64(0)],
        NO_FILE,
        Refused
    ),
    request!(
        "region-information-with-much-room",
        I82576,
        "A buffer of 4 GiB is not filled",
        INFORMATION,
        GET_REGION_INFO,
        &[U32(u32::MAX), U32(0), U32(0), U32(0), U64(0), U64(0)],
        NO_FILE,
        Accepted
    ),
    request!(
        "interrupt-information-cut-off",
        I82576,
        "A question without its fields is refused",
        INFORMATION,
        GET_IRQ_INFO,
        &[U32(16)],
        NO_FILE,
        Refused
    ),
    request!(
        "command-zero",
        I82576,
        "A command that does not exist is refused",
        REQUEST,
        0,
        &[],
        NO_FILE,
        Refused
    ),
    request!(
        "dirty-pages",
        I82576,
        "Logs of dirty pages are refused",
        REQUEST,
        14,
        &[U32(16), U32(1), U64(4096)],
        NO_FILE,
        Refused
    ),
    request!(
        "device-feature",
        I82576,
        "A migration feature is refused",
        REQUEST,
        16,
        &[U32(8), U32(0)],
        NO_FILE,
        Refused
    ),
    request!(
        "migration-data-written",
        I82576,
        "Migration data are refused",
        REQUEST,
        18,
        &[U32(16), U32(4), U64(0)],
        NO_FILE,
        Refused
    ),
    request!(
        "dma-write-by-the-client",
        I82576,
        "A client cannot send the server's DMA writes",
        REQUEST,
        12,
        &[U64(0), U64(8), U64(0)],
        NO_FILE,
        Refused
    ),
    request!(
        "reset-with-files",
        I82576,
        "Descriptors of a request that takes none are closed",
        REQUEST,
        13,
        &[],
        &[Eventfd; 16],
        Accepted
    ),
    request!(
        "window-at-the-last-page",
        I82576,
        "The last page of the address space is refused, since its end has no address",
        WINDOWS,
        DMA_MAP,
        &[U32(32), U32(3), U64(0), U64(u64::MAX - 4095), U64(4096)],
        &[Memory],
        Refused
    ),
    request!(
        "window-at-an-odd-address",
        I82576,
        "A window of parts of pages is refused",
        WINDOWS,
        DMA_MAP,
        &[U32(32), U32(3), U64(0), U64(512), U64(4096)],
        &[Memory],
        Refused
    ),
    request!(
        "window-of-an-odd-length",
        I82576,
        "A window of parts of pages is refused",
        WINDOWS,
        DMA_MAP,
        &[U32(32), U32(3), U64(0), U64(0), U64(4097)],
        &[Memory],
        Refused
    ),
    request!(
        "window-at-an-odd-offset",
        I82576,
        "A window that begins within a page of its file is refused",
        WINDOWS,
        DMA_MAP,
        &[U32(32), U32(3), U64(1), U64(0), U64(4096)],
        &[Memory],
        Refused
    ),
    request!(
        "window-behind-its-file",
        I82576,
        "A window behind the end of its file is refused",
        WINDOWS,
        DMA_MAP,
        &[U32(32), U32(3), U64(1 << 40), U64(0), U64(4096)],
        &[Memory],
        Refused
    ),
    request!(
        "window-at-a-negative-offset",
        I82576,
        "An offset beyond a file's greatest is refused, and not negative",
        WINDOWS,
        DMA_MAP,
        &[U32(32), U32(3), U64(1 << 63), U64(0), U64(4096)],
        &[Memory],
        Refused
    ),
    request!(
        "window-of-unknown-permissions",
        I82576,
        "A permission that does not exist is refused",
        WINDOWS,
        DMA_MAP,
        &[U32(32), U32(0xff), U64(0), U64(0), U64(4096)],
        &[Memory],
        Refused
    ),
    request!(
        "window-of-two-files",
        I82576,
        "A window has one file: two are refused and closed",
        WINDOWS,
        DMA_MAP,
        &[U32(32), U32(3), U64(0), U64(0), U64(4096)],
        &[Memory, Memory],
        Refused
    ),
    request!(
        "window-in-a-small-buffer",
        I82576,
        "A request that claims fewer bytes than it has fields is refused",
        WINDOWS,
        DMA_MAP,
        &[U32(8), U32(3), U64(0), U64(0), U64(4096)],
        &[Memory],
        Refused
    ),
    request!(
        "unmap-of-nothing",
        I82576,
        "A range without windows is unmapped with success, as by Linux's VFIO",
        WINDOWS,
        DMA_UNMAP,
        &[U32(24), U32(0), U64(0), U64(4096)],
        NO_FILE,
        Accepted
    ),
    request!(
        "unmap-all-of-a-range",
        I82576,
        "All windows have no range",
        WINDOWS,
        DMA_UNMAP,
        &[U32(24), U32(2), U64(4096), U64(4096)],
        NO_FILE,
        Refused
    ),
    request!(
        "unmap-by-unknown-flags",
        I82576,
        "An unknown way to unmap is refused",
        WINDOWS,
        DMA_UNMAP,
        &[U32(24), U32(0x80), U64(0), U64(4096)],
        NO_FILE,
        Refused
    ),
    request!(
        "unmap-that-wraps",
        I82576,
        "A range that wraps the address space is refused",
        WINDOWS,
        DMA_UNMAP,
        &[U32(24), U32(0), U64(u64::MAX - 4095), U64(8192)],
        NO_FILE,
        Refused
    ),
    request!(
        "vectors-that-wrap",
        I82576,
        "A range of vectors that wraps is refused",
        INTERRUPTS,
        SET_IRQS,
        &[U32(20), U32(0x24), U32(2), U32(u32::MAX), U32(1)],
        &[Eventfd],
        Refused
    ),
    request!(
        "vectors-of-two-kinds-of-data",
        I82576,
        "Interrupt data have one kind",
        INTERRUPTS,
        SET_IRQS,
        &[U32(20), U32(0x27), U32(2), U32(0), U32(1)],
        &[Eventfd],
        Refused
    ),
    request!(
        "vectors-without-an-action",
        I82576,
        "A request without an action is refused",
        INTERRUPTS,
        SET_IRQS,
        &[U32(20), U32(4), U32(2), U32(0), U32(1)],
        &[Eventfd],
        Refused
    ),
    request!(
        "vectors-with-missing-bytes",
        I82576,
        "Interrupts chosen by bytes need a byte each",
        INTERRUPTS,
        SET_IRQS,
        &[U32(20), U32(0x22), U32(2), U32(0), U32(2), U8(1)],
        NO_FILE,
        Refused
    ),
    request!(
        "vectors-masked-by-eventfds",
        I82576,
        "Vectors that cannot be masked by a message are not",
        INTERRUPTS,
        SET_IRQS,
        &[U32(20), U32(0x0c), U32(2), U32(0), U32(1)],
        &[Eventfd],
        Refused
    ),
    request!(
        "vectors-cut-off",
        I82576,
        "A request without its fields is refused",
        INTERRUPTS,
        SET_IRQS,
        &[U32(20), U32(0x24)],
        &[Eventfd],
        Refused
    ),
    version!(
        "version-without-an-end",
        "A text without its final zero is refused or read to its end",
        b"{}",
        Reply
    ),
    version!("version-of-an-array", "Capabilities that are no object are refused", b"[]\0", Reply),
    version!(
        "version-of-no-descriptors",
        "A client that takes no descriptor is served without",
        b"{\"capabilities\":{\"max_msg_fds\":0}}\0",
        Accepted
    ),
    version!("version-of-two-texts", "Bytes behind the text are refused or ignored", b"{}\0{}\0", Reply),
    version!(
        "version-with-a-key-twice",
        "A capability that is given twice is refused or has one value",
        b"{\"capabilities\":{\"pgsizes\":1,\"pgsizes\":2}}\0",
        Reply
    ),
    row(
        "two-messages-in-a-byte-each",
        I82576,
        "A message that arrives in pieces is one message",
        FRAMING,
        Socket(&[
            Greet,
            Raw(&[U16(1)], NO_FILE),
            Raw(&[U16(9), U16(32)], NO_FILE),
            Raw(&[U16(0), U32(0), U32(0), U64(0)], NO_FILE),
            Raw(&[U32(CONFIG), U8(4), U8(0), U8(0)], NO_FILE),
            Raw(&[U8(0)], NO_FILE),
            Expect(Accepted),
        ]),
    ),
    row(
        "two-hundred-windows-come-and-go",
        I82576,
        "A window that is unmapped leaves no mapping and no descriptor",
        WINDOWS,
        Socket(&[
            Greet,
            Again(
                200,
                &[
                    Message(DMA_MAP, 0, &[U32(32), U32(3), U64(0), U64(0), U64(8192)], &[Memory]),
                    Expect(Accepted),
                    Message(DMA_UNMAP, 0, &[U32(24), U32(0), U64(0), U64(8192)], NO_FILE),
                    Expect(Accepted),
                ],
            ),
        ]),
    ),
    row(
        "message-of-an-unknown-kind",
        I82576,
        "A message that is neither a command nor a reply is refused",
        REQUEST,
        Socket(&[Greet, Message(READ, 2, &[U64(0), U32(CONFIG), U32(4)], NO_FILE), Expect(Refused)]),
    ),
];
