//! Checks the frames that come out of the card.

use crate::machine::Received;
use crate::policy::{VLAN, VfSettings};
use crate::world::{Outcome, World, source};
use softiov_fuzz::flows::{LONGEST, TcpFlow, cut};
use softiov_fuzz::source::SourcePolicy;
use units::MacAddress;
use virtio::VirtioFeatures as F;
use virtio::net::{flag, gso};

impl World {
    /// Checks that a frame is for the VF that has received it, in a form that the driver has accepted.
    pub(crate) fn check_received(&self, vf: usize, (header, bytes, buffers): &Received) {
        let to = MacAddress::from_slice(bytes).expect("a frame has addresses");
        let present = &self.claims.vfs[vf].present;
        assert!(to.is_group() || present.contains(&to), "VF {vf} gets a frame to {to}: {present:?}");
        let features = self.machine.guests[vf].features;
        let large = header.gso_type & !gso::ECN;
        let needed = match large {
            gso::NONE if header.flags == 0 => F::NONE,
            gso::NONE => F::GUEST_CSUM,
            gso::TCPV4 => F::GUEST_CSUM.with(F::GUEST_TSO4),
            gso::TCPV6 => F::GUEST_CSUM.with(F::GUEST_TSO6),
            other => panic!("VF {vf} gets a packet of kind {other}"),
        };
        let needed = if header.gso_type & gso::ECN == 0 { needed } else { needed.with(F::GUEST_ECN) };
        let needed = if *buffers > 1 { needed.with(F::MRG_RXBUF) } else { needed };
        assert!(features.contains(needed), "VF {vf} with {features:?} gets {header:?}");
        if large == gso::NONE {
            assert!(
                header.flags & flag::NEEDS_CSUM == 0 && bytes.len() <= LONGEST,
                "VF {vf} gets {header:?}"
            );
        } else {
            let segments = cut(bytes, large == gso::TCPV4, header.gso_size);
            assert!(segments.len() > 1 && header.flags == flag::NEEDS_CSUM, "VF {vf} gets {header:?}");
        }
    }

    /// Checks that all frames that came out of the card after a packet of a VF are allowed by the VF's policy.
    pub(crate) fn check_left(&self, vf: usize, outcome: &Outcome) {
        let policy = self.policy(vf);
        let received = outcome.received.iter().flatten().map(|(_, bytes, _)| bytes);
        for frame in outcome.sent.iter().chain(received) {
            let (source, present) = (source(frame), &self.claims.vfs[vf].present);
            let checks = policy.has(VfSettings::SPOOF_CHECK);
            assert!(!checks || present.contains(&source), "VF {vf} sends from {source}: {present:?}");
            let owns = |mac: MacAddress| present.contains(&mac) || !checks && mac == source;
            let sources = SourcePolicy {
                vf: vf as u8,
                ips: policy.has(VfSettings::IPS),
                no_server: policy.has(VfSettings::NO_SERVER),
                owns: &owns,
            };
            assert_eq!(sources.violation(frame), None, "VF {vf} sends {}", frame.escape_ascii());
        }
        for frame in &outcome.sent {
            assert!(self.machine.wire.takes_uncut || frame.len() <= LONGEST, "{} bytes", frame.len());
            if policy.has(VfSettings::PORT_VLAN) {
                let second = matches!(frame[16..18], [0x81, 0] | [0x88, 0xa8] | [0x91, 0]);
                assert!(frame[12..16] == [0x81, 0, 0, VLAN as u8], "VF {vf} sends {}", frame.escape_ascii());
                assert!(
                    !second || policy.has(VfSettings::DOUBLE_TAGS),
                    "VF {vf} sends {}",
                    frame.escape_ascii()
                );
            }
        }
    }

    /// Checks that the VFs that have a flow's address got its frames in their order, and all of them if each has room.
    pub(crate) fn check_flow(&self, flow: &TcpFlow, frames: &[Vec<u8>], outcome: &Outcome) {
        for (vf, received) in outcome.received.iter().enumerate().filter(|_| !flow.to.is_group()) {
            let strips = self.policy(vf).has(VfSettings::PORT_VLAN);
            let gets = self.claims.vfs[vf].present.contains(&flow.to) && (flow.is_tagged || !strips);
            let expected = frames.iter().filter(|_| gets);
            let expected = expected
                .map(|frame| if strips { [&frame[..12], &frame[16..]].concat() } else { frame.clone() });
            let came = received.iter().flat_map(|(header, bytes, _)| match header.gso_type & !gso::ECN {
                gso::NONE => vec![bytes.clone()],
                kind => cut(bytes, kind == gso::TCPV4, header.gso_size),
            });
            let ports =
                14 + if flow.is_tagged && !strips { 4 } else { 0 } + if flow.is_ipv6 { 40 } else { 20 };
            let [expected, came] = [expected.collect(), came.collect()].map(|frames| by_flow(frames, ports));
            let mut left = expected.iter();
            let in_order = came.iter().all(|frame| left.any(|other| other == frame));
            let complete = came.len() == expected.len() || !self.merges(vf);
            assert!(
                in_order && complete,
                "VF {vf} gets {} of {} frames of {flow:?}",
                came.len(),
                expected.len()
            );
        }
    }
}

/// Sorts frames by their TCP ports, each with the padding of the shortest frame. Frames of one flow keep their order.
fn by_flow(mut frames: Vec<Vec<u8>>, ports: usize) -> Vec<Vec<u8>> {
    for frame in &mut frames {
        frame.resize(frame.len().max(60), 0);
    }
    frames.sort_by_key(|frame| frame[ports..ports + 4].to_vec());
    frames
}
