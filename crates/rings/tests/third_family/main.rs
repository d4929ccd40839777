//! Tests a toy card over the same rings and plane as the real cards. Frames in bursts leave the same as frames sent
//! alone: with tags, rates, groups, faults, too few buffers, and policies that change between bursts.

mod careful;
mod memory;
mod toy;

use memory::{BUFFER, BUFFERS, Memory, PLAIN, REPORT, RINGS, SENT, SLOTS};
use pcie::{Function, Hint};
use plane::pacing::Pacing;
use plane::switch::{Fit, Ids, PortTag, Storm, Tables};
use plane::uplink::{Uplink, Wire};
use plane::{Plane, Port, PortCounters, Ports, Sender};
use proptest::prelude::{Strategy, any, prop_oneof, proptest};
use proptest::test_runner::Config;
use rings::Posted;
use toy::{Queue, Toy};
use units::{MacAddress, Time};

const PORTS: usize = 4;

/// Action of a test on the toy card.
#[derive(Debug, Clone)]
enum Act {
    /// Sends a number of frames of a kind, from a port to an address.
    Send(u8, u8, u8, usize),
    /// Posts a port's buffers anew, except a number of them. One may be outside of memory.
    Post(u8, u8, bool),
    /// Sets another policy of the plane.
    Police(u8),
    /// Sets a port's rate.
    Rate(u8, Option<u32>),
    Poll(u64, usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0..3_u8, 0..6_u8, any::<u8>(), 1..30_usize).prop_map(|(from, to, kind, n)| Act::Send(from, to, kind, n)),
        3 => (0..3_u8, 0..48_u8, any::<bool>()).prop_map(|(port, but, lost)| Act::Post(port, but, lost)),
        1 => any::<u8>().prop_map(Act::Police),
        1 => (0..3_u8, proptest::option::of(1_u32..1 << 20)).prop_map(|(port, rate)| Act::Rate(port, rate)),
        6 => (0..50_000_u64, 1..70_usize).prop_map(|(later, budget)| Act::Poll(later, budget)),
    ]
}

/// Uplink that keeps the sent frames.
#[derive(Default)]
struct Sent(Vec<Vec<u8>>);

impl Wire for Sent {
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

fn tables(bits: u8) -> Tables<PORTS> {
    let mut tables = Tables::closed(PORTS);
    let all = Ports::new(0b111);
    (tables.shared, tables.replicate, tables.loopback) = (true, true, true);
    (tables.all, tables.enabled, tables.broadcast, tables.untagged) = (all, all, all, all);
    tables.filter_vlans = true;
    tables.vlans.accept(Ids::from_words(|_| u32::MAX));
    tables.vlans.add(7, all, false);
    (0..3).for_each(|n| tables.exact.add(MacAddress(address(n)), Port::of_field(n.into()).only()));
    if bits & 1 != 0 {
        tables.tags = [PortTag::Always(7); PORTS];
    }
    tables.strips = Ports::new((bits >> 1 & 7).into());
    tables.check_source = if bits & 16 != 0 { all } else { Ports::NONE };
    if bits & 32 != 0 {
        // Padding makes short frames too long for these ports.
        tables.set_fits([Fit::whole(60); PORTS]);
    } else if bits & 64 != 0 {
        // One port takes short frames only.
        tables.set_fits([1518, 1518, 100, 1518].map(Fit::whole));
    }
    tables
}

/// Returns memory, frames and counters after a conversation, once all sent frames have become due.
fn left_behind(acts: &[Act], careful: bool) -> (Memory, Vec<Vec<u8>>, Vec<PortCounters>, usize) {
    left_behind_until(&[acts, &[Act::Poll(1 << 40, 100)]].concat(), careful)
}

/// Returns memory, frames and counters after the actions of a conversation so far.
fn left_behind_until(acts: &[Act], careful: bool) -> (Memory, Vec<Vec<u8>>, Vec<PortCounters>, usize) {
    let queue = || Queue { head: 0, tail: 0, posted: Posted::at(0), rx_tail: 0, hints: [Hint::default(); 2] };
    let (queues, memory) = ((0..3).map(|_| queue()).collect(), Memory::new(3));
    let mut toy = Toy { queues, memory, careful, places: None, at_hand: [[0; 16]; 32], refused: 0 };
    let counters = [PortCounters::default(); PORTS];
    let mut plane = Plane::<PORTS>::new(tables(0), Pacing::new(None), Storm::default(), counters);
    plane.uplink = Uplink { link: true, receives: true, ..Uplink::default() };
    let (mut wire, mut now) = (Sent::default(), 0);
    for act in acts {
        match *act {
            Act::Send(from, to, kind, count) => send(&mut toy, from, &frame(from, to, kind), count, kind),
            Act::Post(port, but, lost) => post(&mut toy, port, but, lost),
            Act::Police(bits) => plane.set_tables(tables(bits)),
            Act::Rate(port, rate) => plane.pacing.set_rate(Port::of_field(port.into()), rate),
            Act::Poll(later, budget) => {
                now += later;
                plane.now = Time::from_nanos(now);
                for port in (0..3).map(Port::of_field) {
                    plane.visit(Sender { port, queue: 0 }, budget, &mut toy, &mut wire);
                }
                toy.settle();
            }
        }
    }
    let counters = (0..3).map(|n| plane.ledger.total(Port::of_field(n))).collect();
    (toy.memory, wire.0, counters, toy.refused)
}

/// Puts `count` copies of a frame into a transmit ring, or fewer if the ring is full. The last copy is outside of
/// memory, or not marked as plain.
fn send(toy: &mut Toy, from: u8, frame: &[u8], count: usize, kind: u8) {
    let function = Function::Vf(from);
    let place = SENT + 0x1000 * u64::from(kind % 16);
    toy.memory.range(function, place, frame.len()).unwrap().copy_from_slice(frame);
    for n in (0..count).rev() {
        let Queue { head, tail, .. } = toy.queues[usize::from(from)];
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

fn post(toy: &mut Toy, port: u8, but: u8, lost: bool) {
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
    let acts = [Act::Post(1, 0, false), Act::Send(0, 1, 2, 29), Act::Poll(1, 64)];
    let (mut memory, _, counters, _) = left_behind(&acts, false);
    assert_eq!((counters[0].tx_packets, counters[1].rx_packets), (29, 29));
    let raw = memory.range(Function::Vf(1), RINGS[1] + 8, 8).unwrap();
    assert_eq!(u64::from_le_bytes(raw.try_into().unwrap()), memory::DONE | 64);
}

#[test]
fn frame_that_padding_makes_too_long_is_dropped() {
    let acts = [Act::Police(32), Act::Post(1, 0, false), Act::Send(0, 1, 0, 9), Act::Poll(1, 64)];
    let (_, _, counters, _) = left_behind(&acts, false);
    assert_eq!(counters[1].rx_packets, 0);
}

#[test]
fn length_limit_of_one_port_spares_bursts_to_other_ports() {
    let acts = [Act::Police(64), Act::Post(1, 0, false), Act::Send(0, 1, 9, 29), Act::Poll(1, 64)];
    let (memory, _, counters, _) = left_behind(&acts, false);
    assert_eq!((counters[1].rx_packets, memory.gathered), (29, 29));
}

#[test]
fn only_headers_of_frames_that_are_due_are_read() {
    let acts =
        [Act::Rate(0, Some(1 << 14)), Act::Post(1, 0, false), Act::Send(0, 1, 2, 29), Act::Poll(1, 64)];
    let (memory, _, counters, _) = left_behind_until(&acts, false);
    assert_eq!((counters[1].rx_packets, memory.gathered), (1, 1));
}
