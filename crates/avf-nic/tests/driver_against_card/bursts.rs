//! Tests random descriptors under random policies, without drivers. A card that sends frames in bursts leaves the same
//! memory, frames, interrupts and counters as a card that sends each frame alone.

mod small_buffers;

use crate::built::tcp4;
use crate::offloads::{segments, with_checksums};
use crate::world::{CardFixture, mac};
use avf::control::{
    CardCommand, CardControl, QueueInterruptCause, RssHashFunction, RxQueueContext, TxQueueContext,
    VlanTagHandling,
};
use avf::descriptor::rx::{self, RxDescriptorFormat};
use avf::descriptor::tx::{TxDataDescriptor, TxIpHeaderKind, TxL4Checksum};
use avf::ids::{HASH_KEY, LOOKUP_TABLE};
use avf::register as r;
use pcie::Function;
use plane::PortIndex;
use plane::switch::{PortMirrorRule, PortMirrorRules};
use proptest::prelude::{Strategy, any, prop, prop_oneof, proptest};
use proptest::test_runner::Config;
use units::{Time, VlanIds, WorkCost};

const VFS: u8 = 3;
/// Number of descriptors in a ring; then the distances between rings and between buffers, in bytes.
const SLOTS: u32 = 40;
const RING: u64 = 0x1000;
const BUFFER: u64 = 0x1000;
/// Bus addresses in the test of transmit rings, receive rings, sent frames and receive buffers.
const TX: u64 = 0x0;
const RX: u64 = 0x8000;
const SENT: u64 = 0x1_0000;
const BUFFERS: u64 = 0x4_0000;
/// Bus address without memory, at which requests fault.
const NOWHERE: u64 = 0xffff_ffff_ffff_f000;

/// Action of a guest, the PF, the uplink or time on a card without drivers.
#[derive(Debug, Clone)]
enum BurstTestAction {
    /// Sets up a VF's queues again: the VF, its receive settings (descriptor form, bytes of a buffer, longest frame),
    /// and whether frames keep their check sequence.
    SetUp(u8, [u8; 3], bool),
    /// Sends `count` frames of a kind to station `to` from a VF's queue.
    Send {
        vf: u8,
        queue: u8,
        to: u8,
        kind: u8,
        flags: u8,
        count: usize,
    },
    /// Sends a random transmit descriptor: the VF, the queue, and the descriptor's bytes.
    Raw(u8, u8, [u8; 16]),
    /// Posts receive buffers: the VF, the queue, the number of buffers, and true to place one outside memory.
    Post(u8, u8, u32, bool),
    /// Writes a ring's tail: the VF, the queue, true for the receive ring, and the value.
    Tail(u8, u8, bool, u32),
    /// Sets a VF's tag handling, spoof check, promiscuous mode and hashes: the VF, and a bit for each.
    Police(u8, u16),
    Rate(u8, u32),
    Mirror(bool),
    Arrive(u8, u8),
    /// Lets time pass and polls the card: the nanoseconds, and the frame budget.
    Poll(u64, usize),
}

fn act() -> impl Strategy<Value = BurstTestAction> {
    let vf = || 0..VFS;
    let queue = || 0..2_u8;
    let to = || prop_oneof![8 => 0..VFS, 1 => 0..6_u8];
    prop_oneof![
        2 => (vf(), any::<[u8; 3]>(), prop::bool::weighted(0.1)).prop_map(|(vf, kinds, fcs)| BurstTestAction::SetUp(vf, kinds, fcs)),
        8 => (vf(), queue(), to(), any::<u8>(), any::<u8>(), 1..34_usize)
            .prop_map(|(vf, queue, to, kind, flags, count)| BurstTestAction::Send { vf, queue, to, kind, flags, count }),
        1 => (vf(), queue(), any::<[u8; 16]>(), any::<u8>()).prop_map(|(vf, queue, mut raw, likely)| {
            raw[8] = if likely & 1 == 0 { 0x30 | raw[8] & 0x40 } else { raw[8] };
            raw[9] &= if likely & 2 == 0 { 0 } else { 0xff };
            BurstTestAction::Raw(vf, queue, raw)
        }),
        5 => (vf(), queue(), 0..SLOTS, prop::bool::weighted(0.05))
            .prop_map(|(vf, queue, count, lost)| BurstTestAction::Post(vf, queue, count, lost)),
        1 => (vf(), queue(), any::<bool>(), 0..SLOTS + 2)
            .prop_map(|(vf, queue, rx, tail)| BurstTestAction::Tail(vf, queue, rx, tail)),
        2 => (vf(), any::<u16>()).prop_map(|(vf, bits)| BurstTestAction::Police(vf, bits)),
        1 => (vf(), prop_oneof![0..3_u32, 100..20_000_u32]).prop_map(|(vf, rate)| BurstTestAction::Rate(vf, rate)),
        1 => prop::bool::weighted(0.2).prop_map(BurstTestAction::Mirror),
        2 => (to(), any::<u8>()).prop_map(|(to, kind)| BurstTestAction::Arrive(to, kind)),
        8 => (0..40_000_u64, 1..70_usize).prop_map(|(later, budget)| BurstTestAction::Poll(later, budget)),
    ]
}

/// Returns a TCP frame from VF `from` to station `to`. Its kind selects the payload length, and a fault or change of
/// its headers.
fn frame(from: u8, to: u8, kind: u8) -> Vec<u8> {
    let payload = vec![kind; [0, 6, 10, 100, 1_400, 1_990, 2_500, 7_000][usize::from(kind & 7)]];
    let mut bytes = tcp4(&payload);
    bytes[..6].copy_from_slice(&if to == 5 { [0xff; 6] } else { mac(to).0 });
    bytes[6..12].copy_from_slice(&mac(from).0);
    match kind >> 3 {
        0 => bytes[24] ^= 1,
        1 => *bytes.last_mut().unwrap() ^= 1,
        2 => _ = bytes.splice(12..12, [0x81, 0, 0, 7]),
        3 => bytes[12] = 0x88,
        4 => bytes[11] ^= 9,
        5 => bytes.push(kind),
        6 => bytes[17] = bytes[17].wrapping_add(6),
        7 => bytes.truncate(20),
        8 => bytes[14] = 0x46,
        9 => bytes[20] = 0x20,
        10 => bytes[23] = 17,
        11 => bytes[46] = 0xf0,
        12 => bytes[35] ^= kind,
        _ => {}
    }
    bytes
}

/// A card whose VFs have no drivers, and the ring indices of the test that acts as the guests.
struct DriverlessFixture {
    world: CardFixture,
    /// Tails of each VF's receive rings and of its transmit rings, one for each queue.
    tails: [[[u32; 2]; 2]; VFS as usize],
    /// First receive descriptor of each queue that the test has not yet found filled.
    heads: [[u32; 2]; VFS as usize],
    forms: [RxDescriptorFormat; VFS as usize],
}

impl DriverlessFixture {
    fn new(careful: bool) -> Self {
        let mut world = CardFixture::new(VFS).across_a_plane();
        world.pf = None;
        // A frame alone costs more than in a burst, so a VF could send fewer of them in a round.
        world.plane.as_mut().unwrap().shares.set_quantum(WorkCost(u32::MAX));
        if careful {
            world.card.take_no_shortcuts();
        }
        for vf in 0..VFS {
            world.card.order(vf, CardCommand::Address { mac: mac(vf).0, on: true });
            [0, 7].into_iter().for_each(|vlan| world.card.order(vf, CardCommand::Vlan { vlan, on: true }));
            world
                .card
                .order(vf, CardCommand::HashKey(&core::array::from_fn::<u8, HASH_KEY, _>(|at| at as u8 * 5)));
            // Queues 2 and 3 do not run.
            let table = core::array::from_fn::<u8, LOOKUP_TABLE, _>(|entry| entry as u8 % 4);
            world.card.order(vf, CardCommand::LookupTable(&table));
            let cause = |vector| Some(QueueInterruptCause { vector, itr: 3 });
            for queue in 0..2 {
                world.card.order(vf, CardCommand::MapRx(queue, cause(1 + queue)));
                world.card.order(vf, CardCommand::MapTx(queue, cause(1)));
            }
        }
        let (tails, heads, forms) = Default::default();
        let mut guests = Self { world, tails, heads, forms };
        (0..VFS).for_each(|vf| guests.set_up(vf, [vf, 3, 3], false));
        guests
    }

    fn set_up(&mut self, vf: u8, [form, buffer, longest]: [u8; 3], keep_fcs: bool) {
        let card = &mut self.world.card;
        card.order(vf, CardCommand::Run { rx: 0, tx: 0 });
        let form = [
            RxDescriptorFormat::Short,
            RxDescriptorFormat::Legacy,
            RxDescriptorFormat::Flex(17),
            RxDescriptorFormat::FlexLate,
        ][usize::from(form & 3)];
        self.forms[usize::from(vf)] = form;
        for queue in 0..2 {
            let buffer_bytes = [64, 512, 2_000, 2_048][usize::from(buffer & 3)];
            let max_frame = [600, 1_518, 2_030, 9_728][usize::from(longest & 3)];
            let at = RING * u64::from(queue);
            let rx = RxQueueContext {
                base: RX + at,
                length: SLOTS as u16,
                form,
                buffer_bytes,
                max_frame,
                keep_fcs,
            };
            card.order(vf, CardCommand::ConfigureRx(queue, rx));
            let head_address = (form == RxDescriptorFormat::Short).then_some(TX + at + RING - 4);
            let tx = TxQueueContext { base: TX + at, length: SLOTS as u16, head_address };
            card.order(vf, CardCommand::ConfigureTx(queue, tx));
            card.write(vf, r::qrx_tail(queue), 0);
            card.write(vf, r::qtx_tail(queue), 0);
        }
        card.order(vf, CardCommand::Run { rx: 3, tx: 3 });
        (self.tails[usize::from(vf)], self.heads[usize::from(vf)]) = ([[0; 2]; 2], [0; 2]);
        (0..2).for_each(|queue| self.post(vf, queue, SLOTS - 1, false));
    }

    fn store(&mut self, vf: u8, at: u64, bytes: &[u8]) {
        self.world.memories.of(Function::Vf(vf))[at as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    fn put(&mut self, vf: u8, queue: u8, raw: &[u8; 16]) {
        let tail = self.tails[usize::from(vf)][usize::from(queue)][1];
        self.store(vf, TX + RING * u64::from(queue) + 16 * u64::from(tail), raw);
        self.tails[usize::from(vf)][usize::from(queue)][1] = (tail + 1) % SLOTS;
    }

    fn ring(&mut self, vf: u8, queue: u8) {
        let [rx, tx] = self.tails[usize::from(vf)][usize::from(queue)];
        self.world.card.write(vf, r::qrx_tail(queue), rx);
        self.world.card.write(vf, r::qtx_tail(queue), tx);
    }

    /// Sends `count` copies of a frame. `flags` may change the last copy: shorter, outside of memory, in two buffers,
    /// to be segmented.
    fn send(&mut self, (vf, queue): (u8, u8), bytes: &[u8], flags: u8, count: usize) {
        let place = SENT + 0x2000 * u64::from(flags % 16);
        self.store(vf, place, bytes);
        let length = bytes.len() as u16;
        let sums = with_checksums(TxL4Checksum::Tcp, TxDataDescriptor::default());
        let asked = if flags & 0x30 == 0x30 { sums } else { TxDataDescriptor::default() };
        let tag = (flags & 0xc0 == 0xc0).then_some(7);
        let data = TxDataDescriptor { address: place, length, end_of_packet: true, tag, ..asked };
        for n in 0..count.saturating_sub(1) {
            self.put(vf, queue, &TxDataDescriptor { report_status: n % 3 == 0, ..data }.emit());
        }
        let last = TxDataDescriptor { report_status: flags & 1 == 0, ..data };
        match flags >> 1 & 7 {
            0 if count.is_multiple_of(8) => {
                self.put(vf, queue, &TxDataDescriptor { address: NOWHERE, ..data }.emit());
            }
            1 => {
                let short = TxDataDescriptor { length: length.saturating_sub(9), ..last };
                self.put(vf, queue, &short.emit());
            }
            2 if length > 40 => {
                self.put(vf, queue, &TxDataDescriptor { length: 30, end_of_packet: false, ..data }.emit());
                let rest = TxDataDescriptor { address: place + 30, length: length - 30, ..last };
                self.put(vf, queue, &rest.emit());
            }
            3 if length > 54 => {
                let whole = TxDataDescriptor { address: place, length, tag, ..sums };
                let whole = TxDataDescriptor { report_status: last.report_status, ..whole };
                // The payload is in one buffer, or in several that end within segments.
                self.send_large((vf, queue), whole, if flags & 0x10 == 0 { length } else { 1_111 });
            }
            4 => {
                let (l4, ip) = (TxL4Checksum::Udp, TxIpHeaderKind::V4);
                self.put(vf, queue, &TxDataDescriptor { mac_length: 60, l4, ip, ..last }.emit());
            }
            5 => self.put(vf, queue, &TxDataDescriptor { length: 16, ..data }.emit()),
            _ => self.put(vf, queue, &last.emit()),
        }
        self.ring(vf, queue);
    }

    /// Sends a packet with the first descriptor `whole`, which the card segments, from buffers of up to `piece` bytes.
    fn send_large(&mut self, (vf, queue): (u8, u8), whole: TxDataDescriptor, piece: u16) {
        let payload = u32::from(whole.length) - 54;
        self.put(vf, queue, &segments(payload, 600).emit());
        let mut left = whole.length;
        while left > 0 {
            let (at, length) = (whole.length - left, left.min(piece));
            left -= length;
            let address = whole.address + u64::from(at);
            let buffer = TxDataDescriptor { address, length, end_of_packet: left == 0, ..whole };
            self.put(vf, queue, &buffer.emit());
        }
    }

    /// Posts up to `count` receive buffers while the ring has room. With `lost` the sixth buffer is outside of memory.
    fn post(&mut self, vf: u8, queue: u8, count: u32, lost: bool) {
        let (n, q, size) = (usize::from(vf), usize::from(queue), self.forms[usize::from(vf)].size() as u64);
        let at = |slot: u32| RX + RING * u64::from(queue) + size * u64::from(slot);
        let [mut tail, mut head] = [self.tails[n][q][0], self.heads[n][q]];
        let memory = self.world.memories.of(Function::Vf(vf));
        while head != tail && memory[at(head) as usize + 8] & 1 != 0 {
            head = (head + 1) % SLOTS;
        }
        for n in 0..count.min((head + SLOTS - 1 - tail) % SLOTS) {
            let slot = u64::from(u32::from(queue) * SLOTS + tail);
            let buffer = if lost && n == 5 { NOWHERE } else { BUFFERS + BUFFER * slot };
            self.store(vf, at(tail), &rx::posted(buffer)[..size as usize]);
            tail = (tail + 1) % SLOTS;
        }
        (self.tails[n][q][0], self.heads[n][q]) = (tail, head);
        self.ring(vf, queue);
    }

    fn police(&mut self, vf: u8, bits: u16) {
        let on = |bit: u16| bits >> bit & 1 != 0;
        let port_vlan = (bits >> 4 & 3 == 3).then_some(7);
        let tags = VlanTagHandling { strip: on(0), insert: on(1), port_vlan };
        let table: [u8; LOOKUP_TABLE] = core::array::from_fn(|at| (at % 3) as u8);
        let function = if on(9) { RssHashFunction::Symmetric } else { RssHashFunction::Toeplitz };
        let types = if on(6) { u64::MAX } else { 0 };
        for order in [
            CardCommand::Tags(tags),
            CardCommand::SpoofCheck(on(2)),
            CardCommand::Promiscuity { unicast: on(3), multicast: on(7) },
            CardCommand::HashTypes(types),
            CardCommand::HashFunction(function),
            CardCommand::LookupTable(&table),
            CardCommand::Vlan { vlan: 7, on: !on(8) },
        ] {
            self.world.card.order(vf, order);
        }
    }

    fn poll(&mut self, later: u64, budget: usize) {
        let Self { world: CardFixture { card, memories, plane, mirrors, cable, now, .. }, .. } = self;
        let plane = plane.as_mut().unwrap();
        *now = Time::from_nanos(now.as_nanos() + later);
        card.poll(*now, memories);
        card.apply_policy(plane, mirrors);
        plane.now = *now;
        card.arrive(plane, budget, memories, cable);
        card.visit_ready(plane, budget, memories, cable);
        card.poll(*now, memories);
    }

    fn perform(&mut self, act: &BurstTestAction) {
        match *act {
            BurstTestAction::SetUp(vf, kinds, fcs) => self.set_up(vf, kinds, fcs),
            BurstTestAction::Send { vf, queue, to, kind, flags, count } => {
                self.send((vf, queue), &frame(vf, to, kind), flags, count);
            }
            BurstTestAction::Raw(vf, queue, raw) => {
                self.put(vf, queue, &raw);
                self.ring(vf, queue);
            }
            BurstTestAction::Post(vf, queue, count, lost) => self.post(vf, queue, count, lost),
            BurstTestAction::Tail(vf, queue, rx, tail) => {
                self.world.card.write(vf, if rx { r::qrx_tail(queue) } else { r::qtx_tail(queue) }, tail);
            }
            BurstTestAction::Police(vf, bits) => self.police(vf, bits),
            BurstTestAction::Rate(vf, rate) => self.world.card.order(vf, CardCommand::Rate(rate)),
            BurstTestAction::Mirror(on) => {
                let [to, ports] = [2, 1].map(|port| PortIndex::of_field(port).only());
                let rule =
                    PortMirrorRule { to, ports, from_uplink: false, to_uplink: false, vlans: VlanIds::new() };
                self.world.mirrors = PortMirrorRules::NONE;
                if on {
                    self.world.mirrors.add(rule);
                }
            }
            BurstTestAction::Arrive(to, kind) => self.world.cable.1.push_back(frame(9, to, kind)),
            BurstTestAction::Poll(later, budget) => self.poll(later, budget),
        }
    }
}

/// Asserts that after the same actions a card with bursts and a card that sends each frame alone have equal memory,
/// frames and counters.
fn assert_ways_agree(acts: &[BurstTestAction]) {
    let [mut usual, mut careful] = [false, true].map(DriverlessFixture::new);
    for (n, act) in acts
        .iter()
        .chain(&[BurstTestAction::Poll(1 << 40, 100), BurstTestAction::Poll(1 << 40, 100)])
        .enumerate()
    {
        let mut seen = [&mut usual, &mut careful].map(|guests| {
            guests.perform(act);
            let CardFixture { card, plane, memories, cable, .. } = &mut guests.world;
            let ports: Vec<_> = (0..VFS)
                .map(|vf| plane.as_ref().unwrap().ledger.total(PortIndex::of_field(vf.into())))
                .collect();
            let statistics: Vec<_> = (0..VFS).map(|vf| card.statistics(vf)).collect();
            let counters: Vec<_> = (0..VFS).map(|vf| card.counters(vf).copied()).collect();
            let sent = std::mem::take(&mut cable.0);
            (ports, statistics, counters, std::mem::take(&mut memories.interrupts), sent, card.due())
        });
        let [usual, careful] = seen.each_mut();
        assert_eq!(usual, careful, "after action {n}");
    }
    for vf in 0..VFS {
        let [usual, careful] =
            [&mut usual, &mut careful].map(|guests| guests.world.memories.of(Function::Vf(vf)));
        let differs = usual.iter().zip(careful.iter()).position(|(usual, careful)| usual != careful);
        assert_eq!(differs.map(|at| format!("{at:#x}")), None, "memory of VF {vf}");
    }
}

#[test]
fn queues_of_a_vf_share_its_account() {
    let mut guests = DriverlessFixture::new(true);
    guests.world.plane.as_mut().unwrap().shares.set_quantum(WorkCost(20));
    (0..2).for_each(|queue| guests.send((0, queue), &[&[2; 6][..], &mac(0).0, &[9; 102]].concat(), 12, 16));
    // A frame alone costs 2 units.
    for (poll, sent) in [(1, 10), (2, 20), (3, 30), (4, 32)] {
        guests.poll(0, 64);
        let counters = guests.world.plane.as_ref().unwrap().ledger.total(PortIndex::of_field(0));
        assert_eq!(counters.tx_packets, sent, "poll {poll}");
    }
}

proptest! {
    #![proptest_config(Config { cases: 100, ..Config::default() })]

    #[test]
    fn sending_frames_singly_or_in_bursts_leaves_equal_memory(acts in prop::collection::vec(act(), 1..40)) {
        assert_ways_agree(&acts);
    }
}
