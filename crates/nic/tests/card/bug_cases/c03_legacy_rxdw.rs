//! Case 3: in MSI and INTx mode a descriptor that was written back raised no RXDW or TXDW, so that a driver
//! without MSI-X never heard of its frames.

use crate::common::{Bench, PORT, mac, plain};
use i82576::bits::{icr, rctl, tctl};
use i82576::config::pf;
use i82576::register as r;
use pcie::Function::Pf;
use pcie::capability::msi;

/// The PF alone, as igb runs it without MSI-X: GPIE zero, causes unmasked in IMS and auto-masked by IAM.
fn bench() -> Bench {
    let mut bench = Bench::bare();
    bench.pf().write(r::RCTL, rctl::EN | rctl::UPE | rctl::BAM);
    bench.pf().write(r::TCTL, tctl::EN | tctl::PSP);
    bench.pf().start();
    bench.pf().read(r::ICR);
    bench.pf().write(r::IAM, icr::RXDW | icr::TXDW);
    bench.pf().write(r::IMS, icr::RXDW | icr::TXDW);
    bench
}

#[test]
fn a_frame_received_and_a_frame_sent_raise_the_pin() {
    let mut bench = bench();
    bench.wire_sends(&plain(PORT, mac(9), 60));
    assert_eq!(bench.world.bus.pin, [true]);
    assert_eq!(bench.pf().read(r::ICR), icr::RXDW | icr::INTA);
    assert_eq!(bench.pf().read(r::IMS), 0, "IAM has masked until the handler is done");
    bench.pf().send(&plain(mac(9), PORT, 60));
    assert_eq!(bench.world.bus.pin, [true, false]);
    bench.pf().write(r::IMS, icr::RXDW | icr::TXDW);
    bench.poll();
    assert_eq!(bench.world.bus.pin, [true, false, true]);
    assert_eq!(bench.pf().read(r::ICR), icr::TXDW | icr::INTA);
}

#[test]
fn a_frame_received_and_a_frame_sent_send_the_msi_message() {
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
