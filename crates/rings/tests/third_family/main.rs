//! Tests a toy card over the same rings and plane as the real cards. Frames in bursts have the same effects as frames
//! sent alone: with tags, rates, groups, faults, too few buffers, and policies that change between bursts.

mod careful;
mod memory;
mod toy;

use memory::{BUFFER, BUFFERS, PLAIN, REPORT, RINGS, SENT, SLOTS, ToyMemory};
use pcie::{Function, MemoryHint};
use plane::pacing::TransmitPacing;
use plane::switch::{MaxFrameLength, StormState, SwitchTables, TagInsertion};
use plane::uplink::{UplinkMode, UplinkWire};
use plane::{ForwardingPlane, PortCounters, PortIndex, PortSet, TransmitQueueId};
use proptest::prelude::{Strategy, any, prop_oneof, proptest};
use proptest::test_runner::Config;
use rings::PostedDescriptors;
use toy::{ToyCard, ToyQueue};
use units::{MacAddress, Time, VlanIds, WorkCost};

const PORTS: usize = 4;

/// Action in a random test of the toy card.
#[derive(Debug, Clone)]
enum ToyCardAction {
    /// Sends copies of a frame: the sender's port, the number of the destination address, the kind of frame, and the
    /// number of copies.
    Send(u8, u8, u8, usize),
    /// Posts all receive buffers of a port except a given number; with `true`, one buffer is outside of memory.
    Post(u8, u8, bool),
    /// Replaces the plane's switch tables by those of the given policy bits.
    Police(u8),
    /// Sets a port's transmit rate as a factor of the plane; `None` is no limit.
    Rate(u8, Option<u32>),
    Poll(u64, usize),
}

fn act() -> impl Strategy<Value = ToyCardAction> {
    prop_oneof![
        6 => (0..3_u8, 0..6_u8, any::<u8>(), 1..30_usize).prop_map(|(from, to, kind, n)| ToyCardAction::Send(from, to, kind, n)),
        3 => (0..3_u8, 0..48_u8, any::<bool>()).prop_map(|(port, but, lost)| ToyCardAction::Post(port, but, lost)),
        1 => any::<u8>().prop_map(ToyCardAction::Police),
        1 => (0..3_u8, proptest::option::of(1_u32..1 << 20)).prop_map(|(port, rate)| ToyCardAction::Rate(port, rate)),
        6 => (0..50_000_u64, 1..70_usize).prop_map(|(later, budget)| ToyCardAction::Poll(later, budget)),
    ]
}

/// Uplink that records the sent frames and receives none.
#[derive(Default)]
struct RecordingUplink(Vec<Vec<u8>>);

impl UplinkWire for RecordingUplink {
    fn transmit(&mut self, frame: &[u8]) -> bool {
        self.0.push(frame.to_vec());
        true
    }

    fn receive(&mut self, _into: &mut [u8]) -> Option<usize> {
        None
    }
}

fn address(n: u8) -> [u8; 6] {
    if n == 5 { [0xff; 6] } else { [2, 0, 0, 0, 0, n] }
}

/// Returns a frame by its kind: TCP, UDP or neither, with or without a tag, right or wrong, short or long.
fn frame(from: u8, to: u8, kind: u8) -> Vec<u8> {
    let payload = vec![kind; [0, 6, 10, 100, 1400, 2500][usize::from(kind % 6)]];
    let link = etherparse::PacketBuilder::ethernet2(address(from), address(to)).ipv4(
        [10, 0, 0, 1],
        [10, 0, 0, 2],
        64,
    );
    let mut bytes = Vec::new();
    if kind & 16 == 0 {
        link.tcp(1, 2, 3, 4).write(&mut bytes, &payload).unwrap();
    } else {
        link.udp(1, 2).write(&mut bytes, &payload).unwrap();
    }
    match kind >> 5 {
        1 => bytes[24] ^= 1,
        2 => *bytes.last_mut().unwrap() ^= 1,
        3 => _ = bytes.splice(12..12, [0x81, 0, 0, 7]),
        4 => bytes[12] = 0x88,
        5 => bytes[11] = 9,
        6 => bytes.push(kind),
        _ => {}
    }
    bytes
}

fn tables(bits: u8) -> SwitchTables<PORTS> {
    let mut tables = SwitchTables::closed(PORTS);
    let all = PortSet::new(0b111);
    (tables.shared, tables.replicate, tables.loopback) = (true, true, true);
    (tables.all, tables.enabled, tables.broadcast, tables.untagged) = (all, all, all, all);
    tables.filter_vlans = true;
    tables.vlans.accept(VlanIds::all());
    tables.vlans.add(7, all, false);
    (0..3).for_each(|n| tables.exact.add(MacAddress(address(n)), PortIndex::of_field(n.into()).only()));
    if bits & 1 != 0 {
        tables.tags = [TagInsertion::Always(7); PORTS];
    }
    tables.strips = PortSet::new((bits >> 1 & 7).into());
    tables.check_source = if bits & 16 != 0 { all } else { PortSet::NONE };
    if bits & 32 != 0 {
        // Padding makes short frames too long for these ports.
        tables.set_fits([MaxFrameLength::whole(60); PORTS]);
    } else if bits & 64 != 0 {
        // One port takes short frames only.
        tables.set_fits([1518, 1518, 100, 1518].map(MaxFrameLength::whole));
    }
    tables
}

/// Performs actions on a new toy card, and polls once more when all sent frames are due. Returns memory, uplink frames,
/// counters and the number of refused frames.
fn left_behind(acts: &[ToyCardAction], careful: bool) -> (ToyMemory, Vec<Vec<u8>>, Vec<PortCounters>, usize) {
    left_behind_until(&[acts, &[ToyCardAction::Poll(1 << 40, 100)]].concat(), careful)
}

/// Performs actions on a new toy card and plane. Returns memory, uplink frames, counters and the number of refused
/// frames.
fn left_behind_until(
    acts: &[ToyCardAction],
    careful: bool,
) -> (ToyMemory, Vec<Vec<u8>>, Vec<PortCounters>, usize) {
    let queue = || ToyQueue {
        head: 0,
        tail: 0,
        posted: PostedDescriptors::at(0),
        rx_tail: 0,
        hints: [MemoryHint::default(); 2],
    };
    let (queues, memory) = ((0..3).map(|_| queue()).collect(), ToyMemory::new(3));
    let mut toy = ToyCard { queues, memory, careful, places: None, at_hand: [[0; 16]; 32], refused: 0 };
    let counters = [PortCounters::default(); PORTS];
    let mut plane =
        ForwardingPlane::<PORTS>::new(tables(0), TransmitPacing::new(None), StormState::default(), counters);
    plane.shares.set_quantum(WorkCost(u32::MAX));
    plane.uplink = UplinkMode { link: true, receives: true, ..UplinkMode::default() };
    let (mut wire, mut now) = (RecordingUplink::default(), 0);
    for act in acts {
        match *act {
            ToyCardAction::Send(from, to, kind, count) => {
                send(&mut toy, from, &frame(from, to, kind), count, kind);
            }
            ToyCardAction::Post(port, but, lost) => post(&mut toy, port, but, lost),
            ToyCardAction::Police(bits) => plane.set_tables(tables(bits)),
            ToyCardAction::Rate(port, rate) => plane.pacing.set_rate(PortIndex::of_field(port.into()), rate),
            ToyCardAction::Poll(later, budget) => {
                now += later;
                plane.now = Time::from_nanos(now);
                plane.shares.begin_round();
                for port in (0..3).map(PortIndex::of_field) {
                    plane.visit(TransmitQueueId { port, queue: 0 }, budget, &mut toy, &mut wire);
                }
                toy.settle();
            }
        }
    }
    let counters = (0..3).map(|n| plane.ledger.total(PortIndex::of_field(n))).collect();
    (toy.memory, wire.0, counters, toy.refused)
}

/// Puts `count` copies of a frame into a transmit ring, or fewer if the ring is full. The last copy is outside of
/// memory, or not marked as plain.
fn send(toy: &mut ToyCard, from: u8, frame: &[u8], count: usize, kind: u8) {
    let function = Function::Vf(from);
    let place = SENT + 0x1000 * u64::from(kind % 16);
    toy.memory.range(function, place, frame.len()).unwrap().copy_from_slice(frame);
    for n in (0..count).rev() {
        let ToyQueue { head, tail, .. } = toy.queues[usize::from(from)];
        if (tail + 1) % SLOTS == head {
            return;
        }
        let address = if n == 0 && kind & 3 == 3 { !0xfff } else { place };
        let plain = if n == 0 && kind & 3 == 2 { 0 } else { PLAIN };
        let second = frame.len() as u64 | plain | if n % 3 == 0 { REPORT } else { 0 };
        let raw = (u128::from(second) << 64 | u128::from(address)).to_le_bytes();
        let at = RINGS[0] + 16 * u64::from(tail);
        toy.memory.range(function, at, 16).unwrap().copy_from_slice(&raw);
        toy.queues[usize::from(from)].tail = (tail + 1) % SLOTS;
    }
}

fn post(toy: &mut ToyCard, port: u8, but: u8, lost: bool) {
    let queue = &mut toy.queues[usize::from(port)];
    let (next, end) = (queue.posted.fetch_at(), queue.posted.head());
    let free = (end + SLOTS - 1 - next) % SLOTS;
    for n in 0..free {
        let at = (next + n) % SLOTS;
        let buffer = if lost && n == 5 { !0xfff } else { BUFFERS + BUFFER * u64::from(at) };
        let raw = toy.memory.range(Function::Vf(port), RINGS[1] + 16 * u64::from(at), 16).unwrap();
        raw.copy_from_slice(&u128::from(buffer).to_le_bytes());
    }
    queue.rx_tail = (next + free.saturating_sub(but.into())) % SLOTS;
}

proptest! {
    #![proptest_config(Config { cases: 400, ..Config::default() })]

    #[test]
    fn bursts_of_frames_leave_the_same_memory_as_single_frames(acts in proptest::collection::vec(act(), 1..40)) {
        let (usual, careful) = (left_behind(&acts, false), left_behind(&acts, true));
        assert_eq!((usual.2, usual.3, &usual.1), (careful.2, careful.3, &careful.1));
        assert_eq!(usual.0.difference(&careful.0), None);
    }
}

#[test]
fn burst_of_frames_reaches_its_receiver() {
    let acts =
        [ToyCardAction::Post(1, 0, false), ToyCardAction::Send(0, 1, 2, 29), ToyCardAction::Poll(1, 64)];
    let (mut memory, _, counters, _) = left_behind(&acts, false);
    assert_eq!((counters[0].tx_packets, counters[1].rx_packets), (29, 29));
    let raw = memory.range(Function::Vf(1), RINGS[1] + 8, 8).unwrap();
    assert_eq!(u64::from_le_bytes(raw.try_into().unwrap()), memory::DONE | 64);
}

#[test]
fn frame_that_padding_makes_too_long_is_dropped() {
    let acts = [
        ToyCardAction::Police(32),
        ToyCardAction::Post(1, 0, false),
        ToyCardAction::Send(0, 1, 0, 9),
        ToyCardAction::Poll(1, 64),
    ];
    let (_, _, counters, _) = left_behind(&acts, false);
    assert_eq!(counters[1].rx_packets, 0);
}

#[test]
fn frames_too_long_for_one_port_reach_other_ports_in_bursts() {
    let acts = [
        ToyCardAction::Police(64),
        ToyCardAction::Post(1, 0, false),
        ToyCardAction::Send(0, 1, 9, 29),
        ToyCardAction::Poll(1, 64),
    ];
    let (memory, _, counters, _) = left_behind(&acts, false);
    assert_eq!((counters[1].rx_packets, memory.gathered), (29, 29));
}

#[test]
fn headers_of_frames_not_yet_due_by_their_rate_are_not_read() {
    let acts = [
        ToyCardAction::Rate(0, Some(1 << 14)),
        ToyCardAction::Post(1, 0, false),
        ToyCardAction::Send(0, 1, 2, 29),
        ToyCardAction::Poll(1, 64),
    ];
    let (memory, _, counters, _) = left_behind_until(&acts, false);
    assert_eq!((counters[1].rx_packets, memory.gathered), (1, 1));
}
