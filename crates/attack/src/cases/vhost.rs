//! Cases on the vhost-user protocol: requests that no VMM sends.

use super::remedies::{CONNECTIONS, INTERRUPT_FILES, VHOST_FRAMING, VHOST_MEMORY, VHOST_REQUEST};
use crate::case::Attack::Socket;
use crate::case::AttackCase;
use crate::case::row;
use crate::family::AttackedFamily::Virtio;
use crate::field::Field::{Fill, U32, U64};
use crate::socket::AttachedFile::{self, Eventfd, Memory, Pipe};
use crate::socket::ExpectedAnswer::{Accepted, End, Refused};
use crate::socket::SocketStep::{Bytes as Raw, ConnectToNeighbour, Expect, Greet, Message, Repeat};

const GET_FEATURES: u32 = 1;
const SET_FEATURES: u32 = 2;
const SET_OWNER: u32 = 3;
const SET_MEM_TABLE: u32 = 5;
const SET_VRING_NUM: u32 = 8;
const SET_VRING_KICK: u32 = 12;
/// Flag of a request that wants an acknowledgement.
const ACKNOWLEDGE: u32 = 1 << 3;
const NO_FILE: &[AttachedFile] = &[];

pub(super) const CASES: &[AttackCase] = &[
    row(
        "body-above-the-limit",
        Virtio,
        "A body above 4,096 bytes ends the connection before it is read",
        VHOST_FRAMING,
        Socket(&[Greet, Raw(&[U32(SET_MEM_TABLE), U32(9), U32(4097)], NO_FILE), Expect(End)]),
    ),
    row(
        "body-of-four-gib",
        Virtio,
        "A claimed size allocates no memory and ends the connection",
        VHOST_FRAMING,
        Socket(&[Greet, Raw(&[U32(SET_MEM_TABLE), U32(9), U32(u32::MAX)], NO_FILE), Expect(End)]),
    ),
    row(
        "protocol-version-two",
        Virtio,
        "A message of another protocol version ends the connection",
        VHOST_FRAMING,
        Socket(&[Raw(&[U32(GET_FEATURES), U32(2), U32(0)], NO_FILE), Expect(End)]),
    ),
    row(
        "unknown-request",
        Virtio,
        "An unknown request that wants an acknowledgement is refused by it",
        VHOST_REQUEST,
        Socket(&[Greet, Message(0xffff, ACKNOWLEDGE, &[], NO_FILE), Expect(Refused)]),
    ),
    row(
        "features-that-were-not-offered",
        Virtio,
        "Features that the device does not offer cannot be set",
        VHOST_REQUEST,
        Socket(&[Greet, Message(SET_FEATURES, ACKNOWLEDGE, &[U64(u64::MAX)], NO_FILE), Expect(Refused)]),
    ),
    row(
        "memory-regions-beyond-the-files",
        Virtio,
        "A table with more regions than files is refused",
        VHOST_REQUEST,
        Socket(&[
            Greet,
            Message(SET_MEM_TABLE, ACKNOWLEDGE, &[U32(2), U32(0), Fill(0, 64)], &[Memory]),
            Expect(Refused),
        ]),
    ),
    row(
        "memory-regions-that-overlap",
        Virtio,
        "Regions that overlap in guest addresses are refused whole",
        VHOST_MEMORY,
        Socket(&[
            Greet,
            Message(
                SET_MEM_TABLE,
                ACKNOWLEDGE,
                &[
                    U32(2),
                    U32(0),
                    U64(0),
                    U64(8192),
                    U64(1 << 32),
                    U64(0),
                    U64(4096),
                    U64(8192),
                    U64(2 << 32),
                    U64(0),
                ],
                &[Memory; 2],
            ),
            Expect(Refused),
        ]),
    ),
    row(
        "memory-region-of-no-bytes",
        Virtio,
        "A region of no bytes is refused",
        VHOST_MEMORY,
        Socket(&[
            Greet,
            Message(SET_MEM_TABLE, ACKNOWLEDGE, &[U32(1), U32(0), U64(0), U64(0), U64(0), U64(0)], &[Memory]),
            Expect(Refused),
        ]),
    ),
    row(
        "memory-region-that-wraps",
        Virtio,
        "A region beyond the end of the address space is refused",
        VHOST_MEMORY,
        Socket(&[
            Greet,
            Message(
                SET_MEM_TABLE,
                ACKNOWLEDGE,
                &[U32(1), U32(0), U64(u64::MAX - 4095), U64(8192), U64(0), U64(0)],
                &[Memory],
            ),
            Expect(Refused),
        ]),
    ),
    row(
        "ring-of-no-descriptors",
        Virtio,
        "A ring of no descriptors is refused: its positions would be divided by zero",
        VHOST_REQUEST,
        Socket(&[Greet, Message(SET_VRING_NUM, ACKNOWLEDGE, &[U32(1), U32(0)], NO_FILE), Expect(Refused)]),
    ),
    row(
        "ring-number-cut-to-16-bits",
        Virtio,
        "A ring number beyond the device's is refused, and not cut to 16 bits",
        VHOST_REQUEST,
        Socket(&[
            Greet,
            Message(SET_VRING_NUM, ACKNOWLEDGE, &[U32(0x1_0001), U32(256)], NO_FILE),
            Expect(Refused),
        ]),
    ),
    row(
        "kick-that-is-a-pipe",
        Virtio,
        "A kick is an eventfd only: a pipe ends the connection",
        INTERRUPT_FILES,
        Socket(&[Greet, Message(SET_VRING_KICK, ACKNOWLEDGE, &[U64(1)], &[Pipe]), Expect(End)]),
    ),
    row(
        "kicks-a-hundred-times",
        Virtio,
        "A kick that replaces another one closes the other",
        VHOST_REQUEST,
        Socket(&[
            Greet,
            Repeat(100, &[Message(SET_VRING_KICK, ACKNOWLEDGE, &[U64(3)], &[Eventfd]), Expect(Accepted)]),
        ]),
    ),
    row(
        "second-client-of-a-neighbours-vf",
        Virtio,
        "A VF that has a client refuses another one, and the first keeps working",
        CONNECTIONS,
        Socket(&[ConnectToNeighbour, Message(SET_OWNER, ACKNOWLEDGE, &[], NO_FILE), Expect(End)]),
    ),
];
