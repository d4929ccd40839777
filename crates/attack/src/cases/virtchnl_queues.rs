//! Cases on virtchnl requests for queues and vectors: numbers, lengths and addresses that no driver sends.

use super::remedies::AVF_QUEUES;
use super::virtchnl::request;
use crate::case::AttackCase;
use crate::field::Field::{At, U16, U32, U64, Vsi};
use crate::guest::PfAnswer::Refused;
use avf::virtchnl::VirtchnlOpcode as Op;

/// Row of a request for a queue pair that is refused: number, length and address of the transmit queue; number, length, buffer,
/// longest frame and address of the receive queue; split of headers.
macro_rules! pair {
    ($name:literal, $rule:literal, $tx:expr, $rx:expr, $split:expr $(,)?) => {
        request!(
            $name,
            $rule,
            AVF_QUEUES,
            Op::ConfigVsiQueues,
            &[
                Vsi,
                U16(1),
                U32(0),
                Vsi,
                U16($tx.0),
                U16($tx.1),
                U16(0),
                At($tx.2),
                U64(0),
                Vsi,
                U16($rx.0),
                U32($rx.1),
                U16(0),
                U16($split),
                U32($rx.2),
                U32($rx.3),
                U32(0),
                At($rx.4),
                U64(0),
            ],
            Refused
        )
    };
}

pub(super) const CASES: &[AttackCase] = &[
    pair!("ring-of-63", "A transmit ring is a multiple of 8 long", (0, 63, 0), (0, 64, 2048, 1522, 4096), 0),
    pair!(
        "ring-of-eight",
        "A ring shorter than the card's shortest is refused",
        (0, 8, 0),
        (0, 64, 2048, 1522, 4096),
        0
    ),
    pair!(
        "ring-at-an-odd-address",
        "A ring that is not aligned is refused, and not rounded",
        (0, 64, 8),
        (0, 64, 2048, 1522, 4096),
        0
    ),
    pair!(
        "receive-ring-of-33",
        "A receive ring is a multiple of 32 long",
        (0, 64, 0),
        (0, 33, 2048, 1522, 4096),
        0
    ),
    pair!(
        "receive-ring-at-an-odd-address",
        "A receive ring that is not aligned is refused",
        (0, 64, 0),
        (0, 64, 2048, 1522, 4097),
        0
    ),
    pair!(
        "receive-ring-cut-to-16-bits",
        "A receive ring's length is not cut to 16 bits",
        (0, 64, 0),
        (0, 0x1_0040, 2048, 1522, 4096),
        0
    ),
    pair!(
        "receive-buffers-of-no-bytes",
        "A receive buffer of no bytes is refused: a frame would need buffers without end",
        (0, 64, 0),
        (0, 64, 0, 1522, 4096),
        0
    ),
    pair!(
        "receive-buffers-of-four-gib",
        "A receive buffer beyond the card's greatest is refused",
        (0, 64, 0),
        (0, 64, u32::MAX, 1522, 4096),
        0
    ),
    pair!(
        "frames-of-no-bytes",
        "A longest frame of no bytes is refused",
        (0, 64, 0),
        (0, 64, 2048, 0, 4096),
        0
    ),
    pair!(
        "frames-beyond-the-card",
        "A longest frame beyond the card's is refused",
        (0, 64, 0),
        (0, 64, 2048, u32::MAX, 4096),
        0
    ),
    pair!(
        "pair-of-two-numbers",
        "Both queues of a pair have one number",
        (0, 64, 0),
        (1, 64, 2048, 1522, 4096),
        0
    ),
    pair!(
        "pair-beyond-the-vf",
        "A queue that the VF does not have is refused",
        (0xffff, 64, 0),
        (0xffff, 64, 2048, 1522, 4096),
        0
    ),
    pair!(
        "split-headers",
        "A header split that the card does not offer is refused",
        (0, 64, 0),
        (0, 64, 2048, 1522, 4096),
        1
    ),
    request!(
        "no-queue-pair",
        "An empty list of queue pairs is refused",
        AVF_QUEUES,
        Op::ConfigVsiQueues,
        &[Vsi, U16(0), U32(0)],
        Refused
    ),
    request!(
        "queue-pairs-without-a-count",
        "A list without its count is refused",
        AVF_QUEUES,
        Op::ConfigVsiQueues,
        &[Vsi],
        Refused
    ),
    request!(
        "enable-no-queue",
        "A request that enables no queue is refused",
        AVF_QUEUES,
        Op::EnableQueues,
        &[Vsi, U16(0), U32(0), U32(0)],
        Refused
    ),
    request!(
        "enable-queue-31",
        "A bit beyond the VF's queues is refused, and not shifted away",
        AVF_QUEUES,
        Op::EnableQueues,
        &[Vsi, U16(0), U32(1 << 31), U32(0)],
        Refused
    ),
    request!(
        "disable-all-bits",
        "Queues that the VF does not have cannot be disabled",
        AVF_QUEUES,
        Op::DisableQueues,
        &[Vsi, U16(0), U32(u32::MAX), U32(u32::MAX)],
        Refused
    ),
    request!(
        "enable-with-half-a-body",
        "A request shorter than its fields is refused",
        AVF_QUEUES,
        Op::EnableQueues,
        &[Vsi, U16(0), U32(1)],
        Refused
    ),
    request!(
        "enable-with-more-than-its-body",
        "A request of a fixed size is refused if it is longer",
        AVF_QUEUES,
        Op::EnableQueues,
        &[Vsi, U16(0), U32(1), U32(1), U32(1)],
        Refused
    ),
    request!(
        "range-beyond-65535",
        "A range of queues that wraps at 16 bits is refused",
        AVF_QUEUES,
        Op::EnableQueuesV2,
        &[Vsi, U16(0), U16(1), U16(0), U32(0), U16(0xffff), U16(0xffff)],
        Refused
    ),
    request!(
        "range-of-an-unknown-kind",
        "Queues of an unknown kind are refused",
        AVF_QUEUES,
        Op::EnableQueuesV2,
        &[Vsi, U16(0), U16(1), U16(0), U32(77), U16(0), U16(1)],
        Refused
    ),
    request!(
        "range-of-no-queues",
        "A range of no queues enables none and is refused",
        AVF_QUEUES,
        Op::DisableQueuesV2,
        &[Vsi, U16(0), U16(1), U16(0), U32(0), U16(0), U16(0)],
        Refused
    ),
    request!(
        "vector-beyond-the-vf",
        "A vector that the VF does not have is refused",
        AVF_QUEUES,
        Op::ConfigIrqMap,
        &[U16(1), Vsi, U16(0xffff), U16(1), U16(1), U16(0), U16(0)],
        Refused
    ),
    request!(
        "vector-of-another-vsi",
        "A queue of a VSI that is not the VF's gets no vector",
        AVF_QUEUES,
        Op::ConfigIrqMap,
        &[U16(1), U16(0xffff), U16(1), U16(1), U16(1), U16(0), U16(0)],
        Refused
    ),
    request!(
        "interval-of-an-unknown-number",
        "An interrupt interval that does not exist is refused",
        AVF_QUEUES,
        Op::ConfigIrqMap,
        &[U16(1), Vsi, U16(1), U16(1), U16(1), U16(4), U16(0)],
        Refused
    ),
    request!(
        "vectors-of-sixteen-queues",
        "A vector for queues beyond the VF's is refused whole",
        AVF_QUEUES,
        Op::ConfigIrqMap,
        &[U16(1), Vsi, U16(1), U16(0xffff), U16(0xffff), U16(0), U16(0)],
        Refused
    ),
    request!(
        "vectors-that-the-message-does-not-have",
        "A list with fewer vectors than it counts is refused",
        AVF_QUEUES,
        Op::ConfigIrqMap,
        &[U16(u16::MAX), Vsi],
        Refused
    ),
];
