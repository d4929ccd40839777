//! Cases on resets: at the wrong moment, too often, or of half of the function.

use super::remedies::{AVF_RESET, FUNCTION, MAILBOX, VFIO_CLIENT, VHOST_SESSION};
use crate::case::Attack::{Guest, Socket};
use crate::case::AttackCase;
use crate::case::row;
use crate::family::AttackedFamily::{Avf, I82576, Virtio};
use crate::field::Field::{Bytes, U32, U64};
use crate::guest::GuestStart::{Driver, Known, Reset};
use crate::guest::GuestStep::{Mail, Message, Repeat, Write};
use crate::guest::PfAnswer::{Accepted, NotAwaited};
use crate::socket::ExpectedAnswer;
use crate::socket::SocketStep::{Bytes as Raw, Expect, Greet, Message as Request};
use i82576::bits::ctrl::RST;
use i82576::mailbox::id;
use i82576::register::vf::CTRL;

pub(super) const CASES: &[AttackCase] = &[
    row(
        "two-hundred-resets-by-register",
        I82576,
        "Resets by CTRL.RST cost their guest its own turns, and the last one leaves a usable VF",
        FUNCTION,
        Guest(Reset, &[Repeat(200, &[Write(CTRL, RST)])]),
    ),
    row(
        "reset-of-a-running-driver",
        I82576,
        "A reset under a running driver stops its rings at once",
        FUNCTION,
        Guest(Driver, &[Write(CTRL, RST)]),
    ),
    row(
        "reset-between-request-and-answer",
        I82576,
        "A reset drops the pending request, and the next request gets its own answer",
        MAILBOX,
        Guest(Reset, &[Mail(&[id::VF_RESET], NotAwaited), Write(CTRL, RST), Mail(&[id::VF_RESET], Accepted)]),
    ),
    row(
        "every-bit-of-ctrl",
        I82576,
        "A VF's CTRL has the reset bit only: other bits change nothing of the port",
        FUNCTION,
        Guest(Reset, &[Write(CTRL, u32::MAX), Write(CTRL, !RST)]),
    ),
    row(
        "reset-messages-in-a-row",
        Avf,
        "Reset requests in a row end with a usable VF, and none is answered by a message",
        AVF_RESET,
        Guest(
            Known,
            &[Message(2, &[], NotAwaited), Message(2, &[], NotAwaited), Message(2, &[], NotAwaited)],
        ),
    ),
    row(
        "reset-of-a-running-avf-driver",
        Avf,
        "A reset request under a running driver stops its rings at once",
        AVF_RESET,
        Guest(Driver, &[Message(2, &[], NotAwaited)]),
    ),
    row(
        "function-level-reset-in-half-a-message",
        I82576,
        "A client that ends after a reset and within the next message frees its VF",
        VFIO_CLIENT,
        Socket(&[Greet, Request(13, 0, &[], &[]), Raw(&[U32(13 << 16), U32(16)], &[])]),
    ),
    row(
        "reset-device-before-features",
        Virtio,
        "A device may be reset before its features are set",
        VHOST_SESSION,
        Socket(&[
            Greet,
            Request(4, 0, &[], &[]),
            Request(8, 8, &[U32(0), U32(64)], &[]),
            Expect(ExpectedAnswer::Reply),
        ]),
    ),
    row(
        "device-status-without-a-driver",
        Virtio,
        "A status that the driver never reached changes nothing of the rings",
        VHOST_SESSION,
        Socket(&[Greet, Request(39, 8, &[U64(0xff)], &[]), Request(39, 8, &[Bytes(&[0; 8])], &[])]),
    ),
];
