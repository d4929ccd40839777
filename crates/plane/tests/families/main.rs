//! Tests two devices on one plane: one keeps frames in slots of one size with the tag beside them, the other keeps
//! frames in one long buffer with the tag in the bytes.

mod devices;

use devices::{RecordingWire, SlotDevice, SlotFrame, StreamDevice};
use plane::frame::{Frame, HEADROOM};
use plane::guard::GuardedPlane;
use plane::pacing::TransmitPacing;
use plane::switch::{StormState, SwitchDropReason, SwitchTables, TagInsertion};
use plane::uplink::UplinkMode;
use plane::watch::{FrameDirection, FrameDropReason, FrameObservation};
use plane::{
    DeliveryError, ForwardResult, FrameOrigin, JoinedDevices, PortCounters, PortIndex, PortSet,
    TransmitQueueId, TransmitQueuePollResult,
};
use units::{MacAddress, Time};

const PORTS: usize = 16;

type TestPlane = plane::ForwardingPlane<PORTS>;

/// Plane with both test devices: ports 0 to 7 belong to [`SlotDevice`], 8 to 15 to [`StreamDevice`]. Port n has address
/// n.
struct TwoDevicePlane {
    plane: TestPlane,
    slots: SlotDevice,
    stream: StreamDevice,
    cable: RecordingWire,
}

const SLOTS: PortSet = PortSet::new(0xff);

fn address(n: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, n]
}

fn bytes(to: [u8; 6], from: u8) -> Vec<u8> {
    let mut frame = [&to[..], &address(from), &[8, 0]].concat();
    frame.resize(60, from);
    frame
}

fn port(n: u8) -> FrameOrigin {
    FrameOrigin::Port(PortIndex::new(n).unwrap())
}

fn policy() -> SwitchTables<PORTS> {
    let mut tables = SwitchTables::closed(PORTS + 1);
    let all = PortSet::new(0xffff);
    (tables.shared, tables.replicate, tables.loopback) = (true, true, true);
    (tables.all, tables.enabled, tables.guests, tables.check_source) = (all, all, all, all);
    (tables.untagged, tables.broadcast) = (all, all);
    for n in 0..PORTS as u8 {
        tables.exact.add(MacAddress(address(n)), PortSet::new(1 << n));
    }
    tables
}

impl TwoDevicePlane {
    fn new(tables: SwitchTables<PORTS>) -> Self {
        let counters = [PortCounters::default(); PORTS];
        let mut plane = TestPlane::new(tables, TransmitPacing::new(None), StormState::default(), counters);
        plane.uplink = UplinkMode { link: true, receives: true, ..UplinkMode::default() };
        let (slots, stream) = (
            SlotDevice { free: 9, ..SlotDevice::default() },
            StreamDevice { set_up: true, ..StreamDevice::default() },
        );
        Self { plane, slots, stream, cable: RecordingWire::default() }
    }

    fn send(&mut self, origin: FrameOrigin, frame: &[u8]) -> ForwardResult {
        let mut buffer = [&[0; HEADROOM], frame].concat();
        let mut frame = Frame::new(&mut buffer).unwrap();
        frame.take_tag();
        if let FrameOrigin::Port(port) = origin {
            frame.tag = self.plane.tables().transmit_tag(port, frame.tag);
        }
        let mut families = JoinedDevices { ports: SLOTS, first: &mut self.slots, second: &mut self.stream };
        self.plane.forward(origin, &mut frame, &mut families, &mut self.cable)
    }

    /// Visits the transmit queue of port `n` at the time `now`, within a budget of frames.
    fn visit(&mut self, n: u8, budget: usize, now: Time) -> Option<TransmitQueuePollResult> {
        let sender = TransmitQueueId { port: PortIndex::new(n).unwrap(), queue: 0 };
        self.plane.now = now;
        let mut families = JoinedDevices { ports: SLOTS, first: &mut self.slots, second: &mut self.stream };
        self.plane.shares.begin_round();
        self.plane.visit(sender, budget, &mut families, &mut self.cable)
    }

    fn counters(&mut self, n: u8) -> PortCounters {
        let port = PortIndex::new(n).unwrap();
        self.plane.ledger.settle_received(port);
        self.plane.ledger.settle_sent(port);
        *self.plane.ledger.of(port)
    }

    /// Returns the observations since the last call. Panics unless all observed frames have the given bytes.
    fn seen(&mut self, bytes: &[u8]) -> Vec<FrameObservation> {
        let all = self.cable.1.replace(Vec::new()).unwrap_or_default();
        assert!(all.iter().all(|(_, seen)| seen == bytes), "{all:?}");
        all.into_iter().map(|(seen, _)| seen).collect()
    }
}

#[test]
fn frames_pass_between_device_families_in_both_directions() {
    let mut world = TwoDevicePlane::new(policy());
    let (there, back) = (bytes(address(9), 1), bytes(address(1), 9));
    assert_eq!(world.send(port(1), &there), ForwardResult::default());
    assert_eq!(world.send(port(9), &back), ForwardResult::default());
    assert_eq!(world.stream.frames(), [(9, &there[..])]);
    assert_eq!(world.slots.filled, [SlotFrame { port: 1, tag: None, bytes: back, looks: 1 }]);
    assert!(world.cable.0.is_empty(), "it stays inside");
    for n in [1, 9] {
        let counters = world.counters(n);
        assert_eq!((counters.rx_packets, counters.rx_bytes), (1, 60));
        assert_eq!((counters.tx_packets, counters.tx_bytes), (1, 60));
    }
}

#[test]
fn broadcast_is_parsed_once_by_each_device_family() {
    let mut world = TwoDevicePlane::new(policy());
    let frame = bytes([0xff; 6], 9);
    assert!(world.send(port(9), &frame).sent);
    let looks: Vec<_> = world.slots.filled.iter().map(|slot| (slot.port, slot.looks)).collect();
    assert_eq!(looks, (0..8).map(|n| (n, usize::from(n) + 1)).collect::<Vec<_>>());
    let ports: Vec<_> = world.stream.frames().iter().map(|(port, _)| *port).collect();
    assert_eq!(ports, [8, 10, 11, 12, 13, 14, 15]);
    assert_eq!(world.cable.0, [frame]);
    assert_eq!((world.counters(9).tx_broadcast, world.counters(15).rx_broadcast), (1, 1));
}

#[test]
fn receivers_device_family_strips_or_keeps_the_port_vlan_tag() {
    let mut tables = policy();
    (tables.tags[1], tables.tags[9]) = (TagInsertion::Always(100), TagInsertion::Always(100));
    tables.vlans.add(100, PortSet::new(1 << 1 | 1 << 9), false);
    tables.strips = PortSet::new(1 << 1);
    let mut world = TwoDevicePlane::new(tables);
    world.send(port(1), &bytes(address(9), 1));
    world.send(port(9), &bytes(address(1), 9));
    let [(9, tagged)] = world.stream.frames()[..] else { panic!("expected one frame for port 9") };
    assert_eq!(tagged[12..18], [0x81, 0, 0, 100, 8, 0]);
    let [SlotFrame { port: 1, tag: Some(100), bytes, .. }] = &world.slots.filled[..] else {
        panic!("expected one frame with tag 100 for port 1")
    };
    assert_eq!((bytes.len(), &bytes[12..14]), (60, &[8, 0][..]));
}

#[test]
fn senders_of_every_device_family_are_checked_for_spoofing() {
    let mut world = TwoDevicePlane::new(policy());
    for from in [1, 9] {
        let spoofed = world.send(port(from), &bytes(address(2), 3));
        assert_eq!(spoofed.refused, Some(SwitchDropReason::SourceSpoofed));
        assert_eq!(world.counters(from).tx_spoofed, 1);
    }
    assert!(world.slots.filled.is_empty());
}

#[test]
fn port_vlan_replaces_the_guests_first_tag() {
    let mut tables = policy();
    tables.tags[1] = TagInsertion::Always(100);
    tables.vlans.add(100, PortSet::new(1 << 1), false);
    let mut world = TwoDevicePlane::new(tables);
    let tagged = |tags: &[u8]| {
        let plain = bytes([0xff; 6], 1);
        [&plain[..12], tags, &plain[12..]].concat()
    };
    assert!(world.send(port(1), &tagged(&[0x81, 0, 0, 7])).sent);
    assert!(world.send(port(1), &tagged(&[0x88, 0xa8, 0, 7])).sent);
    assert!(world.send(port(1), &tagged(&[0x81, 0, 0, 6, 0x81, 0, 0, 7])).sent);
    let service = tagged(&[0x81, 0, 0, 100, 0x88, 0xa8, 0, 7]);
    let second = tagged(&[0x81, 0, 0, 100, 0x81, 0, 0, 7]);
    assert_eq!(world.cable.0, [tagged(&[0x81, 0, 0, 100]), service, second]);
}

#[test]
fn group_source_is_spoofed_even_with_a_multicast_filter() {
    let (mut tables, group) = (policy(), [3, 0, 0, 0, 0, 7]);
    tables.exact.add(MacAddress(group), PortSet::new(1 << 1 | 1 << 9));
    let mut world = TwoDevicePlane::new(tables);
    for from in [1, 9] {
        let mut frame = bytes(address(2), from);
        frame[6..12].copy_from_slice(&group);
        assert_eq!(world.send(port(from), &frame).refused, Some(SwitchDropReason::SourceSpoofed));
        assert_eq!(world.counters(from).tx_spoofed, 1);
    }
}

/// Returns the frame of port `from` to an address with the EtherType of MAC control (IEEE 802.3, 31.4.1.3) behind these VLAN tags.
fn mac_control(to: [u8; 6], from: u8, tags: &[u8]) -> Vec<u8> {
    let mut frame = [&to[..], &address(from), tags, &[0x88, 0x08, 0, 1, 0xff, 0xff]].concat();
    frame.resize(60, 0);
    frame
}

/// A station obeys a pause frame to its own address too (IEEE 802.3, annex 31B).
#[test]
fn mac_control_frame_of_a_port_is_dropped_to_any_address() {
    let pause = [0x01, 0x80, 0xc2, 0, 0, 1];
    for link_local in [false, true] {
        let mut tables = policy();
        tables.check_source = PortSet::NONE;
        let mut world = TwoDevicePlane::new(tables);
        world.plane.forward_link_local(link_local);
        let mut sent = 0;
        for (from, to) in [1, 9]
            .into_iter()
            .flat_map(|from| [address(2), address(10), address(99), [0xff; 6], pause].map(|to| (from, to)))
        {
            // The second frame of a flow has its remembered decision.
            assert!(world.send(port(from), &bytes(to, from)).refused.is_none_or(|_| to == pause));
            world.cable.0.clear();
            let received = (world.slots.filled.len(), world.stream.bytes.len());
            // A switch beyond the uplink may strip the tag.
            for (tags, source) in [(&[][..], from), (&[], 77), (&[0x81, 0, 0, 7], from)] {
                let refused = world.send(port(from), &mac_control(to, source, tags)).refused;
                assert_eq!(refused, Some(SwitchDropReason::LinkControl), "{from} to {to:x?}, tags {tags:x?}");
                sent += 1;
            }
            assert_eq!((world.slots.filled.len(), world.stream.bytes.len()), received);
            assert!(world.cable.0.is_empty());
        }
        let counters = [1, 9].map(|n| world.counters(n));
        assert_eq!(counters.map(|port| port.tx_blocked - port.tx_link_control), [0; 2]);
        // The frames of another type to the address of pause frames are dropped too.
        assert_eq!(counters.iter().map(|port| port.tx_link_control).sum::<u64>(), sent + 2);
    }
}

#[test]
fn mac_control_frame_of_the_uplink_or_an_only_port_is_forwarded() {
    let mut world = TwoDevicePlane::new(policy());
    world.send(FrameOrigin::Uplink, &mac_control(address(1), 77, &[]));
    assert_eq!(world.slots.filled.len(), 1);
    let mut tables = policy();
    (tables.shared, tables.check_source) = (false, PortSet::NONE);
    let mut world = TwoDevicePlane::new(tables);
    assert!(world.send(port(1), &mac_control(address(99), 1, &[])).sent);
}

#[test]
fn undelivered_frame_is_counted_at_the_receiving_port() {
    let mut world = TwoDevicePlane::new(policy());
    (world.slots.free, world.stream.set_up) = (0, false);
    world.send(FrameOrigin::Uplink, &bytes(address(1), 77));
    world.send(FrameOrigin::Uplink, &bytes(address(9), 77));
    assert_eq!((world.counters(1).rx_no_descriptors, world.counters(9).rx_disabled), (1, 1));
    assert_eq!((world.plane.tally.received.all.packets, world.plane.tally.reached.packets), (2, 0));
}

#[test]
fn port_moves_at_most_its_frame_budget_per_poll() {
    let mut world = TwoDevicePlane::new(policy());
    world.slots.waiting = vec![bytes(address(9), 1); 3];
    world.stream.sends = Some(bytes(address(1), 9));
    let visited = world.visit(1, 2, Time::ZERO);
    assert_eq!(visited, Some(TransmitQueuePollResult { served: true, left: true, due: None }));
    assert_eq!(world.stream.frames().len(), 2);
    assert_eq!(
        world.visit(1, 2, Time::ZERO),
        Some(TransmitQueuePollResult { served: true, left: false, due: None })
    );
    assert_eq!(
        world.visit(9, 2, Time::ZERO),
        Some(TransmitQueuePollResult { served: true, left: true, due: None })
    );
    assert_eq!(world.slots.filled.len(), 2);
    assert_eq!((world.counters(1).tx_packets, world.counters(9).tx_packets), (3, 2));
}

#[test]
fn rate_limited_port_is_delayed_and_disabled_port_sends_nothing() {
    let mut world = TwoDevicePlane::new(policy());
    world.stream.sends = Some(bytes(address(1), 9));
    // A hundredth of 1 Gb/s: 64 bytes with their check sequence take 51.2 us.
    world.plane.pacing.set_rate(PortIndex::new(9).unwrap(), Some(100 << 14));
    let due = Some(Time::from_nanos(51_200));
    assert_eq!(
        world.visit(9, 5, Time::ZERO),
        Some(TransmitQueuePollResult { served: true, left: true, due })
    );
    assert_eq!(
        world.visit(9, 5, Time::from_micros(51)),
        Some(TransmitQueuePollResult { served: false, left: true, due })
    );
    assert_eq!(world.slots.filled.len(), 1);
    assert!(world.visit(9, 5, Time::from_micros(52)).is_some_and(|visited| visited.served));
    assert_eq!(world.slots.filled.len(), 2);
    world.stream.set_up = false;
    assert_eq!(world.visit(9, 5, Time::from_micros(900)), None);
}

fn seen(way: FrameDirection, at: FrameOrigin, lost: Option<FrameDropReason>) -> FrameObservation {
    FrameObservation { at, way, lost }
}

#[test]
fn capture_sees_a_frame_at_each_port_with_its_drop_reason() {
    use FrameDirection::{In, Out};
    let mut world = TwoDevicePlane::new(policy());
    world.cable.1 = Some(Vec::new());
    let frame = bytes(address(9), 1);
    world.send(port(1), &frame);
    assert_eq!(world.seen(&frame), [seen(In, port(1), None), seen(Out, port(9), None)]);

    let frame = bytes(address(9), 2);
    world.send(port(1), &frame);
    assert_eq!(
        world.seen(&frame),
        [seen(In, port(1), Some(FrameDropReason::Dropped(SwitchDropReason::SourceSpoofed)))]
    );

    world.stream.set_up = false;
    let frame = bytes(address(9), 77);
    world.send(FrameOrigin::Uplink, &frame);
    let missed = Some(FrameDropReason::Missed(DeliveryError::Disabled));
    assert_eq!(world.seen(&frame), [seen(In, FrameOrigin::Uplink, None), seen(Out, port(9), missed)]);

    // No port has the address: the frame leaves by the uplink, or is dropped without a link.
    let frame = bytes(address(99), 1);
    world.send(port(1), &frame);
    world.plane.uplink.link = false;
    world.send(port(1), &frame);
    let [enters, leaves] = [seen(In, port(1), None), seen(Out, FrameOrigin::Uplink, None)];
    assert_eq!(
        world.seen(&frame),
        [enters, leaves, enters, FrameObservation { lost: Some(FrameDropReason::Uplink), ..leaves }]
    );
    world.send(FrameOrigin::Uplink, &frame);
    let unwanted = Some(FrameDropReason::Dropped(SwitchDropReason::Unwanted));
    assert_eq!(world.seen(&frame), [seen(In, FrameOrigin::Uplink, unwanted)]);
}

#[test]
fn packet_capture_changes_no_frame_or_counter() {
    let frames = [bytes(address(9), 1), bytes([0xff; 6], 1), bytes(address(1), 1), bytes(address(9), 2)];
    let after = |watched: bool| {
        let mut world = TwoDevicePlane::new(policy());
        world.cable.1 = watched.then(Vec::new);
        let told: Vec<_> = frames.iter().map(|frame| world.send(port(1), frame)).collect();
        let counters: Vec<_> = (0..PORTS as u8).map(|n| world.counters(n)).collect();
        (told, counters, world.slots.filled, world.stream.bytes, world.cable.0)
    };
    assert_eq!(after(true), after(false));
}
