//! Tests that a card that is saved at any step, written, read back and restored behaves like a card that was not. The
//! steps are random: PF and VFs write registers, rings move, packets wait between segments, the wire delivers frames,
//! functions are reset, and polls stop at their budget.

mod packets;

use crate::common::{CardFixture, POOL, TestBus, data, mac, plain, tagged, tcp};
use crate::random::{bytes, descriptors, rate, register, value};
use i82576::bits::{dtxswc, eerw, eitr, mdic, mrqc, rxcsum, sccrl, srrctl, tcptimer, vlvf, vmolr, vmvir};
use i82576::config::EXPRESS;
use i82576::register::{self as r, rx, vf};
use i82576::table;
use i82576::{PoolIndex, WorkCost};
use nic::{Nic, PollBudget, PollResult};
use packets::{send_large, send_many};
use pcie::Function::{self, Pf, Vf};
use pcie::capability::express;
use pcie::config::offset;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::test_runner::Config;

/// Number of the card's VFs.
const VFS: u8 = 3;

/// An action of a driver, a guest, the host, the wire or of time.
#[derive(Debug, Clone)]
enum SaveRestoreTestAction {
    Write(Function, u32, u32),
    Read(Function, u32),
    Start(u8),
    Send(u8, Vec<[u8; 16]>),
    /// Sends a packet of a VF to be cut into segments ([`packets::send_large`]): the VF, the receiver, the length, and
    /// the packet's shape.
    SendLarge(u8, u8, u16, u8),
    /// VF, receiver, kinds, count: a VF sends equal frames ([`packets::send_many`]).
    SendMany(u8, u8, [u8; 2], usize),
    /// The host changes its policy, by the bits of [`police`].
    Police(u32),
    /// A VF sends this number of buffers of a packet without its end (EOP).
    Chain(u8, usize),
    Post(u8),
    Arrive(Vec<u8>),
    Rate(u8, u32),
    Configure(Function, u16, u32),
    Reset(Function),
    /// The PF sets the port up again, as its driver does at the start.
    SetUp,
    StormControl(u32),
    /// Makes the PF use NVM, PHY, clock, timer or I/O BAR, by the number that [`use_board`] takes.
    Board(u8, u32),
    Link(bool),
    Wait(u64),
    Poll(usize),
}

fn pf_register() -> impl Strategy<Value = u32> {
    let rows: Vec<Vec<u32>> = table::rows().map(|row| row.offsets().collect()).collect();
    (0..rows.len(), any::<usize>()).prop_map(move |(row, i)| rows[row][i % rows[row].len()])
}

fn function() -> impl Strategy<Value = Function> {
    prop_oneof![1 => Just(Pf), 2 => (0..VFS).prop_map(Vf)]
}

fn frame() -> impl Strategy<Value = Vec<u8>> {
    let to = prop_oneof![(0..10u8).prop_map(mac), Just(i82576::MacAddress::BROADCAST)];
    prop_oneof![
        4 => (to, 0..3000usize).prop_map(|(to, length)| plain(to, mac(9), length)),
        1 => (0..VFS, 0..1400usize).prop_map(|(to, length)| tcp(mac(to), mac(9), &vec![3; length])),
        1 => (0..VFS, any::<u16>()).prop_map(|(to, tag)| tagged(tag, &plain(mac(to), mac(9), 64))),
        1 => bytes(200),
    ]
}

fn act() -> impl Strategy<Value = SaveRestoreTestAction> {
    prop_oneof![
        4 => (0..VFS, register(), value()).prop_map(|(vf, at, value)| SaveRestoreTestAction::Write(Vf(vf), at & !3, value)),
        3 => (pf_register(), value()).prop_map(|(at, value)| SaveRestoreTestAction::Write(Pf, at, value)),
        2 => (0..VFS, register()).prop_map(|(vf, at)| SaveRestoreTestAction::Read(Vf(vf), at & !3)),
        2 => pf_register().prop_map(|at| SaveRestoreTestAction::Read(Pf, at)),
        3 => (0..VFS).prop_map(SaveRestoreTestAction::Start),
        3 => (0..VFS, descriptors()).prop_map(|(vf, descriptors)| SaveRestoreTestAction::Send(vf, descriptors)),
        4 => (0..VFS, 0..10u8, 500..20_000u16, any::<u8>()).prop_map(|(vf, to, bytes, shape)| SaveRestoreTestAction::SendLarge(vf, to, bytes, shape)),
        6 => (0..VFS, 0..6u8, any::<[u8; 2]>(), 1..40usize).prop_map(|(vf, to, kinds, count)| SaveRestoreTestAction::SendMany(vf, to, kinds, count)),
        2 => any::<u32>().prop_map(SaveRestoreTestAction::Police),
        // 63 buffers without EOP fill the ring, and their packet is dropped.
        2 => (0..VFS, prop_oneof![3 => Just(63), 1 => 1..64usize]).prop_map(|(vf, count)| SaveRestoreTestAction::Chain(vf, count)),
        2 => (0..VFS).prop_map(SaveRestoreTestAction::Post),
        5 => frame().prop_map(SaveRestoreTestAction::Arrive),
        1 => (0..VFS, rate()).prop_map(|(vf, rate)| SaveRestoreTestAction::Rate(vf, rate)),
        1 => (function(), 0..0x200u16, any::<u16>()).prop_map(|(function, at, value)| SaveRestoreTestAction::Configure(function, at, value.into())),
        1 => function().prop_map(SaveRestoreTestAction::Reset),
        3 => Just(SaveRestoreTestAction::SetUp),
        1 => (0..20u32).prop_map(SaveRestoreTestAction::StormControl),
        3 => (0..5u8, any::<u32>()).prop_map(|(what, value)| SaveRestoreTestAction::Board(what, value)),
        1 => any::<bool>().prop_map(SaveRestoreTestAction::Link),
        3 => (0..2_000u64).prop_map(SaveRestoreTestAction::Wait),
        8 => (1..40usize).prop_map(SaveRestoreTestAction::Poll),
    ]
}

/// Draws actions of which most are traffic to VFs with running rings, so that most frames can travel in bursts.
fn traffic() -> impl Strategy<Value = SaveRestoreTestAction> {
    let to = || prop_oneof![8 => 0..VFS, 1 => 0..6u8];
    prop_oneof![
        3 => act(),
        8 => (0..VFS, to(), any::<[u8; 2]>(), 1..40usize).prop_map(|(vf, to, kinds, count)| SaveRestoreTestAction::SendMany(vf, to, kinds, count)),
        4 => (0..VFS, to(), 500..20_000u16, any::<u8>()).prop_map(|(vf, to, bytes, shape)| SaveRestoreTestAction::SendLarge(vf, to, bytes, shape)),
        6 => (0..VFS).prop_map(SaveRestoreTestAction::Post),
        2 => frame().prop_map(SaveRestoreTestAction::Arrive),
        10 => (1..40usize).prop_map(SaveRestoreTestAction::Poll),
    ]
}

/// Value that an action of the test returns: none, a register's, or the result of a poll.
#[derive(Debug, PartialEq, Eq)]
enum SaveRestoreActionResult {
    Nothing,
    Value(u32),
    Poll(PollResult),
}

fn perform(bench: &mut CardFixture, act: &SaveRestoreTestAction) -> SaveRestoreActionResult {
    match act {
        SaveRestoreTestAction::Write(function, at, value) => {
            bench.nic.write(*function, *at, *value, bench.now);
        }
        SaveRestoreTestAction::Read(function, at) => {
            return SaveRestoreActionResult::Value(bench.nic.read(*function, *at, bench.now));
        }
        SaveRestoreTestAction::Start(n) => {
            bench.vf(*n).start();
            if *n == 1 {
                // Frames for this VF wait for descriptors.
                bench.vf(1).clear(vf::RX_BLOCK + rx::SRRCTL, srrctl::DROP_EN);
            }
            bench.vf(*n).write(vf::VTEITR, 200 << eitr::INTERVAL_SHIFT);
        }
        SaveRestoreTestAction::Send(n, descriptors) => {
            descriptors.iter().for_each(|raw| _ = bench.vf(*n).put(*raw));
            bench.vf(*n).ring();
        }
        SaveRestoreTestAction::SendLarge(n, to, bytes, shape) => send_large(bench, *n, *to, *bytes, *shape),
        SaveRestoreTestAction::SendMany(n, to, kinds, count) => send_many(bench, *n, *to, *kinds, *count),
        SaveRestoreTestAction::Police(bits) => police(bench, *bits),
        SaveRestoreTestAction::Chain(n, count) => {
            // Not in a ring: a card may read it before or after it writes descriptors back.
            let buffer = data(bench.vf(*n).place(&[0x5a; 100]), 100).emit();
            (0..*count).for_each(|_| _ = bench.vf(*n).put(buffer));
            bench.vf(*n).ring();
        }
        SaveRestoreTestAction::Post(n) => bench.vf(*n).post(5),
        SaveRestoreTestAction::Arrive(frame) => bench.world.wire.incoming.push_back(frame.clone()),
        SaveRestoreTestAction::Rate(n, rate) => {
            bench.pf().write(r::RTTDQSEL, (*n).into());
            bench.pf().write(r::RTTBCNRC, *rate);
        }
        SaveRestoreTestAction::Configure(function, at, value) => bench.config(*function, *at, *value),
        SaveRestoreTestAction::Reset(function) => {
            let control = u16::from(EXPRESS) + express::DEVICE_CONTROL;
            bench.config(*function, control, express::DEVICE_CONTROL_FLR.into());
        }
        SaveRestoreTestAction::SetUp => set_up(bench),
        SaveRestoreTestAction::StormControl(threshold) => {
            bench.pf().write(r::BSCTRH, *threshold);
            bench.pf().write(r::SCCRL, sccrl::BDICW | 1 << sccrl::INTERVAL_SHIFT);
        }
        SaveRestoreTestAction::Board(what, value) => return use_board(bench, *what, *value),
        SaveRestoreTestAction::Link(up) => {
            bench.nic.set_link(*up);
            bench.nic.set_vf_link(crate::common::index(1), up.then_some(false));
        }
        SaveRestoreTestAction::Wait(us) => bench.wait_us(*us),
        SaveRestoreTestAction::Poll(frames) => {
            bench.budget = PollBudget { frames: *frames };
            return SaveRestoreActionResult::Poll(bench.poll_once());
        }
    }
    SaveRestoreActionResult::Nothing
}

/// Sets the host's policy by bits: anti-spoofing, port VLANs, stripping, RSS, checksums in place of hashes, lengths.
fn police(bench: &mut CardFixture, bits: u32) {
    let on = |bit: u32, bits_on: u32| if bits & 1 << bit != 0 { bits_on } else { 0 };
    let mut pf = bench.pf();
    let checks = on(0, 0xff << dtxswc::MAC_SPOOF_SHIFT) | on(1, 0xff << dtxswc::VLAN_SPOOF_SHIFT);
    pf.write(r::DTXSWC, dtxswc::LOOPBACK_EN | checks);
    pf.write(r::vlvf(0), vlvf::VLANID_EN | (bits >> 8 & 0xff) << vlvf::POOLSEL_SHIFT | 5);
    for pool in (0..VFS).map(|n| PoolIndex::EVERY[usize::from(n)]) {
        pf.write(r::vmvir(pool), on(2, vmvir::DEFAULT | 5));
        pf.write(r::vmolr(pool), POOL | on(3, vmolr::STRVLAN) | on(4, vmolr::RSSE));
    }
    if bits & 1 << 6 != 0 {
        // A pool accepts short frames only.
        pf.write(r::vmolr(PoolIndex::EVERY[2]), POOL & !vmolr::RLPML_MASK | 200);
    }
    pf.write(r::MRQC, if bits & 1 << 4 == 0 { mrqc::VMDQ } else { mrqc::VMDQ_RSS | mrqc::TCP_IPV4 });
    pf.write(r::RXCSUM, rxcsum::IPOFL | rxcsum::TUOFL | on(5, rxcsum::PCSD));
}

/// Uses timer, clock, NVM, PHY or I/O BAR, selected by `what`, with a value. Returns the value read, or SYSTIML.
fn use_board(bench: &mut CardFixture, what: u8, value: u32) -> SaveRestoreActionResult {
    match what {
        0 => bench.pf().write(r::TCPTIMER, tcptimer::KICK_START | tcptimer::COUNT_EN | (value % 4 + 1)),
        1 => bench.pf().write(r::TIMINCA, 1 << 24 | (value % 0x1000)),
        2 => bench.pf().write(r::EEWR, eerw::START | value & !eerw::DONE),
        3 => bench.pf().write(r::MDIC, mdic::WRITE | 1 << mdic::PHY_SHIFT | value & 0x001f_ffff),
        _ if value & 1 != 0 => bench.nic.io_write(0, &(value & 0x1_fffc).to_le_bytes(), bench.now),
        _ => {
            let mut word = [0; 4];
            bench.nic.io_read(u64::from(value & 4), &mut word, bench.now);
            return SaveRestoreActionResult::Value(u32::from_le_bytes(word));
        }
    }
    SaveRestoreActionResult::Value(bench.pf().read(r::SYSTIML))
}

/// Sets up the port as its PF driver does at its start: bus mastering, VFs, link and registers.
fn set_up(bench: &mut CardFixture) {
    bench.config(Pf, offset::COMMAND, u32::from(offset::COMMAND_MEMORY | offset::COMMAND_BUS_MASTER));
    bench.enable_vfs(VFS);
    bench.nic.set_link(true);
    bench.set_up_port(VFS);
}

/// Saves a card as bytes, and returns the card that a successor restores from them.
fn set_aside(nic: &Nic) -> Nic {
    let bytes = postcard::to_allocvec(&nic.save()).unwrap();
    let state: nic::NicState = postcard::from_bytes(&bytes).unwrap();
    assert!(
        postcard::to_allocvec(&state).unwrap() == bytes,
        "a state that is read back and saved again has the same bytes"
    );
    Nic::restore(state).unwrap()
}

/// All visible effects on the card of a sequence of actions.
#[derive(PartialEq, Eq)]
struct SaveRestoreTestTrace {
    answers: Vec<SaveRestoreActionResult>,
    /// Test bus: the functions' memory, and a log of the card's memory requests and interrupts.
    bus: TestBus,
    frames: Vec<Vec<u8>>,
    counters: nic::PoolCounterArray,
    configuration: Vec<Vec<u8>>,
    registers: Vec<u32>,
}

/// Runs the actions, and saves and restores the card before those for which `when` is true.
fn trace(
    acts: &[SaveRestoreTestAction],
    loopback: u64,
    when: impl Fn(usize) -> bool,
) -> SaveRestoreTestTrace {
    trace_of(CardFixture::with_loopback(VFS, core::num::NonZeroU64::new(loopback)), acts, when)
}

/// Share of each pool in the card's time. A restored card begins with new accounts, and a frame alone costs more than in a
/// burst, so with the usual share the compared cards would send the same frames in other polls.
const UNLIMITED: WorkCost = WorkCost(u32::MAX);

fn trace_of(
    mut bench: CardFixture,
    acts: &[SaveRestoreTestAction],
    when: impl Fn(usize) -> bool,
) -> SaveRestoreTestTrace {
    (0..VFS).for_each(|vf| bench.vf(vf).start());
    bench.nic.set_frame_quantum(UNLIMITED);
    let mut answers = Vec::new();
    for (i, act) in acts.iter().enumerate() {
        if when(i) {
            bench.nic = set_aside(&bench.nic);
            bench.nic.set_frame_quantum(UNLIMITED);
        }
        answers.push(perform(&mut bench, act));
    }
    for _ in 0..10 {
        let poll = bench.poll_once();
        bench.now = poll.deadline.unwrap_or(bench.now);
        answers.push(SaveRestoreActionResult::Poll(poll));
    }
    let functions: Vec<Function> = std::iter::once(Pf).chain((0..VFS).map(Vf)).collect();
    let configuration = functions.iter().map(|function| {
        let mut bytes = vec![0; pcie::config::SIZE];
        bench.nic.config_read_bytes(*function, 0, &mut bytes);
        bytes
    });
    let configuration = configuration.collect();
    let counters = *bench.nic.counters();
    let offsets = table::rows().flat_map(table::PfRegister::offsets).map(|at| (Pf, at));
    let registers = offsets.chain((0..0x4000).step_by(4).flat_map(|at| (0..VFS).map(move |n| (Vf(n), at))));
    let registers = registers.map(|(function, at)| bench.nic.read(function, at, bench.now)).collect();
    SaveRestoreTestTrace {
        answers,
        frames: bench.wire_got(),
        bus: bench.world.bus,
        counters,
        configuration,
        registers,
    }
}

/// Returns a message about the first difference of two traces, or `None` if they are equal.
fn difference(kept: &SaveRestoreTestTrace, continued: &SaveRestoreTestTrace) -> Option<String> {
    fn first<T: PartialEq>(kept: &[T], continued: &[T]) -> Option<usize> {
        kept.iter().zip(continued).position(|(kept, continued)| kept != continued)
    }
    let answer = first(&kept.answers, &continued.answers);
    let request = first(&kept.bus.log, &continued.bus.log);
    let register = first(&kept.registers, &continued.registers);
    let counters = (kept.counters != continued.counters).then_some((kept.counters, continued.counters));
    (kept != continued).then(|| {
        format!("answer {answer:?}, request {request:?}, register {register:?}, counters {counters:?}")
    })
}

proptest! {
    #![proptest_config(Config { cases: 500, ..Config::default() })]

    #[test]
    fn restored_card_behaves_like_the_saved_one(
        acts in proptest::collection::vec(act(), 1..50),
        loopback in prop_oneof![Just(0), Just(100_000_000)],
        when in any::<u64>(),
    ) {
        let kept = trace(&acts, loopback, |_| false);
        let continued = trace(&acts, loopback, |i| when >> (i % 64) & 1 != 0);
        assert_eq!(difference(&kept, &continued), None);
    }

    #[test]
    fn burst_and_single_frame_processing_have_equal_effects(
        acts in proptest::collection::vec(traffic(), 1..60),
        loopback in prop_oneof![Just(0), Just(100_000_000)],
    ) {
        // Linux has checksums reported in the place of hashes of fragments, so that a glance tells all.
        let acts = [vec![SaveRestoreTestAction::Police(1 << 5)], acts].concat();
        let mut usual = trace(&acts, loopback, |_| false);
        let mut bench = CardFixture::with_loopback(VFS, core::num::NonZeroU64::new(loopback));
        bench.nic.take_no_shortcuts();
        let mut careful = trace_of(bench, &acts, |_| false);
        // The memory is equal in the end, but the requests differ.
        (usual.bus.log, careful.bus.log) = (Vec::new(), Vec::new());
        assert_eq!(difference(&usual, &careful), None);
    }
}
