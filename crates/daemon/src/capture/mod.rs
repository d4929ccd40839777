//! Frames on a port as somebody captures them: at each function and at the uplink, and where they were dropped and why.
//!
//! The port's thread copies the first bytes of a frame into a ring and goes on ([`Capture`]). Who captures reads the ring
//! ([`Frames`]) as pcapng. If it is too slow, the capture has gaps, which it tells, and the port has none. Left out: how a
//! capture is asked for (`control::server::capture`).

mod loss;

use crate::pcapng::{self, Packet, Way};
use crate::ring;
use plane::watch::{Seen, Way as PlaneWay};
use plane::{Origin, Ports};
use rtrb::{Consumer, Producer, RingBuffer};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Captures of a port at a time.
pub(crate) const MOST: usize = 4;
/// Bytes that wait for who captures.
const RING: usize = 4 << 20;
/// The most bytes of a frame: a packet that is not cut into segments yet fits.
pub(crate) const LONGEST: usize = 1 << 17;
/// Before each frame in the ring: its time and length, where it was, which way it went, and how many bytes of words say why it
/// went no further; then these words.
const HEAD: usize = 8 + 4 + 3;
/// The most bytes of these words.
const WORDS: usize = u8::MAX as usize;
/// The uplink among the numbers of places; the others are numbers of ports of the plane.
pub(crate) const UPLINK: u8 = u8::MAX;

/// Which frames are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Frames at these ports of the plane.
    pub(crate) ports: Ports,
    /// Frames at the uplink, too.
    pub(crate) uplink: bool,
    /// Only dropped frames.
    pub(crate) drops: bool,
    /// Bytes of each frame in the capture.
    pub(crate) snaplen: usize,
    /// A filter looks at them first, and sees whole frames.
    pub(crate) is_filtered: bool,
}

impl Wanted {
    /// Bytes of each frame in the ring.
    fn copied(&self) -> usize {
        if self.is_filtered { LONGEST } else { self.snaplen }
    }

    fn wants(&self, seen: &Seen) -> bool {
        let here = match seen.at {
            Origin::Uplink => self.uplink,
            Origin::Port(port) => self.ports.has(port),
        };
        here && (!self.drops || seen.lost.is_some())
    }
}

/// The port's end of a capture.
#[derive(Debug)]
pub struct Capture {
    wanted: Wanted,
    sender: Producer<u8>,
    missing: Arc<AtomicU64>,
}

/// The captures of a port.
#[derive(Debug, Default)]
pub(crate) struct Captures(Vec<Capture>);

impl Captures {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One more; `false` if there are as many as there may be.
    pub(crate) fn add(&mut self, capture: Capture) -> bool {
        self.forget_ended();
        let has_room = self.0.len() < MOST;
        if has_room {
            self.0.push(capture);
        }
        has_room
    }

    /// Drops captures without a reader.
    pub(crate) fn forget_ended(&mut self) {
        self.0.retain(|capture| !capture.sender.is_abandoned());
    }

    /// A frame was seen.
    pub(crate) fn note(&mut self, seen: Seen, frame: &[u8]) {
        let mut now = None;
        for capture in self.0.iter_mut().filter(|capture| capture.wanted.wants(&seen)) {
            capture.note(*now.get_or_insert_with(pcapng::time), seen, frame);
        }
    }
}

impl Capture {
    fn note(&mut self, time: u64, seen: Seen, frame: &[u8]) {
        let place = match seen.at {
            Origin::Uplink => UPLINK,
            Origin::Port(port) => port.get(),
        };
        let why = seen.lost.map_or("", loss::text);
        let head = [place, seen.way as u8, why.len() as u8];
        let (time, length) = (time.to_ne_bytes(), (frame.len() as u32).to_ne_bytes());
        let data = &frame[..frame.len().min(self.wanted.copied())];
        if !ring::put(&mut self.sender, [&time, &length, &head, why.as_bytes(), data]) {
            self.missing.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The other end of a capture.
#[derive(Debug)]
pub(crate) struct Frames {
    receiver: Consumer<u8>,
    missing: Arc<AtomicU64>,
    /// Of the missing frames, those that were told.
    told: u64,
    /// The number of the interface for each number of a place.
    interfaces: Vec<(u8, u32)>,
    /// Bytes of each frame in the capture.
    snaplen: usize,
    buffer: Vec<u8>,
}

/// A capture of these frames, both ends.
pub(crate) fn begin(wanted: Wanted) -> (Capture, Frames) {
    let (sender, receiver) = RingBuffer::new(RING);
    let missing = Arc::new(AtomicU64::new(0));
    let capture = Capture { wanted, sender, missing: Arc::clone(&missing) };
    let frames = Frames {
        receiver,
        missing,
        told: 0,
        interfaces: Vec::new(),
        snaplen: wanted.snaplen,
        buffer: vec![0; HEAD + WORDS + LONGEST],
    };
    (capture, frames)
}

impl Frames {
    /// The file's beginning: a section, and an interface for each name. Places of one name stand together.
    ///
    /// # Errors
    /// A name is too long for the format.
    pub(crate) fn head(&mut self, places: &[(u8, String)]) -> io::Result<Vec<u8>> {
        let mut head = pcapng::section()?;
        for (number, of_one_name) in (0..).zip(places.chunk_by(|(_, one), (_, next)| one == next)) {
            let name = of_one_name.first().map(|(_, name)| name.as_str());
            head.extend(pcapng::interface(name)?);
            self.interfaces.extend(of_one_name.iter().map(|(place, _)| (*place, number)));
        }
        Ok(head)
    }

    /// What is said when there is nothing to say, so that a client that is gone is noticed: how many frames are missing.
    ///
    /// # Errors
    /// None are known.
    pub(crate) fn sign_of_life(&self) -> io::Result<Vec<u8>> {
        pcapng::statistics(0, pcapng::time(), self.missing.load(Ordering::Relaxed))
    }

    /// Whether nothing will come any more.
    pub(crate) fn have_ended(&self) -> bool {
        self.receiver.is_abandoned() && self.receiver.is_empty()
    }

    /// Reads pending frames, up to about `bytes`, and returns blocks of those that the filter `selects` by their bytes and length.
    /// Frames are cut after that. Returns `None` if no frame is pending.
    ///
    /// # Errors
    /// None are known.
    pub(crate) fn take(
        &mut self,
        bytes: usize,
        selects: impl Fn(&[u8], usize) -> bool,
    ) -> io::Result<Option<Vec<u8>>> {
        let mut blocks = Vec::new();
        let mut read = 0;
        while read < bytes
            && let Some(length) = ring::take(&mut self.receiver, &mut self.buffer)
        {
            read += length;
            let Some((head, data)) = self.buffer[..length].split_first_chunk::<HEAD>() else { continue };
            let Some((why, data)) = data.split_at_checked(head[14].into()) else { continue };
            let interface = self.interfaces.iter().find(|(place, _)| *place == head[12]);
            let frame_length = u32::from_ne_bytes([8, 9, 10, 11].map(|n| head[n]));
            let Some((_, interface)) = interface.filter(|_| selects(data, frame_length as usize)) else {
                continue;
            };
            let missing = self.missing.load(Ordering::Relaxed);
            let comment = (!why.is_empty()).then(|| format!("dropped: {}", String::from_utf8_lossy(why)));
            let onto_plane = head[13] == PlaneWay::In as u8;
            blocks.extend(pcapng::packet(&Packet {
                interface: *interface,
                time: u64::from_ne_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|n| head[n])),
                // A function sends what enters the plane; the uplink receives it.
                way: if onto_plane == (head[12] == UPLINK) { Way::In } else { Way::Out },
                length: frame_length,
                data: &data[..data.len().min(self.snaplen)],
                comment: comment.as_deref(),
                missing: missing - self.told,
            })?);
            self.told = missing;
        }
        Ok((read > 0).then_some(blocks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plane::watch::Loss;
    use plane::{Missed, Port};

    const ALL: Wanted = Wanted {
        ports: Ports::new(u64::MAX),
        uplink: true,
        drops: false,
        snaplen: LONGEST,
        is_filtered: false,
    };

    fn seen(at: u8, way: PlaneWay, lost: Option<Loss>) -> Seen {
        Seen { at: Port::new(at).map_or(Origin::Uplink, Origin::Port), way, lost }
    }

    /// A packet of the file.
    #[derive(Debug, PartialEq)]
    struct Found {
        interface: u32,
        way: u8,
        data: Vec<u8>,
        length: u32,
        comment: Option<String>,
        missing: u64,
    }

    fn read(file: &[u8]) -> Vec<Found> {
        use pcap_parser::traits::PcapNGPacketBlock;
        let (_, read) = pcap_parser::parse_pcapng(file).unwrap();
        let blocks = read.sections.into_iter().flat_map(|section| section.blocks);
        let packets = blocks.filter_map(|block| {
            let pcap_parser::Block::EnhancedPacket(packet) = block else { return None };
            let option = |code| packet.options.iter().find(|option| option.code == code);
            let comment = option(pcapng::COMMENT).map(|said| said.as_str().unwrap().to_owned());
            let missing = option(pcapng::DROP_COUNT).map_or(0, |count| count.as_u64_le().unwrap());
            let way = option(pcapng::FLAGS).unwrap().value[0];
            let (interface, length, data) = (packet.if_id, packet.origlen, packet.packet_data().to_vec());
            Some(Found { interface, way, data, length, comment, missing })
        });
        packets.collect()
    }

    #[test]
    fn frames_have_place_direction_and_drop_reason() {
        let (capture, mut frames) = begin(Wanted { snaplen: 4, ..ALL });
        let mut captures = Captures::default();
        assert!(captures.is_empty() && captures.add(capture));
        captures.note(seen(3, PlaneWay::In, None), &[1; 60]);
        captures.note(seen(UPLINK, PlaneWay::Out, None), &[1; 60]);
        captures.note(seen(UPLINK, PlaneWay::In, None), &[2; 60]);
        captures.note(seen(3, PlaneWay::Out, Some(Loss::Missed(Missed::Dropped))), &[2; 60]);
        captures.note(seen(5, PlaneWay::Out, None), &[3; 60]);
        let mut file = frames.head(&[(UPLINK, "uplink".into()), (3, "pf0vf3".into())]).unwrap();
        file.extend(frames.take(usize::MAX, |_, _| true).unwrap().unwrap());
        let [receives, sends] = [1, 2];
        let packet = |interface, way, byte, why: Option<&str>| Found {
            interface,
            way,
            data: vec![byte; 4],
            length: 60,
            comment: why.map(str::to_owned),
            missing: 0,
        };
        let expected = [
            packet(1, sends, 1, None),
            packet(0, sends, 1, None),
            packet(0, receives, 2, None),
            packet(1, receives, 2, Some("dropped: no receive descriptors")),
        ];
        assert_eq!(read(&file), expected);
    }

    #[test]
    fn other_ports_and_delivered_frames_are_left_out() {
        let wanted = Wanted { ports: Ports::new(1 << 2), uplink: false, drops: true, ..ALL };
        let (capture, mut frames) = begin(wanted);
        let mut captures = Captures(vec![capture]);
        for at in [1, 2, UPLINK] {
            for lost in [None, Some(Loss::Storm)] {
                captures.note(seen(at, PlaneWay::Out, lost), &[at; 60]);
            }
        }
        captures.note(seen(2, PlaneWay::Out, Some(Loss::Storm)), &[99; 60]);
        let mut file = frames.head(&[(2, "pf0vf2".into())]).unwrap();
        file.extend(frames.take(usize::MAX, |frame, _| frame[0] < 99).unwrap().unwrap());
        let found = read(&file);
        let [Found { data, comment: Some(why), .. }] = &found[..] else { panic!("{found:?}") };
        assert_eq!((&data[..], why.as_str()), (&[2; 60][..], "dropped: storm control"));
    }

    #[test]
    fn a_filter_sees_whole_frames_and_the_capture_cut_ones() {
        let (mut capture, mut frames) = begin(Wanted { snaplen: 96, is_filtered: true, ..ALL });
        for length in [60, 1500] {
            capture.note(0, seen(1, PlaneWay::In, None), &vec![length as u8; length]);
        }
        let mut file = frames.head(&[(1, "pf0vf1".into())]).unwrap();
        let is_long = |frame: &[u8], length| frame.len() == length && length > 1000;
        file.extend(frames.take(usize::MAX, is_long).unwrap().unwrap());
        let found = read(&file);
        let [Found { data, length: 1500, .. }] = &found[..] else { panic!("{found:?}") };
        assert_eq!(data.len(), 96);
    }

    #[test]
    fn a_piece_without_selected_frames_is_not_the_end() {
        let (mut capture, mut frames) = begin(ALL);
        for _ in 0..2 {
            capture.note(0, seen(1, PlaneWay::In, None), &[1; 60]);
        }
        let mut take = || frames.take(1, |_, _| false).unwrap();
        assert_eq!([take(), take(), take()], [Some(vec![]), Some(vec![]), None]);
    }

    #[test]
    fn slow_readers_miss_counted_frames_and_end_when_gone() {
        let (capture, mut frames) = begin(ALL);
        let mut captures = Captures(vec![capture]);
        let sent = 2 * RING as u64 / 1000;
        for _ in 0..sent {
            captures.note(seen(1, PlaneWay::In, None), &[1; 1000]);
        }
        let mut file = frames.head(&[(1, "pf0vf1".into())]).unwrap();
        file.extend(frames.take(usize::MAX, |_, _| true).unwrap().unwrap());
        let packets = read(&file);
        assert_eq!(packets.iter().map(|packet| packet.missing + 1).sum::<u64>(), sent);
        for _ in 1..MOST {
            let (capture, others) = begin(ALL);
            std::mem::forget(others);
            assert!(captures.add(capture));
        }
        assert!(!captures.add(begin(ALL).0), "as many as there may be");
        drop(frames);
        let (capture, last) = begin(ALL);
        assert!(captures.add(capture), "one has gone");
        drop(captures);
        assert!(last.have_ended());
    }
}
