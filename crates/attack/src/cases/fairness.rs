//! Cases on fairness: floods during which the neighbours must go on. Counted are their round trips, not their time.

use super::remedies::{AVF_BRAKE, CONNECTIONS, VHOST_APPLY, WORK};
use crate::case::Attack::{GuestFlood, SocketFlood};
use crate::case::AttackCase;
use crate::case::row;
use crate::family::AttackedFamily::{Avf, I82576, Virtio};
use crate::field::Field::{Bytes, Fill, OwnMac, Repeat as Fields, U32, U64};
use crate::guest::GuestStart::{Driver, Known, Reset};
use crate::guest::GuestStep::{Message, Repeat, Send, Settle, Write};
use crate::guest::PLAIN;
use crate::guest::PfAnswer::Reply;
use crate::socket::ExpectedAnswer::Accepted;
use crate::socket::SocketStep::{Expect, Greet, Message as Request, Repeat as Again};
use i82576::bits::ctrl::RST;
use i82576::register::vf::{CTRL, TX_BLOCK};

/// Offset of a transmit queue's tail in its block.
const TAIL: u32 = 0x18;

pub(super) const CASES: &[AttackCase] = &[
    row(
        "flood-of-doorbells",
        I82576,
        "Doorbells at full speed do not stop the neighbours",
        WORK,
        GuestFlood(Reset, &[Repeat(200, &[Write(TX_BLOCK + TAIL, 1)]), Settle]),
    ),
    row(
        "flood-of-resets",
        I82576,
        "Resets at full speed do not stop the neighbours",
        WORK,
        GuestFlood(Reset, &[Repeat(50, &[Write(CTRL, RST)]), Settle]),
    ),
    row(
        "flood-of-resets-within-a-message",
        I82576,
        "A turn ends within a message: 500 resets in one do not stop the neighbours",
        WORK,
        SocketFlood(&[
            Greet,
            Again(
                5,
                &[
                    Request(
                        15,
                        0,
                        &[U64(500), Fields(500, &[U64(CTRL as u64), U32(0), U32(4), U32(RST), U32(0)])],
                        &[],
                    ),
                    Expect(Accepted),
                ],
            ),
        ]),
    ),
    row(
        "flood-of-broadcasts",
        I82576,
        "Broadcasts at full speed do not stop the neighbours",
        WORK,
        GuestFlood(
            Driver,
            &[Repeat(32, &[Send(&[Fill(0xff, 6), OwnMac, Bytes(&[0x88, 0xb6]), Fill(0, 1486)], PLAIN)])],
        ),
    ),
    row(
        "flood-of-avf-requests",
        Avf,
        "Requests of an AVF at full speed do not stop the neighbours",
        AVF_BRAKE,
        GuestFlood(Known, &[Message(1, &[U32(1), U32(1)], Reply)]),
    ),
    row(
        "flood-of-avf-broadcasts",
        Avf,
        "Broadcasts of an AVF at full speed do not stop the neighbours",
        WORK,
        GuestFlood(
            Driver,
            &[Repeat(32, &[Send(&[Fill(0xff, 6), OwnMac, Bytes(&[0x88, 0xb6]), Fill(0, 1486)], PLAIN)])],
        ),
    ),
    row(
        "flood-of-connections",
        Virtio,
        "Front ends that connect and leave at full speed do not stop the neighbours",
        CONNECTIONS,
        SocketFlood(&[Greet]),
    ),
    row(
        "flood-of-enables",
        Virtio,
        "Rings that are enabled and disabled at full speed do not stop the neighbours",
        VHOST_APPLY,
        SocketFlood(&[
            Greet,
            Again(200, &[Request(18, 0, &[U32(0), U32(1)], &[]), Request(18, 0, &[U32(0), U32(0)], &[])]),
            Request(1, 0, &[], &[]),
            Expect(crate::socket::ExpectedAnswer::Reply),
        ]),
    ),
];
