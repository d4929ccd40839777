//! Tests that a card restored from an earlier version's state, which has fewer VFs, can get more. Its VFs notice
//! nothing, and the new VFs are as after power-on.

use crate::world::{CardFixture, mac};
use avf_nic::Nic;
use driver::avf::pf::AvfPf;
use driver::avf::vf::AvfDriver;
use pcie::Function;
use policy::VfPolicy;

fn start(world: &mut CardFixture, n: u8) -> AvfDriver {
    let policy = VfPolicy { mac: Some(mac(n)), ..VfPolicy::default() };
    world.with_pf(|pf, side| pf.set_policy(side, n, policy)).unwrap();
    world.start(n)
}

/// Sends a frame from one VF to another. Returns `true` if it arrives.
fn reaches(
    world: &mut CardFixture,
    (from, sender): (u8, &mut AvfDriver),
    (to, receiver): (u8, &mut AvfDriver),
) -> bool {
    let mut frame = [&mac(to).0[..], &mac(from).0, &[0x88, 0xb5]].concat();
    frame.resize(60, 7);
    assert!(sender.transmit(&mut world.vf(from), 0, &frame));
    world.round();
    let mut into = [0; 2048];
    let received = receiver.receive(&mut world.vf(to), 0, &mut into);
    received.is_some_and(|received| into[..received.length] == frame)
}

#[test]
fn restored_card_with_eight_vfs_can_grow_to_64_vfs() {
    let mut world = CardFixture::new(8).across_a_plane();
    let (mut first, mut eighth) = (start(&mut world, 0), start(&mut world, 7));
    let resets =
        |world: &mut CardFixture| world.with_pf(|pf, _| [0, 7].map(|vf| pf.counters(vf).unwrap().resets));
    let [before, unchanged] = resets(&mut world);
    // A request is pending in the PF's queue meanwhile.
    first.reset(&mut world.vf(0));
    world.card.poll(world.now, &mut world.memories);
    let (card, pf) = (world.card.save(world.plane.as_ref().unwrap()), world.pf.take().unwrap());
    let pf = pf.save(&mut world.side(Function::Pf));
    let (card, plane) = Nic::restore(card).unwrap();
    (world.card, world.plane) = (card, Some(plane));
    world.memories.forget(Function::Pf);
    let mut pf = AvfPf::restore(&mut world.side(Function::Pf), pf).unwrap();
    pf.grow(64);
    world.pf = Some(pf);
    world.card.grow(64);
    let plane = world.plane.as_mut().unwrap();
    (plane.uplink.link, plane.uplink.receives) = (true, true);
    world.round();
    assert_eq!(
        resets(&mut world),
        [before + 1, unchanged],
        "the request was served, and no other VF was reset"
    );
    let mut first = start(&mut world, 0);
    assert!(reaches(&mut world, (7, &mut eighth), (0, &mut first)));
    world.card.set_bus_master(63, true);
    let mut last = start(&mut world, 63);
    assert!(reaches(&mut world, (7, &mut eighth), (63, &mut last)));
    assert!(reaches(&mut world, (63, &mut last), (0, &mut first)));
}

#[test]
fn card_grows_to_at_most_64_vfs_and_never_shrinks() {
    let mut world = CardFixture::new(64);
    world.card.grow(200);
    world.card.grow(3);
    world.with_pf(|pf, _| pf.grow(3));
    assert_eq!(world.with_pf(|pf, _| pf.vfs().last()), Some(63));
    let plane = CardFixture::new(1).across_a_plane().plane.unwrap();
    assert_eq!(world.card.save(&plane).vfs(), 64);
}
