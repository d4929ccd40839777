//! Cases on requests of the vhost-user protocol: sizes, regions, logs and records that no VMM sends.

use super::remedies::{INTERRUPT_FILES, VHOST_FRAMING, VHOST_MEMORY, VHOST_REQUEST, VHOST_SESSION};
use super::steps::{NO_FILE, VIRTIO_RING};
use crate::case::Attack::Socket;
use crate::case::AttackCase;
use crate::case::row;
use crate::family::AttackedFamily::Virtio;
use crate::field::Field::{Fill, Repeat as Fields, U16, U32, U64};
use crate::socket::AttachedFile::{EmptyMemory, Eventfd, Memory, Null, Pipe, Socket as SocketFile};
use crate::socket::ExpectedAnswer::{Accepted, End, Refused, Reply};
use crate::socket::SocketStep::{Bytes as Raw, Expect, Greet, Kick, Message, Repeat as Again};

/// Flag of a request that wants an acknowledgement.
const ACKNOWLEDGE: u32 = 8;

/// Row of a request with acknowledgement, and its answer.
macro_rules! request {
    ($name:literal, $rule:literal, $remedy:expr, $code:expr, $body:expr, $files:expr, $answer:expr $(,)?) => {
        row(
            $name,
            Virtio,
            $rule,
            $remedy,
            Socket(&[Greet, Message($code, ACKNOWLEDGE, $body, $files), Expect($answer)]),
        )
    };
}

/// Row of a request to a front end with a live ring, and its answer.
macro_rules! live {
    ($name:literal, $rule:literal, $remedy:expr, $code:expr, $body:expr, $files:expr, $answer:expr $(,)?) => {
        row(
            $name,
            Virtio,
            $rule,
            $remedy,
            Socket(&[VIRTIO_RING, Message($code, ACKNOWLEDGE, $body, $files), Expect($answer), Kick]),
        )
    };
}

pub(super) const CASES: &[AttackCase] = &[
    request!(
        "features-of-four-bytes",
        "A request of another length than its fields is refused",
        VHOST_REQUEST,
        2,
        &[U32(0)],
        NO_FILE,
        Refused
    ),
    request!(
        "features-with-a-file",
        "A request that takes no descriptor is refused with one",
        VHOST_REQUEST,
        2,
        &[U64(1 << 32)],
        &[Memory],
        Refused
    ),
    request!(
        "protocol-features-that-were-not-offered",
        "Protocol features that the host does not offer cannot be set",
        VHOST_REQUEST,
        16,
        &[U64(u64::MAX)],
        NO_FILE,
        Refused
    ),
    request!(
        "owner-with-a-body",
        "A request without fields has no body",
        VHOST_REQUEST,
        3,
        &[U64(0)],
        NO_FILE,
        Refused
    ),
    request!(
        "memory-of-no-regions",
        "A table of no regions is refused or unmaps all",
        VHOST_MEMORY,
        5,
        &[U32(0), U32(0)],
        NO_FILE,
        Reply
    ),
    request!(
        "memory-of-33-regions",
        "A table of more regions than a message has descriptors is refused",
        VHOST_MEMORY,
        5,
        &[U32(33), U32(0), Fields(33, &[Fill(0, 32)])],
        &[Memory; 32],
        Refused
    ),
    request!(
        "memory-of-four-billion-regions",
        "A number of regions is checked before it is multiplied",
        VHOST_MEMORY,
        5,
        &[U32(u32::MAX), U32(0), Fill(0, 32)],
        &[Memory],
        Refused
    ),
    request!(
        "memory-table-cut-off",
        "A region that is cut off is refused",
        VHOST_MEMORY,
        5,
        &[U32(1), U32(0), U64(0), U64(4096), U64(0)],
        &[Memory],
        Refused
    ),
    request!(
        "memory-region-behind-its-file",
        "A region behind the end of its file is refused",
        VHOST_MEMORY,
        5,
        &[U32(1), U32(0), U64(0), U64(4096), U64(0), U64(1 << 40)],
        &[Memory],
        Refused
    ),
    request!(
        "memory-region-at-a-negative-offset",
        "An offset beyond a file's greatest is refused",
        VHOST_MEMORY,
        5,
        &[U32(1), U32(0), U64(0), U64(4096), U64(0), U64(u64::MAX)],
        &[Memory],
        Refused
    ),
    request!(
        "memory-regions-that-overlap-in-the-front-end",
        "Regions that overlap in the front end's addresses are refused",
        VHOST_MEMORY,
        5,
        &[U32(2), U32(0), U64(0), U64(8192), U64(0), U64(0), U64(8192), U64(8192), U64(4096), U64(0)],
        &[Memory, Memory],
        Refused
    ),
    request!(
        "memory-of-a-pipe",
        "Memory is shared by memory files only: a pipe is refused",
        VHOST_MEMORY,
        5,
        &[U32(1), U32(0), U64(0), U64(4096), U64(0), U64(0)],
        &[Pipe],
        Refused
    ),
    request!(
        "memory-of-a-device",
        "Memory is shared by memory files only: a character device is refused",
        VHOST_MEMORY,
        5,
        &[U32(1), U32(0), U64(0), U64(4096), U64(0), U64(0)],
        &[Null],
        Refused
    ),
    request!(
        "ring-of-65536-descriptors",
        "A ring longer than the specification's longest is refused",
        VHOST_REQUEST,
        8,
        &[U32(0), U32(65_536)],
        NO_FILE,
        Refused
    ),
    request!(
        "base-of-a-ring-beyond-the-device",
        "A ring that the device lacks has no position",
        VHOST_REQUEST,
        10,
        &[U32(u32::MAX), U32(0)],
        NO_FILE,
        Refused
    ),
    request!(
        "addresses-of-a-ring-beyond-the-device",
        "A ring that the device lacks has no addresses",
        VHOST_REQUEST,
        9,
        &[U32(64), U32(0), Fill(0, 32)],
        NO_FILE,
        Refused
    ),
    request!(
        "addresses-cut-off",
        "Addresses that are cut off are refused",
        VHOST_REQUEST,
        9,
        &[U32(0), U32(0), Fill(0, 24)],
        NO_FILE,
        Refused
    ),
    request!(
        "enable-with-two",
        "A ring is enabled by one and disabled by zero",
        VHOST_REQUEST,
        18,
        &[U32(0), U32(2)],
        NO_FILE,
        Refused
    ),
    request!(
        "kick-without-its-file",
        "A kick that claims an eventfd and has none is refused",
        VHOST_REQUEST,
        12,
        &[U64(1)],
        NO_FILE,
        Refused
    ),
    request!(
        "kick-with-two-files",
        "A kick has one eventfd: two are refused and closed",
        VHOST_REQUEST,
        12,
        &[U64(1)],
        &[Eventfd, Eventfd],
        Refused
    ),
    request!(
        "kick-of-a-ring-beyond-the-device",
        "A ring that the device lacks has no kick",
        VHOST_REQUEST,
        12,
        &[U64(0xff)],
        &[Eventfd],
        Refused
    ),
    request!(
        "call-that-is-a-socket",
        "A call is an eventfd only: a socket that is full would block",
        INTERRUPT_FILES,
        13,
        &[U64(1)],
        &[SocketFile],
        End
    ),
    request!(
        "error-event-that-is-memory",
        "An error event is closed unused, whatever file it is",
        VHOST_REQUEST,
        14,
        &[U64(1)],
        &[EmptyMemory],
        Accepted
    ),
    request!(
        "mtu-of-67",
        "An MTU below IPv4's least is refused",
        VHOST_REQUEST,
        20,
        &[U64(67)],
        NO_FILE,
        Refused
    ),
    request!(
        "mtu-of-64-bits",
        "An MTU is not cut to 16 bits",
        VHOST_REQUEST,
        20,
        &[U64(0x1_0000_05dc)],
        NO_FILE,
        Refused
    ),
    request!(
        "status-of-nine-bits",
        "A device status has eight bits",
        VHOST_REQUEST,
        39,
        &[U64(0x1ff)],
        NO_FILE,
        Refused
    ),
    request!(
        "requests-by-the-back-end",
        "A socket for requests by the back end was not offered, and is closed",
        VHOST_REQUEST,
        21,
        &[],
        &[SocketFile],
        Refused
    ),
    row(
        "reply-that-was-not-asked-for",
        Virtio,
        "A reply without a request ends the connection",
        VHOST_FRAMING,
        Socket(&[Greet, Message(3, 4, &[], NO_FILE), Expect(End)]),
    ),
    row(
        "message-in-pieces",
        Virtio,
        "A message that arrives in pieces is one message",
        VHOST_FRAMING,
        Socket(&[
            Greet,
            Raw(&[U16(3)], NO_FILE),
            Raw(&[U16(0), U32(9)], NO_FILE),
            Raw(&[U32(0)], NO_FILE),
            Expect(Accepted),
        ]),
    ),
    live!(
        "features-of-a-live-ring",
        "Features do not change under a live ring",
        VHOST_SESSION,
        2,
        &[U64(1 << 32 | 1 << 30 | 1 << 15)],
        NO_FILE,
        Refused
    ),
    live!(
        "size-of-a-live-ring",
        "The size of a live ring does not change",
        VHOST_SESSION,
        8,
        &[U32(1), U32(16)],
        NO_FILE,
        Refused
    ),
    live!(
        "addresses-outside-under-a-live-ring",
        "A live ring that is moved outside of memory stops",
        VHOST_SESSION,
        9,
        &[U32(1), U32(0), U64(1 << 40), U64(1 << 41), U64(1 << 42), U64(0)],
        NO_FILE,
        Accepted
    ),
    live!(
        "ring-across-the-end-of-memory",
        "A ring that begins in a region and ends outside is not used",
        VHOST_SESSION,
        9,
        &[U32(1), U32(0), U64((1 << 20) - 64), U64(0x2000), U64(0x1000), U64(0)],
        NO_FILE,
        Accepted
    ),
    live!(
        "split-ring-at-an-odd-address",
        "A ring that is not aligned is not used",
        VHOST_SESSION,
        9,
        &[U32(1), U32(0), U64(1), U64(0x2003), U64(0x1001), U64(0)],
        NO_FILE,
        Accepted
    ),
    live!(
        "other-memory-under-a-live-ring",
        "A live ring continues only in memory that has it",
        VHOST_MEMORY,
        5,
        &[U32(1), U32(0), U64(1 << 30), U64(1 << 20), U64(1 << 30), U64(0)],
        &[Memory],
        Accepted
    ),
    live!(
        "position-65535-of-a-live-ring",
        "A position is taken modulo 65,536, as virtio's indexes are",
        VHOST_SESSION,
        10,
        &[U32(1), U32(0xffff)],
        NO_FILE,
        Accepted
    ),
    live!(
        "owner-reset-under-a-live-ring",
        "A reset of the owner disables rings, and frees no memory that they use",
        VHOST_SESSION,
        4,
        &[],
        NO_FILE,
        Accepted
    ),
    row(
        "memory-replaced-a-hundred-times",
        Virtio,
        "A table that replaces another unmaps it",
        VHOST_MEMORY,
        Socket(&[
            Greet,
            Again(
                100,
                &[
                    Message(
                        5,
                        ACKNOWLEDGE,
                        &[U32(1), U32(0), U64(0), U64(1 << 20), U64(0), U64(0)],
                        &[Memory],
                    ),
                    Expect(Accepted),
                ],
            ),
        ]),
    ),
];
