//! Tests a VF whose pages with rings and interrupts are mapped as the guest's memory. Every rule that a driver relies
//! on holds, though no access to these pages traps. The host decides when the card looks at the pages.

use crate::common::{CardFixture, mac, plain};
use i82576::bits::dctl;
use i82576::register::{self as r, rx, tx, vf};
use i82576::window::MAPPED;
use nic::doorbell::{COUNT, REGISTERS, SEEN};
use pcie::Function::Vf;
use proptest::prelude::{Strategy, any, prop_oneof, proptest};

/// Returns a card with two VFs with running rings, of which VF 0 has mapped pages.
fn bench() -> CardFixture {
    let mut bench = CardFixture::new(2);
    bench.map(0);
    for n in 0..2 {
        bench.vf(n).start();
    }
    bench.poll();
    bench.msix();
    bench
}

/// Returns a card whose VF 0 has auto-masked vectors, as igbvf sets them up.
fn masking() -> CardFixture {
    let mut bench = bench();
    bench.vf(0).write(vf::VTEIAC, 7);
    bench.vf(0).write(vf::VTEIAM, 7);
    bench.vf(0).write(vf::VTEIMS, 7);
    bench.poll();
    bench
}

#[test]
fn list_of_82576_registers_in_mapped_pages_has_no_duplicate() {
    let mut sorted = REGISTERS;
    sorted.sort_unstable();
    assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(sorted.iter().all(|offset| MAPPED.contains(offset)));
    assert_eq!(COUNT, 50);
}

#[test]
fn vf_with_mapped_registers_moves_frames_and_gets_interrupts() {
    let mut bench = bench();
    let there = plain(mac(1), mac(0), 100);
    bench.vf(0).send(&there);
    assert_eq!(bench.vf(1).expect_frame().bytes, there);
    assert_eq!(bench.msix(), [(Vf(1), 1), (Vf(0), 0)]);
    let back = plain(mac(0), mac(1), 60);
    bench.vf(1).send(&back);
    assert_eq!(bench.vf(0).expect_frame().bytes, back);
    assert_eq!(bench.msix(), [(Vf(1), 0), (Vf(0), 1)]);
}

#[test]
fn ring_heads_are_published_in_the_mapped_pages() {
    let mut bench = bench();
    bench.vf(0).send(&plain(mac(1), mac(0), 100));
    bench.vf(1).send(&plain(mac(0), mac(1), 100));
    assert_eq!(bench.vf(0).read(vf::TX_BLOCK + tx::TDH), 1);
    assert_eq!(bench.vf(0).read(vf::RX_BLOCK + rx::RDH), 1);
}

#[test]
fn read_only_bits_are_restored_in_mapped_pages() {
    let mut bench = bench();
    let length = vf::TX_BLOCK + vf::QUEUE_STRIDE + tx::TDLEN;
    bench.vf(0).write(length, u32::MAX);
    bench.poll();
    assert_eq!(bench.vf(0).read(length), 0x000f_fff0);
    let frozen = vf::FRTIMER;
    bench.vf(0).write(frozen, 7);
    bench.wait_us(5);
    bench.poll();
    assert_eq!(bench.vf(0).read(frozen), 5, "the timer keeps running");
}

#[test]
fn queue_enabled_by_a_mapped_store_reads_enabled_and_sends() {
    let mut bench = bench();
    let control = vf::TX_BLOCK + tx::TXDCTL;
    bench.vf(0).write(control, 0);
    // Drivers flush with a read. It traps, and the card applies the stores before it answers.
    bench.vf(0).read(vf::STATUS);
    bench.vf(0).send(&plain(mac(1), mac(0), 100));
    bench.vf(1).expect_no_frame();
    bench.vf(0).write(control, dctl::ENABLE);
    assert_ne!(bench.vf(0).read(control) & dctl::ENABLE, 0);
    bench.poll();
    bench.vf(1).expect_frame();
}

/// Tests that the card does not combine an enabled queue and its new head with the old tail in the mapped pages.
#[test]
fn queue_set_up_during_a_poll_sends_no_stale_descriptor() {
    let at = |offset| vf::TX_BLOCK + offset;
    let restart = [(at(tx::TXDCTL), 0), (at(tx::TDH), 0), (at(tx::TDT), 0), (at(tx::TXDCTL), dctl::ENABLE)];
    let first = [(at(tx::TXDCTL), 0), (at(tx::TDH), 0)];
    for loads in 0..2 * COUNT {
        for (before, while_looking) in [(&[][..], &restart[..]), (&first[..], &restart[2..])] {
            let mut bench = bench();
            for _ in 0..3 {
                bench.vf(0).send(&plain(mac(1), mac(0), 100));
            }
            assert_eq!(bench.vf(1).received().len(), 3);
            before.iter().for_each(|(offset, value)| bench.vf(0).write(*offset, *value));
            if !before.is_empty() {
                bench.poll();
            }
            bench.poll_while(loads, while_looking);
            bench.publish_registers();
            bench.poll();
            assert!(bench.vf(1).received().is_empty(), "after {loads} loads, {before:?}");
        }
    }
}

#[test]
fn reset_publishes_reset_values_in_mapped_pages_at_once() {
    let mut bench = masking();
    bench.vf(0).send(&plain(mac(1), mac(0), 100));
    bench.vf(0).write(vf::CTRL, i82576::bits::ctrl::RST);
    for (offset, value) in [
        (vf::RX_BLOCK + rx::RXDCTL, 0x0001_0000),
        (vf::RX_BLOCK + rx::SRRCTL, 0x400),
        (vf::RX_BLOCK + rx::RDT, 0),
        (vf::TX_BLOCK + tx::TDT, 0),
        (vf::TX_BLOCK + tx::TDH, 0),
        (vf::VTEIAM, 0),
        (vf::VTEIMS, SEEN),
    ] {
        assert_eq!(bench.vf(0).read(offset), value, "{offset:#x}");
    }
    bench.pf().write(r::VFTE, 3);
    bench.pf().write(r::VFRE, 3);
    bench.vf(0).start();
    bench.poll();
    bench.vf(0).send(&plain(mac(1), mac(0), 100));
    assert_eq!(bench.vf(1).received().len(), 2, "the VF works after its reset");
}

#[test]
fn repeated_store_to_a_mapped_mask_register_unmasks_again() {
    let mut bench = masking();
    for _ in 0..3 {
        bench.vf(1).send(&plain(mac(0), mac(1), 60));
        bench.msix();
        bench.vf(1).send(&plain(mac(0), mac(1), 60));
        assert!(!bench.msix().contains(&(Vf(0), 1)), "the vector is auto-masked");
        bench.vf(0).write(vf::VTEIMS, 2);
        bench.poll();
        bench.expect_msix(Vf(0), 1);
        bench.vf(0).write(vf::VTEIMS, 2);
        bench.poll();
        bench.expect_no_msix();
    }
}

#[test]
fn overwritten_store_to_mapped_vteims_still_unmasks_vectors() {
    let mut bench = masking();
    bench.vf(0).write(vf::VTEICS, 0b011);
    bench.poll();
    assert_eq!(bench.msix(), [(Vf(0), 0), (Vf(0), 1)]);
    // Two CPUs of the guest store before the card looks.
    bench.vf(0).write(vf::VTEIMS, 0b001);
    bench.vf(0).write(vf::VTEIMS, 0b010);
    bench.poll();
    assert_eq!(bench.vf(0).read(vf::VTEIMS), 0b111 | SEEN);
}

#[test]
fn vector_masked_by_a_mapped_store_stays_masked() {
    let mut bench = masking();
    bench.vf(0).write(vf::VTEIMC, 0b100);
    bench.poll();
    bench.vf(0).write(vf::VTEIMS, 0b001);
    bench.vf(0).write(vf::VTEICS, 0b100);
    bench.poll();
    bench.expect_no_msix();
    assert_eq!(bench.vf(0).read(vf::VTEICR), 0b100, "VTEICR shows causes only");
}

#[test]
fn doorbell_store_between_read_and_publication_is_not_lost() {
    let mut bench = masking();
    for (offset, value) in [(vf::VTEIMS, 2), (vf::VTEICS, 1), (vf::TX_BLOCK + tx::TDH, 9)] {
        bench.vf(0).write(offset, value);
        assert!(bench.read_doorbells());
        bench.vf(0).write(offset, value);
        bench.publish_registers();
        assert_eq!(bench.read_doorbells(), offset != vf::TX_BLOCK + tx::TDH, "{offset:#x}");
        bench.publish_registers();
        assert!(!bench.read_doorbells(), "{offset:#x}: the store is found once");
    }
}

#[test]
fn pending_mapped_stores_reach_a_restored_card_not_a_new_card() {
    let mut bench = bench();
    bench.poll();
    bench.vf(0).put([0; 16]);
    bench.vf(0).ring();
    bench.nic = nic::Nic::restore(bench.nic.save()).unwrap();
    bench.adopt_pages();
    assert!(bench.read_doorbells(), "the tail");
    let mut fresh = CardFixture::new(2);
    core::mem::swap(&mut fresh.nic, &mut bench.nic);
    bench.renew_pages();
    assert!(!bench.read_doorbells());
    assert_eq!(bench.vf(0).read(vf::TX_BLOCK + tx::TDT), 0);
    assert_eq!(bench.vf(0).read(vf::RX_BLOCK + rx::RXDCTL), 0x0001_0000);
}

#[test]
fn mapped_pages_of_a_disabled_vf_read_ones() {
    let mut bench = bench();
    bench.config(pcie::Function::Pf, i82576::config::pf::SRIOV + pcie::capability::sriov::CONTROL, 0);
    bench.publish_registers();
    assert_eq!(bench.vf(0).read(vf::TX_BLOCK + tx::TDT), u32::MAX);
    bench.vf(0).write(vf::VTEIMS, 7);
    bench.expect_nothing();
    assert_eq!(bench.vf(0).read(vf::VTEIMS), u32::MAX);
}

/// An action of a hostile guest on its pages, or of the card.
#[derive(Debug, Clone)]
enum MappedPageAction {
    Store(usize, u32),
    /// Stores only the low half of a new register value, as when the card reads in the middle of a guest's store: the
    /// register and the half.
    Torn(usize, u16),
    Hear,
    ReadPages,
    PublishRegisters,
    Poll,
    Frame,
}

fn act() -> impl Strategy<Value = MappedPageAction> {
    let value = prop_oneof![any::<u32>(), 0u32..80, any::<u32>().prop_map(|bits| bits | dctl::ENABLE)];
    prop_oneof![
        8 => (0..COUNT, value).prop_map(|(place, value)| MappedPageAction::Store(place, value)),
        4 => (0..COUNT, any::<u16>()).prop_map(|(place, half)| MappedPageAction::Torn(place, half)),
        1 => proptest::prelude::Just(MappedPageAction::Hear),
        1 => proptest::prelude::Just(MappedPageAction::ReadPages),
        1 => proptest::prelude::Just(MappedPageAction::PublishRegisters),
        2 => proptest::prelude::Just(MappedPageAction::Poll),
        1 => proptest::prelude::Just(MappedPageAction::Frame),
    ]
}

proptest! {
    /// Tests that the card does no more for stores to mapped pages than for trapped writes, and that the other VF works
    /// as before.
    #[test]
    fn hostile_stores_to_mapped_pages_leave_other_vfs_working(acts in proptest::collection::vec(act(), 1..80)) {
        let mut bench = bench();
        for act in &acts {
            match *act {
                MappedPageAction::Store(place, value) => bench.vf(0).write(REGISTERS[place], value),
                MappedPageAction::Torn(place, half) => {
                    let before = bench.vf(0).read(REGISTERS[place]);
                    bench.vf(0).write(REGISTERS[place], before & 0xffff_0000 | u32::from(half));
                }
                MappedPageAction::Hear => drop(bench.vf(0).read(vf::STATUS)),
                MappedPageAction::ReadPages => drop(bench.read_doorbells()),
                MappedPageAction::PublishRegisters => bench.publish_registers(),
                MappedPageAction::Poll => drop(bench.poll_once()),
                MappedPageAction::Frame => bench.wire_sends(&plain(mac(0), mac(7), 60)),
            }
        }
        bench.poll_once();
        bench.vf(1).received();
        let frame = plain(mac(1), mac(7), 60);
        bench.world.wire.incoming.push_back(frame.clone());
        for _ in 0..4 {
            bench.poll_once();
        }
        let received = bench.vf(1).received();
        assert!(received.iter().any(|got| got.bytes == frame));
        // Without further stores the pages equal the registers.
        bench.read_doorbells();
        bench.publish_registers();
        for offset in REGISTERS.into_iter().filter(|offset| !matches!(*offset, vf::VTEICR | vf::FRTIMER)) {
            let register = bench.nic.clone().read(Vf(0), offset, bench.now);
            let throttle = (vf::VTEITR..vf::VTEITR + 12).contains(&offset);
            let shown = bench.vf(0).read(offset) & !if offset < vf::VTEIAC { SEEN } else { 0 };
            if !throttle {
                assert_eq!(shown, register, "{offset:#x}");
            }
        }
    }
}
