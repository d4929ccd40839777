//! Bug 13 of another 82576 model: a delayed message left its cause in EICR, and EIAC cleared causes that it
//! does not name.

use crate::common::{CardFixture, PORT, mac, plain};
use i82576::VectorIndex;
use i82576::bits::eitr;
use i82576::register as r;
use pcie::Function::Pf;

fn vector(n: u8) -> u32 {
    r::eitr(VectorIndex::new(n).unwrap())
}

#[test]
fn delayed_interrupt_clears_its_eicr_cause_when_sent() {
    let mut bench = CardFixture::new(1);
    bench.pf().write(vector(3), 100 << eitr::INTERVAL_SHIFT);
    bench.pf().write(r::EIAC, 1 << 3);
    bench.pf().write(r::EIMS, 1 << 3);
    bench.pf().write(r::EICS, 1 << 3);
    bench.poll();
    bench.expect_msix(Pf, 3);
    bench.pf().write(r::EICS, 1 << 3);
    bench.poll();
    bench.expect_no_msix();
    bench.wait_us(100);
    bench.poll();
    bench.expect_msix(Pf, 3);
    assert_eq!(bench.pf().read(r::EICR), 0);
    bench.wait_us(1000);
    bench.expect_nothing();
}

#[test]
fn eiac_auto_clears_only_the_selected_causes() {
    let mut bench = CardFixture::new(1);
    bench.pf().write(r::EIAC, 0b0101);
    bench.pf().write(r::EIMS, 0b1111);
    bench.pf().write(r::EICS, 0b1111);
    bench.poll();
    assert_eq!(bench.msix().len(), 4);
    assert_eq!(bench.pf().read(r::EICR), 0b1010);
    assert_eq!(bench.pf().read(r::EICR), 0, "the read clears");
}

#[test]
fn eiac_auto_clear_keeps_a_masked_cause() {
    let mut bench = CardFixture::new(1);
    bench.pf().write(r::EIAC, 1);
    bench.pf().write(r::EICS, 1);
    bench.expect_nothing();
    assert_eq!(bench.pf().read(r::EICR), 1);
}

#[test]
fn eicr_reads_zero_after_an_auto_cleared_message() {
    let mut bench = CardFixture::new(1);
    bench.pf().start();
    bench.pf().write(r::ivar(1), 0x80);
    bench.pf().write(r::EIAC, 1);
    bench.pf().write(r::EIMS, 1);
    bench.wire_sends(&plain(PORT, mac(9), 60));
    bench.expect_msix(Pf, 0);
    assert_eq!(bench.pf().read(r::EICR), 0);
}
