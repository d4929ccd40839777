//! Tests causes, masks and messages of interrupt vectors: the causes of an MSI-X message, the function in whose name it
//! is sent, and its effect on registers. `throttling` tests EITR.

use crate::common::{CardFixture, index, mac, plain};
use i82576::bits::{gpie, icr};
use i82576::register::{self as r, vf};
use pcie::Function::{Pf, Vf};

/// Returns a card with three VFs. VF 0 has running rings, without auto-clear, and all vectors masked.
fn bench() -> CardFixture {
    let mut bench = CardFixture::new(3);
    bench.vf(0).start();
    bench.vf(0).write(vf::VTEIAC, 0);
    bench.vf(0).write(vf::VTEIMC, 7);
    bench
}

#[test]
fn eics_write_sends_its_vectors_message_in_the_vfs_name() {
    let mut bench = CardFixture::new(8);
    for (vf, vector) in (0..8).flat_map(|vf| [0, 1, 2].map(|vector| (vf, vector))) {
        bench.vf(vf).write(vf::VTEIMS, 7);
        bench.vf(vf).write(vf::VTEICS, 1 << vector);
        bench.poll();
        bench.expect_msix(Vf(vf), vector);
    }
}

#[test]
fn masked_interrupt_cause_sends_its_message_when_unmasked() {
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
fn interrupt_cause_cleared_while_masked_sends_no_message() {
    let mut bench = bench();
    bench.vf(0).write(vf::VTEICS, 3);
    assert_eq!(bench.vf(0).read(vf::VTEICR), 3);
    assert_eq!(bench.vf(0).read(vf::VTEICR), 0);
    bench.vf(0).write(vf::VTEIMS, 7);
    bench.expect_nothing();
}

#[test]
fn one_written_to_eicr_clears_that_cause() {
    let mut bench = bench();
    bench.vf(0).write(vf::VTEICS, 7);
    bench.vf(0).write(vf::VTEICR, 0b101);
    bench.vf(0).write(vf::VTEIMS, 7);
    bench.poll();
    bench.expect_msix(Vf(0), 1);
    assert_eq!(bench.vf(0).read(vf::VTEICR), 0b010);
}

#[test]
fn sent_interrupt_clears_only_the_eicr_causes_in_eiac() {
    let mut bench = bench();
    bench.vf(0).write(vf::VTEIAC, 0b001);
    bench.vf(0).write(vf::VTEIMS, 7);
    bench.vf(0).write(vf::VTEICS, 0b011);
    bench.poll();
    assert_eq!(bench.msix(), [(Vf(0), 0), (Vf(0), 1)]);
    assert_eq!(bench.vf(0).read(vf::VTEICR), 0b010);
}

#[test]
fn sent_interrupt_masks_the_vectors_in_eiam() {
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
fn access_to_eicr_masks_vectors_in_eiam() {
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
fn clearing_an_unset_eicr_cause_masks_no_vector() {
    let mut bench = bench();
    bench.vf(0).write(vf::VTEIAM, 7);
    bench.vf(0).write(vf::VTEIMS, 7);
    bench.vf(0).write(vf::VTEICS, 0b001);
    bench.vf(0).write(vf::VTEICR, 0b111);
    assert_eq!(bench.vf(0).read(vf::VTEIMS), 0b110);
}

#[test]
fn unmasking_an_unmasked_vector_sends_no_interrupt() {
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
fn several_causes_in_a_poll_send_one_message_per_vector() {
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
fn queues_interrupt_on_their_vtivar_vectors() {
    let mut bench = CardFixture::new(3);
    bench.vf(0).start();
    bench.vf(1).start();
    bench.vf(0).write(vf::VTIVAR, 0x8280);
    bench.vf(0).send(&plain(mac(1), mac(0), 60));
    assert_eq!(bench.msix(), [(Vf(1), 1), (Vf(0), 2)]);
    bench.vf(1).send(&plain(mac(0), mac(1), 60));
    assert_eq!(bench.msix(), [(Vf(1), 0), (Vf(0), 0)]);
}

#[test]
fn vtivar_entry_invalid_or_of_vector_3_is_ignored() {
    for entries in [0x0000, 0x0100, 0x8300, 0x0083] {
        let mut bench = CardFixture::new(3);
        bench.vf(1).start();
        bench.vf(1).write(vf::VTIVAR, entries);
        bench.wire_sends(&plain(mac(1), mac(9), 60));
        assert_eq!(bench.vf(1).received().len(), 1);
        bench.expect_no_msix();
        assert_eq!(bench.pf().read(r::EICR), 0, "vector 3 would be VF 0's vector 0");
    }
}

#[test]
fn frame_dropped_for_lack_of_buffers_raises_no_interrupt() {
    let mut bench = CardFixture::new(3);
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
fn pf_icr_causes_interrupt_on_the_ivar_misc_vector() {
    let mut bench = CardFixture::new(3);
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
fn icr_read_clears_causes_without_nsicr_only_if_inta_is_set() {
    let mut bench = CardFixture::new(3);
    bench.pf().write(r::GPIE, gpie::MULTIPLE_MSIX | gpie::EIAME);
    bench.pf().read(r::ICR);
    bench.pf().write(r::IMS, icr::LSC);
    bench.pf().write(r::IAM, icr::LSC);
    bench.pf().write(r::ICS, icr::RXO);
    assert_eq!(bench.pf().read(r::ICR), icr::RXO);
    assert_eq!(bench.pf().read(r::ICR), icr::RXO, "masked: not asserted, not cleared");
    bench.pf().write(r::ICR, icr::RXO);
    assert_eq!(bench.pf().read(r::ICR), 0, "a written one clears it");
    bench.pf().write(r::ICS, icr::LSC);
    assert_eq!(bench.pf().read(r::ICR), icr::LSC | icr::INTA);
    assert_eq!(bench.pf().read(r::ICR), 0);
    assert_eq!(bench.pf().read(r::IMS), 0, "IAM has masked LSC");
}

#[test]
fn pf_vector_is_auto_masked_only_if_gpie_eiame_is_set() {
    for (eiame, expected) in [(0, 1), (gpie::EIAME, 0)] {
        let mut bench = CardFixture::new(3);
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
fn pf_queues_interrupt_on_their_ivar_vectors() {
    let mut bench = CardFixture::new(3);
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
fn ivar_entry_beyond_the_last_vector_is_ignored() {
    for vector in 25..32 {
        let mut bench = CardFixture::new(3);
        bench.pf().start();
        bench.pf().write(r::ivar(3), 0x80 | vector);
        bench.pf().write(r::EIMS, u32::MAX);
        bench.wire_sends(&plain(crate::common::PORT, mac(9), 60));
        bench.expect_no_msix();
        assert_eq!(bench.pf().read(r::EICR), 0);
    }
}

#[test]
fn interrupt_on_a_vfs_vector_by_the_pf_has_the_vfs_routing_id() {
    let mut bench = CardFixture::new(3);
    let vector = u32::from(index(2).first_vector()) + 1;
    bench.pf().write(r::EIMS, 1 << vector);
    bench.pf().write(r::EICS, 1 << vector);
    bench.poll();
    bench.expect_msix(Vf(2), 1);
}

#[test]
fn ivar_misc_entry_invalid_or_beyond_vectors_is_ignored() {
    for entries in [0x0500, 0x9900, 0x9f00, 0x0085] {
        let mut bench = CardFixture::new(3);
        bench.pf().write(r::IVAR_MISC, entries);
        bench.pf().write(r::EIMS, u32::MAX);
        bench.pf().write(r::IMS, icr::LSC);
        bench.nic.set_link(false);
        bench.expect_nothing();
        assert_eq!(bench.pf().read(r::EICR), 0, "{entries:#x}");
    }
}

/// Tests Linux igb's interrupt handler: the message clears and masks the vector, the handler reads ICR, and EIMS
/// unmasks the vector.
#[test]
fn handler_that_reads_icr_then_unmasks_loses_no_cause() {
    let mut bench = CardFixture::new(3);
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

/// Tests an interrupt cause that firmware has left, or a driver that used another kind of interrupt.
#[test]
fn cause_set_before_msix_interrupts_when_msix_is_enabled() {
    let mut bench = CardFixture::bare();
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
