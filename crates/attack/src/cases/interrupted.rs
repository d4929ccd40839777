//! Cases on resets in the midst of something: packets, requests, windows, and rings that are half set up.

use super::descriptors::FRAME;
use super::guest_memory::{AVF_RING, DATA, END, PAYLOAD, RING, TDT, TXDCTL};
use super::remedies::{AVF_RESET, DEVICE, FUNCTION, MAILBOX, VHOST_SESSION};
use super::steps::{CONFIG, DOORBELL, MAP, NO_FILE, READ, TRANSMIT, VIRTIO_RING, WRITE};
use crate::case::Attack::{Guest, Socket};
use crate::case::AttackCase;
use crate::case::row;
use crate::family::AttackedFamily::{Avf, I82576, Virtio};
use crate::field::Field::{At, Fill, Repeat as Many, U16, U32, U64, Vsi};
use crate::guest::GuestStart::{Driver, Known, Reset};
use crate::guest::GuestStep::{Mail, Message as Ask, Repeat, Settle, Store, Write};
use crate::guest::PfAnswer::{Accepted as Granted, NotAwaited, Refused as Denied};
use crate::socket::ExpectedAnswer::{Accepted, Refused, Reply};
use crate::socket::SocketStep::{Expect, Greet, Kick, Message, Repeat as Again};
use avf::register::{QTX_TAIL, VF_ATQLEN, VFGEN_RSTAT};
use i82576::bits::ctrl::RST;
use i82576::mailbox::id;
use i82576::register::vf::{CTRL, VMBMEM};

/// Row of a guest.
macro_rules! guest {
    ($name:literal, $family:expr, $rule:literal, $remedy:expr, $start:expr, $steps:expr $(,)?) => {
        row($name, $family, $rule, $remedy, Guest($start, $steps))
    };
}

/// Row of a VMM.
macro_rules! vmm {
    ($name:literal, $family:expr, $rule:literal, $remedy:expr, $steps:expr $(,)?) => {
        row($name, $family, $rule, $remedy, Socket($steps))
    };
}

/// Reset of the function by a message.
const RESET: u32 = 13;

pub(super) const CASES: &[AttackCase] = &[
    guest!(
        "reset-within-a-packet",
        I82576,
        "A reset drops a packet whose end has not come, and the ring is empty after it",
        FUNCTION,
        Driver,
        &[
            RING,
            Store(0x8000, FRAME),
            Store(0, &[At(0x8000), U64(DATA | 20 | 86 << PAYLOAD)]),
            Write(TDT, 1),
            Write(CTRL, RST),
            RING,
            Write(TDT, 0),
            Settle
        ]
    ),
    guest!(
        "reset-with-a-full-ring",
        I82576,
        "A reset stops a ring of pending packets at once",
        FUNCTION,
        Driver,
        &[
            RING,
            Store(0x8000, FRAME),
            Store(0, &[Many(8, &[At(0x8000), U64(DATA | END | 86 | 86 << PAYLOAD)])]),
            Write(TDT, 7),
            Write(CTRL, RST),
            Settle
        ]
    ),
    guest!(
        "queue-switched-off-within-a-packet",
        I82576,
        "A queue that is disabled forgets its packet",
        FUNCTION,
        Driver,
        &[
            RING,
            Store(0, &[At(0x8000), U64(DATA | 20 | 86 << PAYLOAD)]),
            Repeat(20, &[Write(TDT, 1), Write(TXDCTL, 0), RING])
        ]
    ),
    guest!(
        "reset-between-words-of-a-message",
        I82576,
        "A reset within a message sends none of it",
        MAILBOX,
        Known,
        &[Write(VMBMEM, id::SET_VLAN), Write(CTRL, RST), Mail(&[id::VF_RESET], Granted)]
    ),
    guest!(
        "reset-and-message-in-turn",
        I82576,
        "A message after each reset gets its own answer",
        MAILBOX,
        Reset,
        &[Repeat(10, &[Write(CTRL, RST), Mail(&[id::VF_RESET], Granted), Mail(&[0x7777], Denied)])]
    ),
    guest!(
        "reset-with-a-held-request",
        I82576,
        "A request that a reset overtakes has no effect on the next one",
        MAILBOX,
        Known,
        &[
            Repeat(10, &[Mail(&[id::SET_MULTICAST], NotAwaited), Write(CTRL, RST)]),
            Mail(&[id::VF_RESET], Granted)
        ]
    ),
    guest!(
        "avf-reset-with-a-full-ring",
        Avf,
        "A reset request stops a ring of pending packets at once",
        AVF_RESET,
        Known,
        &[
            AVF_RING,
            Store(0x8000, FRAME),
            Store(0, &[Many(63, &[At(0x8000), U64(3 << 4 | 86 << 34)])]),
            Write(QTX_TAIL, 63),
            Ask(2, &[], NotAwaited)
        ]
    ),
    guest!(
        "avf-reset-after-a-request",
        Avf,
        "A reset drops requests behind it, and the VF is usable after it",
        AVF_RESET,
        Known,
        &[
            Ask(2, &[], NotAwaited),
            Ask(12, &[Vsi, U16(1), U16(5)], NotAwaited),
            Ask(2, &[], NotAwaited),
            Settle
        ]
    ),
    guest!(
        "admin-queue-switched-off-within-a-request",
        Avf,
        "A queue that is disabled before the answer gets none, and the VF is usable after it",
        AVF_RESET,
        Known,
        &[Ask(12, &[Vsi, U16(1), U16(5)], NotAwaited), Write(VF_ATQLEN, 0), Settle]
    ),
    guest!(
        "reset-state-written-by-the-guest",
        Avf,
        "A guest cannot write the state of its reset",
        AVF_RESET,
        Known,
        &[Write(VFGEN_RSTAT, 0), Write(VFGEN_RSTAT, u32::MAX), Ask(25, &[], Granted)]
    ),
    vmm!(
        "function-reset-under-a-ring",
        I82576,
        "A function reset stops rings, and their windows stay mapped",
        DEVICE,
        &[
            Greet,
            MAP,
            TRANSMIT,
            Message(WRITE, 0, DOORBELL, NO_FILE),
            Expect(Accepted),
            Message(RESET, 0, &[], NO_FILE),
            Expect(Accepted),
            Message(WRITE, 0, DOORBELL, NO_FILE),
            Expect(Accepted)
        ]
    ),
    vmm!(
        "function-reset-without-a-reply",
        I82576,
        "A reset that wants no reply is a reset",
        DEVICE,
        &[
            Greet,
            Again(20, &[Message(RESET, 1 << 4, &[], NO_FILE)]),
            Message(READ, 0, &[U64(0), U32(CONFIG), U32(4)], NO_FILE),
            Expect(Accepted)
        ]
    ),
    vmm!(
        "reset-by-configuration-space",
        I82576,
        "Writes over the capabilities may reset the function, and nothing else",
        DEVICE,
        &[
            Greet,
            MAP,
            TRANSMIT,
            Again(
                10,
                &[
                    Message(WRITE, 0, &[U64(0x40), U32(CONFIG), U32(0xc0), Fill(0xff, 0xc0)], NO_FILE),
                    Expect(Accepted)
                ]
            )
        ]
    ),
    vmm!(
        "unmap-under-a-ring",
        I82576,
        "A window that goes under a ring makes its accesses DMA faults",
        DEVICE,
        &[
            Greet,
            MAP,
            TRANSMIT,
            Message(WRITE, 0, DOORBELL, NO_FILE),
            Expect(Accepted),
            Message(3, 0, &[U32(24), U32(2), U64(0), U64(0)], NO_FILE),
            Expect(Accepted),
            Message(WRITE, 0, DOORBELL, NO_FILE),
            Expect(Accepted)
        ]
    ),
    vmm!(
        "status-that-was-not-negotiated",
        Virtio,
        "A status without its protocol feature is refused, and the ring stays live",
        VHOST_SESSION,
        &[
            VIRTIO_RING,
            Kick,
            Message(39, 8, &[U64(0)], NO_FILE),
            Expect(Refused),
            Kick,
            Message(1, 0, &[], NO_FILE),
            Expect(Reply)
        ]
    ),
    vmm!(
        "virtio-ring-stopped-twice",
        Virtio,
        "A ring that is stopped twice has one position",
        VHOST_SESSION,
        &[
            VIRTIO_RING,
            Kick,
            Message(11, 0, &[U32(1), U32(0)], NO_FILE),
            Expect(Reply),
            Message(11, 0, &[U32(1), U32(0)], NO_FILE),
            Expect(Reply),
            Kick
        ]
    ),
    vmm!(
        "virtio-memory-gone-under-a-ring",
        Virtio,
        "A region that is removed under a ring stops the ring",
        VHOST_SESSION,
        &[VIRTIO_RING, Kick, Message(5, 8, &[U32(0), U32(0)], NO_FILE), Expect(Reply), Kick]
    ),
];
