//! Trunk between two parts of a device. Each part serves some of the device's ports, on a plane of its own with the same
//! switch tables. The part that decides on a frame puts it into a trunk, and the part with the receiving port delivers it.

use crate::PortIndex;
use crate::forward::ForwardingPlane;
use crate::frame::{Frame, TransportProtocol, TrustedChecksum};
use crate::sink::{DeliveryError, DeliveryFlags, FrameSink};
use crate::tag::TAG;
use crate::uplink::UnsegmentedPacketLayout;

/// Bytes of an encoded [`TrunkFrameHeader`].
pub const TRUNK_HEADER: usize = 24;

/// Sends frames to the part of the device that serves the receiving port.
pub trait FrameTrunk: core::fmt::Debug + Send {
    /// Puts a frame, without its VLAN tag, into the trunk. Returns `false`, with nothing put, if the trunk has no room.
    fn put(&mut self, header: &TrunkFrameHeader, frame: &[u8]) -> bool;

    /// Wakes the receivers of the frames that were put since the last call.
    fn flush(&mut self);
}

impl dyn FrameTrunk {
    /// Puts a frame with the decision on it into the trunk. Returns the outcome as a sink reports it: [`DeliveryError::Waits`], or
    /// [`DeliveryError::Dropped`] if the trunk has no room.
    #[cold]
    pub fn cross(
        &mut self,
        port: PortIndex,
        frame: &mut Frame<'_>,
        about: DeliveryFlags,
        uncut: Option<UnsegmentedPacketLayout>,
    ) -> DeliveryError {
        let (header, bytes) = TrunkFrameHeader::of(port, frame, about, uncut);
        if self.put(&header, bytes) { DeliveryError::Waits } else { DeliveryError::Dropped }
    }
}

/// Decision on a frame in a trunk, and the properties that are not in the frame's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrunkFrameHeader {
    /// Port that receives the frame.
    pub port: PortIndex,
    /// Properties of the frame for the receiving port.
    pub about: DeliveryFlags,
    /// VLAN tag beside the frame, if it has one.
    pub tag: Option<u16>,
    /// Trusted transport checksum of the frame, with offsets from the frame's start.
    pub sealed: Option<TrustedChecksum>,
    /// Layout of a TCP packet that is not segmented; `None` for a frame.
    pub uncut: Option<UnsegmentedPacketLayout>,
}

/// Bits of the flags in an encoded header.
mod flag {
    pub(super) const FROM_UPLINK: u8 = 1;
    pub(super) const ALONE: u8 = 1 << 1;
    pub(super) const INEXACT: u8 = 1 << 2;
    pub(super) const STRIPS: u8 = 1 << 3;
    pub(super) const TAGGED: u8 = 1 << 4;
    pub(super) const SEALED: u8 = 1 << 5;
    pub(super) const UNCUT: u8 = 1 << 6;
    pub(super) const IPV4: u8 = 1 << 7;
}

impl TrunkFrameHeader {
    /// Returns the header of a frame for the uplink, where the receiving port is of no importance.
    #[must_use]
    pub fn to_uplink(uncut: Option<UnsegmentedPacketLayout>) -> Self {
        let about = DeliveryFlags { from_uplink: false, alone: true, inexact: false, strips: false };
        Self { port: PortIndex::of_field(0), about, tag: None, sealed: None, uncut }
    }

    /// Returns the header of a frame for a port, and the frame's bytes without its VLAN tag.
    pub fn of<'f>(
        port: PortIndex,
        frame: &'f mut Frame<'_>,
        about: DeliveryFlags,
        uncut: Option<UnsegmentedPacketLayout>,
    ) -> (Self, &'f [u8]) {
        let tag = frame.tag;
        let sealed = frame.seal();
        // `untagged` moves a tag out of the bytes, which moves no byte of the sealed part within the buffer.
        (Self { port, about, tag, sealed, uncut }, frame.untagged())
    }

    /// Encodes the header.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; TRUNK_HEADER] {
        let Self { port, about, tag, sealed, uncut } = *self;
        let flags = [
            (about.from_uplink, flag::FROM_UPLINK),
            (about.alone, flag::ALONE),
            (about.inexact, flag::INEXACT),
            (about.strips, flag::STRIPS),
            (tag.is_some(), flag::TAGGED),
            (sealed.is_some(), flag::SEALED),
            (uncut.is_some(), flag::UNCUT),
            (uncut.is_some_and(|layout| layout.ipv4), flag::IPV4),
        ];
        let flags = flags.iter().fold(0, |bits, (on, bit)| if *on { bits | bit } else { bits });
        let transport = sealed.map_or(0, |sealed| sealed.transport as u8);
        let sum = sealed.map_or([0; 3], |sealed| [word(sealed.start), word(sealed.end), sealed.seed]);
        let layout = uncut
            .map_or([0; 4], |layout| [word(layout.l3), word(layout.l4), word(layout.payload), layout.mss]);
        let words = [tag.unwrap_or(0)].into_iter().chain(sum).chain(layout);
        let mut bytes = [0; TRUNK_HEADER];
        [bytes[0], bytes[1], bytes[2]] = [port.get(), flags, transport];
        for (place, word) in bytes[4..].chunks_exact_mut(2).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Decodes a header. Every value of the bytes is a header.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; TRUNK_HEADER]) -> Self {
        let [port, flags, transport, ..] = *bytes;
        let has = |bit: u8| flags & bit != 0;
        let word = |at: usize| u16::from_le_bytes([bytes[4 + 2 * at], bytes[5 + 2 * at]]);
        let place = |at: usize| usize::from(word(at));
        let transport = match transport {
            0 => TransportProtocol::Tcp,
            1 => TransportProtocol::Udp,
            _ => TransportProtocol::Sctp,
        };
        Self {
            port: PortIndex::of_field(port.into()),
            about: DeliveryFlags {
                from_uplink: has(flag::FROM_UPLINK),
                alone: has(flag::ALONE),
                inexact: has(flag::INEXACT),
                strips: has(flag::STRIPS),
            },
            tag: has(flag::TAGGED).then(|| word(0)),
            sealed: has(flag::SEALED).then(|| TrustedChecksum {
                start: place(1),
                end: place(2),
                transport,
                seed: word(3),
            }),
            uncut: has(flag::UNCUT).then(|| UnsegmentedPacketLayout {
                ipv4: has(flag::IPV4),
                l3: place(4),
                l4: place(5),
                payload: place(6),
                mss: word(7),
            }),
        }
    }
}

/// Returns an offset in a frame as 16 bits. A frame and the headers of a packet are shorter.
fn word(offset: usize) -> u16 {
    u16::try_from(offset).unwrap_or(u16::MAX)
}

impl<const N: usize> ForwardingPlane<N> {
    /// Delivers a frame from a trunk to its port, and counts it there. The plane on the other side of the trunk has
    /// counted it for its sender. No segment of a packet counts as shorter than `shortest` bytes.
    pub fn leave_trunk<S: FrameSink>(
        &mut self,
        header: &TrunkFrameHeader,
        frame: &mut Frame<'_>,
        shortest: usize,
        sinks: &mut S,
    ) {
        let TrunkFrameHeader { port, about, tag, sealed, uncut } = *header;
        frame.tag = tag;
        frame.set_seal(sealed);
        let ends = frame.ends();
        let Some(layout) = uncut else {
            self.deliver(port, about, ends, frame, sinks, &mut S::Findings::default());
            return;
        };
        let length = frame.untagged().len();
        let delivered = sinks.deliver_uncut(port, frame, &layout, about);
        let received_tag = if tag.is_some() && !about.strips { TAG } else { 0 };
        for length in layout.lengths(length).map(|length| length.max(shortest)) {
            match delivered {
                Ok(()) => self.count_received(port, about.from_uplink, ends, length + received_tag),
                Err(missed) => _ = self.count_lost(port, missed),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trunk_header_is_the_same_after_encoding() {
        let about = DeliveryFlags { from_uplink: true, alone: true, inexact: false, strips: true };
        let plain = TrunkFrameHeader {
            port: PortIndex::of_field(63),
            about,
            tag: Some(0xe064),
            sealed: Some(TrustedChecksum {
                start: 34,
                end: 9_000,
                transport: TransportProtocol::Udp,
                seed: 0x1234,
            }),
            uncut: None,
        };
        let layout = UnsegmentedPacketLayout { ipv4: true, l3: 14, l4: 34, payload: 66, mss: 1_448 };
        let whole = TrunkFrameHeader { tag: None, sealed: None, uncut: Some(layout), ..plain };
        for header in [plain, whole] {
            assert_eq!(TrunkFrameHeader::from_bytes(&header.to_bytes()), header);
        }
    }
}
