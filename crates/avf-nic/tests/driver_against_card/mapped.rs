//! A VF with mapped doorbells keeps every rule that a driver relies on, although its accesses there do not reach the card. The live
//! host's tests cover when a port reads the pages.

use crate::world::CardFixture;
use avf::bits::dyn_ctl::{self, SEEN};
use avf::control::{CardCommand, CardControl, TxQueueContext};
use avf::ids::MAPPED;
use avf::register as r;
use avf::table::rows;
use avf_nic::Nic;
use avf_nic::doorbell::{COUNT, Doorbells, REGISTERS};
use driver::Hal;
use driver::avf::vf::AvfDriver;
use pcie::Function;
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};

/// Value of VFINT_DYN_CTLN that enables a vector, without a change of intervals.
const ON: u32 = dyn_ctl::INTENA | 3 << dyn_ctl::ITR_SHIFT;
/// Value of VFINT_DYN_CTLN that Linux stores for a queue that seems stuck.
const WATCHDOG: u32 = 0x0100_001d;

/// Creates a card and starts its VFs 0 and 1, of which VF 0 maps its doorbells.
fn two() -> (CardFixture, AvfDriver, AvfDriver) {
    let mut world = CardFixture::new(2);
    world.map(0);
    let [a, b] = [0, 1].map(|vf| world.start(vf));
    world.round();
    world.memories.interrupts.clear();
    (world, a, b)
}

impl CardFixture {
    /// Makes the card take over the VFs' mapped pages with the values published in them, as a successor process does.
    fn adopt_pages(&mut self) {
        for (vf, mapped) in &mut self.mapped {
            mapped.doorbells = Doorbells::adopt(&self.card, *vf);
        }
    }

    /// Makes the card take over the VFs' mapped pages and publish its own register values in them, as a new card does.
    fn renew_pages(&mut self) {
        for (vf, mapped) in &mut self.mapped {
            mapped.doorbells = Doorbells::renew(&self.card, *vf, &mapped.pages);
        }
    }
}

#[test]
fn queue_set_up_again_publishes_a_mapped_tail_of_zero() {
    let (mut world, _a, _b) = two();
    world.vf(0).write(r::qtx_tail(1), 5);
    world.read_doorbells();
    world.publish_registers();
    let context = TxQueueContext { base: 0, length: 64, head_address: None };
    world.card.order(0, CardCommand::ConfigureTx(1, context));
    world.publish_registers();
    assert_eq!(world.vf(0).read(r::qtx_tail(1)), 0);
}

#[test]
fn mapped_register_overwritten_by_guest_is_published_again() {
    let (mut world, _a, _b) = two();
    world.vf(0).write(r::VFINT_ITRN, 10);
    world.read_doorbells();
    world.publish_registers();
    world.card.write(0, r::VFINT_DYN_CTLN, 20 << dyn_ctl::INTERVAL_SHIFT);
    world.vf(0).write(r::VFINT_ITRN, 7);
    world.publish_registers();
    world.vf(0).write(r::VFINT_ITRN, 10);
    world.read_doorbells();
    world.publish_registers();
    assert_eq!(
        world.vf(0).read(r::VFINT_ITRN),
        20,
        "the guest's second store equals the published value, so it is not detected"
    );
}

/// Returns the vectors of VF 0's interrupts since the last call of this function.
fn interrupts(world: &mut CardFixture) -> Vec<u16> {
    let sent = std::mem::take(&mut world.memories.interrupts);
    sent.into_iter().filter(|(function, _)| *function == Function::Vf(0)).map(|(_, vector)| vector).collect()
}

#[test]
fn list_of_avf_registers_in_mapped_pages_has_no_duplicate() {
    let within = |offset: &u32| MAPPED.iter().any(|pages| pages.contains(offset));
    let mut table: Vec<u32> = rows().flat_map(|row| row.offsets()).filter(within).collect();
    let mut places = REGISTERS.to_vec();
    table.sort_unstable();
    places.sort_unstable();
    assert_eq!((places, COUNT), (table, 96));
}

#[test]
fn frames_and_interrupts_pass_with_mapped_doorbells() {
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
        assert_eq!(interrupts(&mut world), [2], "one for both frames, until the vector is enabled again");
        a.enable_interrupt(&mut world.vf(0), 2);
        world.round();
        assert_eq!(interrupts(&mut world), []);
    }
}

#[test]
fn each_mapped_store_to_vector_control_enables_the_vector() {
    let (mut world, _, mut b) = two();
    for _ in 0..3 {
        world.vf(0).write(r::dyn_ctl(1), ON);
        world.round();
        for expected in [&[1][..], &[]] {
            b.transmit(&mut world.vf(1), 0, &[0; 60]);
            world.round();
            assert_eq!(interrupts(&mut world), expected, "it disables itself");
        }
        world.vf(0).write(r::dyn_ctl(1), ON);
        world.round();
        assert_eq!(interrupts(&mut world), [1], "the cause kept meanwhile");
    }
}

#[test]
fn mapped_vector_control_reads_disabled_after_an_interrupt() {
    let (mut world, _, mut b) = two();
    world.vf(0).write(r::dyn_ctl(1), ON);
    world.round();
    assert_eq!(world.vf(0).read(r::dyn_ctl(1)), ON | SEEN);
    b.transmit(&mut world.vf(1), 0, &[0; 60]);
    world.round();
    assert_eq!(world.vf(0).read(r::dyn_ctl(1)), ON & !dyn_ctl::INTENA | SEEN);
}

#[test]
fn vector_enable_survives_a_concurrent_interrupt_trigger() {
    for stores in [[ON, WATCHDOG], [WATCHDOG, ON]] {
        let (mut world, _, mut b) = two();
        world.vf(0).write(r::dyn_ctl(1), 0);
        world.round();
        b.transmit(&mut world.vf(1), 0, &[0; 60]);
        world.round();
        assert_eq!(interrupts(&mut world), [], "the vector is disabled");
        // Two processors of the guest store before the card reads.
        stores.into_iter().for_each(|store| world.vf(0).write(r::dyn_ctl(1), store));
        world.round();
        assert_eq!(interrupts(&mut world), [1], "the frame interrupts, whichever store was overwritten");
    }
}

#[test]
fn vector_enabled_and_then_disabled_sends_no_interrupt() {
    let (mut world, _, mut b) = two();
    [ON, 0].into_iter().for_each(|store| world.vf(0).write(r::dyn_ctl(1), store));
    b.transmit(&mut world.vf(1), 0, &[0; 60]);
    world.round();
    assert_eq!(interrupts(&mut world), []);
}

#[test]
fn equal_store_before_publish_counts_only_for_vector_control() {
    let (mut world, ..) = two();
    for (offset, value, again) in
        [(r::dyn_ctl(3), ON, true), (r::qtx_tail(2), 9, false), (r::itr(1, 2), 9, false)]
    {
        world.vf(0).write(offset, value);
        assert!(world.read_doorbells());
        world.vf(0).write(offset, value);
        world.publish_registers();
        assert_eq!(
            world.read_doorbells(),
            again,
            "{offset:#x}: the same value acts on a control register only"
        );
        world.publish_registers();
        assert!(!world.read_doorbells(), "{offset:#x}: no store is read twice");
    }
}

#[test]
fn reserved_bits_of_a_mapped_store_read_zero() {
    let (mut world, ..) = two();
    world.vf(0).write(r::itr(0, 1), u32::MAX);
    world.vf(0).write(r::dyn_ctl(1), u32::MAX);
    world.round();
    assert_eq!(world.vf(0).read(r::itr(0, 1)), 0xfff);
    assert_eq!(world.vf(0).read(r::dyn_ctl(1)) & dyn_ctl::SWINT_TRIG, 0);
}

#[test]
fn reset_publishes_reset_values_before_the_driver_continues() {
    let (mut world, mut a, _) = two();
    a.transmit(&mut world.vf(0), 0, &[0; 60]);
    world.round();
    assert_ne!(world.vf(0).read(r::qtx_tail(0)), 0);
    world.vf(0).write(r::qrx_tail(3), 7);
    world.access(|card| card.function_level_reset(0));
    for offset in REGISTERS {
        let value = world.vf(0).read(offset);
        let expected = if (0x3800..0x3840).contains(&offset) { SEEN } else { 0 };
        assert_eq!(value, expected, "{offset:#x}");
    }
    world.round();
    let mut a = world.start(0);
    assert!(a.transmit(&mut world.vf(0), 0, &[0; 60]));
    world.round();
    assert_eq!(world.packets.len(), 2, "it works again");
}

#[test]
fn mailbox_enable_resets_tails_in_mapped_pages_to_zero() {
    let (mut world, mut a, _) = two();
    world.access(|card| card.function_level_reset(0));
    assert!(a.transmit(&mut world.vf(0), 0, &[0; 60]), "the driver has not noticed");
    world.vf(0).write(r::qrx_tail(3), 7);
    world.vf(0).write(r::VF_ATQLEN, avf::bits::aqlen::ENABLE | 32);
    for tail in [r::qtx_tail(0), r::qrx_tail(3)] {
        assert_eq!(world.vf(0).read(tail), 0, "{tail:#x}");
    }
    world.round();
    a.restart(&mut world.vf(0)).unwrap();
    assert!(a.transmit(&mut world.vf(0), 0, &[0; 60]));
    world.round();
    assert_eq!(world.packets.len(), 1);
}

#[test]
fn queue_setup_publishes_mapped_tails_before_its_reply() {
    let (mut world, mut a, _) = two();
    a.transmit(&mut world.vf(0), 0, &[0; 60]);
    world.round();
    let before = world.vf(0).read(r::qtx_tail(0));
    a.stop(&mut world.vf(0)).unwrap();
    a.start(&mut world.vf(0)).unwrap();
    assert_eq!((before, world.vf(0).read(r::qtx_tail(0))), (1, 0));
    // So a first tail of 1 differs from the published value, and is detected.
    assert!(a.transmit(&mut world.vf(0), 0, &[0; 60]));
    world.round();
    assert_eq!(world.packets.len(), 2);
}

#[test]
fn mapped_stores_survive_a_hand_over_but_not_a_new_card() {
    let (mut world, mut a, _) = two();
    assert!(a.transmit(&mut world.vf(0), 0, &[0; 60]));
    world.adopt_pages();
    assert!(world.read_doorbells(), "the tail");
    world.card = Nic::new(2);
    world.renew_pages();
    assert!(!world.read_doorbells());
    assert_eq!(world.vf(0).read(r::qtx_tail(0)), 0);
}

/// Action of a hostile guest on its pages, or of the port.
#[derive(Debug, Clone)]
enum MappedPageAction {
    Store(usize, u32),
    /// Stores only the low half of a new register value, as when the card reads in the middle of a guest's store: the
    /// register and the half.
    Torn(usize, u16),
    Access,
    ReadDoorbells,
    Publish,
    Round,
}

fn act() -> impl Strategy<Value = MappedPageAction> {
    let value = prop_oneof![any::<u32>(), 0u32..80, any::<u32>().prop_map(|bits| bits | ON)];
    prop_oneof![
        8 => (0..COUNT, value).prop_map(|(place, value)| MappedPageAction::Store(place, value)),
        4 => (0..COUNT, any::<u16>()).prop_map(|(place, half)| MappedPageAction::Torn(place, half)),
        1 => Just(MappedPageAction::Access),
        1 => Just(MappedPageAction::ReadDoorbells),
        1 => Just(MappedPageAction::Publish),
        2 => Just(MappedPageAction::Round),
    ]
}

/// Asserts that the pages show the registers' values after any stores, and that the other VF still works.
fn assert_others_unharmed(acts: &[MappedPageAction]) {
    let (mut world, _, mut b) = two();
    for act in acts {
        match *act {
            MappedPageAction::Store(place, value) => world.vf(0).write(REGISTERS[place], value),
            MappedPageAction::Torn(place, half) => {
                let before = world.vf(0).read(REGISTERS[place]);
                world.vf(0).write(REGISTERS[place], before & 0xffff_0000 | u32::from(half));
            }
            MappedPageAction::Access => drop(world.vf(0).read(r::VFGEN_RSTAT)),
            MappedPageAction::ReadDoorbells => drop(world.read_doorbells()),
            MappedPageAction::Publish => world.publish_registers(),
            MappedPageAction::Round => world.round(),
        }
    }
    world.round();
    // The card still puts frames into the other VF's queues.
    let said = avf_nic::RxDescriptorFields::default();
    let mut into = [0; 2048];
    while b.receive(&mut world.vf(1), 2, &mut into).is_some() {}
    world.card.receive(1, 2, &[7; 60], &said, &mut world.memories).unwrap();
    let got = b.receive(&mut world.vf(1), 2, &mut into).map(|got| got.length);
    assert_eq!((got, into[0]), (Some(60), 7));
    // Once the guest is silent, the pages hold the registers' values.
    world.read_doorbells();
    world.publish_registers();
    for offset in REGISTERS {
        let shown = world.vf(0).read(offset) & !SEEN;
        let register = world.card.read(0, offset) & !SEEN;
        assert_eq!(shown, register, "{offset:#x}");
    }
}

#[test]
fn register_access_clears_reserved_bits_of_mapped_stores() {
    assert_others_unharmed(&[MappedPageAction::Store(48, 0x41df_5bdd), MappedPageAction::Access]);
}

proptest! {
    #[test]
    fn arbitrary_stores_to_mapped_pages_harm_no_other_vf(acts in prop::collection::vec(act(), 1..80)) {
        assert_others_unharmed(&acts);
    }
}
