//! Cases on the admin queue of Adaptive Virtual Functions: descriptors and messages that no driver sends.

use super::remedies::{AVF_FILTERS, AVF_MAILBOX, AVF_QUEUES, AVF_VLANS, VIRTCHNL};
use crate::case::Attack::Guest;
use crate::case::AttackCase;
use crate::case::row;
use crate::family::AttackedFamily::Avf;
use crate::field::Field::{self, Bytes, Fill, U16, U32, U64, Vsi};
use crate::guest::GuestStart::{Known, Reset};
use crate::guest::GuestStep::{AdminDescriptors, Message, Write, WriteAddress};
use crate::guest::PfAnswer::{Refused, Reply};
use avf::admin::{flag, opcode};
use avf::bits::aqlen;
use avf::register::{VF_ATQBAH, VF_ATQBAL, VF_ATQH, VF_ATQLEN, VF_ATQT};

/// Queue pair whose rings have the greatest length that the field can hold.
const HUGE_PAIR: &[Field] = &[
    Vsi,
    U16(1),
    U32(0),
    // Transmit queue.
    Vsi,
    U16(0),
    U16(u16::MAX),
    U16(0),
    U64(0),
    U64(0),
    // Receive queue.
    Vsi,
    U16(0),
    U32(u32::MAX),
    U16(0),
    U16(0),
    U32(2048),
    U32(1522),
    U32(0),
    U64(0),
    U64(0),
];

pub(super) const CASES: &[AttackCase] = &[
    row(
        "unknown-operation",
        Avf,
        "An unknown operation is answered with an error: a driver waits for ever without an answer",
        VIRTCHNL,
        Guest(Known, &[Message(9999, &[], Refused)]),
    ),
    row(
        "queues-of-another-vsi",
        Avf,
        "A VF may not enable the queues of a VSI that is not its own",
        AVF_QUEUES,
        Guest(Known, &[Message(8, &[U16(0xffff), U16(0), U32(1), U32(1)], Refused)]),
    ),
    row(
        "rings-of-65535-descriptors",
        Avf,
        "A ring longer than the card's greatest is refused",
        AVF_QUEUES,
        Guest(Known, &[Message(6, HUGE_PAIR, Refused)]),
    ),
    row(
        "pairs-that-the-message-does-not-have",
        Avf,
        "A message with fewer queue pairs than it counts is refused",
        AVF_QUEUES,
        Guest(Known, &[Message(6, &[Vsi, U16(u16::MAX), U32(0)], Refused)]),
    ),
    row(
        "addresses-that-the-message-does-not-have",
        Avf,
        "A message with fewer addresses than it counts is refused",
        AVF_FILTERS,
        Guest(Known, &[Message(10, &[Vsi, U16(u16::MAX), Fill(2, 8)], Refused)]),
    ),
    row(
        "broadcast-as-own-address",
        Avf,
        "Broadcast and zero are no addresses of a VF",
        AVF_FILTERS,
        Guest(
            Known,
            &[
                Message(10, &[Vsi, U16(1), Fill(0xff, 6), U16(0)], Refused),
                Message(10, &[Vsi, U16(1), Fill(0, 6), U16(0)], Refused),
            ],
        ),
    ),
    row(
        "neighbours-address-as-filter",
        Avf,
        "A VF cannot take the address of another VF",
        AVF_FILTERS,
        Guest(Known, &[Message(10, &[Vsi, U16(1), Field::NeighbourMac, U16(1)], Refused)]),
    ),
    row(
        "vlans-beyond-4095",
        Avf,
        "A VLAN id above 4,095 is refused",
        AVF_VLANS,
        Guest(Known, &[Message(12, &[Vsi, U16(1), U16(4096)], Refused)]),
    ),
    row(
        "hash-key-shorter-than-it-says",
        Avf,
        "A hash key shorter than its length is refused",
        VIRTCHNL,
        Guest(Known, &[Message(23, &[Vsi, U16(u16::MAX), Bytes(b"key")], Refused)]),
    ),
    row(
        "hash-table-with-queues-beyond-the-vf",
        Avf,
        "An entry of the hash table names a queue of the VF",
        VIRTCHNL,
        Guest(Known, &[Message(24, &[Vsi, U16(64), Fill(0xff, 65)], Refused)]),
    ),
    row(
        "a-thousand-queue-pairs",
        Avf,
        "A request for more queue pairs than the card has is answered with the most it has",
        VIRTCHNL,
        Guest(Known, &[Message(29, &[U16(1000)], Reply)]),
    ),
    row(
        "body-outside-memory",
        Avf,
        "A message whose body the card cannot read is a DMA fault, and not read elsewhere",
        AVF_MAILBOX,
        Guest(
            Known,
            &[AdminDescriptors(&[
                U16(flag::BUF | flag::RD | flag::SI),
                U16(opcode::SEND_TO_PF),
                U16(64),
                U16(0),
                U32(10),
                U32(0),
                U64(0),
                U32(0xffff_ffff),
                U32(0xffff_fff0),
            ])],
        ),
    ),
    row(
        "body-longer-than-a-buffer",
        Avf,
        "A body above 4,096 bytes is refused in its descriptor",
        AVF_MAILBOX,
        Guest(
            Known,
            &[AdminDescriptors(&[
                U16(flag::BUF | flag::RD | flag::LB | flag::SI),
                U16(opcode::SEND_TO_PF),
                U16(u16::MAX),
                U16(0),
                U32(10),
                U32(0),
                U64(0),
                U64(0),
            ])],
        ),
    ),
    row(
        "ring-of-no-descriptors-enabled",
        Avf,
        "A send ring of no descriptors is never used, whatever its tail",
        AVF_MAILBOX,
        Guest(
            Reset,
            &[WriteAddress(VF_ATQBAL, VF_ATQBAH, 0), Write(VF_ATQLEN, aqlen::ENABLE), Write(VF_ATQT, 5)],
        ),
    ),
    row(
        "tail-and-head-beyond-the-ring",
        Avf,
        "A tail or head beyond the ring moves nothing: positions are not taken modulo its length",
        AVF_MAILBOX,
        Guest(
            Reset,
            &[
                WriteAddress(VF_ATQBAL, VF_ATQBAH, 0),
                Write(VF_ATQLEN, 4 | aqlen::ENABLE),
                Write(VF_ATQH, 0x3ff),
                Write(VF_ATQT, 0x3fe),
            ],
        ),
    ),
];
