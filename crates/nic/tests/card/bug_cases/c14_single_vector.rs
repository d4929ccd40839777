//! Bug 14 of another 82576 model: IVAR selected vectors even with GPIE zero. MSI-X with GPIE zero has a single vector
//! for all causes, as igb's interrupt test uses it.

use crate::common::{CardFixture, PORT, mac, plain};
use i82576::bits::{gpie, icr, rctl, tctl};
use i82576::config::MSIX;
use i82576::register as r;
use pcie::Function::Pf;
use pcie::capability::msix;

/// Returns a card without VFs whose PF has MSI-X enabled.
fn bench() -> CardFixture {
    let mut bench = CardFixture::bare();
    bench.config(Pf, u16::from(MSIX) + msix::CONTROL, u32::from(msix::CONTROL_ENABLE));
    bench.pf().write(r::RCTL, rctl::EN | rctl::UPE | rctl::BAM);
    bench.pf().write(r::TCTL, tctl::EN | tctl::PSP);
    bench.pf().start();
    bench.pf().read(r::ICR);
    bench
}

#[test]
fn every_cause_uses_vector_0_without_multiple_msix() {
    let mut bench = bench();
    bench.pf().write(r::IMS, icr::LSC | icr::RXDW | icr::TXDW);
    bench.nic.set_link(false);
    bench.poll();
    bench.expect_msix(Pf, 0);
    bench.pf().read(r::ICR);
    bench.nic.set_link(true);
    bench.pf().read(r::ICR);
    bench.wire_sends(&plain(PORT, mac(9), 60));
    bench.expect_msix(Pf, 0);
    bench.pf().read(r::ICR);
    bench.pf().send(&plain(mac(9), PORT, 60));
    bench.expect_msix(Pf, 0);
}

#[test]
fn cause_without_multiple_msix_sets_eicr_and_uses_vector_0() {
    let mut bench = bench();
    bench.pf().write(r::GPIE, gpie::MULTIPLE_MSIX);
    bench.pf().write(r::ivar(0), 0x85);
    bench.pf().write(r::GPIE, 0);
    bench.pf().write(r::EIMS, 1 << 5);
    bench.wire_sends(&plain(PORT, mac(9), 60));
    bench.expect_msix(Pf, 0);
    assert_eq!(bench.pf().read(r::EICR), 1 << 5);
}

#[test]
fn vector_map_ivar_ignores_writes_without_multiple_msix() {
    let mut bench = bench();
    for at in [r::ivar(0), r::ivar(7), r::IVAR_MISC] {
        bench.pf().write(at, 0x8081);
        assert_eq!(bench.pf().read(at), 0);
    }
    bench.pf().write(r::GPIE, gpie::MULTIPLE_MSIX);
    for at in [r::ivar(0), r::ivar(7), r::IVAR_MISC] {
        bench.pf().write(at, 0x8081);
        assert_eq!(bench.pf().read(at), 0x8081);
    }
}
