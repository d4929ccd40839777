//! Tests that a VF which acts at random does not disturb its neighbours' frames, and that the same actions always have
//! the same effects.

use crate::common::{BASE, CardFixture, MemoryRequest, SIZE, mac, plain};
use i82576::bits::{dctl, rttbcnrc};
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor, L4PacketType};
use i82576::register::{self as r, rx, tx, vf};
use i82576::window;
use pcie::Function::{self, Vf};
use pcie::config::offset;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::test_runner::Config;

/// An action of VF 0's guest, of its VMM, of the PF, of the wire or of time.
#[derive(Debug, Clone)]
enum RandomCardAction {
    Write(u32, u32),
    WriteBytes(u64, Vec<u8>),
    Read(u64, usize),
    Poke(u64, Vec<u8>),
    Send(Vec<[u8; 16]>),
    Start,
    Post,
    Arrive(Vec<u8>),
    Wait(u64),
    FunctionLevelReset,
    PfReset,
    Poll,
}

pub(crate) fn value() -> impl Strategy<Value = u32> {
    prop_oneof![
        any::<u32>(),
        0u32..70,
        (0u32..SIZE as u32).prop_map(|at| BASE as u32 + at),
        (0u32..32).prop_map(|bit| 1 << bit),
        (0u32..0x20).prop_map(|count| count * 128),
        Just(dctl::ENABLE),
    ]
}

/// Draws a register of the VF, or any other offset.
pub(crate) fn register() -> impl Strategy<Value = u32> {
    let known = (0..window::TABLE.len(), any::<u32>()).prop_map(|(row, element)| {
        let row = &window::TABLE[row];
        row.offset + element % row.count * row.stride
    });
    let rings = prop_oneof![Just(vf::RX_BLOCK), Just(vf::TX_BLOCK)];
    prop_oneof![4 => known, 4 => (rings, 0u32..16).prop_map(|(block, i)| block + 4 * i), 1 => any::<u32>()]
}

fn address() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => (0..SIZE as u64).prop_map(|at| BASE + at),
        1 => any::<u64>(),
        1 => (0u64..70_000).prop_map(|below| u64::MAX - below),
    ]
}

fn l4() -> impl Strategy<Value = L4PacketType> {
    prop_oneof![
        Just(L4PacketType::Tcp),
        Just(L4PacketType::Udp),
        Just(L4PacketType::Sctp),
        Just(L4PacketType::Reserved)
    ]
}

fn context() -> impl Strategy<Value = [u8; 16]> {
    (0u8..60, 0u16..80, 0u8..40, any::<u16>(), any::<bool>(), l4(), 0u16..3000, 0u8..2).prop_map(
        |(mac_length, ip_length, l4_length, vlan_tag, ipv4, l4, mss, index)| {
            AdvancedContextDescriptor { mac_length, ip_length, l4_length, vlan_tag, ipv4, l4, mss, index }
                .emit()
        },
    )
}

fn data() -> impl Strategy<Value = [u8; 16]> {
    let length = prop_oneof![any::<u16>(), 0u16..2000];
    (address(), length, any::<[bool; 6]>(), 0u8..2).prop_map(|(address, length, flags, context)| {
        let [end_of_packet, report_status, insert_vlan, segment, ip, l4] = flags;
        AdvancedDataDescriptor {
            address,
            length,
            end_of_packet,
            report_status,
            insert_vlan,
            segment,
            insert_ip_checksum: ip,
            insert_l4_checksum: l4,
            context,
            ..AdvancedDataDescriptor::default()
        }
        .emit()
    })
}

pub(crate) fn descriptors() -> impl Strategy<Value = Vec<[u8; 16]>> {
    proptest::collection::vec(prop_oneof![1 => any::<[u8; 16]>(), 3 => data(), 1 => context()], 1..30)
}

pub(crate) fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..most)
}

fn act() -> impl Strategy<Value = RandomCardAction> {
    let frame = (0..10u8, 0..3000usize).prop_map(|(to, length)| plain(mac(to), mac(9), length));
    prop_oneof![
        8 => (register(), value()).prop_map(|(at, value)| RandomCardAction::Write(at, value)),
        1 => (register(), bytes(12)).prop_map(|(at, bytes)| RandomCardAction::WriteBytes(u64::from(at) + 1, bytes)),
        1 => (any::<u64>(), bytes(12)).prop_map(|(at, bytes)| RandomCardAction::WriteBytes(at, bytes)),
        2 => (register(), 0..12usize).prop_map(|(at, length)| RandomCardAction::Read(u64::from(at), length)),
        2 => (0..SIZE as u64 - 64, bytes(64)).prop_map(|(at, bytes)| RandomCardAction::Poke(BASE + at, bytes)),
        4 => descriptors().prop_map(RandomCardAction::Send),
        2 => Just(RandomCardAction::Start),
        1 => Just(RandomCardAction::Post),
        2 => frame.prop_map(RandomCardAction::Arrive),
        1 => bytes(200).prop_map(RandomCardAction::Arrive),
        1 => (0u64..10_000).prop_map(RandomCardAction::Wait),
        1 => Just(RandomCardAction::FunctionLevelReset),
        1 => Just(RandomCardAction::PfReset),
        4 => Just(RandomCardAction::Poll),
    ]
}

fn perform(bench: &mut CardFixture, act: &RandomCardAction) {
    let now = bench.now;
    match act {
        RandomCardAction::Write(at, value) => bench.vf(0).write(*at, *value),
        RandomCardAction::WriteBytes(at, bytes) => bench.nic.write_bytes(Vf(0), *at, bytes, now),
        RandomCardAction::Read(at, length) => bench.nic.read_bytes(Vf(0), *at, &mut vec![0; *length], now),
        RandomCardAction::Poke(at, bytes) => bench.vf(0).poke(*at, bytes),
        RandomCardAction::Send(descriptors) => {
            for raw in descriptors {
                bench.vf(0).put(*raw);
            }
            bench.vf(0).ring();
        }
        RandomCardAction::Start => bench.vf(0).start(),
        RandomCardAction::Post => bench.vf(0).post(5),
        RandomCardAction::Arrive(frame) => bench.world.wire.incoming.push_back(frame.clone()),
        RandomCardAction::Wait(us) => bench.wait_us(*us),
        RandomCardAction::FunctionLevelReset => {
            let control = u16::from(i82576::config::EXPRESS) + pcie::capability::express::DEVICE_CONTROL;
            bench.config(Vf(0), control, u32::from(pcie::capability::express::DEVICE_CONTROL_FLR));
        }
        RandomCardAction::PfReset => {
            bench.pf().write(r::vf_block(crate::common::index(0)), i82576::bits::ctrl::RST);
        }
        RandomCardAction::Poll => drop(bench.poll_once()),
    }
}

/// Restores VF 0's bus mastering and the VFs' traffic enables (VFRE, VFTE), which a random action may have cleared.
fn forgive(bench: &mut CardFixture) {
    bench.config(Vf(0), offset::COMMAND, u32::from(offset::COMMAND_BUS_MASTER));
    bench.pf().write(r::VFRE, 0xff);
    bench.pf().write(r::VFTE, 0xff);
}

/// Returns a card whose VFs 0 to 2 have running rings. VF 0 has a transmit rate unless `rate` is 0.
fn bench(rate: u32) -> CardFixture {
    let mut bench = CardFixture::new(3);
    (0..3).for_each(|vf| bench.vf(vf).start());
    bench.pf().write(r::RTTBCNRC, rate);
    bench
}

/// Draws a value of RTTBCNRC: no rate, a thousandth of the link's, or half of it.
pub(crate) fn rate() -> impl Strategy<Value = u32> {
    let limit = |factor: u32| rttbcnrc::RS_ENA | factor << rttbcnrc::INTEGER_SHIFT;
    prop_oneof![Just(0), Just(limit(1_000)), Just(limit(2))]
}

/// Returns the frames that a VF got, and posts its descriptors again.
fn drain(bench: &mut CardFixture, vf: u8) -> Vec<Vec<u8>> {
    let received = bench.vf(vf).received();
    let taken = received.iter().map(|frame| frame.parts.len() as u32).sum();
    bench.vf(vf).post(taken);
    received.into_iter().map(|frame| frame.bytes).collect()
}

/// Returns true if a memory request is a VF's. Only requests of VF 0, which acts at random, may fault.
fn in_bounds(access: &MemoryRequest) -> bool {
    match access.function {
        Vf(0) => true,
        Vf(1 | 2) => !access.fault,
        Function::Pf | Vf(_) => false,
    }
}

fn finish(bench: &mut CardFixture) {
    // Delayed frames of the random VF would arrive later, between the neighbours' frames.
    let limited = bench.pf().read(r::RTTBCNRC) != 0;
    for _ in 0..50 {
        let poll = bench.poll_once();
        if !(poll.more || limited && poll.deadline.is_some()) {
            return;
        }
    }
    bench.vf(0).write(vf::CTRL, i82576::bits::ctrl::RST);
    forgive(bench);
    bench.poll();
}

/// Visible effects of random actions: memory requests, messages and frames in order, and VF 0's registers.
#[derive(Debug, PartialEq, Eq)]
struct RandomActionTrace {
    requests: Vec<MemoryRequest>,
    messages: Vec<(Function, u16)>,
    frames: Vec<Vec<u8>>,
    registers: Vec<u32>,
}

fn trace(acts: &[RandomCardAction], rate: u32) -> RandomActionTrace {
    let mut bench = bench(rate);
    for act in acts {
        perform(&mut bench, act);
        forgive(&mut bench);
    }
    finish(&mut bench);
    let registers = (0..0x4000).step_by(4).map(|at| bench.vf(0).read(at)).collect();
    let requests = core::mem::take(&mut bench.world.bus.log);
    RandomActionTrace { requests, messages: bench.msix(), frames: bench.wire_got(), registers }
}

proptest! {
    #![proptest_config(Config { cases: 200, ..Config::default() })]

    #[test]
    fn random_actions_of_a_vf_do_not_disturb_other_vfs(
        rounds in proptest::collection::vec(proptest::collection::vec(act(), 1..20), 1..8),
        rate in rate(),
    ) {
        let mut bench = bench(rate);
        for (round, acts) in rounds.iter().enumerate() {
            for act in acts {
                perform(&mut bench, act);
                assert!(bench.world.bus.log.len() < 100_000, "{act:?} makes too many requests");
                let stray = bench.world.bus.log.iter().find(|access| !in_bounds(access));
                assert_eq!(stray, None);
                bench.world.bus.log.clear();
                drain(&mut bench, 1);
                drain(&mut bench, 2);
            }
            forgive(&mut bench);
            finish(&mut bench);
            bench.wait_us(10_000);
            bench.msix();
            drain(&mut bench, 1);
            drain(&mut bench, 2);
            for (from, to) in [(1, 2), (2, 1)] {
                let frame = plain(mac(to), mac(from), 100 + round);
                bench.vf(from).send(&frame);
                assert_eq!(drain(&mut bench, to), [frame]);
                let mut messages = bench.msix();
                // The random VF may still have a throttled message.
                messages.retain(|(function, _)| *function != Vf(0));
                assert_eq!(messages.len(), 2);
                assert!(messages.contains(&(Vf(to), 1)) && messages.contains(&(Vf(from), 0)));
                assert_eq!(bench.vf(to).read(vf::VTEIMS), 7);
                assert_eq!(bench.vf(to).read(vf::RX_BLOCK + rx::RXDCTL) & dctl::ENABLE, dctl::ENABLE);
                assert_eq!(bench.vf(to).read(vf::TX_BLOCK + tx::TXDCTL) & dctl::ENABLE, dctl::ENABLE);
            }
        }
    }

    #[test]
    fn same_random_actions_always_have_the_same_effects(
        acts in proptest::collection::vec(act(), 1..60),
        rate in rate(),
    ) {
        assert_eq!(trace(&acts, rate), trace(&acts, rate));
    }
}
