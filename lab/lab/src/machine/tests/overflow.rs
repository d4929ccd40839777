//! Tests of socket overflow by arithmetic: `pps / rate` packets arrive between two interrupts, and a socket holds 64.

use super::setup;
use crate::machine::{ServerSetup, ServerSimulation};
use driver::moderation::{AdaptiveModeration, ModerationPolicy, interrupt_frequency, interval_us};
use sim::VirtualDuration;

/// Full frames per second at a gigabit: 10^9 / (1,538 * 8).
const LINE_RATE: f64 = 81_274.0;
/// Packets that the program's socket holds.
const SOCKET: f64 = 64.0;

/// Runs the server with a moderation policy. Returns the loss in percent and the receive interrupts per second.
fn at(moderation: ModerationPolicy, warm_up: VirtualDuration) -> (f64, f64) {
    let mut world = ServerSimulation::new(&ServerSetup { moderation, ..setup() }).unwrap();
    let measured = world.measure(warm_up, VirtualDuration::from_millis(200)).unwrap();
    (measured.loss_pct(), measured.interrupts_per_s())
}

#[test]
fn socket_of_64_packets_overflows_if_interrupts_are_too_rare() {
    for hertz in [4_000, 2_000, 1_600, 1_400, 1_100, 1_000, 800, 500] {
        let (loss, rate) = at(ModerationPolicy::Fixed(interval_us(hertz)), VirtualDuration::from_millis(20));
        // Packets between two of the measured interrupts, and the part that fits.
        let between = LINE_RATE / rate;
        let expected = (1.0 - SOCKET / between).max(0.0) * 100.0;
        assert!((loss - expected).abs() < 3.0, "{hertz} Hz: {loss} % lost, {expected} % by arithmetic");
        assert_eq!(
            loss > 0.5,
            rate < LINE_RATE / SOCKET,
            "{hertz} Hz requested, {rate} Hz measured: {loss} % lost"
        );
    }
}

/// Checks the rate of the adaptive policy: 957 Mb/s in datagrams of 1,472 bytes are 81,267 a second, and 1.2 times a
/// 64th of that is 1,524 Hz.
#[test]
fn adaptive_policy_interrupts_at_1524_hz_without_frame_loss() {
    let packets = 957_000_000_u64.div_ceil(8 * 1_472);
    assert_eq!((packets, interrupt_frequency(packets, &AdaptiveModeration::default())), (81_267, 1_524));
    let (loss, rate) =
        at(ModerationPolicy::Adaptive(AdaptiveModeration::default()), VirtualDuration::from_millis(2_050));
    assert!(loss < 0.5, "{loss} % of the frames lost");
    // The interval is in whole microseconds, from a sample that ends between two packets.
    assert!((1_515.0..1_535.0).contains(&rate), "{rate} interrupts a second, expected 1,515 to 1,535");
}

/// Checks that datagrams have the same loss and rate after one sample of the adaptive policy as after five.
#[test]
fn adaptive_rate_of_datagrams_is_stable_after_one_sample() {
    let adaptive = ModerationPolicy::Adaptive(AdaptiveModeration::default());
    let [one, five] = [1_050, 5_050].map(|millis| at(adaptive, VirtualDuration::from_millis(millis)));
    assert!((one.1 / five.1 - 1.0).abs() < 0.01, "{one:?} {five:?}");
    assert!(one.0 < 0.5 && five.0 < 0.5, "{one:?} {five:?}");
}
