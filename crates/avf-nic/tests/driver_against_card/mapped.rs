//! A VF whose doorbells are its guest's memory: every rule that a driver relies on holds, though no access there reaches the
//! card. Left out: when somebody looks, which is the live host's.

use crate::world::{World, mac};
use avf::bits::dyn_ctl::{self, SEEN};
use avf::control::{Control, Order, TxContext};
use avf::ids::MAPPED;
use avf::register as r;
use avf::table::rows;
use avf_nic::Card;
use avf_nic::doorbell::{COUNT, Doorbells, REGISTERS};
use driver::Hal;
use driver::avf::vf::Vf;
use pcie::Function;
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};

/// What a driver stores to switch a vector on.
const ON: u32 = dyn_ctl::INTENA | 3 << dyn_ctl::ITR_SHIFT;
/// What Linux stores for a queue that seems stuck.
const WATCHDOG: u32 = 0x0100_001d;

/// Two VFs with queues that run; VF 0 has its doorbells as memory.
fn two() -> (World, Vf, Vf) {
    let mut world = World::new(2);
    world.map(0);
    let mut start = |n| {
        let mut vf = Vf::probe(&mut world.vf(n), mac(n)).unwrap();
        vf.start(&mut world.vf(n)).unwrap();
        vf
    };
    let (a, b) = (start(0), start(1));
    world.round();
    world.memories.interrupts.clear();
    (world, a, b)
}

impl World {
    /// Another process goes on with the card and the VFs' pages.
    fn adopt_pages(&mut self) {
        for (vf, mapped) in &mut self.mapped {
            mapped.doorbells = Doorbells::adopt(&self.card, *vf);
        }
    }

    /// A card that knows nothing of what was before goes on with the VFs' pages.
    fn renew_pages(&mut self) {
        for (vf, mapped) in &mut self.mapped {
            mapped.doorbells = Doorbells::renew(&self.card, *vf, &mapped.pages);
        }
    }
}

#[test]
fn a_queue_that_is_set_up_anew_shows_an_empty_ring() {
    let (mut world, _a, _b) = two();
    world.vf(0).write(r::qtx_tail(1), 5);
    world.look();
    world.show();
    let context = TxContext { base: 0, length: 64, head_address: None };
    world.card.order(0, Order::ConfigureTx(1, context));
    world.show();
    assert_eq!(world.vf(0).read(r::qtx_tail(1)), 0);
}

#[test]
fn what_could_not_be_shown_because_of_a_store_is_shown_after_it() {
    let (mut world, _a, _b) = two();
    world.vf(0).write(r::VFINT_ITRN, 10);
    world.look();
    world.show();
    world.card.write(0, r::VFINT_DYN_CTLN, 20 << dyn_ctl::INTERVAL_SHIFT);
    world.vf(0).write(r::VFINT_ITRN, 7);
    world.show();
    world.vf(0).write(r::VFINT_ITRN, 10);
    world.look();
    world.show();
    assert_eq!(
        world.vf(0).read(r::VFINT_ITRN),
        20,
        "the guest's second store is what was shown before, so no look sees it"
    );
}

/// Interrupts of VF 0 since they were last asked for.
fn interrupts(world: &mut World) -> Vec<u16> {
    let sent = std::mem::take(&mut world.memories.interrupts);
    sent.into_iter().filter(|(function, _)| *function == Function::Vf(0)).map(|(_, vector)| vector).collect()
}

#[test]
fn every_register_of_the_pages_has_one_place() {
    let within = |offset: &u32| MAPPED.iter().any(|pages| pages.contains(offset));
    let mut table: Vec<u32> = rows().flat_map(|row| row.offsets()).filter(within).collect();
    let mut places = REGISTERS.to_vec();
    table.sort_unstable();
    places.sort_unstable();
    assert_eq!((places, COUNT), (table, 96));
}

#[test]
fn frames_go_both_ways_and_interrupts_come() {
    let (mut world, mut a, mut b) = two();
    let mut into = [0; 2048];
    for n in 0..300_u16 {
        let (there, back) = ([n as u8; 60], [!n as u8; 90]);
        assert!(a.transmit(&mut world.vf(0), 1, &there) && b.transmit(&mut world.vf(1), 1, &back));
        world.round();
        assert_eq!(
            b.receive(&mut world.vf(1), 1, &mut into).map(|got| into[..got.length].to_vec()),
            Some(there.to_vec())
        );
        assert_eq!(
            a.receive(&mut world.vf(0), 1, &mut into).map(|got| into[..got.length].to_vec()),
            Some(back.to_vec())
        );
        assert_eq!(interrupts(&mut world), [2], "one for both, and none before it is switched on again");
        a.enable_interrupt(&mut world.vf(0), 2);
        world.round();
        assert_eq!(interrupts(&mut world), []);
    }
}

#[test]
fn a_vector_is_switched_on_by_the_same_store_each_time() {
    let (mut world, _, mut b) = two();
    for _ in 0..3 {
        world.vf(0).write(r::dyn_ctl(1), ON);
        world.round();
        for expected in [&[1][..], &[]] {
            b.transmit(&mut world.vf(1), 0, &[0; 60]);
            world.round();
            assert_eq!(interrupts(&mut world), expected, "it switches itself off");
        }
        world.vf(0).write(r::dyn_ctl(1), ON);
        world.round();
        assert_eq!(interrupts(&mut world), [1], "what happened meanwhile");
    }
}

#[test]
fn a_vector_that_interrupts_reads_as_off_at_the_end_of_the_round() {
    let (mut world, _, mut b) = two();
    world.vf(0).write(r::dyn_ctl(1), ON);
    world.round();
    assert_eq!(world.vf(0).read(r::dyn_ctl(1)), ON | SEEN);
    b.transmit(&mut world.vf(1), 0, &[0; 60]);
    world.round();
    assert_eq!(world.vf(0).read(r::dyn_ctl(1)), ON & !dyn_ctl::INTENA | SEEN);
}

#[test]
fn the_watchdogs_store_that_overwrites_the_drivers_own_still_switches_the_vector_on() {
    for stores in [[ON, WATCHDOG], [WATCHDOG, ON]] {
        let (mut world, _, mut b) = two();
        world.vf(0).write(r::dyn_ctl(1), 0);
        world.round();
        b.transmit(&mut world.vf(1), 0, &[0; 60]);
        world.round();
        assert_eq!(interrupts(&mut world), [], "it is off");
        // Two processors of the guest store before the card looks.
        stores.into_iter().for_each(|store| world.vf(0).write(r::dyn_ctl(1), store));
        world.round();
        assert_eq!(interrupts(&mut world), [1], "the frame is told of, whichever store was lost");
    }
}

#[test]
fn a_vector_that_was_switched_off_last_stays_off() {
    let (mut world, _, mut b) = two();
    [ON, 0].into_iter().for_each(|store| world.vf(0).write(r::dyn_ctl(1), store));
    b.transmit(&mut world.vf(1), 0, &[0; 60]);
    world.round();
    assert_eq!(interrupts(&mut world), []);
}

#[test]
fn a_store_between_look_and_show_is_found_by_the_next_look() {
    let (mut world, ..) = two();
    for (offset, value, again) in
        [(r::dyn_ctl(3), ON, true), (r::qtx_tail(2), 9, false), (r::itr(1, 2), 9, false)]
    {
        world.vf(0).write(offset, value);
        assert!(world.look());
        world.vf(0).write(offset, value);
        world.show();
        assert_eq!(world.look(), again, "{offset:#x}: the same value means something to a control only");
        world.show();
        assert!(!world.look(), "{offset:#x}: nothing is found twice");
    }
}

#[test]
fn what_cannot_be_stored_is_not_read_back() {
    let (mut world, ..) = two();
    world.vf(0).write(r::itr(0, 1), u32::MAX);
    world.vf(0).write(r::dyn_ctl(1), u32::MAX);
    world.round();
    assert_eq!(world.vf(0).read(r::itr(0, 1)), 0xfff);
    assert_eq!(world.vf(0).read(r::dyn_ctl(1)) & dyn_ctl::SWINT_TRIG, 0);
}

#[test]
fn a_reset_puts_reset_values_into_the_pages_before_the_driver_goes_on() {
    let (mut world, mut a, _) = two();
    a.transmit(&mut world.vf(0), 0, &[0; 60]);
    world.round();
    assert_ne!(world.vf(0).read(r::qtx_tail(0)), 0);
    world.vf(0).write(r::qrx_tail(3), 7);
    world.hear(|card| card.function_level_reset(0));
    for offset in REGISTERS {
        let value = world.vf(0).read(offset);
        let expected = if (0x3800..0x3840).contains(&offset) { SEEN } else { 0 };
        assert_eq!(value, expected, "{offset:#x}");
    }
    world.round();
    let mut a = Vf::probe(&mut world.vf(0), mac(0)).unwrap();
    a.start(&mut world.vf(0)).unwrap();
    assert!(a.transmit(&mut world.vf(0), 0, &[0; 60]));
    world.round();
    assert_eq!(world.packets.len(), 2, "it works again");
}

#[test]
fn queues_that_are_set_up_again_show_their_tail_before_the_driver_hears_of_it() {
    let (mut world, mut a, _) = two();
    a.transmit(&mut world.vf(0), 0, &[0; 60]);
    world.round();
    let before = world.vf(0).read(r::qtx_tail(0));
    a.stop(&mut world.vf(0)).unwrap();
    a.start(&mut world.vf(0)).unwrap();
    assert_eq!((before, world.vf(0).read(r::qtx_tail(0))), (1, 0));
    // So a first tail of 1 is a store that can be seen.
    assert!(a.transmit(&mut world.vf(0), 0, &[0; 60]));
    world.round();
    assert_eq!(world.packets.len(), 2);
}

#[test]
fn a_successor_finds_what_was_stored_and_a_new_card_what_was_reset() {
    let (mut world, mut a, _) = two();
    assert!(a.transmit(&mut world.vf(0), 0, &[0; 60]));
    world.adopt_pages();
    assert!(world.look(), "the tail");
    world.card = Card::new(2);
    world.renew_pages();
    assert!(!world.look());
    assert_eq!(world.vf(0).read(r::qtx_tail(0)), 0);
}

/// What a hostile guest may do to its pages at any moment.
#[derive(Debug, Clone)]
enum Act {
    Store(usize, u32),
    /// A part of a dword, as a torn store leaves it.
    Torn(usize, u16),
    Hear,
    Look,
    Show,
    Round,
}

fn act() -> impl Strategy<Value = Act> {
    let value = prop_oneof![any::<u32>(), 0u32..80, any::<u32>().prop_map(|bits| bits | ON)];
    prop_oneof![
        8 => (0..COUNT, value).prop_map(|(place, value)| Act::Store(place, value)),
        4 => (0..COUNT, any::<u16>()).prop_map(|(place, half)| Act::Torn(place, half)),
        1 => Just(Act::Hear),
        1 => Just(Act::Look),
        1 => Just(Act::Show),
        2 => Just(Act::Round),
    ]
}

/// Asserts that the card does no more for stores than it would for written registers, and that the other VF is as it was.
fn assert_others_unharmed(acts: &[Act]) {
    let (mut world, _, mut b) = two();
    for act in acts {
        match *act {
            Act::Store(place, value) => world.vf(0).write(REGISTERS[place], value),
            Act::Torn(place, half) => {
                let before = world.vf(0).read(REGISTERS[place]);
                world.vf(0).write(REGISTERS[place], before & 0xffff_0000 | u32::from(half));
            }
            Act::Hear => drop(world.vf(0).read(r::VFGEN_RSTAT)),
            Act::Look => drop(world.look()),
            Act::Show => world.show(),
            Act::Round => world.round(),
        }
    }
    world.round();
    // The card still puts frames into the other VF's queues.
    let said = avf_nic::Arrival::default();
    let mut into = [0; 2048];
    while b.receive(&mut world.vf(1), 2, &mut into).is_some() {}
    world.card.receive(1, 2, &[7; 60], &said, &mut world.memories).unwrap();
    let got = b.receive(&mut world.vf(1), 2, &mut into).map(|got| got.length);
    assert_eq!((got, into[0]), (Some(60), 7));
    // What is in the pages is what the registers are, once the guest is silent.
    world.look();
    world.show();
    for offset in REGISTERS {
        let shown = world.vf(0).read(offset) & !SEEN;
        let register = world.card.read(0, offset) & !SEEN;
        assert_eq!(shown, register, "{offset:#x}");
    }
}

#[test]
fn reserved_bits_of_a_store_are_gone_after_a_message() {
    assert_others_unharmed(&[Act::Store(48, 0x41df_5bdd), Act::Hear]);
}

proptest! {
    #[test]
    fn stores_to_pages_harm_no_other_vf(acts in prop::collection::vec(act(), 1..80)) {
        assert_others_unharmed(&acts);
    }
}
