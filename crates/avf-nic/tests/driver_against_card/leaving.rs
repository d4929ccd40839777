//! Tests packets that a VF sends: their cost in the queue's frame budget, with and without segmentation, and the VF's
//! transmit rate.

use crate::built::{pseudo, tcp4, tcp6, udp6};
use crate::offloads::{SUMS, all_of, away, cut, ring_of, segments, two, with_checksums};
use crate::world::CardFixture;
use avf::control::CardControl;
use avf::descriptor::tx::TxL4Checksum;
use core::time::Duration;
use offload::uncut;
use plane::UplinkWire;
use plane::switch::PortMirrorRules;
use plane::uplink::UnsegmentedPacketLayout;

#[test]
fn port_transmit_budget_counts_segments_not_packets() {
    let (packet, _) = away(tcp4(&[7; 15_000]));
    let (mut world, mut a, _) = two(|policy| policy.spoofchk = false);
    for _ in 0..3 {
        assert!(a.transmit_with(&mut world.vf(0), 0, &packet, &cut(1_000)));
    }
    let mut plane = world.plane.take().unwrap();
    world.card.apply_policy(&mut plane, &PortMirrorRules::NONE);
    let mut visit = |world: &mut CardFixture| {
        let more = world.card.visit_ready(&mut plane, 16, &mut world.memories, &mut world.cable);
        (more, world.cable.0.len())
    };
    assert_eq!(visit(&mut world), (true, 30), "a packet of 15 leaves 1 of 16, so the next begins");
    assert_eq!(visit(&mut world), (false, 45));
}

#[test]
fn warmed_up_frame_path_does_not_allocate() {
    let (mut world, mut a, mut b) = two(|_| {});
    let mut plane = world.plane.take().unwrap();
    world.card.apply_policy(&mut plane, &PortMirrorRules::NONE);
    for round in 0..4 {
        assert!(a.transmit_with(&mut world.vf(0), 0, &tcp4(&[7; 9_000]), &cut(1_000)));
        assert!(a.transmit_with(&mut world.vf(0), 1, &udp6(&[8; 900]), &SUMS));
        let counted = allocation_counter::measure(|| {
            world.card.visit_ready(&mut plane, 64, &mut world.memories, &mut world.cable);
        });
        assert_eq!(all_of(&mut world, &mut b).len(), 10);
        assert!(round < 2 || counted.count_total == 0, "{} allocations", counted.count_total);
    }
}

/// Uplink that takes unsegmented packets and segments them as Linux does. The uplink records the length of each packet,
/// and the frames.
#[derive(Default)]
pub(crate) struct SegmentingWire(Vec<usize>, Vec<Vec<u8>>);

impl SegmentingWire {
    /// Returns the frames that the uplink was given, with the segments of its packets.
    pub(crate) fn frames(&self) -> &[Vec<u8>] {
        &self.1
    }
}

impl UplinkWire for SegmentingWire {
    fn transmit(&mut self, frame: &[u8]) -> bool {
        self.1.push(frame.to_vec());
        true
    }

    fn receive(&mut self, _: &mut [u8]) -> Option<usize> {
        None
    }

    fn takes_uncut(&self) -> bool {
        true
    }

    fn transmit_uncut(&mut self, packet: &[u8], whole: &UnsegmentedPacketLayout) -> bool {
        let mut packet = packet.to_vec();
        assert_eq!(uncut::arrived(&mut packet, whole.ipv4, whole.mss, 9_724), Some(*whole));
        self.0.push(packet.len());
        let mut segments = uncut::segments(whole, &packet).unwrap();
        let mut place = [0; 10_000];
        while let Some(length) = segments.write_next(&mut place) {
            self.1.push(place[..length].to_vec());
        }
        true
    }
}

#[test]
fn segmenting_uplink_gets_whole_packet_and_sends_same_frames() {
    for packet in [tcp4(&[7; 9_000]), tcp6(&[8; 9_000])] {
        let (packet, _) = away(packet);
        let mut frames = Vec::new();
        for cuts in [false, true] {
            let (mut world, mut a, _) = two(|_| {});
            assert!(a.transmit_with(&mut world.vf(0), 0, &packet, &cut(1_000)));
            let mut plane = world.plane.take().unwrap();
            world.card.apply_policy(&mut plane, &PortMirrorRules::NONE);
            let mut wire = SegmentingWire::default();
            if cuts {
                world.card.visit_ready(&mut plane, 64, &mut world.memories, &mut wire);
                assert_eq!(wire.0, [packet.len()]);
                frames.push(wire.1);
            } else {
                world.card.visit_ready(&mut plane, 64, &mut world.memories, &mut world.cable);
                frames.push(core::mem::take(&mut world.cable.0));
            }
            assert_eq!(world.card.statistics(0).tx_unicast, 9);
            assert_eq!(world.card.statistics(0).tx_bytes as usize, 9_000 + 9 * (packet.len() - 9_000));
        }
        assert_eq!(frames[0], frames[1]);
    }
}

#[test]
fn packet_without_pseudo_header_sum_is_segmented_by_the_card() {
    let (mut packet, data) = away(tcp4(&[7; 3_000]));
    let seed = pseudo(&packet, false, 6, 1).to_be_bytes();
    packet[50..52].copy_from_slice(&seed);
    let data = with_checksums(TxL4Checksum::Tcp, data);
    let context = segments(3_000, 1_000);
    let (_, left) = ring_of(&[context.emit(), data.emit()], &packet);
    assert_eq!(left.len(), 3, "the card segments it");
}

#[test]
fn transmit_rate_limits_the_segments_of_one_packet() {
    let (mut world, mut a, _) = two(|policy| (policy.max_tx_rate, policy.spoofchk) = (100, false));
    let (packet, _) = away(tcp4(&[7; 20_000]));
    assert!(a.transmit_with(&mut world.vf(0), 0, &packet, &cut(1_000)));
    assert!(a.transmit(&mut world.vf(0), 1, &packet[..60]));
    let start = world.now;
    world.round();
    assert!(world.cable.0.len() < 3, "{} frames at once", world.cable.0.len());
    while let Some(due) = world.card.due() {
        assert!(due > world.now);
        // A copied card resumes a pending packet.
        world.card = world.card.clone();
        world.now = due;
        world.round();
    }
    let bits: usize = world.cable.0.iter().map(|frame| (frame.len() + 4) * 8).sum();
    let took = world.now.since(start);
    let wanted = Duration::from_nanos(bits as u64 * 10);
    assert_eq!(world.cable.0.len(), 21);
    assert!(took <= wanted && took + Duration::from_micros(200) >= wanted, "{took:?} of {wanted:?}");
}

/// Tests that a transmit rate up to the link's speed is kept although the host polls late: a host cannot wake for each
/// frame.
#[test]
fn transmit_rate_is_kept_while_the_card_is_polled_late() {
    let packet = away(tcp4(&[7; 60_000])).0;
    for (mbps, gap) in [(100, 10_000), (1_000, 1_000), (10_000, 100), (25_000, 20)] {
        let (mut world, mut a, _) = two(|policy| (policy.max_tx_rate, policy.spoofchk) = (mbps, false));
        let mut bytes = 0;
        for _ in 0..100 {
            while a.transmit_with(&mut world.vf(0), 0, &packet, &cut(1_460)) {}
            world.round();
            bytes += world.cable.0.drain(..).map(|frame| frame.len() + 4).sum::<usize>();
            world.now = world.now + Duration::from_micros(gap);
        }
        let wanted = u64::from(mbps) * gap * 99 / 8;
        let kept = bytes as f64 / wanted as f64;
        assert!((0.98..1.02).contains(&kept), "{mbps} Mb/s: {kept}");
    }
}

#[test]
fn pending_packet_is_dropped_when_its_queue_is_set_up_again() {
    let (mut world, mut a, _) = two(|policy| (policy.max_tx_rate, policy.spoofchk) = (10, false));
    let (packet, _) = away(tcp4(&[7; 20_000]));
    assert!(a.transmit_with(&mut world.vf(0), 0, &packet, &cut(1_000)));
    world.round();
    let before = world.cable.0.len();
    a.stop(&mut world.vf(0)).unwrap();
    a.start(&mut world.vf(0)).unwrap();
    world.now = world.now + Duration::from_secs(1);
    world.round();
    assert_eq!(world.cable.0.len(), before);
}
