//! Tests that bursts of frames have the same effects as frames that are sent one by one. Only frames in one plain
//! descriptor are sent in bursts.

use crate::built::tcp4;
use crate::offloads::{SUMS, all_of, cut, two};
use crate::world::{CardFixture, MEMORY};
use avf::control::{CardCommand, CardControl, TxQueueContext};
use avf::descriptor::tx::{
    self, ParsedTxDescriptor, TxDataDescriptor, TxIpHeaderKind, TxL4Checksum, command,
};
use avf::ids::HASH_KEY;
use avf::register as r;
use driver::Hal;
use driver::avf::vf::TxOffload;
use pcie::Function;
use plane::PortIndex;
use policy::PortVlan;
use proptest::prelude::{ProptestConfig, any, prop, proptest};

/// Returns a TCP segment with 40 bytes of payload, all of them `n`.
fn packet(n: u8) -> Vec<u8> {
    tcp4(&[n; 40])
}

/// Kind of sent frame with a code path of its own in the card.
#[derive(Debug, Clone, Copy)]
enum FrameKind {
    Plain,
    Summed,
    Cut,
    Long,
    Tagged,
    ToGroup,
    ToNowhere,
    Spoofed,
    NotIp,
    MacControl,
    WrongSum,
    OtherPort,
    Trailing,
}

const KINDS: [FrameKind; 13] = [
    FrameKind::Plain,
    FrameKind::Summed,
    FrameKind::Cut,
    FrameKind::Long,
    FrameKind::Tagged,
    FrameKind::ToGroup,
    FrameKind::ToNowhere,
    FrameKind::Spoofed,
    FrameKind::NotIp,
    FrameKind::MacControl,
    FrameKind::WrongSum,
    FrameKind::OtherPort,
    FrameKind::Trailing,
];

impl FrameKind {
    fn frame(self, n: u8) -> (Vec<u8>, TxOffload) {
        let mut frame = packet(n);
        match self {
            Self::Plain => {}
            Self::Summed => return (frame, SUMS),
            Self::Cut => return (tcp4(&[n; 2_500]), cut(1_000)),
            Self::Long => frame = tcp4(&vec![n; 8_000]),
            Self::Tagged => _ = frame.splice(12..12, [0x81, 0, 0x20, n]),
            Self::ToGroup => frame[0] |= 1,
            Self::ToNowhere => frame[5] = 0x99,
            Self::Spoofed => frame[11] = 0x99,
            Self::NotIp => frame[12] = 0x88,
            // EtherType of MAC control (IEEE 802.3, 31.4.1.3).
            Self::MacControl => frame[12..14].copy_from_slice(&[0x88, 0x08]),
            Self::WrongSum => frame[30] ^= n,
            Self::OtherPort => frame[35] ^= n % 3,
            // A byte behind the IP packet, which its checksums exclude.
            Self::Trailing => frame.push(n),
        }
        (frame, TxOffload::default())
    }
}

/// Sends frames from VF 0, one list of frame kinds in each round of the port. Returns their visible effects: received
/// frames, memory with descriptors, interrupts, and counters.
fn left_behind(careful: bool, port_vlan: bool, rounds: &[Vec<FrameKind>]) -> impl PartialEq + use<> {
    let vlan = PortVlan { id: 7, qos: 2 };
    let (mut world, mut a, mut b) = two(|policy| policy.vlan = port_vlan.then_some(vlan));
    world.card.order(
        1,
        CardCommand::HashKey(&core::array::from_fn::<u8, HASH_KEY, _>(|at| (at as u8).wrapping_mul(7))),
    );
    if careful {
        world.card.take_no_shortcuts();
    }
    let mut frames = Vec::new();
    for (kinds, n) in rounds.iter().zip(1..) {
        for kind in kinds {
            let (frame, offload) = kind.frame(n);
            a.transmit_with(&mut world.vf(0), 0, &frame, &offload);
        }
        (0..3).for_each(|_| world.round());
        frames.extend(all_of(&mut world, &mut b));
    }
    let statistics = [0, 1].map(|vf| world.card.statistics(vf));
    let counters = [0, 1].map(|vf| world.card.counters(vf).copied());
    let plane = world.plane.as_ref().unwrap();
    let ports = [0, 1].map(|port| plane.ledger.total(PortIndex::of_field(port)));
    let memory = [Function::Vf(0), Function::Vf(1)].map(|function| world.memories.of(function).clone());
    (frames, statistics, counters, ports, memory, world.memories.interrupts)
}

/// Asserts that a card with bursts of frames has the same visible effects as a card that sends each frame alone.
fn assert_ways_agree(rounds: &[Vec<FrameKind>], port_vlan: bool) {
    let [usual, careful] = [false, true].map(|careful| left_behind(careful, port_vlan, rounds));
    assert!(usual == careful, "{rounds:?}");
}

#[test]
fn mac_control_frame_within_a_burst_is_dropped() {
    let (mut world, mut a, mut b) = two(|policy| (policy.spoofchk, policy.trust) = (false, true));
    for kind in [FrameKind::Plain, FrameKind::MacControl, FrameKind::Plain].repeat(5) {
        assert!(a.transmit(&mut world.vf(0), 0, &kind.frame(1).0));
    }
    world.round();
    let received = all_of(&mut world, &mut b);
    assert_eq!(received.len(), 10);
    let counters = world.plane.as_ref().unwrap().ledger.total(PortIndex::of_field(0));
    assert_eq!((counters.tx_link_control, counters.tx_blocked), (5, 5));
}

#[test]
fn wrong_checksum_within_a_burst_of_frames_is_reported() {
    assert_ways_agree(&[vec![FrameKind::Plain, FrameKind::WrongSum]], false);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn sending_in_bursts_or_singly_gives_equal_counters(
        rounds in prop::collection::vec(prop::collection::vec(prop::sample::select(&KINDS[..]), 0..12), 1..8),
        port_vlan in any::<bool>(),
    ) {
        assert_ways_agree(&rounds, port_vlan);
    }
}

proptest! {
    #[test]
    fn frames_of_bursts_arrive_once_and_in_sequence(kinds in prop::collection::vec(0..3_usize, 1..150)) {
        let (mut world, mut a, mut b) = two(|_| {});
        // The last kind has a context descriptor, which ends a burst.
        let offloads = [TxOffload::default(), SUMS, cut(1000)];
        let mut received = Vec::new();
        for (chunk, first) in kinds.chunks(24).zip((0..).step_by(24)) {
            for (kind, n) in chunk.iter().zip(first..) {
                assert!(a.transmit_with(&mut world.vf(0), 0, &packet(n), &offloads[*kind]));
            }
            (0..4).for_each(|_| world.round());
            received.extend(all_of(&mut world, &mut b).into_iter().map(|(_, frame)| frame[59]));
        }
        assert!(received.iter().copied().eq(0..kinds.len() as u8), "{received:?}");
        assert_eq!(world.card.statistics(0).tx_unicast, kinds.len() as u64);
    }

    /// Compares the quick check of a transmit descriptor's second word with parsing all of it.
    #[test]
    fn fast_tx_descriptor_check_agrees_with_the_full_parser(raw in any::<[u8; tx::SIZE]>(), likely in any::<bool>()) {
        let mut raw = raw;
        if likely {
            (raw[8], raw[9]) = ((command::EOP << 4) as u8 | raw[8] & 0x60, 0);
        }
        let expected = match tx::parse(&raw) {
            ParsedTxDescriptor::Data(data) => {
                let headers = (data.ip, data.l4) != (TxIpHeaderKind::None, TxL4Checksum::None);
                let alone = data.end_of_packet && data.tag.is_none() && !data.dummy;
                alone.then_some((u32::from(data.length), data.report_status, headers))
            }
            _ => None,
        };
        let second = u64::from_le_bytes(raw[8..].try_into().unwrap());
        let plain = tx::plain_length(second);
        let found = tx::summed_length(second).map(|length| (length, tx::reports(&raw), plain != Some(length)));
        assert_eq!(found, expected);
        assert!(plain.is_none() || found.is_some());
    }
}

#[test]
fn receive_tail_moved_back_withdraws_fetched_buffers() {
    for careful in [false, true] {
        let (mut world, mut a, _b) = two(|_| {});
        if careful {
            world.card.take_no_shortcuts();
        }
        for tail in [None, Some(1)] {
            if let Some(tail) = tail {
                world.vf(1).write(r::qrx_tail(0), tail);
            }
            assert!(a.transmit(&mut world.vf(0), 0, &packet(1)));
            (0..3).for_each(|_| world.round());
        }
        let statistics = world.card.statistics(1);
        assert_eq!((statistics.rx_unicast, statistics.rx_discards), (1, 1), "careful: {careful}");
    }
}

/// Places a packet's buffer and its data descriptors into VF 0's memory, each descriptor as `change` returns it, and
/// starts transmit queue 0 with them. The card writes the queue's head to `head`.
fn start_queue<const N: usize>(
    world: &mut CardFixture,
    head: Option<u64>,
    change: impl Fn(usize, TxDataDescriptor) -> TxDataDescriptor,
) {
    let (ring, buffer, length) = (MEMORY - 0x1000, MEMORY - 0x2000, packet(7).len() as u16);
    let data = TxDataDescriptor {
        address: buffer as u64,
        length,
        end_of_packet: true,
        ..TxDataDescriptor::default()
    };
    let descriptors: [_; N] = core::array::from_fn(|at| change(at, data).emit());
    let memory = world.memories.of(Function::Vf(0));
    memory[buffer..][..packet(7).len()].copy_from_slice(&packet(7));
    memory[ring..][..N * tx::SIZE].copy_from_slice(descriptors.as_flattened());
    let context = TxQueueContext { base: ring as u64, length: 64, head_address: head };
    world.card.order(0, CardCommand::ConfigureTx(0, context));
    world.card.order(0, CardCommand::Run { rx: 1, tx: 1 });
    world.vf(0).write(r::qtx_tail(0), N as u32);
    world.round();
}

#[test]
fn memory_fault_stops_the_queue_after_delivering_earlier_frames() {
    let (mut world, _a, mut b) = two(|_| {});
    start_queue::<4>(&mut world, None, |at, data| match at {
        2 => TxDataDescriptor { address: MEMORY as u64, ..data },
        _ => data,
    });
    assert_eq!(all_of(&mut world, &mut b).len(), 2);
    world.vf(0).write(r::qtx_tail(0), 4);
    world.round();
    assert_eq!(all_of(&mut world, &mut b).len(), 0, "the queue is stopped");
    assert_eq!(world.card.counters(0).unwrap().dma_faults, 1);
}

#[test]
fn failed_head_write_back_stops_the_queue_and_is_counted() {
    let (mut world, _a, mut b) = two(|_| {});
    start_queue::<1>(&mut world, Some(MEMORY as u64), |_, data| data);
    assert_eq!(world.card.counters(0).unwrap().dma_faults, 1);
    assert_eq!(all_of(&mut world, &mut b).len(), 1, "frames leave before their descriptors are written back");
}
