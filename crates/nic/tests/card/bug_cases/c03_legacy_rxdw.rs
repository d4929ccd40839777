//! Bug 3 of another 82576 model: in MSI and INTx mode the write-back of a descriptor raised no RXDW or TXDW. So a
//! driver without MSI-X was never notified of frames.

use crate::common::{CardFixture, PORT, mac, plain};
use i82576::bits::{icr, rctl, tctl};
use i82576::config::pf;
use i82576::register as r;
use pcie::Function::Pf;
use pcie::capability::msi;

/// Returns a card whose PF runs as igb does without MSI-X: GPIE zero, causes unmasked in IMS and auto-masked by IAM.
fn bench() -> CardFixture {
    let mut bench = CardFixture::bare();
    bench.pf().write(r::RCTL, rctl::EN | rctl::UPE | rctl::BAM);
    bench.pf().write(r::TCTL, tctl::EN | tctl::PSP);
    bench.pf().start();
    bench.pf().read(r::ICR);
    bench.pf().write(r::IAM, icr::RXDW | icr::TXDW);
    bench.pf().write(r::IMS, icr::RXDW | icr::TXDW);
    bench
}

#[test]
fn received_and_sent_frames_raise_the_interrupt_pin() {
    let mut bench = bench();
    bench.wire_sends(&plain(PORT, mac(9), 60));
    assert_eq!(bench.world.bus.pin, [true]);
    assert_eq!(bench.pf().read(r::ICR), icr::RXDW | icr::INTA);
    assert_eq!(bench.pf().read(r::IMS), 0, "IAM masks until the handler ends");
    bench.pf().send(&plain(mac(9), PORT, 60));
    assert_eq!(bench.world.bus.pin, [true, false]);
    bench.pf().write(r::IMS, icr::RXDW | icr::TXDW);
    bench.poll();
    assert_eq!(bench.world.bus.pin, [true, false, true]);
    assert_eq!(bench.pf().read(r::ICR), icr::TXDW | icr::INTA);
}

#[test]
fn received_and_sent_frames_send_the_msi_message() {
    let mut bench = bench();
    bench.config(Pf, u16::from(pf::MSI) + msi::CONTROL, u32::from(msi::CONTROL_ENABLE));
    bench.wire_sends(&plain(PORT, mac(9), 60));
    assert_eq!(bench.world.bus.msi, [Pf]);
    assert_eq!(bench.pf().read(r::ICR), icr::RXDW | icr::INTA);
    bench.pf().write(r::IMS, icr::RXDW | icr::TXDW);
    bench.pf().send(&plain(mac(9), PORT, 60));
    assert_eq!(bench.world.bus.msi, [Pf, Pf]);
    assert!(bench.world.bus.pin.is_empty());
}
