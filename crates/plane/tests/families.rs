//! Tests two devices on one plane: one keeps frames in slots of one size with the tag beside them, the other keeps
//! frames in one long buffer with the tag in the bytes.

use plane::frame::{Frame, HEADROOM};
use plane::pacing::Pacing;
use plane::switch::{PortTag, Reason, Storm, Tables};
use plane::uplink::{Uplink, Wire};
use plane::watch::{Loss, Seen, Way};
use plane::{
    About, Forwarded, Joined, Lane, Missed, Origin, Port, PortCounters, Ports, Sender, Sink, Source, Visited,
};
use units::{MacAddress, Time};

const PORTS: usize = 16;

type Plane = plane::Plane<PORTS>;

/// Frame of the first test device, in a slot of fixed size.
#[derive(Debug, PartialEq)]
struct Slot {
    port: u8,
    tag: Option<u16>,
    bytes: Vec<u8>,
    looks: usize,
}

/// Test device that keeps frames in slots. Its findings about a frame are the number of its ports that got the frame.
#[derive(Default)]
struct Slots {
    free: usize,
    filled: Vec<Slot>,
    /// Frames to send, the last first.
    waiting: Vec<Vec<u8>>,
}

impl Source for Slots {
    fn may_send(&self, _sender: Sender) -> bool {
        true
    }

    fn hand_over<L: Lane>(&mut self, _sender: Sender, budget: usize, lane: &mut L) -> bool {
        for _ in 0..budget {
            let Some(bytes) = self.waiting.pop_if(|_| lane.is_due()) else { break };
            hand_over(&bytes, self, lane);
        }
        lane.settle();
        !self.waiting.is_empty()
    }

    fn has_more(&self, _sender: Sender) -> bool {
        !self.waiting.is_empty()
    }
}

/// Puts a frame on the plane with the tag of its port's policy.
fn hand_over<S: Sink, L: Lane>(bytes: &[u8], own: &mut S, lane: &mut L) {
    let mut buffer = [&[0; HEADROOM], bytes].concat();
    let mut frame = Frame::new(&mut buffer).unwrap();
    frame.take_tag();
    frame.tag = lane.tag(frame.tag);
    lane.send(own, &mut frame);
}

impl Sink for Slots {
    type Findings = usize;

    fn deliver(
        &mut self,
        port: Port,
        frame: &mut Frame<'_>,
        about: About,
        looks: &mut usize,
    ) -> Result<usize, Missed> {
        self.free = self.free.checked_sub(1).ok_or(Missed::Dropped)?;
        *looks += 1;
        let bytes = frame.delivered(!about.strips).to_vec();
        let length = bytes.len();
        self.filled.push(Slot {
            port: port.get(),
            tag: frame.tag.filter(|_| about.strips),
            bytes,
            looks: *looks,
        });
        Ok(length)
    }
}

/// Test device with a long buffer, in which each frame has its port and length before it.
#[derive(Default)]
struct Stream {
    set_up: bool,
    bytes: Vec<u8>,
    /// Frame to send repeatedly.
    sends: Option<Vec<u8>>,
}

impl Source for Stream {
    fn may_send(&self, _sender: Sender) -> bool {
        self.set_up
    }

    fn hand_over<L: Lane>(&mut self, _sender: Sender, budget: usize, lane: &mut L) -> bool {
        let Some(bytes) = self.sends.clone() else { return false };
        for _ in 0..budget {
            if lane.is_due() {
                hand_over(&bytes, self, lane);
            }
        }
        lane.settle();
        true
    }

    fn has_more(&self, _sender: Sender) -> bool {
        self.sends.is_some()
    }
}

impl Sink for Stream {
    type Findings = ();

    fn deliver(
        &mut self,
        port: Port,
        frame: &mut Frame<'_>,
        _about: About,
        (): &mut (),
    ) -> Result<usize, Missed> {
        let bytes = frame.tagged();
        if !self.set_up {
            return Err(Missed::Disabled);
        }
        self.bytes.extend([port.get(), bytes.len() as u8]);
        self.bytes.extend(bytes);
        Ok(bytes.len())
    }
}

impl Stream {
    fn frames(&self) -> Vec<(u8, &[u8])> {
        let (mut rest, mut frames) = (&self.bytes[..], Vec::new());
        while let [port, length, more @ ..] = rest {
            let (frame, later) = more.split_at(usize::from(*length));
            frames.push((*port, frame));
            rest = later;
        }
        frames
    }
}

/// Uplink that keeps the sent frames and, while captured, the observations.
#[derive(Default)]
struct Cable(Vec<Vec<u8>>, Option<Vec<(Seen, Vec<u8>)>>);

impl Wire for Cable {
    fn transmit(&mut self, frame: &[u8]) -> bool {
        self.0.push(frame.to_vec());
        true
    }

    fn is_watched(&self) -> bool {
        self.1.is_some()
    }

    fn watch(&mut self, seen: Seen, frame: &[u8]) {
        self.1.iter_mut().for_each(|all| all.push((seen, frame.to_vec())));
    }

    fn receive(&mut self, _into: &mut [u8]) -> Option<usize> {
        None
    }
}

/// Plane with both test devices: ports 0 to 7 belong to [`Slots`], 8 to 15 to [`Stream`]. Port n has address n.
struct World {
    plane: Plane,
    slots: Slots,
    stream: Stream,
    cable: Cable,
}

const SLOTS: Ports = Ports::new(0xff);

fn address(n: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, n]
}

fn bytes(to: [u8; 6], from: u8) -> Vec<u8> {
    let mut frame = [&to[..], &address(from), &[8, 0]].concat();
    frame.resize(60, from);
    frame
}

fn port(n: u8) -> Origin {
    Origin::Port(Port::new(n).unwrap())
}

fn policy() -> Tables<PORTS> {
    let mut tables = Tables::closed(PORTS);
    let all = Ports::new(0xffff);
    (tables.shared, tables.replicate, tables.loopback) = (true, true, true);
    (tables.all, tables.enabled, tables.guests, tables.check_source) = (all, all, all, all);
    (tables.untagged, tables.broadcast) = (all, all);
    for n in 0..PORTS as u8 {
        tables.exact.add(MacAddress(address(n)), Ports::new(1 << n));
    }
    tables
}

impl World {
    fn new(tables: Tables<PORTS>) -> Self {
        let counters = [PortCounters::default(); PORTS];
        let mut plane = Plane::new(tables, Pacing::new(None), Storm::default(), counters);
        plane.uplink = Uplink { link: true, receives: true, ..Uplink::default() };
        let (slots, stream) =
            (Slots { free: 9, ..Slots::default() }, Stream { set_up: true, ..Stream::default() });
        Self { plane, slots, stream, cable: Cable::default() }
    }

    fn send(&mut self, origin: Origin, frame: &[u8]) -> Forwarded {
        let mut buffer = [&[0; HEADROOM], frame].concat();
        let mut frame = Frame::new(&mut buffer).unwrap();
        frame.take_tag();
        if let Origin::Port(port) = origin {
            frame.tag = self.plane.tables().transmit_tag(port, frame.tag);
        }
        let mut families = Joined { ports: SLOTS, first: &mut self.slots, second: &mut self.stream };
        self.plane.forward(origin, &mut frame, &mut families, &mut self.cable)
    }

    /// Visits a port at a time.
    fn visit(&mut self, n: u8, budget: usize, now: Time) -> Option<Visited> {
        let sender = Sender { port: Port::new(n).unwrap(), queue: 0 };
        self.plane.now = now;
        let mut families = Joined { ports: SLOTS, first: &mut self.slots, second: &mut self.stream };
        self.plane.visit(sender, budget, &mut families, &mut self.cable)
    }

    fn counters(&mut self, n: u8) -> PortCounters {
        let port = Port::new(n).unwrap();
        self.plane.ledger.settle_received(port);
        self.plane.ledger.settle_sent(port);
        *self.plane.ledger.of(port)
    }

    /// Returns the observations since the last call, which all are of a frame with these bytes.
    fn seen(&mut self, bytes: &[u8]) -> Vec<Seen> {
        let all = self.cable.1.replace(Vec::new()).unwrap_or_default();
        assert!(all.iter().all(|(_, seen)| seen == bytes), "{all:?}");
        all.into_iter().map(|(seen, _)| seen).collect()
    }
}

#[test]
fn frames_pass_between_device_families_in_both_directions() {
    let mut world = World::new(policy());
    let (there, back) = (bytes(address(9), 1), bytes(address(1), 9));
    assert_eq!(world.send(port(1), &there), Forwarded::default());
    assert_eq!(world.send(port(9), &back), Forwarded::default());
    assert_eq!(world.stream.frames(), [(9, &there[..])]);
    assert_eq!(world.slots.filled, [Slot { port: 1, tag: None, bytes: back, looks: 1 }]);
    assert!(world.cable.0.is_empty(), "it stays inside");
    for n in [1, 9] {
        let counters = world.counters(n);
        assert_eq!((counters.rx_packets, counters.rx_bytes), (1, 60));
        assert_eq!((counters.tx_packets, counters.tx_bytes), (1, 60));
    }
}

#[test]
fn broadcast_is_parsed_once_by_each_device_family() {
    let mut world = World::new(policy());
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
    (tables.tags[1], tables.tags[9]) = (PortTag::Always(100), PortTag::Always(100));
    tables.vlans.add(100, Ports::new(1 << 1 | 1 << 9), false);
    tables.strips = Ports::new(1 << 1);
    let mut world = World::new(tables);
    world.send(port(1), &bytes(address(9), 1));
    world.send(port(9), &bytes(address(1), 9));
    let [(9, tagged)] = world.stream.frames()[..] else { panic!("one frame for port 9") };
    assert_eq!(tagged[12..18], [0x81, 0, 0, 100, 8, 0]);
    let [Slot { port: 1, tag: Some(100), bytes, .. }] = &world.slots.filled[..] else {
        panic!("one for port 1")
    };
    assert_eq!((bytes.len(), &bytes[12..14]), (60, &[8, 0][..]));
}

#[test]
fn senders_of_every_device_family_are_checked_for_spoofing() {
    let mut world = World::new(policy());
    for from in [1, 9] {
        let spoofed = world.send(port(from), &bytes(address(2), 3));
        assert_eq!(spoofed.refused, Some(Reason::SourceSpoofed));
        assert_eq!(world.counters(from).tx_spoofed, 1);
    }
    assert!(world.slots.filled.is_empty());
}

#[test]
fn undelivered_frame_is_counted_at_the_receiving_port() {
    let mut world = World::new(policy());
    (world.slots.free, world.stream.set_up) = (0, false);
    world.send(Origin::Uplink, &bytes(address(1), 77));
    world.send(Origin::Uplink, &bytes(address(9), 77));
    assert_eq!((world.counters(1).rx_no_descriptors, world.counters(9).rx_disabled), (1, 1));
    assert_eq!((world.plane.tally.received.all.packets, world.plane.tally.reached.packets), (2, 0));
}

#[test]
fn visit_moves_no_more_frames_than_its_budget() {
    let mut world = World::new(policy());
    world.slots.waiting = vec![bytes(address(9), 1); 3];
    world.stream.sends = Some(bytes(address(1), 9));
    let visited = world.visit(1, 2, Time::ZERO);
    assert_eq!(visited, Some(Visited { served: true, left: true, due: None }));
    assert_eq!(world.stream.frames().len(), 2);
    assert_eq!(world.visit(1, 2, Time::ZERO), Some(Visited { served: true, left: false, due: None }));
    assert_eq!(world.visit(9, 2, Time::ZERO), Some(Visited { served: true, left: true, due: None }));
    assert_eq!(world.slots.filled.len(), 2);
    assert_eq!((world.counters(1).tx_packets, world.counters(9).tx_packets), (3, 2));
}

#[test]
fn rate_delays_a_port_and_a_disabled_port_sends_no_frame() {
    let mut world = World::new(policy());
    world.stream.sends = Some(bytes(address(1), 9));
    // A hundredth of 1 Gb/s: 64 bytes with their check sequence take 51.2 us.
    world.plane.pacing.set_rate(Port::new(9).unwrap(), Some(100 << 14));
    let due = Some(Time::from_nanos(51_200));
    assert_eq!(world.visit(9, 5, Time::ZERO), Some(Visited { served: true, left: true, due }));
    assert_eq!(world.visit(9, 5, Time::from_micros(51)), Some(Visited { served: false, left: true, due }));
    assert_eq!(world.slots.filled.len(), 1);
    assert!(world.visit(9, 5, Time::from_micros(52)).is_some_and(|visited| visited.served));
    assert_eq!(world.slots.filled.len(), 2);
    world.stream.set_up = false;
    assert_eq!(world.visit(9, 5, Time::from_micros(900)), None);
}

fn seen(way: Way, at: Origin, lost: Option<Loss>) -> Seen {
    Seen { at, way, lost }
}

#[test]
fn capture_sees_a_frame_at_each_port_with_its_drop_reason() {
    use Way::{In, Out};
    let mut world = World::new(policy());
    world.cable.1 = Some(Vec::new());
    let frame = bytes(address(9), 1);
    world.send(port(1), &frame);
    assert_eq!(world.seen(&frame), [seen(In, port(1), None), seen(Out, port(9), None)]);

    let frame = bytes(address(9), 2);
    world.send(port(1), &frame);
    assert_eq!(world.seen(&frame), [seen(In, port(1), Some(Loss::Dropped(Reason::SourceSpoofed)))]);

    world.stream.set_up = false;
    let frame = bytes(address(9), 77);
    world.send(Origin::Uplink, &frame);
    let missed = Some(Loss::Missed(Missed::Disabled));
    assert_eq!(world.seen(&frame), [seen(In, Origin::Uplink, None), seen(Out, port(9), missed)]);

    // No port has the address: the frame leaves by the uplink, or is dropped without a link.
    let frame = bytes(address(99), 1);
    world.send(port(1), &frame);
    world.plane.uplink.link = false;
    world.send(port(1), &frame);
    let [enters, leaves] = [seen(In, port(1), None), seen(Out, Origin::Uplink, None)];
    assert_eq!(world.seen(&frame), [enters, leaves, enters, Seen { lost: Some(Loss::Uplink), ..leaves }]);
    world.send(Origin::Uplink, &frame);
    let unwanted = Some(Loss::Dropped(Reason::Unwanted));
    assert_eq!(world.seen(&frame), [seen(In, Origin::Uplink, unwanted)]);
}

#[test]
fn packet_capture_changes_no_frame_or_counter() {
    let frames = [bytes(address(9), 1), bytes([0xff; 6], 1), bytes(address(1), 1), bytes(address(9), 2)];
    let after = |watched: bool| {
        let mut world = World::new(policy());
        world.cable.1 = watched.then(Vec::new);
        let told: Vec<_> = frames.iter().map(|frame| world.send(port(1), frame)).collect();
        let counters: Vec<_> = (0..PORTS as u8).map(|n| world.counters(n)).collect();
        (told, counters, world.slots.filled, world.stream.bytes, world.cable.0)
    };
    assert_eq!(after(true), after(false));
}
