//! Captures of frames on a port: at each function and at the uplink, with the reason of each drop.
//!
//! The port's thread copies the first bytes of a frame into a ring ([`CaptureWriter`]). The client's side reads the
//! ring ([`CaptureReader`]) as pcapng. If it is too slow, the capture misses frames and reports their number by function; the
//! port never waits. `shares` divides the ring among functions. `control::server::capture` serves the requests for captures.

mod loss;
mod shares;

use crate::pcapng::{self, PacketDirection, PcapngPacket};
use crate::ring;
use plane::watch::{FrameDirection as PlaneWay, FrameObservation};
use plane::{FrameOrigin, PortSet};
use rtrb::{Consumer, Producer, RingBuffer};
pub(crate) use shares::UPLINK;
use shares::{ReaderShares, WriterShares};
use std::io;
use std::sync::atomic::{Ordering, fence};

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
    shares: WriterShares,
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
        let parts = [&time[..], &length, &head, why.as_bytes(), data];
        let bytes = ring::LENGTH + parts.iter().map(|part| part.len()).sum::<usize>();
        let fits = self.shares.admits(place, self.sender.slots()) && ring::put(&mut self.sender, parts);
        self.shares.count(place, fits.then_some(bytes));
    }
}

/// Reader's end of a packet capture: reads frames from the ring, and formats them as pcapng.
#[derive(Debug)]
pub(crate) struct CaptureReader {
    receiver: Consumer<u8>,
    shares: ReaderShares,
    /// pcapng interface index of each interface number in the capture's ring.
    interfaces: Vec<(u8, u32)>,
    /// Maximum bytes of each frame in the capture file.
    snaplen: usize,
    buffer: Vec<u8>,
}

/// Creates a packet capture: the port's end, which writes frames, and the end that reads them.
pub(crate) fn begin(wanted: CaptureSelection) -> (CaptureWriter, CaptureReader) {
    let (sender, receiver) = RingBuffer::new(RING);
    let (of_writer, of_reader) = shares::begin();
    let capture = CaptureWriter { wanted, sender, shares: of_writer };
    let frames = CaptureReader {
        receiver,
        shares: of_reader,
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

    /// Returns pcapng blocks with the number of missing frames of each interface. Sending them while no frames arrive
    /// reveals that a client has gone.
    ///
    /// # Errors
    /// No error is known; the encoder's signature has one.
    pub(crate) fn sign_of_life(&self) -> io::Result<Vec<u8>> {
        let time = pcapng::time();
        let mut blocks = Vec::new();
        for of_one_name in self.interfaces.chunk_by(|(_, one), (_, next)| one == next) {
            let missing = of_one_name.iter().map(|(place, _)| self.shares.missing(*place)).sum();
            let number = of_one_name.first().map_or(0, |(_, number)| *number);
            blocks.extend(pcapng::statistics(number, time, missing)?);
        }
        Ok(blocks)
    }

    /// Returns true if the port has ended the capture and the ring is empty.
    pub(crate) fn have_ended(&self) -> bool {
        let is_abandoned = self.receiver.is_abandoned();
        // Without the fence the port's last frames may be invisible here: `is_abandoned` orders nothing (rtrb issue 114).
        fence(Ordering::Acquire);
        is_abandoned && self.receiver.is_empty()
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
            self.shares.take(head[12], ring::LENGTH + length);
            let Some((why, data)) = data.split_at_checked(head[14].into()) else { continue };
            let interface = self.interfaces.iter().find(|(place, _)| *place == head[12]);
            let frame_length = u32::from_ne_bytes([8, 9, 10, 11].map(|n| head[n]));
            let Some((_, interface)) = interface.filter(|_| selects(data, frame_length as usize)) else {
                continue;
            };
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
                missing: self.shares.newly_missing(head[12]),
            })?);
        }
        Ok((read > 0).then_some(blocks))
    }
}

#[cfg(test)]
mod tests;
