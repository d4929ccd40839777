//! Case 11: an access to ICR did not mask by IAM, a read did not clear what had interrupted, and a cause that
//! was set already interrupted again.

use crate::common::Bench;
use i82576::bits::{gpie, icr};
use i82576::register as r;
use pcie::Function::Pf;

/// MSI-X with all other causes on vector 0, none of it auto-cleared.
fn bench(gpie: u32) -> Bench {
    let mut bench = Bench::new(1);
    bench.pf().write(r::GPIE, gpie::MULTIPLE_MSIX | gpie);
    bench.pf().read(r::ICR);
    bench.pf().write(r::ICR, u32::MAX);
    bench.pf().write(r::IVAR_MISC, 0x8000);
    bench.pf().write(r::EIMS, 1);
    bench
}

#[test]
fn reading_masks_by_iam_if_it_was_an_interrupt_or_every_read_counts() {
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
fn writing_masks_by_iam_under_the_same_condition() {
    for (gpie, cause, masked) in [(0, icr::LSC, true), (0, icr::RXO, false), (gpie::NSICR, icr::RXO, true)] {
        let mut bench = bench(gpie);
        bench.pf().write(r::IAM, icr::VMMB);
        bench.pf().write(r::IMS, icr::LSC | icr::VMMB);
        bench.pf().write(r::ICS, cause | icr::SETTABLE & 1);
        bench.pf().write(r::ICR, 1);
        let left = if masked { icr::LSC } else { icr::LSC | icr::VMMB };
        assert_eq!(bench.pf().read(r::IMS), left, "GPIE {gpie:#x}, cause {cause:#x}");
        assert_eq!(bench.pf().read(r::ICR) & cause, cause, "and clears what was written as one alone");
    }
}

#[test]
fn reading_clears_all_that_is_set_if_anything_interrupted() {
    let mut bench = bench(0);
    bench.pf().write(r::IMS, icr::LSC);
    bench.pf().write(r::ICS, icr::LSC | icr::RXO);
    assert_eq!(bench.pf().read(r::ICR), icr::LSC | icr::RXO | icr::INTA);
    assert_eq!(bench.pf().read(r::ICR), 0);
}

#[test]
fn reading_clears_while_everything_is_masked_and_not_while_something_else_is_unmasked() {
    let mut bench = bench(0);
    bench.pf().write(r::ICS, icr::RXO);
    assert_eq!((bench.pf().read(r::ICR), bench.pf().read(r::ICR)), (icr::RXO, 0));
    bench.pf().write(r::IMS, icr::LSC);
    bench.pf().write(r::ICS, icr::RXO);
    assert_eq!((bench.pf().read(r::ICR), bench.pf().read(r::ICR)), (icr::RXO, icr::RXO));
}

#[test]
fn only_a_new_cause_interrupts() {
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
