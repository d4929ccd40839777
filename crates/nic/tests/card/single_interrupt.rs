//! The PF's one interrupt for everything: the pin, the MSI message, or MSI-X vector 0 while GPIE says nothing of
//! several. What raises it, what an access to ICR does, and how EITR 0 throttles it.

use crate::common::{Bench, PORT, mac, plain};
use i82576::bits::{eicr, eitr, gpie, icr, rctl, tctl};
use i82576::config::{MSIX, pf};
use i82576::register as r;
use i82576::{Time, Vector};
use pcie::capability::{msi, msix, power};
use pcie::config::offset;
use pcie::{ConfigAccess, Function::Pf};

const COMMAND: u32 = (offset::COMMAND_MEMORY | offset::COMMAND_BUS_MASTER) as u32;

fn use_msi(bench: &mut Bench) {
    bench.config(Pf, u16::from(pf::MSI) + msi::CONTROL, u32::from(msi::CONTROL_ENABLE));
}

fn use_one_vector(bench: &mut Bench) {
    bench.config(Pf, u16::from(MSIX) + msix::CONTROL, u32::from(msix::CONTROL_ENABLE));
}

/// Changes of the pin, MSI messages, MSI-X messages.
type Heard = (Vec<bool>, usize, usize);

/// How software chooses a form.
type Use = fn(&mut Bench);

/// What the bus heard since the last time.
fn heard(bench: &mut Bench) -> Heard {
    bench.poll();
    let bus = &mut bench.world.bus;
    let heard = (core::mem::take(&mut bus.pin), bus.msi.len(), bus.msix.len());
    assert!(bus.msix.iter().all(|message| *message == (Pf, 0)));
    bus.msi.clear();
    bus.msix.clear();
    heard
}

#[test]
fn the_pin_is_raised_while_an_unmasked_cause_is_set() {
    let mut bench = Bench::bare();
    bench.pf().read(r::ICR);
    bench.pf().write(r::ICS, icr::LSC);
    assert_eq!(heard(&mut bench), (vec![], 0, 0), "masked");
    bench.pf().write(r::IMS, icr::LSC);
    assert_eq!(heard(&mut bench), (vec![true], 0, 0));
    bench.pf().write(r::ICS, icr::LSC);
    assert_eq!(heard(&mut bench), (vec![], 0, 0), "a level, told once");
    assert_eq!(bench.pf().read(r::ICR), icr::LSC | icr::INTA);
    assert_eq!(heard(&mut bench), (vec![false], 0, 0));
    assert_eq!(bench.pf().read(r::ICR), 0);
}

#[test]
fn masking_lowers_the_pin_and_unmasking_raises_it_again() {
    let mut bench = Bench::bare();
    bench.pf().write(r::IMS, icr::LSC);
    bench.pf().write(r::ICS, icr::LSC);
    assert_eq!(heard(&mut bench).0, [true]);
    bench.pf().write(r::IMC, icr::LSC);
    assert_eq!(heard(&mut bench).0, [false]);
    assert_eq!(bench.pf().read(r::IMS), 0);
    bench.pf().write(r::IMS, icr::LSC);
    assert_eq!(heard(&mut bench).0, [true]);
    bench.pf().write(r::ICR, icr::LSC);
    assert_eq!(heard(&mut bench).0, [false], "a one clears the cause");
}

#[test]
fn the_pin_can_be_disabled_and_status_shows_what_it_would_be() {
    let mut bench = Bench::bare();
    let status = |bench: &mut Bench| bench.nic.config_read(Pf, offset::STATUS, 2) & 8;
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
fn a_pin_is_no_memory_request_and_a_message_is_one() {
    let mut bench = Bench::bare();
    bench.pf().write(r::IMS, icr::LSC);
    bench.config(Pf, offset::COMMAND, u32::from(offset::COMMAND_MEMORY));
    bench.pf().write(r::ICS, icr::LSC);
    assert_eq!(heard(&mut bench), (vec![true], 0, 0), "without bus mastering too");
    use_msi(&mut bench);
    bench.pf().read(r::ICR);
    bench.pf().write(r::ICS, icr::LSC);
    assert_eq!(heard(&mut bench), (vec![false], 0, 0));
    bench.config(Pf, offset::COMMAND, COMMAND);
    assert_eq!(heard(&mut bench), (vec![], 1, 0), "the message waited for it");
}

#[test]
fn a_message_is_sent_for_each_new_cause_and_for_no_other() {
    for (enable, of) in [(use_msi as Use, (vec![], 1, 0)), (use_one_vector, (vec![], 0, 1))] {
        let mut bench = Bench::bare();
        enable(&mut bench);
        bench.pf().write(r::IMS, icr::LSC | icr::RXO);
        assert_eq!(heard(&mut bench).0, []);
        bench.pf().read(r::ICR);
        bench.pf().write(r::ICS, icr::LSC);
        assert_eq!(heard(&mut bench), of);
        bench.pf().write(r::ICS, icr::LSC);
        assert_eq!(heard(&mut bench), (vec![], 0, 0), "it is set already");
        bench.pf().write(r::ICS, icr::RXO);
        assert_eq!(heard(&mut bench), of, "this one is new");
        bench.pf().write(r::IMS, icr::LSC);
        assert_eq!(heard(&mut bench), (vec![], 0, 0), "nothing was unmasked");
        bench.pf().read(r::ICR);
        bench.pf().write(r::ICS, icr::LSC);
        assert_eq!(heard(&mut bench), of);
    }
}

#[test]
fn a_cause_that_is_gone_before_the_message_leaves_sends_none() {
    let mut bench = Bench::bare();
    use_msi(&mut bench);
    bench.pf().write(r::IMS, icr::LSC);
    bench.pf().write(r::ICS, icr::LSC);
    bench.pf().read(r::ICR);
    assert_eq!(heard(&mut bench), (vec![], 0, 0));
}

#[test]
fn a_masked_msi_pends_and_is_sent_when_unmasked() {
    let mut bench = Bench::bare();
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
fn iam_masks_when_icr_is_read_so_that_a_handler_needs_no_second_write() {
    let mut bench = Bench::bare();
    bench.pf().write(r::IAM, icr::LSC | icr::RXO);
    bench.pf().write(r::IMS, icr::LSC | icr::RXO | icr::VMMB);
    bench.pf().write(r::ICS, icr::LSC);
    assert_eq!(heard(&mut bench).0, [true]);
    bench.pf().read(r::ICR);
    assert_eq!(bench.pf().read(r::IMS), icr::VMMB);
    bench.pf().write(r::ICS, icr::RXO);
    assert_eq!(heard(&mut bench).0, [false]);
    bench.pf().write(r::IMS, icr::LSC | icr::RXO);
    assert_eq!(heard(&mut bench).0, [true], "what came meanwhile");
}

#[test]
fn eitr_0_throttles_it_in_every_form() {
    let forms: [(Use, Heard); 3] =
        [(|_| {}, (vec![true], 0, 0)), (use_msi, (vec![], 1, 0)), (use_one_vector, (vec![], 0, 1))];
    for (enable, once) in forms {
        let mut bench = Bench::bare();
        enable(&mut bench);
        bench.now = Time::from_micros(1000);
        bench.pf().write(r::eitr(Vector::new(0).unwrap()), 100 << eitr::INTERVAL_SHIFT);
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

/// The PF alone, receiving and sending on its first queue.
fn running() -> Bench {
    let mut bench = Bench::bare();
    bench.pf().write(r::RCTL, rctl::EN | rctl::UPE | rctl::BAM);
    bench.pf().write(r::TCTL, tctl::EN | tctl::PSP);
    bench.pf().start();
    bench.pf().write(r::ICR, u32::MAX);
    bench
}

#[test]
fn queues_set_the_bits_of_eicr_that_ivar_names() {
    let mut bench = running();
    bench.pf().write(r::ivar(0), 0x8f83);
    bench.wire_sends(&plain(PORT, mac(9), 60));
    assert_eq!(bench.pf().read(r::EICR), 1 << 3);
    bench.pf().write(r::EIMS, 1 << 15);
    bench.pf().send(&plain(mac(9), PORT, 60));
    assert_eq!(heard(&mut bench).0, [true], "by EICR and EIMS alone");
    assert_eq!(bench.pf().read(r::EICR), 1 << 15);
    assert_eq!(heard(&mut bench).0, [false]);
}

#[test]
fn eicr_says_that_icr_has_a_cause() {
    let mut bench = Bench::bare();
    bench.pf().write(r::ICS, icr::LSC | icr::TIMER);
    assert_eq!(bench.pf().read(r::EICR), 0, "masked");
    bench.pf().write(r::IMS, icr::LSC | icr::TIMER);
    assert_eq!(bench.pf().read(r::EICR), eicr::OTHER | eicr::TIMER);
    bench.pf().read(r::ICR);
    assert_eq!(bench.pf().read(r::EICR), 0);
}

#[test]
fn few_descriptors_left_are_a_cause() {
    let mut bench = running();
    // One threshold: 16 descriptors.
    bench.pf().write(r::rx_block(i82576::Queue::new(0).unwrap()) + r::rx::SRRCTL, 0x8210_0002);
    for left in (14..63).rev() {
        bench.wire_sends(&plain(PORT, mac(9), 60));
        let few = bench.pf().read(r::ICR) & icr::RXDMT0 != 0;
        bench.pf().write(r::ICR, u32::MAX);
        assert_eq!(few, left <= 16, "{left} left");
    }
    assert_eq!(bench.pf().read(r::ICRXDMTC), 3);
}

#[test]
fn no_descriptors_left_are_a_cause() {
    let mut bench = running();
    bench.pf().start_sized(8, 8);
    for _ in 0..8 {
        bench.wire_sends(&plain(PORT, mac(9), 60));
    }
    assert_eq!(
        bench.pf().read(r::ICR) & (icr::RXO | icr::RXDMT0),
        icr::RXO,
        "without a threshold, none is passed"
    );
}

#[test]
fn the_traffic_of_vfs_is_no_cause_of_the_pf() {
    let mut bench = Bench::new(2);
    bench.vf(0).start();
    bench.vf(1).start_sized(8, 8);
    bench.pf().write(r::ICR, u32::MAX);
    for _ in 0..8 {
        bench.vf(0).send(&plain(mac(1), mac(0), 60));
    }
    assert_eq!(bench.pf().read(r::ICR), 0);
}

#[test]
fn a_pf_that_sleeps_lowers_its_pin() {
    let mut bench = Bench::bare();
    bench.pf().write(r::IMS, icr::LSC);
    bench.pf().write(r::ICS, icr::LSC);
    assert_eq!(heard(&mut bench).0, [true]);
    bench.config(Pf, u16::from(pf::POWER) + power::CONTROL, 3);
    assert_eq!(heard(&mut bench).0, [false]);
}

#[test]
fn a_reset_lowers_the_pin_and_forgets_what_was_owed() {
    let mut bench = Bench::bare();
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

/// igb's `ethtool -t` interrupt test, for each cause of ICR and in each form.
#[test]
fn the_card_passes_the_interrupt_test_of_igb() {
    for enable in [(|_: &mut Bench| {}) as Use, use_msi, use_one_vector] {
        let mut bench = Bench::bare();
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

fn interrupted(bench: &mut Bench) -> bool {
    let (pin, msi, msix) = heard(bench);
    pin.last() == Some(&true) || msi + msix > 0
}

/// EIAC and GPIE.EIAME speak of the messages of vectors; with one interrupt for all, EICR waits to be read.
#[test]
fn eiac_and_eiame_do_nothing_where_vectors_have_no_messages() {
    for use_one in [use_msi as Use, use_one_vector] {
        let mut bench = Bench::bare();
        use_one(&mut bench);
        for (at, value) in [(r::GPIE, gpie::EIAME), (r::EIAC, 3), (r::EIAM, 1), (r::EIMS, 3), (r::EICS, 3)] {
            bench.pf().write(at, value);
        }
        let (_, msi, msix) = heard(&mut bench);
        assert_eq!((msi + msix, bench.pf().read(r::EIMS)), (1, 3), "sent, and nothing masked");
        assert_eq!((bench.pf().read(r::EICR), bench.pf().read(r::EICR)), (3, 0), "nor cleared");
        assert_eq!(bench.pf().read(r::EIMS), 2, "reading masks by EIAM in every form");
    }
}
