//! Causes, masks and messages of vectors: what sends an MSI-X message, in whose name, and what sending does to
//! the registers. Left out: throttling.

use crate::common::{Bench, index, mac, plain};
use i82576::bits::{gpie, icr};
use i82576::register::{self as r, vf};
use pcie::Function::{Pf, Vf};

/// VF 0 of 3 with running rings; nothing auto-cleared, nothing unmasked.
fn bench() -> Bench {
    let mut bench = Bench::new(3);
    bench.vf(0).start();
    bench.vf(0).write(vf::VTEIAC, 0);
    bench.vf(0).write(vf::VTEIMC, 7);
    bench
}

#[test]
fn a_cause_set_by_software_sends_the_message_of_its_vector() {
    for vector in 0..3 {
        let mut bench = bench();
        bench.vf(0).write(vf::VTEIMS, 7);
        bench.vf(0).write(vf::VTEICS, 1 << vector);
        bench.poll();
        bench.expect_msix(Vf(0), vector);
    }
}

#[test]
fn every_vf_speaks_in_its_own_name() {
    let mut bench = Bench::new(8);
    for vf in 0..8 {
        bench.vf(vf).write(vf::VTEIMS, 7);
        bench.vf(vf).write(vf::VTEICS, 0b100);
        bench.poll();
        bench.expect_msix(Vf(vf), 2);
    }
}

#[test]
fn a_masked_cause_waits_and_fires_when_unmasked() {
    let mut bench = bench();
    bench.vf(0).write(vf::VTEICS, 2);
    bench.expect_nothing();
    bench.vf(0).write(vf::VTEIMS, 5);
    bench.expect_nothing();
    bench.vf(0).write(vf::VTEIMS, 2);
    bench.poll();
    bench.expect_msix(Vf(0), 1);
}

#[test]
fn a_cause_that_was_read_away_while_masked_does_not_fire() {
    let mut bench = bench();
    bench.vf(0).write(vf::VTEICS, 3);
    assert_eq!(bench.vf(0).read(vf::VTEICR), 3);
    assert_eq!(bench.vf(0).read(vf::VTEICR), 0);
    bench.vf(0).write(vf::VTEIMS, 7);
    bench.expect_nothing();
}

#[test]
fn a_one_written_to_the_cause_register_clears_that_cause() {
    let mut bench = bench();
    bench.vf(0).write(vf::VTEICS, 7);
    bench.vf(0).write(vf::VTEICR, 0b101);
    bench.vf(0).write(vf::VTEIMS, 7);
    bench.poll();
    bench.expect_msix(Vf(0), 1);
    assert_eq!(bench.vf(0).read(vf::VTEICR), 0b010);
}

#[test]
fn sending_clears_the_causes_named_in_eiac_and_no_others() {
    let mut bench = bench();
    bench.vf(0).write(vf::VTEIAC, 0b001);
    bench.vf(0).write(vf::VTEIMS, 7);
    bench.vf(0).write(vf::VTEICS, 0b011);
    bench.poll();
    assert_eq!(bench.msix(), [(Vf(0), 0), (Vf(0), 1)]);
    assert_eq!(bench.vf(0).read(vf::VTEICR), 0b010);
}

#[test]
fn sending_masks_the_vectors_named_in_eiam() {
    let mut bench = bench();
    bench.vf(0).write(vf::VTEIAM, 0b010);
    bench.vf(0).write(vf::VTEIAC, 7);
    bench.vf(0).write(vf::VTEIMS, 7);
    bench.vf(0).write(vf::VTEICS, 7);
    bench.poll();
    assert_eq!(bench.msix().len(), 3);
    assert_eq!(bench.vf(0).read(vf::VTEIMS), 0b101);
    bench.vf(0).write(vf::VTEICS, 0b010);
    bench.expect_nothing();
    bench.vf(0).write(vf::VTEIMS, 0b010);
    bench.poll();
    bench.expect_msix(Vf(0), 1);
}

#[test]
fn reading_or_clearing_a_cause_masks_its_vector_if_eiam_says_so() {
    let mut bench = bench();
    bench.vf(0).write(vf::VTEIAM, 0b011);
    bench.vf(0).write(vf::VTEIMS, 7);
    bench.vf(0).write(vf::VTEICS, 0b101);
    assert_eq!(bench.vf(0).read(vf::VTEICR), 0b101);
    assert_eq!(bench.vf(0).read(vf::VTEIMS), 0b110);
    bench.vf(0).write(vf::VTEICS, 0b010);
    bench.vf(0).write(vf::VTEICR, 0b010);
    assert_eq!(bench.vf(0).read(vf::VTEIMS), 0b100);
}

#[test]
fn a_one_written_for_a_cause_that_is_not_set_masks_nothing() {
    let mut bench = bench();
    bench.vf(0).write(vf::VTEIAM, 7);
    bench.vf(0).write(vf::VTEIMS, 7);
    bench.vf(0).write(vf::VTEICS, 0b001);
    bench.vf(0).write(vf::VTEICR, 0b111);
    assert_eq!(bench.vf(0).read(vf::VTEIMS), 0b110);
}

#[test]
fn eiam_is_what_was_written_last() {
    let mut bench = bench();
    bench.vf(0).write(vf::VTEIAM, 7);
    bench.vf(0).write(vf::VTEIAM, 1);
    assert_eq!(bench.vf(0).read(vf::VTEIAM), 1);
}

#[test]
fn unmasking_what_is_unmasked_sends_nothing_again() {
    let mut bench = bench();
    bench.vf(0).write(vf::VTEIMS, 7);
    bench.vf(0).write(vf::VTEICS, 1);
    bench.poll();
    bench.expect_msix(Vf(0), 0);
    bench.vf(0).write(vf::VTEIMS, 7);
    bench.expect_nothing();
    assert_eq!(bench.vf(0).read(vf::VTEICR), 1, "the cause is still set");
}

#[test]
fn one_poll_sends_one_message_a_vector() {
    let mut bench = bench();
    bench.vf(0).write(vf::VTEIAC, 7);
    bench.vf(0).write(vf::VTEIMS, 7);
    for _ in 0..5 {
        bench.vf(0).write(vf::VTEICS, 2);
        bench.world.wire.incoming.push_back(plain(mac(0), mac(9), 60));
    }
    bench.poll();
    bench.expect_msix(Vf(0), 1);
    bench.expect_nothing();
}

#[test]
fn queues_interrupt_on_the_vectors_that_vtivar_names() {
    let mut bench = Bench::new(3);
    bench.vf(0).start();
    bench.vf(1).start();
    bench.vf(0).write(vf::VTIVAR, 0x8280);
    bench.vf(0).send(&plain(mac(1), mac(0), 60));
    assert_eq!(bench.msix(), [(Vf(1), 1), (Vf(0), 2)]);
    bench.vf(1).send(&plain(mac(0), mac(1), 60));
    assert_eq!(bench.msix(), [(Vf(1), 0), (Vf(0), 0)]);
}

#[test]
fn an_entry_that_is_not_valid_or_names_vector_3_interrupts_nobody() {
    for entries in [0x0000, 0x0100, 0x8300, 0x0083] {
        let mut bench = Bench::new(3);
        bench.vf(1).start();
        bench.vf(1).write(vf::VTIVAR, entries);
        bench.wire_sends(&plain(mac(1), mac(9), 60));
        assert_eq!(bench.vf(1).received().len(), 1);
        bench.expect_no_msix();
        assert_eq!(bench.pf().read(r::EICR), 0, "vector 3 would be VF 0's vector 0");
    }
}

#[test]
fn a_frame_missed_for_want_of_descriptors_is_no_interrupt() {
    let mut bench = Bench::new(3);
    bench.vf(0).start_sized(8, 8);
    for _ in 0..7 {
        bench.world.wire.incoming.push_back(plain(mac(0), mac(9), 60));
    }
    bench.poll();
    bench.expect_msix(Vf(0), 1);
    bench.world.wire.incoming.push_back(plain(mac(0), mac(9), 60));
    bench.expect_nothing();
}

#[test]
fn other_causes_of_the_pf_go_where_ivar_misc_says() {
    let mut bench = Bench::new(3);
    bench.pf().write(r::IVAR_MISC, 0x8500);
    bench.pf().write(r::EIMS, 1 << 5);
    bench.pf().write(r::EIAC, 1 << 5);
    bench.nic.set_link(false);
    bench.expect_nothing();
    assert_eq!(bench.pf().read(r::ICR) & icr::LSC, icr::LSC);
    bench.pf().write(r::IMS, icr::LSC);
    bench.nic.set_link(true);
    bench.poll();
    bench.expect_msix(Pf, 5);
    assert_eq!(bench.pf().read(r::ICR), icr::LSC | icr::INTA);
    assert_eq!(bench.pf().read(r::ICR), 0);
    bench.pf().write(r::ICS, icr::LSC);
    bench.poll();
    bench.expect_msix(Pf, 5);
}

#[test]
fn without_nsicr_a_read_clears_icr_only_if_it_was_an_interrupt() {
    let mut bench = Bench::new(3);
    bench.pf().write(r::GPIE, gpie::MULTIPLE_MSIX | gpie::EIAME);
    bench.pf().read(r::ICR);
    bench.pf().write(r::IMS, icr::LSC);
    bench.pf().write(r::IAM, icr::LSC);
    bench.pf().write(r::ICS, icr::RXO);
    assert_eq!(bench.pf().read(r::ICR), icr::RXO);
    assert_eq!(bench.pf().read(r::ICR), icr::RXO, "masked: not asserted, not cleared");
    bench.pf().write(r::ICR, icr::RXO);
    assert_eq!(bench.pf().read(r::ICR), 0, "a one clears it");
    bench.pf().write(r::ICS, icr::LSC);
    assert_eq!(bench.pf().read(r::ICR), icr::LSC | icr::INTA);
    assert_eq!(bench.pf().read(r::ICR), 0);
    assert_eq!(bench.pf().read(r::IMS), 0, "and IAM has masked it");
}

#[test]
fn the_pfs_vectors_are_masked_on_sending_only_with_eiame() {
    for (eiame, expected) in [(0, 1), (gpie::EIAME, 0)] {
        let mut bench = Bench::new(3);
        bench.pf().write(r::GPIE, gpie::MULTIPLE_MSIX | eiame);
        for (at, value) in [(r::EIAC, 1), (r::EIAM, 1), (r::EIMS, 1), (r::EICS, 1)] {
            bench.pf().write(at, value);
        }
        bench.poll();
        bench.expect_msix(Pf, 0);
        assert_eq!(bench.pf().read(r::EIMS), expected);
    }
}

#[test]
fn the_pfs_queues_interrupt_on_the_vectors_that_ivar_names() {
    let mut bench = Bench::new(3);
    bench.pf().start();
    bench.pf().write(r::ivar(3), 0x8281);
    bench.pf().write(r::EIMS, 0x3ff);
    bench.pf().write(r::EIAC, 0x3ff);
    bench.wire_sends(&plain(crate::common::PORT, mac(9), 60));
    bench.expect_msix(Pf, 1);
    bench.pf().send(&plain(mac(9), crate::common::PORT, 60));
    bench.expect_msix(Pf, 2);
}

#[test]
fn an_ivar_entry_beyond_the_last_vector_interrupts_nobody() {
    for vector in 25..32 {
        let mut bench = Bench::new(3);
        bench.pf().start();
        bench.pf().write(r::ivar(3), 0x80 | vector);
        bench.pf().write(r::EIMS, u32::MAX);
        bench.wire_sends(&plain(crate::common::PORT, mac(9), 60));
        bench.expect_no_msix();
        assert_eq!(bench.pf().read(r::EICR), 0);
    }
}

#[test]
fn a_vfs_vector_of_the_port_speaks_for_that_vf_even_if_the_pf_raises_it() {
    let mut bench = Bench::new(3);
    let vector = u32::from(index(2).first_vector()) + 1;
    bench.pf().write(r::EIMS, 1 << vector);
    bench.pf().write(r::EICS, 1 << vector);
    bench.poll();
    bench.expect_msix(Vf(2), 1);
}

#[test]
fn an_entry_of_ivar_misc_that_is_not_valid_or_no_vectors_interrupts_nobody() {
    for entries in [0x0500, 0x9900, 0x9f00, 0x0085] {
        let mut bench = Bench::new(3);
        bench.pf().write(r::IVAR_MISC, entries);
        bench.pf().write(r::EIMS, u32::MAX);
        bench.pf().write(r::IMS, icr::LSC);
        bench.nic.set_link(false);
        bench.expect_nothing();
        assert_eq!(bench.pf().read(r::EICR), 0, "{entries:#x}");
    }
}

/// As Linux does it: the vector is cleared and masked by its message, ICR is read, EIMS unmasks the vector.
#[test]
fn a_handler_that_reads_icr_and_then_unmasks_its_vector_loses_no_cause() {
    let mut bench = Bench::new(3);
    bench.pf().write(r::IVAR_MISC, 0x8000);
    for (at, value) in [(r::EIAC, 1), (r::EIAM, 1), (r::EIMS, 1), (r::IMS, icr::LSC | icr::VMMB)] {
        bench.pf().write(at, value);
    }
    bench.pf().read(r::ICR);
    bench.pf().write(r::ICS, icr::LSC);
    bench.poll();
    bench.expect_msix(Pf, 0);
    bench.pf().write(r::ICS, icr::VMMB);
    bench.expect_nothing();
    assert_eq!(bench.pf().read(r::ICR), icr::LSC | icr::VMMB | icr::INTA);
    bench.pf().write(r::EIMS, 1);
    bench.poll();
    bench.expect_msix(Pf, 0);
}

/// What a driver left behind in another mode, or firmware, is told once MSI-X is on.
#[test]
fn a_cause_that_is_set_when_msix_is_enabled_sends_its_message_then() {
    let mut bench = Bench::bare();
    bench.pf().write(r::GPIE, gpie::MULTIPLE_MSIX);
    bench.pf().write(r::EIMS, 2);
    bench.pf().write(r::EICS, 6);
    bench.poll();
    assert_eq!(bench.world.bus.pin, [true]);
    let control = u16::from(i82576::config::MSIX) + pcie::capability::msix::CONTROL;
    bench.config(Pf, control, pcie::capability::msix::CONTROL_ENABLE.into());
    bench.poll();
    bench.expect_msix(Pf, 1);
    bench.expect_nothing();
}
