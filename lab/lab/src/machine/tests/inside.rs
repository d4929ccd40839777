//! Tests of traffic between domains of the server, over a card without its wire.

use super::setup;
use crate::machine::{ClientTraffic, InterDomainSender, InterDomainTraffic, ServerSetup, ServerSimulation};
use driver::moderation::ModerationPolicy;
use guest::{KernelConfig, ProgramWorkload};
use sim::VirtualDuration;
use std::num::NonZeroU64;

fn inside(from: InterDomainSender, load: ProgramWorkload, message_bytes: u32) -> ServerSetup {
    ServerSetup {
        guests: if from == InterDomainSender::Guest { 2 } else { 1 },
        spec: KernelConfig::linux_2_6_28(load),
        traffic: ClientTraffic::Silent,
        inside: Some(InterDomainTraffic { from, load, message_bytes, mtu: 1_500, transmit_interval_us: 100 }),
        loopback: NonZeroU64::new(2_800_000_000),
        moderation: ModerationPolicy::Fixed(100),
        ..setup()
    }
}

#[test]
fn service_domain_sends_to_its_guest_at_the_loopback_rate() {
    let mut world =
        ServerSimulation::new(&inside(InterDomainSender::ServiceDomain, ProgramWorkload::Udp, 1_472))
            .unwrap();
    let measured = world.measure(VirtualDuration::from_millis(5), VirtualDuration::from_millis(20)).unwrap();
    // 1,472 of 1,518 bytes are payload.
    for rate in [measured.written_mbps(), measured.throughput_mbps()] {
        assert!((2_690.0..2_740.0).contains(&rate), "{rate}");
    }
    assert!(measured.cpu_dom0_pct() > 20.0, "the sender's work is not charged to the service domain");
}

#[test]
fn socket_overflow_between_interrupts_is_counted_as_loss() {
    let slow = ServerSetup {
        moderation: ModerationPolicy::Fixed(1_000),
        ..inside(InterDomainSender::ServiceDomain, ProgramWorkload::Udp, 1_472)
    };
    let measured = ServerSimulation::new(&slow)
        .unwrap()
        .measure(VirtualDuration::from_millis(5), VirtualDuration::from_millis(50))
        .unwrap();
    // 64 datagrams per interrupt, a thousand interrupts a second.
    assert!((740.0..770.0).contains(&measured.throughput_mbps()), "{}", measured.throughput_mbps());
    assert!((71.0..73.0).contains(&measured.loss_pct()), "{}", measured.loss_pct());
}

#[test]
fn fragmented_datagram_is_reassembled_by_the_receiving_guest() {
    let mut world =
        ServerSimulation::new(&inside(InterDomainSender::Guest, ProgramWorkload::Udp, 4_000)).unwrap();
    let measured = world.measure(VirtualDuration::from_millis(5), VirtualDuration::from_millis(20)).unwrap();
    assert!((2_600.0..2_800.0).contains(&measured.throughput_mbps()), "{}", measured.throughput_mbps());
    assert!(measured.loss_pct() < 1.0, "{}", measured.loss_pct());
}

#[test]
fn tcp_rate_between_guests_follows_window_and_acknowledgements() {
    let mut world =
        ServerSimulation::new(&inside(InterDomainSender::Guest, ProgramWorkload::Tcp, 4_000)).unwrap();
    let measured = world.measure(VirtualDuration::from_millis(5), VirtualDuration::from_millis(20)).unwrap();
    assert!(measured.throughput_mbps() > 1_000.0, "{}", measured.throughput_mbps());
}

#[test]
fn traffic_between_guests_needs_two_guests() {
    let alone = ServerSetup { guests: 1, ..inside(InterDomainSender::Guest, ProgramWorkload::Udp, 1_472) };
    assert!(ServerSimulation::new(&alone).is_err());
}
