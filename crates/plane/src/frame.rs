//! A frame on the plane: its bytes without the VLAN tag, and the tag beside them. A tag that the sender inserts and the receiver
//! strips never touches the bytes. With two tags in use the outer one stays in the bytes, and the tag is the inner. `offload`
//! handles the layers above Ethernet.

use crate::bytes::be16;
use crate::tag::{self, TAG};
use units::MacAddress;

/// Free bytes before a frame: inserting a tag moves only the addresses, not the payload.
pub const HEADROOM: usize = TAG;
/// Bytes of the Ethernet header: two addresses and the type (IEEE 802.3, 3.1.1).
pub const HEADER: usize = 14;
/// Ether type of MAC control frames, such as pause (IEEE 802.3, 31.4.1.3).
const MAC_CONTROL: u16 = 0x8808;

/// Transport protocol of a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportProtocol {
    /// The transport checksum is TCP's.
    Tcp,
    /// The transport checksum is UDP's.
    Udp,
    /// The transport checksum is SCTP's, a cyclic redundancy check (CRC-32C).
    Sctp,
}

/// A transport checksum that the sending device inserted and the receiver trusts. The receiving device need not sum the
/// frame again: the checksum is right if its seed is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrustedChecksum {
    /// Offset of the transport header in the frame, in bytes.
    pub start: usize,
    /// Offset of the first byte behind the bytes that the checksum covers.
    pub end: usize,
    /// Transport protocol that the sender's descriptor names.
    pub transport: TransportProtocol,
    /// Sum of the pseudo header, as the checksum includes it. Unused for SCTP, which has no pseudo header.
    pub seed: u16,
}

impl TrustedChecksum {
    /// Returns the trusted checksum with offsets that count from `offset` bytes before the frame.
    #[must_use]
    pub fn behind(self, offset: usize) -> Self {
        Self { start: self.start + offset, end: self.end + offset, ..self }
    }

    /// Returns the trusted checksum with offsets that count from `offset` bytes within the frame.
    #[must_use]
    pub fn before(self, offset: usize) -> Self {
        Self { start: self.start.saturating_sub(offset), end: self.end.saturating_sub(offset), ..self }
    }
}

/// Destination and source address of a frame as two numbers, the first byte in the lowest bits: two loads and two compares per
/// frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressPair {
    /// Destination address, and the first two bytes of the source address.
    pub low: u64,
    /// Last four bytes of the frame's source address.
    pub high: u32,
}

impl AddressPair {
    /// Reads the addresses of a frame; zeros if it is shorter than 12 bytes.
    #[must_use]
    #[inline]
    pub fn of(frame: &[u8]) -> Self {
        let Some([a, b, c, d, e, f, g, h, high @ ..]) = frame.first_chunk::<12>() else {
            return Self { low: 0, high: 0 };
        };
        Self { low: u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]), high: u32::from_le_bytes(*high) }
    }

    /// Returns the frame's destination MAC address.
    #[must_use]
    #[inline]
    pub fn destination(self) -> MacAddress {
        let [a, b, c, d, e, f, ..] = self.low.to_le_bytes();
        MacAddress([a, b, c, d, e, f])
    }

    /// Returns the frame's source MAC address.
    #[must_use]
    #[inline]
    pub fn source(self) -> MacAddress {
        MacAddress::from_words((self.low >> 48) as u32 | self.high << 16, self.high >> 16)
    }

    /// Returns `true` if the destination is a multicast address or the broadcast address.
    #[must_use]
    #[inline]
    pub fn is_to_group(self) -> bool {
        self.low & 1 != 0
    }
}

/// State of a frame's outer VLAN tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OuterTag {
    /// Outer tag state: the plane uses no outer tags.
    Unused,
    /// Outer tag state: the frame has no outer tag, although the plane uses them.
    Missing,
    /// Outer tag state: the frame has an outer tag.
    Present,
}

/// A frame in a buffer with [`HEADROOM`] bytes before it.
#[derive(Debug)]
pub struct Frame<'a> {
    buffer: &'a mut [u8],
    /// Offset in the buffer of the frame without its VLAN tag.
    start: usize,
    /// Offset in the buffer of the frame's first byte, with its VLAN tag if that is in the bytes.
    head: usize,
    /// Number of bytes of the frame check sequence at the frame's end; 0 without one.
    trailer: usize,
    /// True if the VLAN tag is in the frame's bytes now, so that `head` is [`TAG`] bytes before `start`.
    tag_in_place: bool,
    /// Ether type that the VLAN tag gets when it is inserted into the bytes.
    kind: u16,
    /// Tag control information of the VLAN tag: priority, DEI, VLAN id. `None` without a tag.
    pub tag: Option<u16>,
    /// State of the frame's outer VLAN tag.
    pub outer: OuterTag,
    /// Trusted transport checksum of the frame, with offsets that count from the start of the buffer.
    sealed: Option<TrustedChecksum>,
}

// All of it is inlined: one call with a reference to a frame would put the fields of every frame into memory.
impl<'a> Frame<'a> {
    /// Creates the frame that fills `buffer` behind [`HEADROOM`]. Returns `None` if the frame is shorter than an
    /// Ethernet header.
    #[must_use]
    #[inline(always)]
    pub fn new(buffer: &'a mut [u8]) -> Option<Self> {
        (buffer.len() >= HEADROOM + HEADER).then_some(Self {
            buffer,
            start: HEADROOM,
            head: HEADROOM,
            trailer: 0,
            tag_in_place: false,
            kind: tag::TYPE,
            tag: None,
            outer: OuterTag::Unused,
            sealed: None,
        })
    }

    /// Marks the frame's last `bytes` bytes as the frame check sequence.
    #[inline(always)]
    pub fn set_trailer(&mut self, bytes: usize) {
        self.trailer = bytes.min(self.buffer.len() - HEADROOM - HEADER);
    }

    /// Sets the ether type of the frame's VLAN tags to `inner`, and looks for an outer tag of ether type `outer`.
    /// `None` means that outer tags are not in use.
    #[inline(always)]
    pub fn look_behind(&mut self, inner: u16, outer: Option<u16>) {
        self.kind = inner;
        self.outer = match outer {
            None => OuterTag::Unused,
            Some(kind) if tag::has_outer(&self.buffer[self.start..], kind) => OuterTag::Present,
            Some(_) => OuterTag::Missing,
        };
    }

    /// Sets the frame's trusted transport checksum, with offsets from the frame's start. Tags that are inserted later
    /// do not move the summed bytes in the buffer.
    #[inline(always)]
    pub fn set_seal(&mut self, sealed: Option<TrustedChecksum>) {
        self.sealed = sealed.map(|sealed| sealed.behind(self.start));
    }

    /// Returns the frame's trusted transport checksum, with offsets from the start of [`Frame::untagged`].
    #[must_use]
    #[inline(always)]
    pub fn seal(&self) -> Option<TrustedChecksum> {
        self.sealed.map(|sealed| sealed.before(self.start))
    }

    /// Moves a VLAN tag from the frame's bytes to [`Frame::tag`], if the frame has a tag and a type follows it. A frame
    /// without its outer tag ([`OuterTag::Missing`]) stays as it is.
    #[inline(always)]
    pub fn take_tag(&mut self) {
        let place = place(self.outer);
        let whole = self.buffer.len() >= self.start + place + 2 + TAG + self.trailer;
        if self.tag.is_none() && whole && self.outer != OuterTag::Missing {
            self.tag = tag::strip(&mut self.buffer[self.start..], place, self.kind);
            self.start += if self.tag.is_some() { TAG } else { 0 };
            self.head = self.start;
        }
    }

    /// Returns the frame's bytes without its VLAN tag.
    #[inline(always)]
    pub fn untagged(&mut self) -> &[u8] {
        self.bytes(false, 0)
    }

    /// Returns the frame's bytes without its VLAN tag, mutable.
    pub(crate) fn untagged_mut(&mut self) -> &mut [u8] {
        self.bytes(false, 0);
        &mut self.buffer[self.head..]
    }

    /// Returns the frame's bytes with its VLAN tag, if it has one.
    #[inline(always)]
    pub fn tagged(&mut self) -> &[u8] {
        self.bytes(true, 0)
    }

    /// Returns the frame as a port receives it: with or without its tag, and with its frame check sequence, if that was
    /// kept.
    #[inline(always)]
    pub fn delivered(&mut self, tagged: bool) -> &[u8] {
        self.bytes(tagged, self.trailer)
    }

    /// Returns the number of bytes of the frame check sequence; 0 if it was not kept.
    #[must_use]
    #[inline(always)]
    pub fn trailer(&self) -> usize {
        self.trailer
    }

    /// Returns the number of bytes in the frame, with the VLAN tag, without the frame check sequence.
    #[must_use]
    #[inline(always)]
    pub fn length(&self) -> usize {
        self.buffer.len() - self.start - self.trailer + if self.tag.is_some() { TAG } else { 0 }
    }

    /// Returns the frame's destination and source address.
    #[must_use]
    #[inline(always)]
    pub fn ends(&self) -> AddressPair {
        AddressPair::of(&self.buffer[self.head..])
    }

    /// Returns `true` for a MAC control frame: one with this ether type, also behind its VLAN tag. Frames with an outer tag are none.
    #[must_use]
    #[inline(always)]
    pub(crate) fn is_mac_control(&self) -> bool {
        be16(self.buffer, self.start + tag::OUTERMOST) == Some(MAC_CONTROL)
    }

    #[inline(always)]
    fn bytes(&mut self, tagged: bool, trailer: usize) -> &[u8] {
        if self.tag_in_place != (tagged && self.tag.is_some()) {
            self.move_tag();
        }
        &self.buffer[self.head..self.buffer.len() - self.trailer + trailer]
    }

    /// Moves the frame's VLAN tag into its bytes, or out of them.
    #[inline(always)]
    fn move_tag(&mut self) {
        let inserts = self.tag.filter(|_| !self.tag_in_place);
        let bytes = &mut self.buffer[self.start - TAG..];
        self.tag_in_place = move_tag(bytes, self.outer, self.kind, inserts);
        self.head = self.start - if self.tag_in_place { TAG } else { 0 };
    }
}

/// Inserts a VLAN tag into bytes that start [`TAG`] bytes before the untagged frame, or strips one. Returns `true` if
/// the bytes have a tag afterwards.
#[inline(never)]
fn move_tag(bytes: &mut [u8], outer: OuterTag, kind: u16, inserts: Option<u16>) -> bool {
    match inserts {
        Some(tag) => tag::insert(bytes, place(outer), kind, tag),
        None => tag::strip(bytes, place(outer), kind).is_none(),
    }
}

/// Returns the offset of the VLAN tag in the frame, in bytes.
#[inline]
fn place(outer: OuterTag) -> usize {
    if outer == OuterTag::Present { tag::BEHIND_OUTER } else { tag::OUTERMOST }
}

#[cfg(test)]
mod tests {
    use super::{Frame, HEADROOM, OuterTag};

    const PLAIN: &[u8] = b"aaaaaabbbbbb\x08\x00payload";
    const TAGGED: &[u8] = b"aaaaaabbbbbb\x81\x00\x20\x64\x08\x00payload";

    fn buffer(frame: &[u8]) -> alloc::vec::Vec<u8> {
        [&[0; HEADROOM], frame].concat()
    }

    #[test]
    fn vlan_tag_is_removed_from_a_frame_and_inserted_again() {
        let mut bytes = buffer(TAGGED);
        let mut frame = Frame::new(&mut bytes).unwrap();
        frame.take_tag();
        assert_eq!(frame.tag, Some(0x2064));
        assert_eq!(frame.untagged(), PLAIN);
        assert_eq!(frame.tagged(), TAGGED);
        assert_eq!(frame.untagged(), PLAIN);
        assert_eq!(frame.tagged(), TAGGED);
    }

    #[test]
    fn untagged_frame_gets_the_inserted_vlan_tag() {
        let mut bytes = buffer(PLAIN);
        let mut frame = Frame::new(&mut bytes).unwrap();
        frame.take_tag();
        assert_eq!((frame.tag, frame.tagged()), (None, PLAIN));
        frame.tag = Some(0x2064);
        assert_eq!(frame.tagged(), TAGGED);
        assert_eq!(frame.ends().destination().0, *b"aaaaaa");
    }

    #[test]
    fn frame_with_two_vlan_tags_loses_only_its_inner_tag() {
        let both = b"aaaaaabbbbbb\x88\xa8\x10\x01\x81\x00\x20\x64\x08\x00payload";
        let outer = b"aaaaaabbbbbb\x88\xa8\x10\x01\x08\x00payload";
        let mut bytes = buffer(both);
        let mut frame = Frame::new(&mut bytes).unwrap();
        frame.look_behind(0x8100, Some(0x88a8));
        frame.take_tag();
        assert_eq!((frame.outer, frame.tag), (OuterTag::Present, Some(0x2064)));
        assert_eq!(frame.untagged(), outer);
        assert_eq!(frame.ends().source().0, *b"bbbbbb");
        assert_eq!(frame.length(), both.len());
        assert_eq!(frame.tagged(), both);
        assert_eq!(frame.ends().source().0, *b"bbbbbb");
        let mut bytes = buffer(TAGGED);
        let mut frame = Frame::new(&mut bytes).unwrap();
        frame.look_behind(0x8100, Some(0x88a8));
        frame.take_tag();
        assert_eq!((frame.outer, frame.tag, frame.untagged()), (OuterTag::Missing, None, TAGGED));
    }

    #[test]
    fn frame_check_sequence_is_kept_only_in_delivered_bytes() {
        let mut bytes = buffer(TAGGED);
        let mut frame = Frame::new(&mut bytes).unwrap();
        frame.set_trailer(4);
        frame.take_tag();
        assert_eq!(frame.untagged(), &PLAIN[..PLAIN.len() - 4]);
        assert_eq!(frame.trailer(), 4);
        assert_eq!(frame.delivered(true), TAGGED);
        assert_eq!(frame.delivered(false), PLAIN);
    }

    #[test]
    fn frame_without_a_whole_ethernet_header_is_refused() {
        assert!(Frame::new(&mut buffer(b"aaaaaabbbbbb\x08")).is_none());
        let mut bytes = buffer(b"aaaaaabbbbbb\x81\x00\x20");
        let mut frame = Frame::new(&mut bytes).unwrap();
        frame.take_tag();
        assert_eq!(frame.tag, None);
    }
}
