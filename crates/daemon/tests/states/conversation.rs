//! Test of a card under random actions of guests, drivers, the host and the wire. Successor processes take the card
//! over before some actions, and while drivers wait. The visible results must be the same as without a successor
//! process.

use crate::world::{CardWithDrivers, ManagedConfigSpace, VFS, index};
use backplane::vf_mac;
use core::time::Duration;
use driver::Hal;
use driver::conduct::QuarantineCause;
use driver::vf::{TxOffload, VfLinkStatus};
use i82576::config::{EXPRESS, MSIX};
use i82576::ids::VF_BAR0_SIZE;
use i82576::{MacAddress, table};
use nic::PollBudget;
use pcie::Function::{self, Pf, Vf};
use pcie::VfSet;
use pcie::capability::{express, msix};
use policy::{
    InterruptBounds, PortPolicy, PortVlan, StormControl, VfLinkPolicy, VfMirrorRule, VfPolicy, VlanSet,
};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::test_runner::Config;

/// Random action of a guest, a driver, the administrator, the host or the wire on the tested card.
#[derive(Debug, Clone)]
pub(crate) enum CardTestAction {
    /// Sends a frame of a length from a VF to an [`address`]: a VF's, one beyond the wire, or the broadcast address.
    Send(u8, u8, usize),
    /// Sends a TCP packet with a payload of this length, which the card cuts into segments of 400 bytes.
    SendLarge(u8, u8, usize),
    Receive(u8),
    /// Sends a VF's mailbox request, by number, with an argument.
    Ask(u8, u8, u16),
    Watchdog(u8),
    FunctionLevelReset(u8),
    /// Resets a VF through the SR-IOV manager, as a VMM does.
    Reset(u8),
    /// Writes bytes to a VF's MSI-X table at an offset, and signals two interrupt vectors.
    Message(u8, u64, Vec<u8>),
    Policy(u8, Box<VfPolicy>),
    PortPolicy(Box<PortPolicy>),
    Quarantine(u8, bool),
    /// Reports a VF's number of events of each kind of offence to the PF driver.
    Watch(u8, u64),
    PortReset,
    PortLink(bool),
    Carrier(bool),
    Arrive(u8, usize),
    /// Takes back the posted descriptors of a VF's first receive queue, so that frames wait for new ones.
    Starve(u8),
    Budget(usize),
    /// Advances the card's clock by this number of microseconds.
    Wait(u64),
}

fn vf() -> impl Strategy<Value = u8> {
    0..VFS
}

fn policy() -> impl Strategy<Value = VfPolicy> {
    let flags = any::<[bool; 7]>();
    let state = prop_oneof![3 => Just(VfLinkPolicy::Auto), 1 => Just(VfLinkPolicy::Enable), 1 => Just(VfLinkPolicy::Disable)];
    let bounds = prop_oneof![
        2 => Just((0, 0, false)),
        1 => Just((0, 2_000, true)),
        1 => Just((1_000, 20_000, false)),
    ];
    (flags, state, bounds, 0..3u32, 0..4u16).prop_map(
        |(flags, state, (min_interrupts, max_interrupts, adaptive), rate, vlan)| {
            let [admin_mac, spoofchk, trust, enabled, allmulti, rss, listed] = flags;
            VfPolicy {
                mac: None,
                admin_mac,
                vlan: (vlan > 1).then_some(PortVlan { id: vlan, qos: 3 }),
                vlans: listed.then(|| (0..5u16).collect::<VlanSet>()),
                spoofchk,
                trust,
                enabled: enabled || rate == 0,
                state,
                allmulti,
                max_mtu: listed.then_some(1_400),
                rss,
                interrupts: InterruptBounds { min_interrupts, max_interrupts, adaptive },
                max_tx_rate: rate * 20,
                share_mac: spoofchk != rss,
                guards: policy::FrameGuards::default(),
                quotas: policy::FilterQuotas::default(),
            }
        },
    )
}

fn port_policy() -> impl Strategy<Value = PortPolicy> {
    (any::<bool>(), 0..2u32, vf(), any::<bool>()).prop_map(|(mirrored, storm, to, ingress)| {
        let rule = VfMirrorRule {
            to: index(to).into(),
            vfs: VfSet::NONE,
            ingress: ingress || !mirrored,
            egress: mirrored,
            vlans: None,
        };
        let storm = StormControl { broadcast: storm * 1_000, multicast: storm * 2_000, window_ms: 10 };
        let mut mirrors = [None; policy::MIRROR_RULES];
        mirrors[0] = mirrored.then_some(rule);
        PortPolicy { mirrors, storm, ..PortPolicy::default() }
    })
}

fn act() -> impl Strategy<Value = CardTestAction> {
    let bytes = proptest::collection::vec(any::<u8>(), 1..9);
    prop_oneof![
        8 => (vf(), 0..6u8, 60..1_400usize).prop_map(|(vf, to, length)| CardTestAction::Send(vf, to, length)),
        5 => (vf(), 0..6u8, 1_000..9_000usize).prop_map(|(vf, to, length)| CardTestAction::SendLarge(vf, to, length)),
        5 => vf().prop_map(CardTestAction::Receive),
        5 => (vf(), 0..8u8, any::<u16>()).prop_map(|(vf, what, argument)| CardTestAction::Ask(vf, what, argument)),
        3 => vf().prop_map(CardTestAction::Watchdog),
        1 => vf().prop_map(CardTestAction::FunctionLevelReset),
        1 => vf().prop_map(CardTestAction::Reset),
        2 => (vf(), 0..0x2010u64, bytes).prop_map(|(vf, at, bytes)| CardTestAction::Message(vf, at, bytes)),
        3 => (vf(), policy()).prop_map(|(vf, policy)| CardTestAction::Policy(vf, policy.into())),
        1 => port_policy().prop_map(|policy| CardTestAction::PortPolicy(policy.into())),
        1 => (vf(), any::<bool>()).prop_map(|(vf, on)| CardTestAction::Quarantine(vf, on)),
        2 => (vf(), 0..3_000u64).prop_map(|(vf, events)| CardTestAction::Watch(vf, events)),
        1 => Just(CardTestAction::PortReset),
        1 => any::<bool>().prop_map(CardTestAction::PortLink),
        1 => any::<bool>().prop_map(CardTestAction::Carrier),
        5 => (0..5u8, 60..1_400usize).prop_map(|(to, length)| CardTestAction::Arrive(to, length)),
        1 => vf().prop_map(CardTestAction::Starve),
        1 => (1..20usize).prop_map(CardTestAction::Budget),
        4 => prop_oneof![0..3_000u64, Just(1_100_000)].prop_map(CardTestAction::Wait),
    ]
}

/// Returns Ethernet address `n`: of a VF, of a station beyond the wire, or the broadcast address.
fn address(n: u8) -> MacAddress {
    if n == 4 { MacAddress::BROADCAST } else { vf_mac(n) }
}

fn frame(to: MacAddress, from: MacAddress, length: usize) -> Vec<u8> {
    let mut frame = [&to.0[..], &from.0, &[0x88, 0xb5]].concat();
    frame.extend((frame.len()..length).map(|i| i as u8));
    frame
}

/// Returns a TCP packet over IPv4 with this many bytes of payload.
pub(crate) fn tcp(to: MacAddress, from: MacAddress, payload: usize) -> Vec<u8> {
    let total = (40 + payload) as u16;
    let mut ip = vec![0x45, 0, 0, 0, 0, 7, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    ip[2..4].copy_from_slice(&total.to_be_bytes());
    let transport = [3, 0xe8, 7, 0xd0, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0];
    [&to.0[..], &from.0, &[8, 0], &ip, &transport, &vec![5; payload]].concat()
}

/// Performs an action on the card with its drivers, and returns the visible results as text.
pub(crate) fn perform(world: &mut CardWithDrivers, act: &CardTestAction) -> String {
    match act {
        CardTestAction::Send(vf, to, length) => {
            let frame = frame(address(*to), vf_mac(*vf), *length);
            send(world, *vf, &frame, &TxOffload::default())
        }
        CardTestAction::SendLarge(vf, to, length) => {
            let offload = TxOffload { tso: Some(400), ..TxOffload::default() };
            send(world, *vf, &tcp(address(*to), vf_mac(*vf), *length), &offload)
        }
        CardTestAction::Receive(vf) => receive(world, *vf),
        CardTestAction::Ask(vf, what, argument) => ask(world, *vf, *what, *argument),
        CardTestAction::Watchdog(vf) => watchdog(world, *vf),
        CardTestAction::FunctionLevelReset(vf) => {
            let at = u64::from(EXPRESS) + u64::from(express::DEVICE_CONTROL);
            let reset = express::DEVICE_CONTROL_FLR.to_le_bytes();
            let (manager, nic) = (&mut world.manager, world.card.nic());
            let effects = manager.config_write(&mut ManagedConfigSpace(nic), index(*vf), at, &reset);
            world.enable(*vf);
            format!("{effects:?}")
        }
        CardTestAction::Reset(vf) => {
            let reset = world.manager.reset(&mut ManagedConfigSpace(world.card.nic()), index(*vf));
            world.enable(*vf);
            format!("{reset:?}")
        }
        CardTestAction::Message(vf, at, bytes) => message(world, *vf, *at, bytes),
        CardTestAction::Policy(vf, policy) => {
            let policy = VfPolicy { mac: Some(vf_mac(*vf)), ..**policy };
            format!("{:?}", world.card.with_pf_driver(|pf, hal| pf.set_policy(hal, index(*vf), policy)))
        }
        CardTestAction::Arrive(to, length) => {
            world.card.world().send(&frame(address(*to), MacAddress([2, 0, 0, 0, 9, 9]), *length));
            String::new()
        }
        CardTestAction::Starve(vf) => {
            world.starve(*vf);
            String::new()
        }
        CardTestAction::Budget(frames) => {
            world.card.set_budget(PollBudget { frames: *frames });
            String::new()
        }
        CardTestAction::Wait(us) => {
            world.card.advance(Duration::from_micros(*us));
            String::new()
        }
        _ => govern(world, act),
    }
}

/// Performs an action of the administrator or the host on the port, and returns the PF driver's result as text.
fn govern(world: &mut CardWithDrivers, act: &CardTestAction) -> String {
    if let CardTestAction::Carrier(up) = act {
        world.card.nic().set_link(*up);
    }
    let done = world.card.with_pf_driver(|pf, hal| match act {
        CardTestAction::PortPolicy(policy) => format!("{:?}", pf.set_port_policy(hal, **policy)),
        CardTestAction::Quarantine(vf, true) => {
            format!("{:?}", pf.quarantine(hal, index(*vf), QuarantineCause::Administrator))
        }
        CardTestAction::Quarantine(vf, false) => format!("{:?}", pf.release(hal, index(*vf))),
        CardTestAction::Watch(vf, events) => format!("{:?}", pf.watch(hal, index(*vf), [*events; 6])),
        CardTestAction::PortReset => format!("{:?}", pf.reset(hal)),
        CardTestAction::PortLink(up) => format!("{:?}", pf.set_port_link(hal, *up)),
        _ => String::new(),
    });
    done.unwrap_or_default()
}

fn send(world: &mut CardWithDrivers, vf: u8, frame: &[u8], offload: &TxOffload) -> String {
    let sent = world.on(vf, |driver, hal| {
        let sent = driver.transmit(hal, frame, offload);
        driver.flush(hal);
        driver.clean(hal);
        sent
    });
    format!("{sent:?}")
}

fn receive(world: &mut CardWithDrivers, vf: u8) -> String {
    let mut buffer = vec![0; 10_000];
    let mut all = String::new();
    for _ in 0..100 {
        let received = world.on(vf, |driver, hal| driver.receive(hal, &mut buffer));
        all += &format!("{received:?}");
        let Ok(Some(received)) = received else { break };
        all += &format!("{:?}", &buffer[..received.length]);
    }
    world.on(vf, |driver, hal| driver.receive_done(hal));
    all
}

fn ask(world: &mut CardWithDrivers, vf: u8, what: u8, argument: u16) -> String {
    let mac = MacAddress([2, 0, 0, 0, 1, argument as u8 % 8]);
    let group = MacAddress([1, 0, 0x5e, 0, 0, argument as u8]);
    let asked = world.on(vf, |driver, hal| match what {
        0 => driver.set_mac(hal, mac),
        1 => driver.add_mac(hal, mac),
        2 => driver.clear_macs(hal),
        3 => driver.set_multicast(hal, &[group]),
        4 => driver.set_all_multicast(hal, argument & 1 != 0),
        5 => driver.set_vlan(hal, argument % 6, argument & 8 != 0),
        6 => driver.set_max_frame(hal, 1_000 + usize::from(argument % 2_000)),
        _ => driver.set_promiscuous(hal),
    });
    format!("{asked:?}")
}

fn watchdog(world: &mut CardWithDrivers, vf: u8) -> String {
    let check = world.on(vf, |driver, hal| driver.watchdog(hal));
    let again = (check == VfLinkStatus::ResetNeeded).then(|| world.on(vf, |driver, hal| driver.restart(hal)));
    format!("{check:?} {again:?}")
}

/// Enables MSI-X of a VF, writes to its MSI-X table, and signals two interrupt vectors. Returns the delivered messages
/// as text.
fn message(world: &mut CardWithDrivers, vf: u8, at: u64, bytes: &[u8]) -> String {
    let control = u64::from(MSIX) + u64::from(msix::CONTROL);
    let on = msix::CONTROL_ENABLE.to_le_bytes();
    world.manager.config_write(&mut ManagedConfigSpace(world.card.nic()), index(vf), control, &on);
    let Some(function) = world.manager.function_mut(index(vf)) else { return String::new() };
    function.msix_write(at, bytes);
    let signalled = [0, 1].map(|vector| function.signal(vector));
    format!("{signalled:?} {:?}", function.release())
}

/// Returns everything else that guests, wire and administrator can see, as text: interrupts, frames, counters,
/// policies, memory and registers.
fn visible_state(world: &mut CardWithDrivers) -> Vec<String> {
    let mut seen = Vec::new();
    let vfs: Vec<Function> = (0..VFS).map(Vf).collect();
    for function in vfs.iter().copied().chain([Pf]) {
        seen.push(format!("{:?}", world.card.world().take_interrupts(function)));
        seen.push(format!("{}", world.card.world().faults(function)));
    }
    seen.push(format!("{:?}", world.card.world().take_frames()));
    seen.push(format!("{:?}", world.card.nic().counters()));
    let driver = world.card.pf_driver().unwrap();
    for vf in (0..VFS).map(index) {
        seen.push(format!("{:?} {:?} {:?}", driver.counters(vf), driver.policy(vf), driver.vf_mac(vf)));
        seen.push(format!("{:?} {:?}", driver.conduct(vf).quarantined(), driver.conduct(vf).offences()));
        seen.push(format!("{:?} {:?}", world.manager.save(), world.manager.state(vf)));
    }
    for n in 0..VFS {
        seen.push(receive(world, n));
        let memory = world.card.world().memory(Vf(n)).get(0x10_0000, 0x4_0000).map(<[u8]>::to_vec);
        seen.push(format!("{memory:?}"));
        let registers = (0..VF_BAR0_SIZE as u32).step_by(4).map(|at| world.card.vf(n).read(at));
        seen.push(format!("{:?}", registers.collect::<Vec<_>>()));
    }
    let registers = table::rows().flat_map(table::PfRegister::offsets).map(|at| world.card.pf().read(at));
    seen.push(format!("{:?}", registers.collect::<Vec<_>>()));
    seen
}

/// Performs actions on a new card. A successor process takes the card over before each action whose index `when`
/// selects. Returns all visible results as text.
fn trace(acts: &[CardTestAction], when: impl Fn(usize) -> bool) -> Vec<String> {
    let mut world = CardWithDrivers::new();
    let mut seen = Vec::new();
    for (i, act) in acts.iter().enumerate() {
        world.card.set_between(None);
        if when(i) {
            world.set_aside();
        }
        seen.push(perform(&mut world, act));
    }
    world.card.set_between(None);
    world.card.set_budget(PollBudget::default());
    world.card.advance(Duration::from_millis(1_500));
    seen.extend(visible_state(&mut world));
    seen
}

proptest! {
    #![proptest_config(Config { cases: 100, ..Config::default() })]

    #[test]
    fn restored_card_behaves_like_the_saved_card(
        acts in proptest::collection::vec(act(), 1..30),
        when in any::<u32>(),
    ) {
        let kept = trace(&acts, |_| false);
        let continued = trace(&acts, |i| when >> (i % 32) & 1 != 0);
        assert_eq!(kept.len(), continued.len());
        let differs = kept.iter().zip(&continued).position(|(kept, continued)| kept != continued);
        assert_eq!(differs, None, "{:?}", differs.map(|at| (&kept[at], &continued[at])));
    }
}
