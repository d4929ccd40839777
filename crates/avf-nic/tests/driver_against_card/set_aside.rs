//! Tests that card, plane and PF driver, saved as bytes at any moment and restored, have the same future as without a
//! hand-over. The conversation is random: drivers send, receive and request, hostile guests write anything, functions
//! are reset, policies change, messages are pending in the PF's queue, packets are pending between segments. The
//! daemon's tests cover the envelope of the bytes.

use crate::offloads::cut;
use crate::pages::MappedVfPages;
use crate::world::{CardFixture, MEMORY, TestPciFunction, mac};
use avf::admin::{AdminQueueDescriptor, SIZE, flag, opcode};
use avf::bits::aqlen;
use avf::register as r;
use avf::virtchnl::{EncodedMessageList, EtherAddress, EtherAddressType, VirtchnlRequest};
use avf_nic::Nic;
use avf_nic::doorbell::Doorbells;
use core::time::Duration;
use driver::Hal;
use driver::avf::pf::{AvfPf, AvfPfState};
use driver::avf::vf::AvfDriver;
use driver::conduct::{QuarantineCause, VfConductMonitor};
use pcie::Function;
use plane::switch::{StormLimit, StormLimits};
use policy::{ConductLimits as Conduct, OffenceThresholds, PortVlan, VfLinkPolicy, VfPolicy};
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
use proptest::test_runner::Config;
use std::hash::{DefaultHasher, Hash, Hasher};
use units::MacAddress;

/// Number of VFs in the random conversation. The last VF maps its doorbells.
pub(crate) const VFS: u8 = 3;
/// Bus address of the mailbox ring in which a hostile guest sends a message.
const RING: u64 = 0x3f_0000;
/// Bus address of the body of a hostile guest's mailbox message.
const BODY: u64 = 0x3f_1000;

/// Events a second at which a VF is logged, throttled, and quarantined.
const LIMITS: Conduct = [OffenceThresholds { warn: 10, throttle: 500, quarantine: 2_000 }; 6];

/// Action of a guest, the PF or the port.
#[derive(Debug, Clone)]
pub(crate) enum HandOverTestAction {
    /// Sends a frame: the VF, its queue, the destination (a VF, 4 for a broadcast, or an address beyond the uplink),
    /// and the length.
    Send(u8, u8, u8, usize),
    /// Sends a TCP packet that the card cuts into segments of 400 bytes: the VF, its queue, the destination and the
    /// length.
    SendLarge(u8, u8, u8, usize),
    Receive(u8),
    /// Makes a VF's driver send a request and wait for the answer: the VF, the request, and its argument.
    Ask(u8, u8, u16),
    /// Sends a message of a guest that the card takes and the PF driver does not serve yet: the VF, the virtchnl
    /// opcode, and the body.
    Letter(u8, u32, Vec<u8>),
    /// The driver of a VF requests a reset by message, and does not wait for its end.
    Reset(u8),
    FunctionLevelReset(u8),
    /// The driver of a VF sets the VF up again.
    Restart(u8),
    Write(u8, u32, u32),
    Read(u8, u32),
    BusMaster(u8, bool),
    Policy(u8, Box<VfPolicy>, u16),
    /// Reports offences of every kind to the PF driver's monitor of a VF: the VF, and the number of each.
    Watch(u8, u64),
    Quarantine(u8, bool),
    ResetAll,
    Link(Option<u32>),
    Storm(u32),
    Arrive(u8, usize),
    Poll,
    /// Advances the clock by this number of microseconds.
    Wait(u64),
}

fn vf() -> impl Strategy<Value = u8> {
    0..VFS
}

fn policy() -> impl Strategy<Value = (VfPolicy, u16)> {
    let state = prop_oneof![3 => Just(VfLinkPolicy::Auto), 1 => Just(VfLinkPolicy::Enable), 1 => Just(VfLinkPolicy::Disable)];
    (any::<[bool; 4]>(), state, 0..3_u32, 0..4_u16, 1..5_u16).prop_map(
        |([spoofchk, trust, enabled, allmulti], state, rate, vlan, pairs)| {
            let policy = VfPolicy {
                vlan: (vlan > 2).then_some(PortVlan { id: vlan, qos: 3 }),
                spoofchk,
                trust,
                enabled: enabled || rate == 0,
                allmulti,
                state,
                max_tx_rate: rate * 10,
                share_mac: spoofchk != allmulti,
                ..VfPolicy::default()
            };
            (policy, pairs)
        },
    )
}

fn register() -> impl Strategy<Value = u32> {
    prop::sample::select(avf::table::rows().flat_map(|row| row.offsets()).collect::<Vec<_>>())
}

fn value() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0..64_u32, 2 => (0..64_u32).prop_map(|word| word << 3 | 1), 1 => any::<u32>()]
}

fn act() -> impl Strategy<Value = HandOverTestAction> {
    let body = prop::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        8 => (vf(), 0..4_u8, 0..6_u8, 60..1_400_usize).prop_map(|(vf, q, to, n)| HandOverTestAction::Send(vf, q, to, n)),
        5 => (vf(), 0..4_u8, 0..6_u8, 900..9_000_usize).prop_map(|(vf, q, to, n)| HandOverTestAction::SendLarge(vf, q, to, n)),
        5 => vf().prop_map(HandOverTestAction::Receive),
        6 => (vf(), 0..9_u8, any::<u16>()).prop_map(|(vf, what, argument)| HandOverTestAction::Ask(vf, what, argument)),
        2 => (vf(), 0..60_u32, body).prop_map(|(vf, number, body)| HandOverTestAction::Letter(vf, number, body)),
        1 => vf().prop_map(HandOverTestAction::Reset),
        1 => vf().prop_map(HandOverTestAction::FunctionLevelReset),
        2 => vf().prop_map(HandOverTestAction::Restart),
        4 => (vf(), register(), value()).prop_map(|(vf, at, value)| HandOverTestAction::Write(vf, at, value)),
        2 => (vf(), register()).prop_map(|(vf, at)| HandOverTestAction::Read(vf, at)),
        1 => (vf(), any::<bool>()).prop_map(|(vf, on)| HandOverTestAction::BusMaster(vf, on)),
        3 => (vf(), policy()).prop_map(|(vf, (policy, pairs))| HandOverTestAction::Policy(vf, policy.into(), pairs)),
        2 => (vf(), 0..3_000_u64).prop_map(|(vf, events)| HandOverTestAction::Watch(vf, events)),
        1 => (vf(), any::<bool>()).prop_map(|(vf, on)| HandOverTestAction::Quarantine(vf, on)),
        1 => Just(HandOverTestAction::ResetAll),
        1 => prop_oneof![Just(None), Just(Some(10_000))].prop_map(HandOverTestAction::Link),
        1 => (0..30_u32).prop_map(HandOverTestAction::Storm),
        5 => (0..6_u8, 60..1_400_usize).prop_map(|(to, length)| HandOverTestAction::Arrive(to, length)),
        3 => Just(HandOverTestAction::Poll),
        4 => prop_oneof![3 => 0..3_000_u64, 1 => Just(1_100_000)].prop_map(HandOverTestAction::Wait),
    ]
}

/// A card with a plane and a PF driver, and the drivers of its VFs.
pub(crate) struct DriverFixture {
    pub(crate) world: CardFixture,
    vfs: Vec<AvfDriver>,
}

/// Returns the MAC address of VF `n`, the broadcast address (4), or the address of a station beyond the uplink.
fn address(n: u8) -> MacAddress {
    if n == 4 { MacAddress([0xff; 6]) } else { mac(n) }
}

fn frame(to: u8, from: u8, length: usize) -> Vec<u8> {
    let mut frame = [&address(to).0[..], &mac(from).0, &[0x88, 0xb5]].concat();
    frame.extend((frame.len()..length).map(|i| i as u8));
    frame
}

impl DriverFixture {
    /// Creates the card and starts its VFs, the last one with mapped doorbells.
    pub(crate) fn new() -> Self {
        let mut world = CardFixture::new(VFS).across_a_plane();
        world.map(VFS - 1);
        let vfs = (0..VFS).map(|n| {
            let policy = VfPolicy { mac: Some(mac(n)), ..VfPolicy::default() };
            world.with_pf(|pf, side| pf.set_policy(side, n, policy)).unwrap();
            world.start(n)
        });
        let vfs = vfs.collect();
        Self { world, vfs }
    }

    /// Saves card and plane, and the PF driver with its monitors, as bytes.
    pub(crate) fn save(&mut self) -> [Vec<u8>; 2] {
        let card = self.world.card.save(self.world.plane.as_ref().unwrap());
        let pf = self.world.with_pf(|pf, side| (pf.save(side), pf.monitors()));
        [postcard::to_allocvec(&card).unwrap(), postcard::to_allocvec(&pf).unwrap()]
    }

    /// Replaces card, plane and PF driver by new ones that are restored from the saved bytes, the guests' memory and
    /// the mapped pages alone.
    fn hand_over(&mut self) {
        let written = self.save();
        let world = &mut self.world;
        let uplink = world.plane.as_ref().unwrap().uplink;
        let (card, mut plane) = Nic::restore(postcard::from_bytes(&written[0]).unwrap()).unwrap();
        card.apply_policy(&mut plane, &world.mirrors);
        plane.uplink = uplink;
        (world.card, world.plane) = (card, Some(plane));
        world.forget_pf();
        let (state, monitors): (AvfPfState, Vec<VfConductMonitor>) =
            postcard::from_bytes(&written[1]).unwrap();
        let mut side = world.side(Function::Pf);
        let mut pf = AvfPf::restore(&mut side, state).unwrap();
        pf.resume_conduct(&mut side, monitors).unwrap();
        world.pf = Some(pf);
        for (vf, MappedVfPages { doorbells, .. }) in &mut world.mapped {
            *doorbells = Doorbells::adopt(&world.card, *vf);
        }
        assert!(self.save() == written, "a restored state saves to the same bytes");
    }

    /// Performs an action. Returns its result as text.
    pub(crate) fn perform(&mut self, act: &HandOverTestAction) -> String {
        let Self { world, vfs } = self;
        match *act {
            HandOverTestAction::Send(vf, queue, to, length) => {
                let sent = vfs[usize::from(vf)].transmit(&mut world.vf(vf), queue, &frame(to, vf, length));
                return format!("{sent}");
            }
            HandOverTestAction::SendLarge(vf, queue, to, length) => {
                let mut packet = crate::built::tcp4(&vec![5; length]);
                packet[..6].copy_from_slice(&address(to).0);
                packet[6..12].copy_from_slice(&mac(vf).0);
                let driver = &mut vfs[usize::from(vf)];
                return format!("{}", driver.transmit_with(&mut world.vf(vf), queue, &packet, &cut(400)));
            }
            HandOverTestAction::Receive(vf) => return self.receive(vf),
            HandOverTestAction::Ask(vf, what, argument) => return self.ask(vf, what, argument),
            HandOverTestAction::Letter(vf, number, ref body) => write_letter(world, vf, number, body),
            HandOverTestAction::Reset(vf) => vfs[usize::from(vf)].reset(&mut world.vf(vf)),
            HandOverTestAction::FunctionLevelReset(vf) => world.access(|card| card.function_level_reset(vf)),
            HandOverTestAction::Restart(vf) => {
                return format!("{:?}", vfs[usize::from(vf)].restart(&mut world.vf(vf)));
            }
            HandOverTestAction::Write(vf, at, value) => world.vf(vf).write(at, value),
            HandOverTestAction::Read(vf, at) => return format!("{:#x}", world.vf(vf).read(at)),
            HandOverTestAction::BusMaster(vf, on) => world.card.set_bus_master(vf, on),
            HandOverTestAction::Policy(vf, ref policy, pairs) => {
                let policy = VfPolicy { mac: Some(mac(vf)), ..**policy };
                let set = |pf: &mut AvfPf, side: &mut TestPciFunction<'_>| {
                    (pf.set_pairs(side, vf, pairs, 16), pf.set_policy(side, vf, policy))
                };
                return format!("{:?}", world.with_pf(set));
            }
            HandOverTestAction::Watch(vf, events) => {
                let watch =
                    |pf: &mut AvfPf, side: &mut TestPciFunction<'_>| pf.watch(side, vf, [events; 6], &LIMITS);
                return format!("{:?}", world.with_pf(watch));
            }
            HandOverTestAction::Quarantine(vf, true) => {
                world.with_pf(|pf, side| pf.quarantine(side, vf, QuarantineCause::Administrator));
            }
            HandOverTestAction::Quarantine(vf, false) => world.with_pf(|pf, side| pf.release(side, vf)),
            HandOverTestAction::ResetAll => world.with_pf(|pf, side| pf.reset_all(side)),
            HandOverTestAction::Link(speed) => world.with_pf(|pf, side| pf.set_link(side, speed)),
            HandOverTestAction::Storm(threshold) => world.control_storms(threshold),
            HandOverTestAction::Arrive(to, length) => world.cable.1.push_back(frame(to, 9, length)),
            HandOverTestAction::Poll => _ = world.card.poll(world.now, &mut world.memories),
            HandOverTestAction::Wait(us) => {
                world.now = world.now + Duration::from_micros(us);
                world.round();
            }
        }
        String::new()
    }

    fn receive(&mut self, vf: u8) -> String {
        let mut into = vec![0; 10_000];
        let mut all = String::new();
        for queue in 0..4 {
            let driver = &mut self.vfs[usize::from(vf)];
            while let Some(received) = driver.receive(&mut self.world.vf(vf), queue, &mut into) {
                all += &format!("{received:?}{:?}", &into[..received.length]);
            }
        }
        all
    }

    fn ask(&mut self, vf: u8, what: u8, argument: u16) -> String {
        let (driver, vsi, on) = (&mut self.vfs[usize::from(vf)], u16::from(vf) + 1, argument & 1 != 0);
        let group = EncodedMessageList::new(&[EtherAddress {
            mac: [1, 0, 0x5e, 0, 0, argument as u8],
            usage: EtherAddressType::Extra,
        }]);
        let (vlans, key) = (EncodedMessageList::new(&[argument % 6]), [argument as u8; 52]);
        let request = match what {
            0 => VirtchnlRequest::Addresses(on, vsi, group.list()),
            1 => VirtchnlRequest::Vlans(on, vsi, vlans.list()),
            2 => VirtchnlRequest::Promiscuity(vsi, argument % 4),
            3 => VirtchnlRequest::HashKey(vsi, &key),
            4 => VirtchnlRequest::LookupTable(vsi, &[0; 64]),
            5 => VirtchnlRequest::SetHashTypes(u64::from(argument) << 26),
            6 => VirtchnlRequest::Strip(on),
            7 => VirtchnlRequest::Queues(argument % 18),
            _ => return format!("{:?}", driver.statistics(&mut self.world.vf(vf))),
        };
        format!("{:?}", driver.ask(&mut self.world.vf(vf), request))
    }

    /// Returns all observable state of card, drivers and guests as text: frames, interrupts, registers, memory,
    /// counters, saved bytes.
    fn observe(&mut self) -> Vec<String> {
        let mut seen: Vec<String> = (0..VFS).map(|vf| self.receive(vf)).collect();
        let world = &mut self.world;
        seen.push(format!("{:?} {:?}", world.memories.interrupts, world.cable.0));
        for vf in 0..VFS {
            let registers = avf::table::rows().flat_map(|row| row.offsets()).map(|at| world.vf(vf).read(at));
            seen.push(format!("{:x?}", registers.collect::<Vec<_>>()));
            let mut hasher = DefaultHasher::new();
            world.memories.of(Function::Vf(vf)).hash(&mut hasher);
            seen.push(format!("memory {:x}", hasher.finish()));
            let pf = world.pf.as_ref().unwrap();
            seen.push(format!("{:?} {:?} {:?}", pf.counters(vf), pf.vf_link(vf), pf.vf_mac(vf)));
            seen.push(format!("{:?}", pf.conduct(vf)));
        }
        seen.push(format!("{:?}", self.save()));
        seen
    }
}

/// Sends a message from a VF in a new mailbox ring, and has the card take the message.
fn write_letter(world: &mut CardFixture, vf: u8, number: u32, body: &[u8]) {
    let descriptor = AdminQueueDescriptor {
        flags: flag::SI | flag::BUF | flag::RD,
        opcode: opcode::SEND_TO_PF,
        length: body.len() as u16,
        cookie_high: number,
        address: BODY,
        ..AdminQueueDescriptor::default()
    };
    let memory = world.memories.of(Function::Vf(vf));
    memory[BODY as usize..][..body.len()].copy_from_slice(body);
    memory[RING as usize..][..SIZE].copy_from_slice(&descriptor.emit());
    let mut side = world.vf(vf);
    for (register, value) in
        [(r::VF_ATQLEN, 0), (r::VF_ATQH, 0), (r::VF_ATQBAL, RING as u32), (r::VF_ATQBAH, 0)]
    {
        side.write(register, value);
    }
    side.write(r::VF_ATQLEN, 32 | aqlen::ENABLE);
    side.write(r::VF_ATQT, 1);
    world.card.poll(world.now, &mut world.memories);
}

impl CardFixture {
    /// Clears the PF driver's memory and its allocations, since a successor process starts without them.
    fn forget_pf(&mut self) {
        self.memories.of(Function::Pf)[..MEMORY].fill(0);
        self.memories.forget(Function::Pf);
    }

    /// Sets storm control: the card drops broadcasts and multicasts beyond `threshold` blocks of 64 bytes in a millisecond.
    fn control_storms(&mut self, threshold: u32) {
        let plane = self.plane.as_mut().unwrap();
        let kind = StormLimit { threshold, drops: true, drops_next: threshold & 1 != 0 };
        plane.storm.limits = StormLimits { kinds: [kind; 2], window: 1_000_000, counts_unknown: false };
        plane.storm.restart(self.now);
    }
}

/// Performs the actions, with a hand-over before those that `when` selects. Returns their results and the final state
/// of card, drivers and guests.
fn trace(acts: &[HandOverTestAction], when: impl Fn(usize) -> bool) -> Vec<String> {
    let mut scene = DriverFixture::new();
    let mut seen = Vec::new();
    for (i, act) in acts.iter().enumerate() {
        if when(i) {
            scene.hand_over();
        }
        seen.push(scene.perform(act));
        // A port at rest has published its registers.
        scene.world.publish_registers();
    }
    scene.perform(&HandOverTestAction::Wait(1_500_000));
    seen.extend(scene.observe());
    seen
}

/// Asserts that hand-overs before the actions that `when` selects change neither a result nor the final state.
fn assert_same_future(acts: &[HandOverTestAction], when: impl Fn(usize) -> bool) {
    let (kept, continued) = (trace(acts, |_| false), trace(acts, when));
    let differs = kept.iter().zip(&continued).position(|(kept, continued)| kept != continued);
    assert_eq!(differs, None, "of {} actions and {} observations", acts.len(), kept.len() - acts.len());
}

#[test]
fn hand_over_before_a_new_rate_applies_loses_no_frame() {
    for [before, after] in [[10, 0], [0, 10], [10, 20]] {
        let limited = |max_tx_rate| {
            let policy = VfPolicy { spoofchk: false, max_tx_rate, ..VfPolicy::default() };
            HandOverTestAction::Policy(1, policy.into(), 4)
        };
        let sends = [HandOverTestAction::SendLarge(1, 0, 0, 900), HandOverTestAction::Wait(0)];
        let acts =
            [&[limited(before), HandOverTestAction::Restart(1)], &sends[..], &[limited(after)], &sends]
                .concat();
        for at in 0..acts.len() {
            assert_same_future(&acts, |i| i == at);
        }
    }
}

proptest! {
    #![proptest_config(Config { cases: 60, ..Config::default() })]

    #[test]
    fn card_behaves_the_same_with_and_without_a_hand_over(acts in prop::collection::vec(act(), 1..40), when in any::<u64>()) {
        assert_same_future(&acts, |i| when >> (i % 64) & 1 != 0);
    }
}
