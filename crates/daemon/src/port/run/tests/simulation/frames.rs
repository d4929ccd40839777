//! Frames of the simulation. Each names its sender, its receiver and its number, and its bytes follow from these, so
//! that a receiver detects a wrong byte, a repeated frame, and a frame for another guest. Each pair of guests exchanges frames of
//! one form: a card moves UDP in runs, and other frames one by one.

use super::function::ReceivedChecksum;
use super::guarded::GuardedFrame;
use super::tcp;
use host::shared::SharedMemory;
use i82576::MacAddress;
use memchr::memmem::Finder;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::net::{Ipv4Addr, Ipv6Addr};

/// EtherType for local experiments (IEEE 802).
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
/// Begins each frame's payload. Memory of a guest has it only within frames that the guest may see.
const MAGIC: [u8; 8] = *b"SoftIOV~";
/// Bytes of the stamp's fields and of their check.
const FIELDS: usize = 20;
const CHECK: usize = 4;
/// Bytes of the magic and the stamp, before the pattern.
const STAMP: usize = 8 + FIELDS + CHECK;
/// Length of the shortest frame in bytes.
pub(super) const SHORTEST: usize = 14 + STAMP;
/// EtherType of IPv4 (IEEE 802).
pub(super) const IPV4: [u8; 2] = [0x08, 0x00];
/// EtherType of a tag (802.1Q).
pub(super) const TAG: [u8; 2] = [0x81, 0x00];
/// Bytes of the headers of IPv4 and UDP.
const UDP: usize = 20 + 8;
/// EtherType of IPv6 (IEEE 802).
const IPV6: [u8; 2] = [0x86, 0xdd];
/// Bytes of the headers of IPv6 and of a router advertisement, without its last two fields.
const ROUTER: usize = 40 + 8;
/// Bit in the number of a segment's stamp. The others are the segment's place in its stream, from 1 on.
pub(super) const STREAM: u64 = 1 << 63;

/// Bytes of memory that are searched at once.
const PIECE: usize = 64 << 10;

/// Returns the stamps in a guest's memory. Leaves out those that a hostile guest has written over. Pages without a write
/// are holes of its file, and stay so.
pub(super) fn stamps(memory: &SharedMemory) -> Vec<FrameStamp> {
    let finder = Finder::new(&MAGIC);
    let (mut buffer, mut found) = (vec![0; PIECE], Vec::new());
    let mut end = 0;
    loop {
        let begin = match seek(memory, SeekFrom::Data(end)) {
            // No data is behind `end`.
            Err(Errno::NXIO) => return found,
            begin => begin.expect("a guest's memory can be searched"),
        };
        end = seek(memory, SeekFrom::Hole(begin)).expect("a hole is behind the data of a file");
        // A stamp that begins in one piece may end in the next: the pieces overlap.
        for at in (begin..end).step_by(PIECE - STAMP) {
            let piece = &mut buffer[..PIECE.min((end - at) as usize)];
            memory.memory().read(at, piece).expect("the memory is mapped");
            let whole = finder.find_iter(piece).filter(|offset| offset + STAMP <= piece.len());
            let new = whole.filter(|offset| at == begin || *offset > 0);
            found.extend(new.filter_map(|offset| FrameStamp::of_payload(&piece[offset..])));
        }
    }
}

/// Returns true if a guest sends UDP to another, and false for frames of another protocol.
pub(super) fn is_udp(from: u16, to: u16) -> bool {
    !(from + to).is_multiple_of(2)
}

/// Returns the IP address of a guest.
pub(super) fn ip_of(guest: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, guest as u8)
}

/// Sender, receiver and number of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameStamp {
    pub(super) from: u16,
    pub(super) to: u16,
    /// Number of times that the sender has attached.
    pub(super) life: u32,
    /// Number of the frame among those of its sender and receiver.
    pub(super) number: u64,
    /// Number of changes of policies before the frame was sent.
    pub(super) changes: u32,
}

impl FrameStamp {
    pub(super) fn frame(&self, to: MacAddress, from: MacAddress, length: usize) -> Vec<u8> {
        if is_udp(self.from, self.to) {
            return self.udp_frame(to, from, length);
        }
        self.filled([&to.0[..], &from.0, &ETHERTYPE].concat(), length)
    }

    /// Creates a frame with UDP, whatever frames this pair of guests exchanges.
    pub(super) fn udp_frame(&self, to: MacAddress, from: MacAddress, length: usize) -> Vec<u8> {
        let headers = self.udp_headers(length.max(14 + UDP + STAMP) - 14);
        self.filled([&to.0[..], &from.0, &IPV4, &headers].concat(), length)
    }

    /// Creates a router advertisement (RFC 4861) with the stamp in the place of its options.
    pub(super) fn router_frame(&self, to: MacAddress, from: MacAddress, length: usize) -> Vec<u8> {
        let mut packet = [0; ROUTER];
        packet[0] = 0x60;
        let behind = length.max(14 + ROUTER + STAMP) - 14 - 40;
        packet[4..6].copy_from_slice(&(behind as u16).to_be_bytes());
        // ICMPv6 (IANA), and the hop limit of neighbour discovery.
        packet[6..8].copy_from_slice(&[58, 255]);
        packet[8..24].copy_from_slice(&Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, self.from).octets());
        packet[24..40].copy_from_slice(&Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1).octets());
        packet[40] = 134;
        self.filled([&to.0[..], &from.0, &IPV6, &packet].concat(), length)
    }

    /// Returns a frame that begins with these headers, and ends with the stamp and bytes behind it.
    fn filled(&self, mut frame: Vec<u8>, length: usize) -> Vec<u8> {
        frame.extend(self.bytes());
        frame.extend((frame.len()..length).map(|at| self.byte(at)));
        frame
    }

    /// Returns the stamp and bytes behind it, `length` bytes together.
    pub(super) fn payload(&self, length: usize) -> Vec<u8> {
        let mut payload = self.bytes();
        payload.extend((STAMP..length).map(|at| self.byte(at)));
        payload
    }

    /// Returns the bytes of the stamp, with the magic and the check.
    fn bytes(&self) -> Vec<u8> {
        let mut fields =
            [&self.from.to_le_bytes()[..], &self.to.to_le_bytes(), &self.life.to_le_bytes()].concat();
        fields.extend(self.number.to_le_bytes());
        fields.extend(self.changes.to_le_bytes());
        [&MAGIC[..], &fields, &check(&fields).to_le_bytes()].concat()
    }

    /// Returns the headers of an IPv4 packet of `length` bytes with UDP, whose checksum is 0: not used.
    fn udp_headers(&self, length: usize) -> [u8; UDP] {
        let mut headers = [0; UDP];
        headers[..2].copy_from_slice(&[0x45, 0]);
        headers[2..4].copy_from_slice(&(length as u16).to_be_bytes());
        // Time to live, and the protocol's number (IANA): UDP.
        headers[8..10].copy_from_slice(&[64, 17]);
        headers[12..16].copy_from_slice(&ip_of(self.from).octets());
        headers[16..20].copy_from_slice(&ip_of(self.to).octets());
        let words = headers[..20].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
        let sum: u32 = words.sum();
        headers[10..12].copy_from_slice(&(!(sum + (sum >> 16)) as u16).to_be_bytes());
        headers[20..24].copy_from_slice(&[0x13, 0x88, 0x13, 0x89]);
        headers[24..26].copy_from_slice(&(length as u16 - 20).to_be_bytes());
        headers
    }

    /// Reads the stamp that begins at the magic of a payload. Returns `None` for one that a hostile guest has written over.
    pub(super) fn of_payload(payload: &[u8]) -> Option<Self> {
        let (stamp, rest) = payload.strip_prefix(&MAGIC)?.split_at_checked(FIELDS)?;
        if rest.first_chunk()? != &check(stamp).to_le_bytes() {
            return None;
        }
        let part = |at: usize| u16::from_le_bytes([stamp[at], stamp[at + 1]]);
        let life = u32::from_le_bytes(stamp[4..8].try_into().ok()?);
        let number = u64::from_le_bytes(stamp[8..16].try_into().ok()?);
        let changes = u32::from_le_bytes(stamp[16..].try_into().ok()?);
        Some(Self { from: part(0), to: part(2), life, number, changes })
    }

    /// Reads the stamp of a received frame, whose every byte must be the sender's. Returns `Err` for a frame with a
    /// wrong byte, and `None` for a frame of another kind.
    pub(super) fn read(frame: &[u8], checksum: ReceivedChecksum) -> Result<Option<Self>, String> {
        if tcp::is_tcp(frame) {
            return tcp::read(frame, checksum).map(Some);
        }
        let payload = match frame.get(12..14) {
            Some(kind) if *kind == ETHERTYPE => 14,
            Some(kind) if *kind == IPV4 => 14 + UDP,
            Some(kind) if *kind == IPV6 => 14 + ROUTER,
            Some(kind) if *kind == TAG => return Self::read_tagged(frame, checksum).map(Some),
            _ => return Ok(None),
        };
        let stamp = frame.get(payload..).and_then(Self::of_payload);
        let stamp = stamp.ok_or_else(|| format!("a frame of {} bytes without a stamp", frame.len()))?;
        let wrong = (payload + STAMP..frame.len()).find(|at| frame[*at] != stamp.byte(*at));
        match wrong {
            // A short frame ends with zeros, up to the least length of Ethernet.
            Some(at) if frame.len() > 60 || frame[at..].iter().any(|byte| *byte != 0) => {
                Err(format!("byte {at} of {stamp:?} is wrong"))
            }
            _ => Ok(Some(stamp)),
        }
    }

    /// Reads the stamp of a frame with a tag. No policy of the simulation gives a guest one, but for the second tag of a hostile
    /// guest's frame.
    fn read_tagged(frame: &[u8], checksum: ReceivedChecksum) -> Result<Self, String> {
        let inner = [&frame[..12], frame.get(16..).unwrap_or_default()].concat();
        match Self::read(&inner, checksum) {
            Ok(Some(stamp)) if GuardedFrame::of_number(stamp.number) == Some(GuardedFrame::DoubleTag) => {
                Ok(stamp)
            }
            _ => Err("a tagged frame".to_owned()),
        }
    }

    fn byte(&self, at: usize) -> u8 {
        (self.number as usize * 31 + self.changes as usize * 13 + usize::from(self.from) * 7 + at) as u8
    }
}

/// Returns a check of a stamp's fields (FNV-1a).
fn check(fields: &[u8]) -> u32 {
    fields.iter().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[test]
fn stamps_are_found_at_every_offset() {
    let stamp = FrameStamp { from: 1, to: 2, life: 3, number: 4, changes: 5 };
    let frame = stamp.frame(MacAddress::default(), MacAddress::default(), SHORTEST);
    // The memory ends with a hole, and begins with one in half of the tests.
    let hole = 2 * PIECE as u64;
    for (begin, at) in (0..40).chain(PIECE - 2 * STAMP..PIECE + STAMP).flat_map(|at| [(0, at), (hole, at)]) {
        let memory = SharedMemory::new(3 * hole).unwrap();
        let mut data = vec![b'S'; 2 * PIECE];
        data[at..at + frame.len()].copy_from_slice(&frame);
        memory.memory().write(begin, &data).unwrap();
        assert_eq!(stamps(&memory), [stamp], "at {begin} and {at}");
    }
}
