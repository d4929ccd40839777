//! Tests the interrupts of VFs: their interrupt vector, their rate, and that no interrupt is lost. The clock
//! is moved by hand.

use crate::support::{DrivenCardFixture, between};
use driver::moderation::{AdaptiveModeration, ModerationPolicy};
use driver::vf::{MAILBOX_VECTOR, RECEIVE_VECTOR, TRANSMIT_VECTOR, VfDriverConfig, VfInterruptCause};
use pcie::Function;

fn quiet(bench: &mut DrivenCardFixture) {
    bench.advance_us(20_000);
    for vf in 0..bench.vfs.len() as u8 {
        for vector in bench.card.world().take_interrupts(Function::Vf(vf)) {
            bench.on(vf, |driver, hal| {
                driver.handle_interrupt(hal, vector);
                driver.receive_done(hal);
            });
        }
    }
    bench.advance_us(20_000);
    for vf in 0..bench.vfs.len() as u8 {
        bench.card.world().take_interrupts(Function::Vf(vf));
    }
}

#[test]
fn transmit_and_receive_interrupts_use_separate_vectors() {
    let mut bench = DrivenCardFixture::new(2);
    quiet(&mut bench);
    bench.send(0, &between(0, 1, 60, 1));
    bench.advance_us(100);
    assert_eq!(bench.card.world().take_interrupts(Function::Vf(0)), [TRANSMIT_VECTOR]);
    assert_eq!(bench.card.world().take_interrupts(Function::Vf(1)), [RECEIVE_VECTOR]);
    assert_eq!(bench.card.world().take_interrupts(Function::Pf), []);
}

#[test]
fn interrupt_vector_is_masked_until_the_driver_handles_it() {
    let mut bench = DrivenCardFixture::new(2);
    quiet(&mut bench);
    for seed in 0..5 {
        bench.send(0, &between(0, 1, 60, seed));
        bench.advance_us(1_000);
    }
    assert_eq!(bench.card.world().take_interrupts(Function::Vf(1)), [RECEIVE_VECTOR]);
    assert_eq!(bench.on(1, |vf, hal| vf.handle_interrupt(hal, RECEIVE_VECTOR)), VfInterruptCause::Received);
    assert_eq!(bench.receive_all(1).len(), 5);
    // One more frame arrives between the driver's last poll and the unmasking.
    bench.send(0, &between(0, 1, 60, 9));
    bench.on(1, |vf, hal| vf.receive_done(hal));
    bench.advance_us(1_000);
    assert_eq!(bench.card.world().take_interrupts(Function::Vf(1)), [RECEIVE_VECTOR]);
}

#[test]
fn interrupt_interval_bounds_the_interrupt_rate() {
    let config = VfDriverConfig { moderation: ModerationPolicy::Fixed(200), ..VfDriverConfig::default() };
    let mut bench = DrivenCardFixture::with_config(2, &config);
    quiet(&mut bench);
    let mut interrupts = 0;
    for step in 0..1_000 {
        bench.send(0, &between(0, 1, 60, step as u8));
        bench.advance_us(10);
        for vector in bench.card.world().take_interrupts(Function::Vf(1)) {
            assert_eq!(vector, RECEIVE_VECTOR);
            interrupts += 1;
            bench.receive_all(1);
            bench.on(1, |vf, hal| vf.receive_done(hal));
        }
    }
    // Sends frames for 10 ms, one every 10 us, at one interrupt per 200 us.
    assert!((49..=51).contains(&interrupts), "{interrupts}");
}

#[test]
fn transmit_interrupts_may_have_their_own_interval() {
    let moderation = ModerationPolicy::Fixed(1_000);
    let config = VfDriverConfig { moderation, transmit_interval_us: Some(100), ..VfDriverConfig::default() };
    let mut bench = DrivenCardFixture::with_config(2, &config);
    quiet(&mut bench);
    let mut interrupts = [0, 0];
    for step in 0..1_000 {
        bench.send(0, &between(0, 1, 60, step as u8));
        bench.advance_us(10);
        for vf in [0, 1] {
            for vector in bench.card.world().take_interrupts(Function::Vf(vf)) {
                interrupts[usize::from(vf)] += 1;
                bench.on(vf, |driver, hal| driver.handle_interrupt(hal, vector));
            }
        }
        bench.receive_all(1);
        bench.on(1, |driver, hal| driver.receive_done(hal));
    }
    assert!(
        (95..=105).contains(&interrupts[0]) && (9..=12).contains(&interrupts[1]),
        "{interrupts:?} in 10 ms"
    );
}

#[test]
fn adaptive_interrupt_moderation_follows_the_packet_rate() {
    let adaptive = AdaptiveModeration { lowest_hz: 200, ..AdaptiveModeration::default() };
    let config =
        VfDriverConfig { moderation: ModerationPolicy::Adaptive(adaptive), ..VfDriverConfig::default() };
    let mut bench = DrivenCardFixture::with_config(2, &config);
    quiet(&mut bench);
    let mut interrupts = 0;
    // 20,000 packets a second, sampled for one: 20,000 * 1.2 / 64 = 375 interrupts a second.
    for step in 0..30_000u32 {
        bench.send(0, &between(0, 1, 60, step as u8));
        bench.advance_us(50);
        for _ in bench.card.world().take_interrupts(Function::Vf(1)) {
            interrupts += u32::from(step >= 22_000);
            bench.receive_all(1);
            bench.on(1, |vf, hal| vf.receive_done(hal));
        }
    }
    assert!((145..=155).contains(&interrupts), "{interrupts} in 0.4 s");
}

#[test]
fn transmit_interrupt_handler_frees_sent_descriptors() {
    let mut bench = DrivenCardFixture::new(2);
    quiet(&mut bench);
    let frame = between(0, 1, 60, 1);
    for _ in 0..3 {
        bench.on(0, |vf, hal| {
            vf.transmit(hal, &frame, &driver::vf::TxOffload::default()).unwrap();
            vf.flush(hal);
        });
    }
    bench.advance_us(100);
    assert_eq!(bench.vfs[0].tx_pending(), 3);
    assert_eq!(bench.card.world().take_interrupts(Function::Vf(0)), [TRANSMIT_VECTOR]);
    let event = bench.on(0, |vf, hal| vf.handle_interrupt(hal, TRANSMIT_VECTOR));
    assert_eq!(event, VfInterruptCause::Transmitted(3));
}

#[test]
fn pf_mailbox_message_interrupts_the_vfs_third_vector() {
    let mut bench = DrivenCardFixture::new(1);
    quiet(&mut bench);
    bench.card.with_pf_driver(|pf, hal| pf.notify_all(hal)).unwrap();
    bench.advance_us(1);
    assert_eq!(bench.card.world().take_interrupts(Function::Vf(0)), [MAILBOX_VECTOR]);
    assert_eq!(bench.on(0, |vf, hal| vf.handle_interrupt(hal, MAILBOX_VECTOR)), VfInterruptCause::Mailbox);
    assert_eq!(bench.on(0, |vf, hal| vf.handle_interrupt(hal, 3)), VfInterruptCause::Unknown);
}

#[test]
fn vf_drivers_watchdog_raises_a_receive_interrupt() {
    let mut bench = DrivenCardFixture::new(1);
    quiet(&mut bench);
    bench.on(0, |vf, hal| vf.watchdog(hal));
    bench.advance_us(1);
    assert_eq!(bench.card.world().take_interrupts(Function::Vf(0)), [RECEIVE_VECTOR]);
}
