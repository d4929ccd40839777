//! Bug 11 of another 82576 model: an access to ICR did not mask by IAM, and a read did not clear an interrupting cause.
//! A cause that was already set interrupted again.

use crate::common::CardFixture;
use i82576::bits::{gpie, icr};
use i82576::register as r;
use pcie::Function::Pf;

/// Returns a card whose PF uses MSI-X, with the causes of ICR on vector 0, and bits `gpie` in GPIE.
fn bench(gpie: u32) -> CardFixture {
    let mut bench = CardFixture::new(1);
    bench.pf().write(r::GPIE, gpie::MULTIPLE_MSIX | gpie);
    bench.pf().read(r::ICR);
    bench.pf().write(r::ICR, u32::MAX);
    bench.pf().write(r::IVAR_MISC, 0x8000);
    bench.pf().write(r::EIMS, 1);
    bench
}

#[test]
fn icr_read_auto_masks_causes_if_inta_or_nsicr_is_set() {
    for (gpie, cause, masked) in [(0, icr::LSC, true), (0, icr::RXO, false), (gpie::NSICR, icr::RXO, true)] {
        let mut bench = bench(gpie);
        bench.pf().write(r::IAM, icr::VMMB);
        bench.pf().write(r::IMS, icr::LSC | icr::VMMB);
        bench.pf().write(r::ICS, cause);
        bench.pf().read(r::ICR);
        let left = if masked { icr::LSC } else { icr::LSC | icr::VMMB };
        assert_eq!(bench.pf().read(r::IMS), left, "GPIE {gpie:#x}, cause {cause:#x}");
    }
}

#[test]
fn icr_write_auto_masks_causes_if_inta_or_nsicr_is_set() {
    for (gpie, cause, masked) in [(0, icr::LSC, true), (0, icr::RXO, false), (gpie::NSICR, icr::RXO, true)] {
        let mut bench = bench(gpie);
        bench.pf().write(r::IAM, icr::VMMB);
        bench.pf().write(r::IMS, icr::LSC | icr::VMMB);
        bench.pf().write(r::ICS, cause | icr::SETTABLE & 1);
        bench.pf().write(r::ICR, 1);
        let left = if masked { icr::LSC } else { icr::LSC | icr::VMMB };
        assert_eq!(bench.pf().read(r::IMS), left, "GPIE {gpie:#x}, cause {cause:#x}");
        assert_eq!(bench.pf().read(r::ICR) & cause, cause, "only the written ones clear");
    }
}

#[test]
fn icr_read_clears_all_causes_if_one_interrupted() {
    let mut bench = bench(0);
    bench.pf().write(r::IMS, icr::LSC);
    bench.pf().write(r::ICS, icr::LSC | icr::RXO);
    assert_eq!(bench.pf().read(r::ICR), icr::LSC | icr::RXO | icr::INTA);
    assert_eq!(bench.pf().read(r::ICR), 0);
}

#[test]
fn icr_read_clears_masked_causes_only_if_all_are_masked() {
    let mut bench = bench(0);
    bench.pf().write(r::ICS, icr::RXO);
    assert_eq!((bench.pf().read(r::ICR), bench.pf().read(r::ICR)), (icr::RXO, 0));
    bench.pf().write(r::IMS, icr::LSC);
    bench.pf().write(r::ICS, icr::RXO);
    assert_eq!((bench.pf().read(r::ICR), bench.pf().read(r::ICR)), (icr::RXO, icr::RXO));
}

#[test]
fn only_a_new_cause_in_icr_interrupts() {
    let mut bench = bench(0);
    bench.pf().write(r::EIAC, 1);
    bench.pf().write(r::IMS, icr::LSC | icr::RXO);
    bench.pf().write(r::ICS, icr::LSC);
    bench.poll();
    bench.expect_msix(Pf, 0);
    bench.pf().write(r::ICS, icr::LSC);
    bench.pf().write(r::IMS, icr::LSC);
    bench.expect_nothing();
    bench.pf().write(r::ICS, icr::RXO);
    bench.poll();
    bench.expect_msix(Pf, 0);
}
