//! Cases on the vfio-user protocol: messages that no VMM sends.

use super::remedies::{
    CONFIG_SPACE, CONNECTIONS, DEVICE, FRAMING, INFORMATION, MESSAGE_FILES, REGION, REQUEST, VERSION_TEXT,
    VFIO_CLIENT,
};
use crate::case::Attack::Socket;
use crate::case::AttackCase;
use crate::case::row;
use crate::family::AttackedFamily::{Avf, I82576};
use crate::field::Field::{self, Bytes, Fill, Repeat as Fields, U8, U16, U32, U64};
use crate::socket::AttachedFile::{self, Eventfd, Memory};
use crate::socket::ExpectedAnswer::{Accepted, End, Refused, Reply};
use crate::socket::SocketStep::{Bytes as Raw, EndSending, Expect, Greet, Message, Reconnect, Repeat};

const VERSION: u32 = 1;
const DMA_MAP: u32 = 2;
const GET_INFO: u32 = 4;
const GET_REGION_INFO: u32 = 5;
const GET_REGION_IO_FDS: u32 = 6;
const GET_IRQ_INFO: u32 = 7;
const READ: u32 = 9;
const WRITE: u32 = 10;
const DMA_READ: u32 = 11;
const RESET: u32 = 13;
const WRITE_MULTI: u32 = 15;
const MIG_DATA_READ: u32 = 17;
/// Flags of a message's header: a reply, no reply wanted, an error.
const IS_REPLY: u32 = 1;
const NO_REPLY: u32 = 1 << 4;
const IS_ERROR: u32 = 1 << 5;
/// Numbers of regions.
const BAR0: u32 = 0;
const CONFIG: u32 = 7;
/// Both permissions of a DMA window.
const READ_WRITE: u32 = 3;
const NO_FILE: &[AttachedFile] = &[];

/// Read of 4 bytes of configuration space, which each client may do.
const PLAIN_READ: &[Field] = &[U64(0), U32(CONFIG), U32(4)];

pub(super) const CASES: &[AttackCase] = &[
    row(
        "message-size-zero",
        I82576,
        "A message whose size is below its header's ends the connection, since the framing is lost",
        FRAMING,
        Socket(&[Greet, Raw(&[U16(9), U16(9), U32(0), U32(0), U32(0)], NO_FILE), Expect(End)]),
    ),
    row(
        "message-size-one-below-header",
        I82576,
        "15 bytes are no message: the size counts the 16 bytes of the header",
        FRAMING,
        Socket(&[Greet, Raw(&[U16(9), U16(9), U32(15), U32(0), U32(0)], NO_FILE), Expect(End)]),
    ),
    row(
        "message-claims-four-gib",
        I82576,
        "A claimed size allocates no memory, and the connection ends with its bytes",
        FRAMING,
        Socket(&[Greet, Raw(&[U16(9), U16(10), U32(u32::MAX), U32(0), U32(0), Fill(0xff, 65_536)], NO_FILE)]),
    ),
    row(
        "request-before-version",
        I82576,
        "A request before VERSION is refused, and the connection stays usable",
        REQUEST,
        Socket(&[Message(READ, 0, PLAIN_READ, NO_FILE), Expect(Refused), Greet]),
    ),
    row(
        "version-twice",
        I82576,
        "A second VERSION is refused: the version does not change under a client",
        REQUEST,
        Socket(&[Greet, Message(VERSION, 0, &[Bytes(b"\0\0\x01\0{}\0")], NO_FILE), Expect(Refused)]),
    ),
    row(
        "version-major-one",
        I82576,
        "Another major version is answered with an error, and ends the connection",
        INFORMATION,
        Socket(&[Message(VERSION, 0, &[Bytes(b"\x01\0\0\0{}\0")], NO_FILE), Expect(Refused), Expect(End)]),
    ),
    row(
        "version-without-text",
        I82576,
        "VERSION may have no capabilities: they are optional",
        INFORMATION,
        Socket(&[Message(VERSION, 0, &[U16(0), U16(1)], NO_FILE), Expect(Accepted)]),
    ),
    row(
        "version-shorter-than-its-numbers",
        I82576,
        "A VERSION without both numbers is refused",
        INFORMATION,
        Socket(&[Message(VERSION, 0, &[U16(0)], NO_FILE), Expect(Refused), Greet]),
    ),
    row(
        "version-json-nested-deeply",
        I82576,
        "Nested capabilities use bounded stack: 1,900 open braces are refused",
        VERSION_TEXT,
        Socket(&[
            Message(VERSION, 0, &[U16(0), U16(1), Fields(1900, &[Bytes(b"{\"")]), U8(0)], NO_FILE),
            Expect(Refused),
            Greet,
        ]),
    ),
    row(
        "version-json-numbers-beyond-64-bits",
        I82576,
        "A capability that is no number of 64 bits is refused or ignored, and does not wrap",
        VERSION_TEXT,
        Socket(&[
            Message(
                VERSION,
                0,
                &[U16(0), U16(1), Bytes(b"{\"capabilities\":{\"max_msg_fds\":-1,\"pgsizes\":1e400}}\0")],
                NO_FILE,
            ),
            Expect(Reply),
        ]),
    ),
    row(
        "version-text-is-not-utf8",
        I82576,
        "Capabilities that are no UTF-8 are refused",
        VERSION_TEXT,
        Socket(&[
            Message(VERSION, 0, &[U16(0), U16(1), Bytes(b"{\"\xff\xfe\":1}\0")], NO_FILE),
            Expect(Reply),
        ]),
    ),
    row(
        "unknown-command",
        I82576,
        "An unknown command is refused, with its body discarded, and the stream stays in step",
        REQUEST,
        Socket(&[
            Greet,
            Message(0xffff, 0, &[Fill(0, 5000)], NO_FILE),
            Expect(Refused),
            Message(READ, 0, PLAIN_READ, NO_FILE),
            Expect(Accepted),
        ]),
    ),
    row(
        "commands-of-the-server",
        I82576,
        "A client may not send the server's own commands, such as DMA_READ",
        REQUEST,
        Socket(&[Greet, Message(DMA_READ, 0, &[U64(0), U64(4096)], NO_FILE), Expect(Refused)]),
    ),
    row(
        "migration-data-is-unsupported",
        I82576,
        "Migration data are refused, whatever size is claimed",
        REQUEST,
        Socket(&[Greet, Message(MIG_DATA_READ, 0, &[U32(16), U32(u32::MAX)], NO_FILE), Expect(Refused)]),
    ),
    row(
        "ioeventfds-are-unsupported",
        I82576,
        "A request for ioeventfds is refused and hands out no descriptor",
        REQUEST,
        Socket(&[
            Greet,
            Message(GET_REGION_IO_FDS, 0, &[U32(4096), U32(0), U32(BAR0), U32(100)], NO_FILE),
            Expect(Refused),
        ]),
    ),
    row(
        "reply-without-a-request",
        I82576,
        "A reply without a request is ignored, and its descriptors are closed",
        REQUEST,
        Socket(&[
            Greet,
            Repeat(50, &[Message(READ, IS_REPLY, PLAIN_READ, &[Eventfd])]),
            Message(READ, 0, PLAIN_READ, NO_FILE),
            Expect(Accepted),
        ]),
    ),
    row(
        "command-with-the-error-flag",
        I82576,
        "A command that carries an error is refused",
        REQUEST,
        Socket(&[Greet, Message(READ, IS_ERROR, PLAIN_READ, NO_FILE), Expect(Refused)]),
    ),
    row(
        "reads-without-a-reply",
        I82576,
        "A read that wants no reply has no effect and no answer; the next read has its own",
        REGION,
        Socket(&[
            Greet,
            Repeat(500, &[Message(READ, NO_REPLY, &[U64(0), U32(BAR0), U32(0x1000)], NO_FILE)]),
            Message(READ, 0, PLAIN_READ, NO_FILE),
            Expect(Accepted),
        ]),
    ),
    row(
        "read-above-the-transfer-limit",
        I82576,
        "A read of 4 GiB is refused and allocates nothing",
        REGION,
        Socket(&[Greet, Message(READ, 0, &[U64(0), U32(BAR0), U32(u32::MAX)], NO_FILE), Expect(Refused)]),
    ),
    row(
        "read-that-wraps-the-address-space",
        I82576,
        "A read at the end of the address space reads ones and does not wrap to offset 0",
        REGION,
        Socket(&[
            Greet,
            Message(READ, 0, &[U64(u64::MAX - 1), U32(CONFIG), U32(8)], NO_FILE),
            Expect(Accepted),
        ]),
    ),
    row(
        "read-of-an-unknown-region",
        I82576,
        "A read of a region that does not exist reads ones, since an error hangs a virtual processor",
        REGION,
        Socket(&[Greet, Message(READ, 0, &[U64(0), U32(u32::MAX), U32(4)], NO_FILE), Expect(Accepted)]),
    ),
    row(
        "write-of-another-length-than-announced",
        I82576,
        "A write whose data differ from its count is not carried out",
        REGION,
        Socket(&[
            Greet,
            Message(WRITE, 0, &[U64(4), U32(CONFIG), U32(0xffff_0000), U32(7)], NO_FILE),
            Expect(Reply),
        ]),
    ),
    row(
        "write-across-the-end-of-configuration-space",
        I82576,
        "A write that only begins in a region is ignored whole",
        REGION,
        Socket(&[
            Greet,
            Message(WRITE, 0, &[U64(4094), U32(CONFIG), U32(4), U32(u32::MAX)], NO_FILE),
            Expect(Accepted),
        ]),
    ),
    row(
        "write-to-every-configuration-byte",
        I82576,
        "Read-only fields of configuration space keep their values, and the function stays usable",
        CONFIG_SPACE,
        Socket(&[
            Greet,
            Message(WRITE, 0, &[U64(0), U32(CONFIG), U32(4096), Fill(0xff, 4096)], NO_FILE),
            Expect(Accepted),
            Message(WRITE, 0, &[U64(0), U32(CONFIG), U32(4096), Fill(0, 4096)], NO_FILE),
            Expect(Accepted),
        ]),
    ),
    row(
        "write-multi-counts-more-than-it-has",
        I82576,
        "WRITE_MULTI with more writes announced than present is refused",
        REGION,
        Socket(&[
            Greet,
            Message(WRITE_MULTI, 0, &[U64(u64::MAX), U64(0), U32(CONFIG), U32(4), U64(0)], NO_FILE),
            Expect(Refused),
        ]),
    ),
    row(
        "write-multi-of-nine-bytes",
        I82576,
        "A write of WRITE_MULTI has at most 8 bytes: a longer one is left out, the others are done",
        REGION,
        Socket(&[
            Greet,
            Message(WRITE_MULTI, 0, &[U64(1), U64(0), U32(CONFIG), U32(9), U64(0)], NO_FILE),
            Expect(Accepted),
        ]),
    ),
    row(
        "information-about-unknown-parts",
        I82576,
        "Regions and interrupt types that do not exist are refused, and small buffers too",
        INFORMATION,
        Socket(&[
            Greet,
            Message(GET_REGION_INFO, 0, &[U32(32), U32(0), U32(99), U32(0), U64(0), U64(0)], NO_FILE),
            Expect(Refused),
            Message(GET_IRQ_INFO, 0, &[U32(16), U32(0), U32(99), U32(0)], NO_FILE),
            Expect(Refused),
            Message(GET_INFO, 0, &[U32(0), U32(0), U32(0), U32(0)], NO_FILE),
            Expect(Refused),
        ]),
    ),
    row(
        "forty-descriptors-in-a-message",
        I82576,
        "A message with more descriptors than the host receives ends the connection, and leaks none",
        MESSAGE_FILES,
        Socket(&[
            Greet,
            Message(DMA_MAP, 0, &[U32(32), U32(READ_WRITE), U64(0), U64(0), U64(4096)], &[Memory; 40]),
            Expect(End),
        ]),
    ),
    row(
        "half-a-header-then-the-end",
        I82576,
        "A client that ends within a header frees its VF",
        VFIO_CLIENT,
        Socket(&[Greet, Raw(&[U16(1), U16(2), U32(48)], &[Memory]), EndSending, Expect(End)]),
    ),
    row(
        "a-hundred-short-connections",
        I82576,
        "Clients that connect and leave at once leave nothing behind",
        CONNECTIONS,
        Socket(&[Repeat(100, &[Reconnect])]),
    ),
    row(
        "reset-a-hundred-times",
        Avf,
        "A client may reset its function as often as it likes, and each reset is answered",
        DEVICE,
        Socket(&[Greet, Repeat(100, &[Message(RESET, 0, &[], NO_FILE), Expect(Accepted)])]),
    ),
];
