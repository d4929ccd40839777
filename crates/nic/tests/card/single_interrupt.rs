//! Tests the PF's single interrupt: the pin, the MSI message, or MSI-X vector 0 without GPIE.MULTIPLE_MSIX. Its causes,
//! the effect of accesses to ICR, and its throttle (EITR 0).

use crate::common::{CardFixture, PORT, mac, plain};
use i82576::bits::{eicr, eitr, gpie, icr, rctl, tctl};
use i82576::config::{MSIX, pf};
use i82576::register as r;
use i82576::{Time, VectorIndex};
use pcie::capability::{msi, msix, power};
use pcie::config::offset;
use pcie::{ConfigAccess, Function::Pf};

const COMMAND: u32 = (offset::COMMAND_MEMORY | offset::COMMAND_BUS_MASTER) as u32;

fn use_msi(bench: &mut CardFixture) {
    bench.config(Pf, u16::from(pf::MSI) + msi::CONTROL, u32::from(msi::CONTROL_ENABLE));
}

fn use_one_vector(bench: &mut CardFixture) {
    bench.config(Pf, u16::from(MSIX) + msix::CONTROL, u32::from(msix::CONTROL_ENABLE));
}

/// Interrupt signals of the PF: changes of the pin, number of MSI messages, number of MSI-X messages.
type InterruptSignals = (Vec<bool>, usize, usize);

/// Function that makes the PF use one kind of single interrupt.
type InterruptSelector = fn(&mut CardFixture);

/// Polls, and returns the changes of the pin and the numbers of messages since the last call.
fn heard(bench: &mut CardFixture) -> InterruptSignals {
    bench.poll();
    let bus = &mut bench.world.bus;
    let heard = (core::mem::take(&mut bus.pin), bus.msi.len(), bus.msix.len());
    assert!(bus.msix.iter().all(|message| *message == (Pf, 0)));
    bus.msi.clear();
    bus.msix.clear();
    heard
}

#[test]
fn interrupt_pin_is_raised_while_an_unmasked_cause_is_set() {
    let mut bench = CardFixture::bare();
    bench.pf().read(r::ICR);
    bench.pf().write(r::ICS, icr::LSC);
    assert_eq!(heard(&mut bench), (vec![], 0, 0), "masked");
    bench.pf().write(r::IMS, icr::LSC);
    assert_eq!(heard(&mut bench), (vec![true], 0, 0));
    bench.pf().write(r::ICS, icr::LSC);
    assert_eq!(heard(&mut bench), (vec![], 0, 0), "the bus sees one change of the level");
    assert_eq!(bench.pf().read(r::ICR), icr::LSC | icr::INTA);
    assert_eq!(heard(&mut bench), (vec![false], 0, 0));
    assert_eq!(bench.pf().read(r::ICR), 0);
}

#[test]
fn masking_lowers_and_unmasking_raises_the_interrupt_pin() {
    let mut bench = CardFixture::bare();
    bench.pf().write(r::IMS, icr::LSC);
    bench.pf().write(r::ICS, icr::LSC);
    assert_eq!(heard(&mut bench).0, [true]);
    bench.pf().write(r::IMC, icr::LSC);
    assert_eq!(heard(&mut bench).0, [false]);
    assert_eq!(bench.pf().read(r::IMS), 0);
    bench.pf().write(r::IMS, icr::LSC);
    assert_eq!(heard(&mut bench).0, [true]);
    bench.pf().write(r::ICR, icr::LSC);
    assert_eq!(heard(&mut bench).0, [false], "a written one clears the cause");
}

#[test]
fn intx_disable_lowers_the_pin_and_keeps_interrupt_status() {
    let mut bench = CardFixture::bare();
    let status = |bench: &mut CardFixture| bench.nic.config_read(Pf, offset::STATUS, 2) & 8;
    bench.pf().write(r::IMS, icr::LSC);
    bench.config(Pf, offset::COMMAND, COMMAND | u32::from(offset::COMMAND_INTX_DISABLE));
    bench.pf().write(r::ICS, icr::LSC);
    assert_eq!(heard(&mut bench).0, []);
    assert_eq!(status(&mut bench), 8);
    bench.config(Pf, offset::COMMAND, COMMAND);
    assert_eq!(heard(&mut bench).0, [true]);
    bench.config(Pf, offset::COMMAND, COMMAND | u32::from(offset::COMMAND_INTX_DISABLE));
    assert_eq!(heard(&mut bench).0, [false]);
    bench.pf().write(r::ICR, u32::MAX);
    assert_eq!(status(&mut bench), 0);
}

#[test]
fn msi_needs_bus_mastering_and_the_interrupt_pin_does_not() {
    let mut bench = CardFixture::bare();
    bench.pf().write(r::IMS, icr::LSC);
    bench.config(Pf, offset::COMMAND, u32::from(offset::COMMAND_MEMORY));
    bench.pf().write(r::ICS, icr::LSC);
    assert_eq!(heard(&mut bench), (vec![true], 0, 0), "the pin needs no bus mastering");
    use_msi(&mut bench);
    bench.pf().read(r::ICR);
    bench.pf().write(r::ICS, icr::LSC);
    assert_eq!(heard(&mut bench), (vec![false], 0, 0));
    bench.config(Pf, offset::COMMAND, COMMAND);
    assert_eq!(heard(&mut bench), (vec![], 1, 0), "the message waits for bus mastering");
}

#[test]
fn only_a_newly_set_unmasked_cause_sends_an_msi() {
    for (enable, of) in [(use_msi as InterruptSelector, (vec![], 1, 0)), (use_one_vector, (vec![], 0, 1))] {
        let mut bench = CardFixture::bare();
        enable(&mut bench);
        bench.pf().write(r::IMS, icr::LSC | icr::RXO);
        assert_eq!(heard(&mut bench).0, []);
        bench.pf().read(r::ICR);
        bench.pf().write(r::ICS, icr::LSC);
        assert_eq!(heard(&mut bench), of);
        bench.pf().write(r::ICS, icr::LSC);
        assert_eq!(heard(&mut bench), (vec![], 0, 0), "the cause is already set");
        bench.pf().write(r::ICS, icr::RXO);
        assert_eq!(heard(&mut bench), of, "a new cause");
        bench.pf().write(r::IMS, icr::LSC);
        assert_eq!(heard(&mut bench), (vec![], 0, 0), "no cause was unmasked");
        bench.pf().read(r::ICR);
        bench.pf().write(r::ICS, icr::LSC);
        assert_eq!(heard(&mut bench), of);
    }
}

#[test]
fn cause_cleared_before_the_poll_sends_no_msi() {
    let mut bench = CardFixture::bare();
    use_msi(&mut bench);
    bench.pf().write(r::IMS, icr::LSC);
    bench.pf().write(r::ICS, icr::LSC);
    bench.pf().read(r::ICR);
    assert_eq!(heard(&mut bench), (vec![], 0, 0));
}

#[test]
fn masked_msi_pends_and_is_sent_when_unmasked() {
    let mut bench = CardFixture::bare();
    use_msi(&mut bench);
    let (mask, pending) = (u16::from(pf::MSI) + msi::MASK, u16::from(pf::MSI) + msi::PENDING);
    bench.config(Pf, mask, 1);
    bench.pf().write(r::IMS, icr::LSC);
    bench.pf().write(r::ICS, icr::LSC);
    assert_eq!(heard(&mut bench), (vec![], 0, 0));
    assert_eq!(bench.nic.config_read(Pf, pending, 4), 1);
    bench.config(Pf, mask, 0);
    assert_eq!(heard(&mut bench), (vec![], 1, 0));
    assert_eq!(bench.nic.config_read(Pf, pending, 4), 0);
}

#[test]
fn icr_read_masks_the_causes_in_iam() {
    let mut bench = CardFixture::bare();
    bench.pf().write(r::IAM, icr::LSC | icr::RXO);
    bench.pf().write(r::IMS, icr::LSC | icr::RXO | icr::VMMB);
    bench.pf().write(r::ICS, icr::LSC);
    assert_eq!(heard(&mut bench).0, [true]);
    bench.pf().read(r::ICR);
    assert_eq!(bench.pf().read(r::IMS), icr::VMMB);
    bench.pf().write(r::ICS, icr::RXO);
    assert_eq!(heard(&mut bench).0, [false]);
    bench.pf().write(r::IMS, icr::LSC | icr::RXO);
    assert_eq!(heard(&mut bench).0, [true], "the cause that came while masked");
}

#[test]
fn eitr_0_throttles_the_single_interrupt() {
    let forms: [(InterruptSelector, InterruptSignals); 3] =
        [(|_| {}, (vec![true], 0, 0)), (use_msi, (vec![], 1, 0)), (use_one_vector, (vec![], 0, 1))];
    for (enable, once) in forms {
        let mut bench = CardFixture::bare();
        enable(&mut bench);
        bench.now = Time::from_micros(1000);
        bench.pf().write(r::eitr(VectorIndex::new(0).unwrap()), 100 << eitr::INTERVAL_SHIFT);
        bench.pf().write(r::IMS, icr::LSC);
        bench.pf().write(r::ICS, icr::LSC);
        assert_eq!(heard(&mut bench), once);
        bench.pf().read(r::ICR);
        heard(&mut bench);
        bench.pf().write(r::ICS, icr::LSC);
        assert_eq!(bench.poll().deadline, Some(Time::from_micros(1100)));
        bench.wait_us(99);
        assert_eq!(heard(&mut bench), (vec![], 0, 0));
        bench.wait_us(1);
        assert_eq!(heard(&mut bench), once);
    }
}

/// Returns a card without VFs whose PF receives and sends on its first queue.
fn running() -> CardFixture {
    let mut bench = CardFixture::bare();
    bench.pf().write(r::RCTL, rctl::EN | rctl::UPE | rctl::BAM);
    bench.pf().write(r::TCTL, tctl::EN | tctl::PSP);
    bench.pf().start();
    bench.pf().write(r::ICR, u32::MAX);
    bench
}

#[test]
fn single_interrupt_of_a_queue_sets_its_ivar_bit_in_eicr() {
    let mut bench = running();
    bench.pf().write(r::ivar(0), 0x8f83);
    bench.wire_sends(&plain(PORT, mac(9), 60));
    assert_eq!(bench.pf().read(r::EICR), 1 << 3);
    bench.pf().write(r::EIMS, 1 << 15);
    bench.pf().send(&plain(mac(9), PORT, 60));
    assert_eq!(heard(&mut bench).0, [true], "EICR and EIMS suffice");
    assert_eq!(bench.pf().read(r::EICR), 1 << 15);
    assert_eq!(heard(&mut bench).0, [false]);
}

#[test]
fn eicr_other_bit_shows_an_unmasked_cause_in_icr() {
    let mut bench = CardFixture::bare();
    bench.pf().write(r::ICS, icr::LSC | icr::TIMER);
    assert_eq!(bench.pf().read(r::EICR), 0, "masked");
    bench.pf().write(r::IMS, icr::LSC | icr::TIMER);
    assert_eq!(bench.pf().read(r::EICR), eicr::OTHER | eicr::TIMER);
    bench.pf().read(r::ICR);
    assert_eq!(bench.pf().read(r::EICR), 0);
}

#[test]
fn few_free_receive_descriptors_raise_cause_rxdmt0() {
    let mut bench = running();
    // RDMTS is one unit of 16 descriptors.
    bench.pf().write(r::rx_block(i82576::QueueIndex::new(0).unwrap()) + r::rx::SRRCTL, 0x8210_0002);
    for left in (14..63).rev() {
        bench.wire_sends(&plain(PORT, mac(9), 60));
        let few = bench.pf().read(r::ICR) & icr::RXDMT0 != 0;
        bench.pf().write(r::ICR, u32::MAX);
        assert_eq!(few, left <= 16, "{left} left");
    }
    assert_eq!(bench.pf().read(r::ICRXDMTC), 3);
}

#[test]
fn frame_lost_for_lack_of_descriptors_raises_cause_rxo() {
    let mut bench = running();
    bench.pf().start_sized(8, 8);
    for _ in 0..8 {
        bench.wire_sends(&plain(PORT, mac(9), 60));
    }
    assert_eq!(
        bench.pf().read(r::ICR) & (icr::RXO | icr::RXDMT0),
        icr::RXO,
        "RDMTS of zero raises no RXDMT0"
    );
}

#[test]
fn vf_traffic_raises_no_interrupt_cause_of_the_pf() {
    let mut bench = CardFixture::new(2);
    bench.vf(0).start();
    bench.vf(1).start_sized(8, 8);
    bench.pf().write(r::ICR, u32::MAX);
    for _ in 0..8 {
        bench.vf(0).send(&plain(mac(1), mac(0), 60));
    }
    assert_eq!(bench.pf().read(r::ICR), 0);
}

#[test]
fn pf_in_d3hot_lowers_its_interrupt_pin() {
    let mut bench = CardFixture::bare();
    bench.pf().write(r::IMS, icr::LSC);
    bench.pf().write(r::ICS, icr::LSC);
    assert_eq!(heard(&mut bench).0, [true]);
    bench.config(Pf, u16::from(pf::POWER) + power::CONTROL, 3);
    assert_eq!(heard(&mut bench).0, [false]);
}

#[test]
fn reset_lowers_the_interrupt_pin_and_drops_pending_msi() {
    let mut bench = CardFixture::bare();
    bench.pf().write(r::IMS, icr::LSC);
    bench.pf().write(r::ICS, icr::LSC);
    assert_eq!(heard(&mut bench).0, [true]);
    bench.pf().write(r::CTRL, i82576::bits::ctrl::RST);
    assert_eq!(heard(&mut bench).0, [false]);
    use_msi(&mut bench);
    bench.pf().write(r::IMS, icr::LSC);
    bench.pf().write(r::ICS, icr::LSC);
    bench.pf().write(r::CTRL, i82576::bits::ctrl::RST);
    bench.pf().write(r::IMS, icr::LSC);
    assert_eq!(heard(&mut bench), (vec![], 0, 0));
}

/// Runs igb's interrupt test (`ethtool -t`) for each cause of ICR and each kind of single interrupt.
#[test]
fn card_passes_the_interrupt_self_test_of_driver_igb() {
    for enable in [(|_: &mut CardFixture| {}) as InterruptSelector, use_msi, use_one_vector] {
        let mut bench = CardFixture::bare();
        enable(&mut bench);
        bench.pf().write(r::IMC, u32::MAX);
        for cause in (0..31).map(|bit| 1 << bit).filter(|cause| icr::SETTABLE & cause != 0) {
            bench.pf().write(r::ICR, u32::MAX);
            bench.pf().write(r::IMC, cause);
            bench.pf().write(r::ICS, cause);
            assert!(!interrupted(&mut bench), "{cause:#x} is masked");
            bench.pf().write(r::ICR, u32::MAX);
            bench.pf().write(r::IMS, cause);
            bench.pf().write(r::ICS, cause);
            assert!(interrupted(&mut bench));
            assert_eq!(bench.pf().read(r::ICR) & !icr::INTA, cause);
            bench.pf().write(r::ICR, u32::MAX);
            bench.pf().write(r::IMC, !cause);
            bench.pf().write(r::ICS, !cause);
            assert!(!interrupted(&mut bench), "all but {cause:#x} are masked");
            bench.pf().write(r::IMC, u32::MAX);
        }
    }
}

fn interrupted(bench: &mut CardFixture) -> bool {
    let (pin, msi, msix) = heard(bench);
    pin.last() == Some(&true) || msi + msix > 0
}

/// Tests that EIAC and GPIE.EIAME apply to messages of vectors. With a single interrupt EICR keeps its causes until it
/// is read.
#[test]
fn auto_clear_and_auto_mask_apply_only_to_msix_interrupts() {
    for use_one in [use_msi as InterruptSelector, use_one_vector] {
        let mut bench = CardFixture::bare();
        use_one(&mut bench);
        for (at, value) in [(r::GPIE, gpie::EIAME), (r::EIAC, 3), (r::EIAM, 1), (r::EIMS, 3), (r::EICS, 3)] {
            bench.pf().write(at, value);
        }
        let (_, msi, msix) = heard(&mut bench);
        assert_eq!((msi + msix, bench.pf().read(r::EIMS)), (1, 3), "the message masks no vector");
        assert_eq!(
            (bench.pf().read(r::EICR), bench.pf().read(r::EICR)),
            (3, 0),
            "the message clears no cause"
        );
        assert_eq!(bench.pf().read(r::EIMS), 2, "a read masks by EIAM with any kind of interrupt");
    }
}
