//! Tests of traffic over a card without its wire.

use super::setup;
use crate::machine::{Inside, Origin, Setup, Traffic, World};
use driver::moderation::Policy;
use guest::{Load, Spec};
use sim::Span;
use std::num::NonZeroU64;

fn inside(from: Origin, load: Load, message_bytes: u32) -> Setup {
    Setup {
        guests: if from == Origin::Guest { 2 } else { 1 },
        spec: Spec::linux_2_6_28(load),
        traffic: Traffic::Silent,
        inside: Some(Inside { from, load, message_bytes, mtu: 1_500, transmit_interval_us: 100 }),
        loopback: NonZeroU64::new(2_800_000_000),
        moderation: Policy::Fixed(100),
        ..setup()
    }
}

#[test]
fn service_domain_sends_at_the_loopback_rate() {
    let mut world = World::new(&inside(Origin::ServiceDomain, Load::Udp, 1_472)).unwrap();
    let measured = world.measure(Span::from_millis(5), Span::from_millis(20)).unwrap();
    // 1,472 of 1,518 bytes are payload.
    for rate in [measured.written_mbps(), measured.throughput_mbps()] {
        assert!((2_690.0..2_740.0).contains(&rate), "{rate}");
    }
    assert!(measured.cpu_dom0_pct() > 20.0, "its work is the service domain's");
}

#[test]
fn socket_overflow_between_interrupts_is_counted_as_loss() {
    let slow = Setup { moderation: Policy::Fixed(1_000), ..inside(Origin::ServiceDomain, Load::Udp, 1_472) };
    let measured = World::new(&slow).unwrap().measure(Span::from_millis(5), Span::from_millis(50)).unwrap();
    // 64 datagrams per interrupt, a thousand interrupts a second.
    assert!((740.0..770.0).contains(&measured.throughput_mbps()), "{}", measured.throughput_mbps());
    assert!((71.0..73.0).contains(&measured.loss_pct()), "{}", measured.loss_pct());
}

#[test]
fn fragmented_datagram_arrives_whole() {
    let mut world = World::new(&inside(Origin::Guest, Load::Udp, 4_000)).unwrap();
    let measured = world.measure(Span::from_millis(5), Span::from_millis(20)).unwrap();
    assert!((2_600.0..2_800.0).contains(&measured.throughput_mbps()), "{}", measured.throughput_mbps());
    assert!(measured.loss_pct() < 1.0, "{}", measured.loss_pct());
}

#[test]
fn tcp_rate_follows_window_and_acknowledgements() {
    let mut world = World::new(&inside(Origin::Guest, Load::Tcp, 4_000)).unwrap();
    let measured = world.measure(Span::from_millis(5), Span::from_millis(20)).unwrap();
    assert!(measured.throughput_mbps() > 1_000.0, "{}", measured.throughput_mbps());
}

#[test]
fn guest_without_a_second_guest_cannot_send_to_itself() {
    let alone = Setup { guests: 1, ..inside(Origin::Guest, Load::Udp, 1_472) };
    assert!(World::new(&alone).is_err());
}
