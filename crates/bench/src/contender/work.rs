//! Workloads: the frames that the contenders exchange, and the rings that hold them.

use etherparse::PacketBuilder;
use i82576::MacAddress;
use std::fmt;
use std::ops::RangeInclusive;

/// Bytes of the Ethernet, IPv4 and TCP headers without options.
const HEADERS: usize = 14 + 20 + 20;
/// Payload in bytes of a TCP segment whose frame has 1,514 bytes.
const MSS: u16 = 1460;
/// Segments of one TCP send: the largest number of whole segments in 64 KB.
const SEGMENTS: usize = 44;
/// Number of bytes of the Ethernet, IPv4 and UDP headers together.
const UDP_HEADERS: usize = 14 + 20 + 8;

/// Frames that the contenders exchange in a slice of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// Frames of this number of bytes, without frame check sequence.
    Frames(usize),
    /// Frames with 4,096 buffers a ring: more memory than a cache holds.
    LargeRings(usize),
    /// TCP sends of 64 KB, which the card segments into frames of 1,514 bytes.
    Segmented,
    /// TCP sends with a payload of this number of bytes, 4,000 at most, which the card segments.
    Messages(usize),
}

impl Workload {
    /// Returns the length of an arriving frame in bytes.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Self::Frames(size) | Self::LargeRings(size) => size,
            Self::Segmented | Self::Messages(_) => HEADERS + usize::from(MSS),
        }
    }

    /// Returns the lengths of an arriving frame in bytes. The last segment of a message is shorter than the others.
    #[must_use]
    pub fn sizes(self) -> RangeInclusive<usize> {
        let shortest = match self {
            Self::Messages(bytes) => HEADERS + (bytes.max(1) - 1) % usize::from(MSS) + 1,
            _ => self.size(),
        };
        shortest..=self.size()
    }

    /// Returns the number of descriptors of each ring of the card's guests.
    #[must_use]
    pub fn descriptors(self) -> u16 {
        if matches!(self, Self::LargeRings(_)) { 4096 } else { 256 }
    }

    /// Returns the number of descriptors of each ring of a peer.
    #[must_use]
    pub fn peer_descriptors(self) -> u16 {
        self.descriptors().max(1024)
    }

    /// Returns the number of frames that arrive for each send.
    #[must_use]
    pub fn arrivals(self) -> u64 {
        match self {
            Self::Segmented => SEGMENTS as u64,
            Self::Messages(bytes) => bytes.div_ceil(MSS.into()) as u64,
            Self::Frames(_) | Self::LargeRings(_) => 1,
        }
    }

    /// Returns the payload of each segment in bytes, if the card has to segment the sends.
    #[must_use]
    pub fn mss(self) -> Option<u16> {
        matches!(self, Self::Segmented | Self::Messages(_)).then_some(MSS)
    }

    /// Returns the frame that a guest sends repeatedly.
    #[must_use]
    pub fn frame(self, from: MacAddress, to: MacAddress) -> Vec<u8> {
        let mut frame = [to.0, from.0].concat();
        let length = match self {
            Self::Frames(size) | Self::LargeRings(size) => return datagram(from, to, size),
            Self::Segmented | Self::Messages(_) => {
                frame.extend([8, 0]);
                // The card fills in total length and checksums for each segment.
                frame.extend([
                    0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from.0[5], 10, 0, 0, to.0[5],
                ]);
                frame.extend([
                    0x13, 0x88, 0x13, 0x89, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0,
                ]);
                HEADERS + if let Self::Messages(bytes) = self { bytes } else { SEGMENTS * usize::from(MSS) }
            }
        };
        frame.extend((frame.len()..length).map(|at| at as u8));
        frame
    }
}

/// Returns the datagram that testpmd's `txonly` sends: UDP over IPv4, with an IPv4 checksum and without a UDP one.
fn datagram(from: MacAddress, to: MacAddress, size: usize) -> Vec<u8> {
    let payload: Vec<u8> = (UDP_HEADERS..size).map(|at| at as u8).collect();
    let builder = PacketBuilder::ethernet2(from.0, to.0).ipv4([10, 0, 0, from.0[5]], [10, 0, 0, to.0[5]], 64);
    let mut frame = Vec::with_capacity(size);
    let written = builder.udp(9, 9).write(&mut frame, &payload);
    written.expect("a datagram of the bench must fit into its frame");
    frame[UDP_HEADERS - 2..UDP_HEADERS].fill(0);
    frame
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Frames(_) => "VF to VF",
            Self::LargeRings(_) => "VF to VF, 4,096 buffers",
            Self::Segmented => "VF to VF, 64 KB cut by the card",
            Self::Messages(_) => "VF to VF, messages",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: MacAddress = MacAddress([2, 0, 0, 0, 0x10, 0]);
    const TO: MacAddress = MacAddress([2, 0, 0, 0, 0x10, 1]);

    #[test]
    fn benchmark_frame_has_the_requested_length_and_addresses() {
        let frame = Workload::Frames(64).frame(FROM, TO);
        assert_eq!(frame.len(), 64);
        assert_eq!((&frame[..6], &frame[6..12]), (&TO.0[..], &FROM.0[..]));
    }

    #[test]
    fn benchmark_message_arrives_as_segments_of_its_payload() {
        for (bytes, segments, last) in [(1460, 1, 1460), (1500, 2, 40), (2920, 2, 1460), (4000, 3, 1080)] {
            let work = Workload::Messages(bytes);
            assert_eq!((work.arrivals(), work.sizes()), (segments, HEADERS + last..=1514));
            assert_eq!(work.frame(FROM, TO).len(), HEADERS + bytes);
        }
    }

    #[test]
    fn benchmark_tso_packet_has_whole_segments_and_fits_ip_length() {
        let send = Workload::Segmented.frame(FROM, TO);
        let payload = send.len() - HEADERS;
        assert_eq!(payload as u64, Workload::Segmented.arrivals() * u64::from(MSS));
        assert!(send.len() - 14 <= usize::from(u16::MAX) && payload > 63_000);
        assert_eq!(Workload::Segmented.size(), 1514);
    }
}
