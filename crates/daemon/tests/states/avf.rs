//! Saved state of an AVF port that uses every part of the encoding: card, switch and PF driver of the crate `avf-nic`'s
//! tests, and the parts that a live port adds.

#[path = "../../../avf-nic/tests/driver_against_card/pages.rs"]
mod pages;
#[path = "../../../avf-nic/tests/driver_against_card/world.rs"]
mod world;

use crate::conversation::tcp;
use crate::kept::configured;
use avf::virtchnl::{EncodedMessageList, VirtchnlRequest};
use avf_nic::Nic;
use core::time::Duration;
use daemon::control::status::VmmInterventions;
use daemon::state::port::{ClientState, ConfiguredPolicies};
use daemon::state::{AvfPortState, PausedAvfPortState};
use driver::avf::pf::AvfPf;
use driver::avf::vf::{AvfDriver, TxOffload};
use driver::conduct::{QuarantineCause, VfConductMonitor};
use i82576::Time;
use iovm::VirtualFunction;
use pcie::{Function, Rid, VfIndex, VfSet};
use plane::switch::{StormLimit, StormLimits};
use policy::{
    OffenceAction, OffenceThresholds, PortPolicy, PortVlan, StormControl, VfMirrorRule, VfPolicy, VlanSet,
};
use world::{CardFixture, TestPciFunction, mac};

/// Number of VFs of the AVF card whose state is saved.
const VFS: u8 = 8;

/// Returns the state of an AVF port with delayed packets, an unread mailbox message, a throttled VF and a quarantined
/// one.
pub(crate) fn rich_avf() -> AvfPortState {
    let mut world = CardFixture::new(VFS).across_a_plane();
    world.map(1);
    let mut vfs: Vec<AvfDriver> = (0..3).map(|n| start(&mut world, n)).collect();
    let plane = world.plane.as_mut().unwrap();
    let kind = StormLimit { threshold: 1, drops: true, drops_next: false };
    plane.storm.limits = StormLimits { kinds: [kind; 2], window: 10_000_000, counts_unknown: false };
    plane.storm.restart(world.now);
    world.cable.1.extend([mac(0).0, [0xff; 6]].map(|to| [&to[..], &[2; 94]].concat()));
    // The rate limit delays these packets, so part of them is still in the card when the state is saved.
    let cut = TxOffload { ip_checksum: true, l4_checksum: true, tso: Some(400), vlan: None };
    let large = tcp(mac(6), mac(0), 6_000);
    (0..2).for_each(|queue| assert!(vfs[0].transmit_with(&mut world.vf(0), queue, &large, &cut)));
    world.now = world.now + Duration::from_micros(10);
    world.round();
    hold_back(&mut world);
    // The PF driver has not read this message yet.
    vfs[2].reset(&mut world.vf(2));
    let poll = world.card.poll(world.now, &mut world.memories);
    assert_eq!(poll.for_pf, 4, "a message waits in the PF's queue");
    let card = world.card.save(world.plane.as_ref().unwrap());
    let rest = PausedAvfPortState {
        card,
        pf: world.with_pf(|pf, side| pf.save(side)),
        hidden: VfSet::new(1 << 63 | 4),
        asking: VfSet::new(poll.for_pf),
        link: true,
        storms: (3, true),
        watched: Time::from_micros(5),
        clients: vec![client(); 3],
    };
    let conduct = world.pf.as_ref().unwrap().monitors();
    around(conduct, Some(rest))
}

/// Sets the policy of VF `n` and starts its driver. VF 0 has a rate limit, VF 1 a port VLAN, and VF 2 a list of VLANs.
fn start(world: &mut CardFixture, n: u8) -> AvfDriver {
    let policy = VfPolicy {
        mac: Some(mac(n)),
        max_tx_rate: u32::from(n == 0),
        vlan: (n == 1).then_some(PortVlan { id: 7, qos: 2 }),
        vlans: (n == 2).then(|| (0..9).collect::<VlanSet>()),
        share_mac: n == 2,
        ..VfPolicy::default()
    };
    world.with_pf(|pf, side| pf.set_policy(side, n, policy)).unwrap();
    let mut vf = world.start(n);
    if n == 2 {
        // VLAN 20 is not in the list, so it is withheld.
        let list = EncodedMessageList::new(&[3, 20]);
        vf.ask(&mut world.vf(n), VirtchnlRequest::Vlans(true, u16::from(n) + 1, list.list())).unwrap();
    }
    vf
}

/// Makes the PF driver throttle VF 0 for an offence, and quarantine VF 3 for the administrator.
fn hold_back(world: &mut CardFixture) {
    let limits = [OffenceThresholds { warn: 1, throttle: 5, quarantine: 0 }; 6];
    let watch =
        |pf: &mut AvfPf, side: &mut TestPciFunction<'_>, events| pf.watch(side, 0, [events; 6], &limits);
    world.with_pf(|pf, side| watch(pf, side, 0));
    world.now = world.now + Duration::from_secs(1);
    let verdict = world.with_pf(|pf, side| watch(pf, side, 5)).unwrap();
    assert_eq!(verdict.action, OffenceAction::Throttle);
    world.with_pf(|pf, side| pf.quarantine(side, 3, QuarantineCause::Administrator));
}

fn client() -> ClientState {
    let interventions = VmmInterventions { reads: 1, posted_writes: 2, synchronous_writes: 3, interrupts: 4 };
    ClientState { interventions, pin: (true, false), judged: (true, false), warned: true }
}

fn around(conduct: Vec<VfConductMonitor>, rest: Option<PausedAvfPortState>) -> AvfPortState {
    let function = |vf: VfIndex| {
        let mut function = VirtualFunction::of(vf, Rid(0x18), avf::config::space());
        function.config_write(0x04, &[6, 0]);
        function.msix_write(0, &[1; 16]);
        function.save()
    };
    let before = configured();
    let storm = StormControl { broadcast: 900, multicast: 0, window_ms: 100 };
    let [to, watched] = [63, 62].map(|n| VfIndex::new(n).unwrap());
    let vfs = VfSet::from_iter([watched]);
    let mirror = VfMirrorRule { to, vfs, ingress: true, egress: false, vlans: None };
    AvfPortState {
        functions: VfIndex::first(VFS.into()).map(function).collect(),
        policies: vec![
            VfPolicy { vlan: Some(PortVlan { id: 7, qos: 2 }), ..VfPolicy::default() };
            VFS.into()
        ],
        conduct,
        configured: ConfiguredPolicies { port: before.port.0, vfs: before.vfs },
        policy: PortPolicy { storm, mirrors: [None, Some(mirror), None, None], ..PortPolicy::default() },
        rest,
    }
}

#[test]
fn avf_port_continues_from_its_saved_state() {
    let AvfPortState { conduct, rest, .. } = rich_avf();
    let rest = rest.unwrap();
    let written = postcard::to_allocvec(&rest).unwrap();
    let (card, plane) = Nic::restore(rest.card.clone()).unwrap();
    let mut world = CardFixture::new(VFS).across_a_plane();
    world.memories.forget(Function::Pf);
    world.pf = AvfPf::restore(&mut world.side(Function::Pf), rest.pf.clone()).ok();
    world.with_pf(|pf, side| pf.resume_conduct(side, conduct.clone())).unwrap();
    let pf = world.pf.take().unwrap();
    assert_eq!(format!("{:?}", pf.monitors()), format!("{conduct:?}"));
    let again =
        PausedAvfPortState { card: card.save(&plane), pf: pf.save(&mut world.side(Function::Pf)), ..rest };
    assert!(postcard::to_allocvec(&again).unwrap() == written);
    println!("card, plane and PF driver take {} bytes", written.len());
}
