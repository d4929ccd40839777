//! Tests that segments are joined by the rules of Linux's GRO, and that cutting a joined packet gives the segments back.

use super::frames::{built, ipv4, ipv6, udp4};
use crate::coalesce::{CoalesceDecision, FrameClass, STREAMS, SegmentCoalescer};
use crate::{FrameHeaders, uncut, verify};
use alloc::vec::Vec;
use etherparse::TcpOptionElement;
use plane::frame::HEADROOM;
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::{Just, Strategy};

/// Offsets in a frame over IPv4.
const IDENTIFICATION: usize = 18;
const FRAGMENT: usize = 20;
const TTL: usize = 22;
const FLAGS: usize = 47;
const PSH: u8 = 0x08;
/// Bytes of a full segment's payload.
const MSS: usize = 100;

/// Stream of TCP segments, with right checksums.
#[derive(Debug, Clone)]
struct TestStream {
    six: bool,
    port: u16,
    sequence: u32,
    identification: u16,
}

impl TestStream {
    fn new(number: u16) -> Self {
        Self { six: number % 2 == 1, port: 1000 + number, sequence: u32::MAX - 250, identification: 0xfffe }
    }

    fn segment(&mut self, length: usize, flags: u8) -> Vec<u8> {
        let byte = self.sequence.to_le_bytes()[0];
        let payload = alloc::vec![byte; length];
        let options = [TcpOptionElement::Timestamp(7, 8)];
        macro_rules! tcp {
            ($ip:expr) => {{
                let step = $ip.tcp(self.port, 80, self.sequence, 1024).ack(9).options(&options).unwrap();
                if flags & PSH != 0 { built!(step.psh(), &payload) } else { built!(step, &payload) }
            }};
        }
        let mut frame = if self.six { tcp!(ipv6()) } else { tcp!(ipv4()) };
        if !self.six {
            frame[IDENTIFICATION..FRAGMENT].copy_from_slice(&self.identification.to_be_bytes());
            frame[FRAGMENT..TTL].copy_from_slice(&[0x40, 0]);
            mend(&mut frame);
        }
        self.sequence = self.sequence.wrapping_add(length as u32);
        self.identification = self.identification.wrapping_add(1);
        frame
    }
}

/// Sets the checksums of a frame over IPv4 right.
fn mend(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let sum = crate::checksum::PartialChecksum::of(&frame[14..34]).checksum();
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame[50..52].fill(0);
    let seed = super::frames::pseudo(frame, false, 6, frame.len() - 34);
    let sum = crate::checksum::PartialChecksum::of(&frame[34..]).number(seed.into()).checksum();
    frame[50..52].copy_from_slice(&sum.to_be_bytes());
}

/// Packets and frames in the order of their delivery, each with its number of segments and the size of a segment.
#[derive(Default)]
struct Receiver {
    coalescer: SegmentCoalescer<u8>,
    delivered: Vec<(u32, u16, Vec<u8>)>,
}

impl Receiver {
    fn offer(&mut self, frame: &[u8]) {
        let class = FrameClass::of(frame, None);
        loop {
            match self.coalescer.offer(0, (&class, frame), |_| true) {
                CoalesceDecision::Held => return,
                CoalesceDecision::After(place) => self.deliver(place),
                CoalesceDecision::Deliver => return self.delivered.push((1, 0, frame.to_vec())),
            }
        }
    }

    fn deliver(&mut self, place: usize) {
        let mut packet = self.coalescer.take(place).unwrap();
        let segments = packet.segments();
        let (bytes, layout) = packet.complete();
        let bytes = &mut bytes[HEADROOM..];
        if segments.count > 1 {
            assert!(bytes.len() <= 65_549);
            assert_eq!(layout.frames(bytes.len()), u64::from(segments.count));
            assert_eq!(layout.lengths(bytes.len()).sum::<usize>() as u64, segments.bytes);
            let headers = FrameHeaders::parse(bytes);
            assert_ne!(verify::network(bytes, &headers), Some(false));
            assert_eq!(headers.l3_end, Some(bytes.len()));
        }
        self.delivered.push((segments.count, layout.mss, bytes.to_vec()));
        self.coalescer.give_back(packet);
    }

    fn end(&mut self) {
        while !self.coalescer.is_empty() {
            self.deliver(0);
        }
    }

    /// Returns the counts of segments of all deliveries.
    fn counts(&self) -> Vec<u32> {
        self.delivered.iter().map(|(count, ..)| *count).collect()
    }

    /// Returns all frames, those of packets cut again.
    fn frames(&self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        for (count, mss, bytes) in &self.delivered {
            if *count == 1 {
                frames.push(bytes.clone());
                continue;
            }
            let (mut bytes, ipv4) = (bytes.clone(), bytes[12] == 8);
            let layout = uncut::arrived(&mut bytes, ipv4, *mss, 65_535).unwrap();
            let mut cut = uncut::segments(&layout, &bytes).unwrap();
            let mut segment = [0; 2048];
            while let Some(length) = cut.write_next(&mut segment) {
                frames.push(segment[..length].to_vec());
            }
        }
        frames
    }
}

fn joined(frames: &[Vec<u8>]) -> Vec<u32> {
    let mut receiver = Receiver::default();
    frames.iter().for_each(|frame| receiver.offer(frame));
    receiver.end();
    receiver.counts()
}

/// Returns two segments of a stream over IPv4.
fn two() -> [Vec<u8>; 2] {
    let mut stream = TestStream::new(0);
    [stream.segment(MSS, 0), stream.segment(MSS, 0)]
}

#[test]
fn consecutive_segments_become_one_packet() {
    for number in 0..2 {
        let mut stream = TestStream::new(number);
        let frames: Vec<_> = (0..10).map(|_| stream.segment(MSS, 0)).collect();
        let mut receiver = Receiver::default();
        frames.iter().for_each(|frame| receiver.offer(frame));
        receiver.end();
        assert_eq!(receiver.counts(), [10]);
        assert_eq!(receiver.frames(), frames);
    }
}

#[test]
fn packet_has_no_more_segments_than_can_be_cut_again() {
    let mut stream = TestStream::new(0);
    let frames: Vec<_> = (0..uncut::MAX_SEGMENTS + 10).map(|_| stream.segment(6, 0)).collect();
    let mut receiver = Receiver::default();
    frames.iter().for_each(|frame| receiver.offer(frame));
    receiver.end();
    assert_eq!(receiver.counts(), [uncut::MAX_SEGMENTS, 10]);
    assert!(receiver.frames() == frames);
}

#[test]
fn short_segment_or_psh_ends_a_packet() {
    for (length, flags) in [(60, 0), (MSS, PSH)] {
        let mut stream = TestStream::new(0);
        let mut frames = alloc::vec![stream.segment(MSS, 0), stream.segment(length, flags)];
        frames.extend((0..2).map(|_| stream.segment(MSS, 0)));
        assert_eq!(joined(&frames), [2, 2]);
    }
    let mut stream = TestStream::new(0);
    assert_eq!(joined(&[stream.segment(MSS, PSH), stream.segment(MSS, 0)]), [1, 1]);
    assert_eq!(joined(&[stream.segment(MSS, 0), stream.segment(MSS + 1, 0)]), [1, 1]);
}

#[test]
fn segments_of_eight_streams_are_joined_at_the_same_time() {
    let mut streams: Vec<_> = (0..STREAMS as u16).map(TestStream::new).collect();
    let mut frames: Vec<_> =
        (0..3).flat_map(|_| streams.iter_mut().map(|s| s.segment(MSS, 0)).collect::<Vec<_>>()).collect();
    assert_eq!(joined(&frames), [3; STREAMS]);
    // A ninth stream ends the oldest packet.
    frames.insert(STREAMS, TestStream::new(100).segment(MSS, 0));
    assert_eq!(joined(&frames).iter().sum::<u32>(), 25);
}

#[test]
fn packet_has_at_most_65535_bytes() {
    let mut stream = TestStream::new(0);
    let frames: Vec<_> = (0..100).map(|_| stream.segment(1448, 0)).collect();
    assert_eq!(joined(&frames), [45, 45, 10]);
}

#[test]
fn segments_that_differ_are_not_joined() {
    type Change = (&'static str, fn(&mut [u8]));
    let changes: [Change; 13] = [
        ("destination", |frame| frame[0] ^= 2),
        ("traffic class", |frame| frame[15] ^= 0x10),
        ("congestion", |frame| frame[15] ^= 3),
        ("identification", |frame| frame[IDENTIFICATION] ^= 1),
        ("may be fragmented", |frame| frame[FRAGMENT] = 0),
        ("time to live", |frame| frame[TTL] -= 1),
        ("sequence", |frame| frame[41] ^= 1),
        ("acknowledgement", |frame| frame[45] ^= 1),
        ("SYN", |frame| frame[FLAGS] |= 2),
        ("URG", |frame| frame[FLAGS] |= 0x20),
        ("CWR", |frame| frame[FLAGS] |= 0x80),
        ("window", |frame| frame[49] ^= 1),
        ("time stamp", |frame| frame[60] ^= 1),
    ];
    assert_eq!(joined(&two()), [2]);
    for (name, change) in changes {
        let [first, mut second] = two();
        change(&mut second);
        mend(&mut second);
        assert_eq!(joined(&[first, second]), [1, 1], "{name}");
    }
}

#[test]
fn wrong_checksum_is_never_joined() {
    for at in [24, 50, 70, 100] {
        let [first, mut second] = two();
        second[at] ^= 1;
        assert_eq!(joined(&[first.clone(), second.clone()]), [1, 1]);
        assert_eq!(joined(&[second, first]), [1, 1]);
    }
}

/// The number of bytes behind the IP packet had a counter of 8 bits.
#[test]
fn cve_2020_35498_padding_is_not_joined_as_payload() {
    for padding in [1, 5, 255, 256, 257, 512, 1_200] {
        let mut stream = TestStream::new(0);
        let (first, mut second) = (stream.segment(MSS, 0), stream.segment(3, 0));
        let end = second.len();
        second.resize(end + padding, 0);
        assert_eq!(FrameHeaders::parse(&second).l3_end, Some(end));
        assert_eq!(joined(&[first, second]), [1, 1], "{padding} bytes");
    }
}

#[test]
fn other_frames_of_a_stream_or_a_receiver_pass_no_packet() {
    let [first, last] = two();
    let mut stream = TestStream { sequence: u32::MAX - 150, ..TestStream::new(0) };
    let acknowledgement = stream.segment(0, 0);
    let mut fragment = last.clone();
    fragment[FRAGMENT + 1] = 9;
    let mut arp = first.clone();
    arp[12..14].copy_from_slice(&[8, 6]);
    for between in [acknowledgement, fragment, arp] {
        let mut receiver = Receiver::default();
        let frames = [first.clone(), between, last.clone()];
        frames.iter().for_each(|frame| receiver.offer(frame));
        receiver.end();
        assert_eq!(receiver.frames(), frames);
    }
    assert_eq!(joined(&[first, udp4(&[1; 50]), last]), [1, 2]);
}

/// Event of a property test: a segment of a stream, by its length and its flags, damage to it, or an end of the burst.
#[derive(Debug, Clone)]
enum TestEvent {
    Segment { stream: usize, length: usize, psh: bool },
    Damaged { stream: usize, at: usize, bit: u8 },
    Repeated { stream: usize },
    End,
}

fn event() -> impl Strategy<Value = TestEvent> {
    let length = prop_oneof![6 => Just(MSS), 1 => 0..MSS];
    prop_oneof![
        20 => (0..10_usize, length, proptest::bool::weighted(0.1))
            .prop_map(|(stream, length, psh)| TestEvent::Segment { stream, length, psh }),
        2 => (0..10_usize, any::<usize>(), 0..8_u8)
            .prop_map(|(stream, at, bit)| TestEvent::Damaged { stream, at, bit }),
        1 => (0..10_usize).prop_map(|stream| TestEvent::Repeated { stream }),
        1 => Just(TestEvent::End),
    ]
}

proptest! {
    #[test]
    fn cutting_the_packets_gives_every_stream_back_in_order(events in vec(event(), 0..200)) {
        let mut streams: Vec<_> = (0..10).map(TestStream::new).collect();
        let (mut receiver, mut sent) = (Receiver::default(), Vec::new());
        for event in events {
            let frame = match event {
                TestEvent::Segment { stream, length, psh } => {
                    streams[stream].segment(length, if psh { PSH } else { 0 })
                }
                TestEvent::Damaged { stream, at, bit } => {
                    let mut frame = streams[stream].segment(MSS, 0);
                    // Addresses and ports name the stream, and frames of another one may pass it.
                    let at = 58 + at % (frame.len() - 58);
                    frame[at] ^= 1 << bit;
                    frame
                }
                TestEvent::Repeated { stream } => streams[stream].clone().segment(MSS, 0),
                TestEvent::End => {
                    receiver.end();
                    continue;
                }
            };
            receiver.offer(&frame);
            sent.push(frame);
        }
        receiver.end();
        let received = receiver.frames();
        prop_assert_eq!(received.len(), sent.len());
        for stream in streams {
            // Ports are behind the fixed network header, also in a damaged frame.
            let own = |frame: &&Vec<u8>| {
                let at = if frame[12] == 8 { 34 } else { 54 };
                frame[at..at + 2] == stream.port.to_be_bytes()
            };
            let [before, after] = [&sent, &received].map(|frames| frames.iter().filter(own).collect::<Vec<_>>());
            prop_assert_eq!(before, after);
        }
    }

    #[test]
    fn any_bytes_are_delivered_unchanged_or_joined(frames in vec(vec(any::<u8>(), 14..200), 0..20)) {
        let mut receiver = Receiver::default();
        frames.iter().for_each(|frame| receiver.offer(frame));
        receiver.end();
        prop_assert_eq!(receiver.frames(), frames);
    }
}
