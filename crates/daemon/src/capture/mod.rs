//! Captures of frames on a port: at each function and at the uplink, with the reason of each drop.
//!
//! The port's thread copies the first bytes of a frame into a ring ([`CaptureWriter`]). The client's side reads the
//! ring ([`CaptureReader`]) as pcapng. If it is too slow, the capture misses frames and reports their number; the port
//! never waits. `control::server::capture` serves the requests for captures.

mod loss;

use crate::pcapng::{self, PacketDirection, PcapngPacket};
use crate::ring;
use plane::watch::{FrameDirection as PlaneWay, FrameObservation};
use plane::{FrameOrigin, PortSet};
use rtrb::{Consumer, Producer, RingBuffer};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of packet captures that run on one port at a time.
pub(crate) const MOST: usize = 4;
/// Bytes of the ring by which a port passes captured frames to the reader of the capture.
const RING: usize = 4 << 20;
/// Maximum captured bytes of a frame, enough for a packet before segmentation.
pub(crate) const LONGEST: usize = 1 << 17;
/// Bytes before each frame in a capture's ring: time (8), length (4), interface, direction, and length of the drop
/// reason, whose text follows.
const HEAD: usize = 8 + 4 + 3;
/// Maximum bytes of a drop reason's text in a capture's ring, which stores the length in one byte.
const WORDS: usize = u8::MAX as usize;
/// Interface number of the uplink in the capture's ring. Other numbers are ports of the forwarding plane.
pub(crate) const UPLINK: u8 = u8::MAX;

/// Selection of frames for a packet capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CaptureSelection {
    /// Ports of the switch whose frames are captured.
    pub(crate) ports: PortSet,
    /// True if frames at the uplink are captured, too.
    pub(crate) uplink: bool,
    /// True if only dropped frames are captured.
    pub(crate) drops: bool,
    /// Maximum bytes of each frame that the capture keeps.
    pub(crate) snaplen: usize,
    /// True if the port must copy whole frames, because a filter reads each frame before the capture truncates it.
    pub(crate) is_filtered: bool,
}

impl CaptureSelection {
    /// Returns the maximum bytes of a frame that the port copies into the capture's ring.
    fn copied(&self) -> usize {
        if self.is_filtered { LONGEST } else { self.snaplen }
    }

    fn wants(&self, seen: &FrameObservation) -> bool {
        let here = match seen.at {
            FrameOrigin::Uplink => self.uplink,
            FrameOrigin::Port(port) => self.ports.has(port),
        };
        here && (!self.drops || seen.lost.is_some())
    }
}

/// Port's end of a packet capture: selects frames, and writes them into the ring that the reader empties.
#[derive(Debug)]
pub struct CaptureWriter {
    wanted: CaptureSelection,
    sender: Producer<u8>,
    missing: Arc<AtomicU64>,
}

/// Packet captures that run on one port.
#[derive(Debug, Default)]
pub(crate) struct PortCaptures(Vec<CaptureWriter>);

impl PortCaptures {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a capture to the port. Returns false if the port has the maximum number of captures already.
    pub(crate) fn add(&mut self, capture: CaptureWriter) -> bool {
        self.forget_ended();
        let has_room = self.0.len() < MOST;
        if has_room {
            self.0.push(capture);
        }
        has_room
    }

    /// Removes the captures whose reader has ended.
    pub(crate) fn forget_ended(&mut self) {
        self.0.retain(|capture| !capture.sender.is_abandoned());
    }

    /// Copies a frame to every capture that selects the frame.
    pub(crate) fn note(&mut self, seen: FrameObservation, frame: &[u8]) {
        let mut now = None;
        for capture in self.0.iter_mut().filter(|capture| capture.wanted.wants(&seen)) {
            capture.note(*now.get_or_insert_with(pcapng::time), seen, frame);
        }
    }
}

impl CaptureWriter {
    fn note(&mut self, time: u64, seen: FrameObservation, frame: &[u8]) {
        let place = match seen.at {
            FrameOrigin::Uplink => UPLINK,
            FrameOrigin::Port(port) => port.get(),
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

/// Reader's end of a packet capture: reads frames from the ring, and formats them as pcapng.
#[derive(Debug)]
pub(crate) struct CaptureReader {
    receiver: Consumer<u8>,
    missing: Arc<AtomicU64>,
    /// Number of missing frames that blocks of the pcapng file have stated so far; the next block states the rest.
    told: u64,
    /// pcapng interface index of each interface number in the capture's ring.
    interfaces: Vec<(u8, u32)>,
    /// Maximum bytes of each frame in the capture file.
    snaplen: usize,
    buffer: Vec<u8>,
}

/// Creates a packet capture: the port's end, which writes frames, and the end that reads them.
pub(crate) fn begin(wanted: CaptureSelection) -> (CaptureWriter, CaptureReader) {
    let (sender, receiver) = RingBuffer::new(RING);
    let missing = Arc::new(AtomicU64::new(0));
    let capture = CaptureWriter { wanted, sender, missing: Arc::clone(&missing) };
    let frames = CaptureReader {
        receiver,
        missing,
        told: 0,
        interfaces: Vec::new(),
        snaplen: wanted.snaplen,
        buffer: vec![0; HEAD + WORDS + LONGEST],
    };
    (capture, frames)
}

impl CaptureReader {
    /// Returns the beginning of the pcapng file: a section block, and an interface block for each name. Entries of
    /// `places` with the same name must be adjacent.
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

    /// Returns a pcapng block with the number of missing frames. Sending the block while no frames arrive reveals that
    /// a client has gone.
    ///
    /// # Errors
    /// No error is known; the encoder's signature has one.
    pub(crate) fn sign_of_life(&self) -> io::Result<Vec<u8>> {
        pcapng::statistics(0, pcapng::time(), self.missing.load(Ordering::Relaxed))
    }

    /// Returns true if the port has ended the capture and the ring is empty.
    pub(crate) fn have_ended(&self) -> bool {
        self.receiver.is_abandoned() && self.receiver.is_empty()
    }

    /// Reads captured frames from the ring, about `bytes` at most, and returns pcapng blocks of those that the filter
    /// `selects` by their bytes and length. Frames are truncated after the filter has read them whole. Returns `None`
    /// if no frame is pending.
    ///
    /// # Errors
    /// No error is known; the encoder's signature has one.
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
            blocks.extend(pcapng::packet(&PcapngPacket {
                interface: *interface,
                time: u64::from_ne_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|n| head[n])),
                // A frame that enters the plane was sent by a function, or received by the uplink.
                way: if onto_plane == (head[12] == UPLINK) {
                    PacketDirection::In
                } else {
                    PacketDirection::Out
                },
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
    use plane::watch::FrameDropReason;
    use plane::{DeliveryError, PortIndex};

    const ALL: CaptureSelection = CaptureSelection {
        ports: PortSet::new(u64::MAX),
        uplink: true,
        drops: false,
        snaplen: LONGEST,
        is_filtered: false,
    };

    fn seen(at: u8, way: PlaneWay, lost: Option<FrameDropReason>) -> FrameObservation {
        FrameObservation { at: PortIndex::new(at).map_or(FrameOrigin::Uplink, FrameOrigin::Port), way, lost }
    }

    /// Packet that a test has read from a capture file.
    #[derive(Debug, PartialEq)]
    struct CapturedPacket {
        interface: u32,
        way: u8,
        data: Vec<u8>,
        length: u32,
        comment: Option<String>,
        missing: u64,
    }

    fn read(file: &[u8]) -> Vec<CapturedPacket> {
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
            Some(CapturedPacket { interface, way, data, length, comment, missing })
        });
        packets.collect()
    }

    #[test]
    fn captured_frames_have_interface_direction_and_drop_reason() {
        let (capture, mut frames) = begin(CaptureSelection { snaplen: 4, ..ALL });
        let mut captures = PortCaptures::default();
        assert!(captures.is_empty() && captures.add(capture));
        captures.note(seen(3, PlaneWay::In, None), &[1; 60]);
        captures.note(seen(UPLINK, PlaneWay::Out, None), &[1; 60]);
        captures.note(seen(UPLINK, PlaneWay::In, None), &[2; 60]);
        captures
            .note(seen(3, PlaneWay::Out, Some(FrameDropReason::Missed(DeliveryError::Dropped))), &[2; 60]);
        captures.note(seen(5, PlaneWay::Out, None), &[3; 60]);
        let mut file = frames.head(&[(UPLINK, "uplink".into()), (3, "pf0vf3".into())]).unwrap();
        file.extend(frames.take(usize::MAX, |_, _| true).unwrap().unwrap());
        let [receives, sends] = [1, 2];
        let packet = |interface, way, byte, why: Option<&str>| CapturedPacket {
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
    fn capture_of_drops_omits_other_ports_and_delivered_frames() {
        let wanted = CaptureSelection { ports: PortSet::new(1 << 2), uplink: false, drops: true, ..ALL };
        let (capture, mut frames) = begin(wanted);
        let mut captures = PortCaptures(vec![capture]);
        for at in [1, 2, UPLINK] {
            for lost in [None, Some(FrameDropReason::Storm)] {
                captures.note(seen(at, PlaneWay::Out, lost), &[at; 60]);
            }
        }
        captures.note(seen(2, PlaneWay::Out, Some(FrameDropReason::Storm)), &[99; 60]);
        let mut file = frames.head(&[(2, "pf0vf2".into())]).unwrap();
        file.extend(frames.take(usize::MAX, |frame, _| frame[0] < 99).unwrap().unwrap());
        let found = read(&file);
        let [CapturedPacket { data, comment: Some(why), .. }] = &found[..] else { panic!("{found:?}") };
        assert_eq!((&data[..], why.as_str()), (&[2; 60][..], "dropped: storm control"));
    }

    #[test]
    fn capture_filter_reads_whole_frames_before_they_are_truncated() {
        let (mut capture, mut frames) = begin(CaptureSelection { snaplen: 96, is_filtered: true, ..ALL });
        for length in [60, 1500] {
            capture.note(0, seen(1, PlaneWay::In, None), &vec![length as u8; length]);
        }
        let mut file = frames.head(&[(1, "pf0vf1".into())]).unwrap();
        let is_long = |frame: &[u8], length| frame.len() == length && length > 1000;
        file.extend(frames.take(usize::MAX, is_long).unwrap().unwrap());
        let found = read(&file);
        let [CapturedPacket { data, length: 1500, .. }] = &found[..] else { panic!("{found:?}") };
        assert_eq!(data.len(), 96);
    }

    #[test]
    fn capture_read_that_selects_no_frame_does_not_end_the_capture() {
        let (mut capture, mut frames) = begin(ALL);
        for _ in 0..2 {
            capture.note(0, seen(1, PlaneWay::In, None), &[1; 60]);
        }
        let mut take = || frames.take(1, |_, _| false).unwrap();
        assert_eq!([take(), take(), take()], [Some(vec![]), Some(vec![]), None]);
    }

    #[test]
    fn slow_capture_reader_misses_frames_that_are_counted() {
        let (capture, mut frames) = begin(ALL);
        let mut captures = PortCaptures(vec![capture]);
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
        assert!(!captures.add(begin(ALL).0), "more than {MOST} captures");
        drop(frames);
        let (capture, last) = begin(ALL);
        assert!(captures.add(capture), "an ended capture still counts");
        drop(captures);
        assert!(last.have_ended());
    }
}
