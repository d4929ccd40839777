//! Tests the longest frames with and without VLAN tags. At most 9,728 bytes are sent or received, tags and check
//! sequence included. A queue's own limit counts the tags that its VF sees.

use crate::leaving::SegmentingWire;
use crate::offloads::{SUMS, all_of, away, cut, two};
use crate::world::{CardFixture, mac};
use avf::control::{CardCommand, CardControl, VlanTagHandling};
use driver::avf::vf::{AvfDriver, TxOffload};
use plane::switch::PortMirrorRules;
use policy::PortVlan;

/// Number of bytes in the longest frame of the card, check sequence excluded.
const LONGEST: usize = 9_724;
/// Differences of the tested frame lengths from a length limit, in bytes.
const AROUND: [isize; 5] = [-4, -1, 0, 1, 4];

/// Sources of a frame's VLAN tags: the frame's bytes, its transmit descriptor, the VF's port VLAN.
#[derive(Debug, Clone, Copy, Default)]
struct VlanTagOrigins {
    bytes: bool,
    descriptor: bool,
    port: bool,
}

const TAGS: [VlanTagOrigins; 7] = [
    VlanTagOrigins { bytes: false, descriptor: false, port: false },
    VlanTagOrigins { bytes: true, descriptor: false, port: false },
    VlanTagOrigins { bytes: false, descriptor: true, port: false },
    VlanTagOrigins { bytes: false, descriptor: false, port: true },
    VlanTagOrigins { bytes: true, descriptor: true, port: false },
    VlanTagOrigins { bytes: true, descriptor: false, port: true },
    VlanTagOrigins { bytes: false, descriptor: true, port: true },
];

impl VlanTagOrigins {
    /// Returns the number of bytes of VLAN tags that the card adds to the driver's frame.
    fn bytes(self) -> usize {
        match self {
            Self { port: true, bytes, .. } => 4 * usize::from(!bytes),
            Self { descriptor, .. } => 4 * usize::from(descriptor),
        }
    }

    fn world(self) -> (CardFixture, AvfDriver, AvfDriver) {
        let (mut world, a, b) = two(|policy| {
            policy.spoofchk = false;
            policy.vlan = self.port.then_some(PortVlan { id: 5, qos: 0 });
        });
        world.card.order(1, ON_VLAN);
        (world, a, b)
    }

    fn offload(self, of: TxOffload) -> TxOffload {
        TxOffload { vlan: self.descriptor.then_some(7), ..of }
    }
}

/// Returns a frame of `length` bytes without IP, with a tag or without.
fn frame(to: [u8; 6], length: usize, tagged: bool) -> Vec<u8> {
    let kind: &[u8] = if tagged { &[0x81, 0, 0, 7, 0x88, 0xb5] } else { &[0x88, 0xb5] };
    let mut frame = [&to, &mac(0).0[..], kind].concat();
    frame.resize(length, 0x11);
    frame
}

/// Order of the PF driver that adds a VF to VLAN 7.
const ON_VLAN: CardCommand<'_> = CardCommand::Vlan { vlan: 7, on: true };

const AWAY: [u8; 6] = [2, 9, 9, 9, 9, 9];

fn around(limit: usize) -> impl Iterator<Item = (usize, bool)> {
    AROUND.into_iter().map(move |more| (limit.saturating_add_signed(more), more <= 0))
}

/// Visits the transmit queues once, with an uplink that segments packets or one that does not. Returns the lengths of
/// the sent frames.
fn left(world: &mut CardFixture, cuts: bool) -> Vec<usize> {
    let mut plane = world.plane.take().unwrap();
    world.card.apply_policy(&mut plane, &PortMirrorRules::NONE);
    let mut wire = SegmentingWire::default();
    if cuts {
        world.card.visit_ready(&mut plane, 64, &mut world.memories, &mut wire);
        return wire.frames().iter().map(Vec::len).collect();
    }
    world.card.visit_ready(&mut plane, 64, &mut world.memories, &mut world.cable);
    core::mem::take(&mut world.cable.0).iter().map(Vec::len).collect()
}

#[test]
fn vlan_tags_count_toward_maximum_frame_length_to_the_wire() {
    for tags in TAGS {
        for (length, fits) in around(LONGEST) {
            let (mut world, mut a, _) = tags.world();
            let frame = frame(AWAY, length - tags.bytes(), tags.bytes);
            assert!(a.transmit_with(&mut world.vf(0), 0, &frame, &tags.offload(TxOffload::default())));
            assert_eq!(left(&mut world, false), vec![length; usize::from(fits)], "{length} bytes, {tags:?}");
            let offence = !fits && (tags.descriptor || !tags.port || tags.bytes);
            let malformed = world.card.counters(0).unwrap().malformed;
            assert_eq!(malformed, u64::from(offence), "{length} bytes, {tags:?}");
        }
    }
}

#[test]
fn vlan_tags_count_toward_maximum_frame_length_between_vfs() {
    for tags in TAGS {
        for (length, fits) in around(LONGEST) {
            let (mut world, mut a, mut b) = tags.world();
            let frame = frame([0xff; 6], length - tags.bytes(), tags.bytes);
            assert!(a.transmit_with(&mut world.vf(0), 0, &frame, &tags.offload(TxOffload::default())));
            world.round();
            assert_eq!(all_of(&mut world, &mut b).len(), usize::from(fits), "{length} bytes, {tags:?}");
        }
    }
}

#[test]
fn inserted_vlan_tags_count_toward_maximum_segment_length() {
    for (tags, cuts) in [0, 2, 3].into_iter().flat_map(|n| [(TAGS[n], false), (TAGS[n], true)]) {
        for (length, fits) in around(LONGEST) {
            let (mut world, mut a, _) = tags.world();
            let mss = length - tags.bytes() - 54;
            let (packet, _) = away(crate::built::tcp4(&vec![7; mss + 100]));
            assert!(a.transmit_with(&mut world.vf(0), 0, &packet, &tags.offload(cut(mss as u16))));
            let last = 54 + 100 + tags.bytes();
            let expected = match (fits, tags.port) {
                (true, _) => vec![length, last],
                // The guest's request is valid, so the segments that fit are sent.
                (false, true) => vec![last],
                (false, false) => vec![],
            };
            assert_eq!(left(&mut world, cuts), expected, "{length} bytes, uncut {cuts}, {tags:?}");
        }
    }
}

#[test]
fn vlan_tag_not_inserted_adds_no_length_to_the_frame() {
    let tags = TAGS[2];
    let (mut world, mut a, _) = tags.world();
    world.card.order(0, CardCommand::Tags(VlanTagHandling::default()));
    let (packet, _) = away(crate::built::udp4(&[7; 1_000]));
    assert!(a.transmit_with(&mut world.vf(0), 0, &packet, &tags.offload(SUMS)));
    assert_eq!(left(&mut world, false), [packet.len()]);
}

#[test]
fn vlan_tags_count_toward_maximum_frame_length_from_the_wire() {
    for (tagged, strip) in [(false, false), (true, false), (true, true)] {
        for (length, fits) in around(LONGEST) {
            let (mut world, _, mut b) = two(|policy| policy.spoofchk = false);
            world.card.order(1, ON_VLAN);
            world.card.order(1, CardCommand::Tags(VlanTagHandling { strip, ..VlanTagHandling::default() }));
            world.cable.1.push_back(frame([0xff; 6], length, tagged));
            world.round();
            let got: Vec<usize> = all_of(&mut world, &mut b).iter().map(|(_, frame)| frame.len()).collect();
            let stripped = 4 * usize::from(strip);
            assert_eq!(got, vec![length - stripped; usize::from(fits)], "{length} bytes, {tagged} {strip}");
        }
    }
}

/// Tests that a queue's length limit counts the VF's own tag, stripped or not, and excludes the port VLAN's tag, which
/// the driver never sees.
#[test]
fn rx_queue_maximum_frame_length_counts_the_vfs_vlan_tag() {
    for (tagged, strip, port) in
        [(false, false, false), (true, false, false), (true, true, false), (true, false, true)]
    {
        for (length, fits) in around(if port { 1522 } else { 1518 }) {
            let (mut world, _, mut b) = two(|policy| {
                (policy.spoofchk, policy.max_mtu) = (false, Some(1522 - 26));
                policy.vlan = port.then_some(PortVlan { id: 7, qos: 0 });
            });
            world.card.order(1, ON_VLAN);
            world.card.order(
                1,
                CardCommand::Tags(VlanTagHandling { strip, port_vlan: port.then_some(7), insert: false }),
            );
            world.cable.1.push_back(frame(mac(1).0, 100, tagged));
            world.cable.1.push_back(frame(mac(1).0, length, tagged));
            world.cable.1.push_back(frame([0xff; 6], length, tagged));
            world.round();
            let got = all_of(&mut world, &mut b).len();
            assert_eq!(got, 1 + 2 * usize::from(fits), "{length} bytes, {tagged} {strip} {port}");
        }
    }
}
