//! A frame on its way through the plane: its bytes without the VLAN tag, and the tag beside them. A tag that one
//! side inserts and the other strips never touches the bytes. With two tags in use the outer one stays in the bytes, and
//! the tag is the inner.
//!
//! Left out: everything above the second layer.

use crate::tag::{self, TAG};
use units::MacAddress;

/// Bytes kept free before a frame so that inserting a tag moves the addresses and nothing else.
pub const HEADROOM: usize = TAG;
/// Bytes of the shortest thing that has an ether type.
pub const HEADER: usize = 14;

/// What a checksum of the transport is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP, whose checksum is a CRC.
    Sctp,
}

/// A transport checksum that the sender's side of the plane has inserted. Whether it is right can be told from this, without
/// summing up the frame again: it is right if its seed was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sealed {
    /// Where the transport header starts, bytes from the start of the frame.
    pub start: usize,
    /// Where what was summed ends.
    pub end: usize,
    /// What the sender called the transport.
    pub transport: Transport,
    /// What was added to the sum for the pseudo header; means nothing with SCTP, which has none.
    pub seed: u16,
}

impl Sealed {
    /// The same, seen from `offset` bytes before the frame.
    #[must_use]
    pub fn behind(self, offset: usize) -> Self {
        Self { start: self.start + offset, end: self.end + offset, ..self }
    }

    /// The same, seen from `offset` bytes within the frame.
    #[must_use]
    pub fn before(self, offset: usize) -> Self {
        Self { start: self.start.saturating_sub(offset), end: self.end.saturating_sub(offset), ..self }
    }
}

/// The two addresses at the start of a frame, destination and source, as numbers: eight bytes and four, the first in the
/// lowest bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// The destination, and the first two bytes of the source.
    pub low: u64,
    /// The rest of the source.
    pub high: u32,
}

impl Ends {
    /// Those of a frame.
    #[must_use]
    #[inline]
    pub fn of(frame: &[u8]) -> Self {
        let Some([a, b, c, d, e, f, g, h, high @ ..]) = frame.first_chunk::<12>() else {
            return Self { low: 0, high: 0 };
        };
        Self { low: u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]), high: u32::from_le_bytes(*high) }
    }

    /// The destination.
    #[must_use]
    #[inline]
    pub fn destination(self) -> MacAddress {
        MacAddress::from_words(self.low as u32, (self.low >> 32) as u32)
    }

    /// The source.
    #[must_use]
    #[inline]
    pub fn source(self) -> MacAddress {
        MacAddress::from_words((self.low >> 48) as u32 | self.high << 16, self.high >> 16)
    }

    /// The destination is a multicast address, or the broadcast one.
    #[must_use]
    #[inline]
    pub fn is_to_group(self) -> bool {
        self.low & 1 != 0
    }
}

/// Whether a frame has an outer tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outer {
    /// Outer tags are not in use.
    Unused,
    /// It has none, though they are in use.
    Missing,
    /// It has one.
    Present,
}

/// A frame in a buffer with [`HEADROOM`] bytes before it.
#[derive(Debug)]
pub struct Frame<'a> {
    buffer: &'a mut [u8],
    /// Where the untagged frame starts, and where the frame starts as it stands.
    start: usize,
    head: usize,
    /// Bytes at the end that are the frame check sequence.
    trailer: usize,
    /// A tag stands in the bytes at the moment, and the frame starts a tag earlier.
    tag_in_place: bool,
    /// The type of its tag, whether it has one or not.
    kind: u16,
    /// The tag: priority, DEI, VLAN id.
    pub tag: Option<u16>,
    /// The outer tag.
    pub outer: Outer,
    /// What was sealed, seen from the start of the buffer.
    sealed: Option<Sealed>,
}

// All of it is inlined: one call with a reference to a frame would put the fields of every frame into memory.
impl<'a> Frame<'a> {
    /// The frame that fills `buffer` from [`HEADROOM`] on; `None` if it has no complete header.
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
            outer: Outer::Unused,
            sealed: None,
        })
    }

    /// The last `bytes` are the check sequence.
    #[inline(always)]
    pub fn set_trailer(&mut self, bytes: usize) {
        self.trailer = bytes.min(self.buffer.len() - HEADROOM - HEADER);
    }

    /// Tags are of type `inner`, and one of type `outer` is the outer one; `None` if outer tags are not in use.
    #[inline(always)]
    pub fn look_behind(&mut self, inner: u16, outer: Option<u16>) {
        self.kind = inner;
        self.outer = match outer {
            None => Outer::Unused,
            Some(kind) if tag::has_outer(&self.buffer[self.start..], kind) => Outer::Present,
            Some(_) => Outer::Missing,
        };
    }

    /// The sender's side has sealed a part, seen from the frame's start. Tags that come and go do not move that part.
    #[inline(always)]
    pub fn set_seal(&mut self, sealed: Option<Sealed>) {
        self.sealed = sealed.map(|sealed| sealed.behind(self.start));
    }

    /// What was sealed, seen from the start of [`Frame::untagged`].
    #[must_use]
    #[inline(always)]
    pub fn seal(&self) -> Option<Sealed> {
        self.sealed.map(|sealed| sealed.before(self.start))
    }

    /// Takes a tag out of the bytes, if one is there and something follows it. What should have an outer
    /// tag and has none is not looked into.
    #[inline(always)]
    pub fn take_tag(&mut self) {
        let place = place(self.outer);
        let whole = self.buffer.len() >= self.start + place + 2 + TAG + self.trailer;
        if self.tag.is_none() && whole && self.outer != Outer::Missing {
            self.tag = tag::strip(&mut self.buffer[self.start..], place, self.kind);
            self.start += if self.tag.is_some() { TAG } else { 0 };
            self.head = self.start;
        }
    }

    /// The frame without its tag.
    #[inline(always)]
    pub fn untagged(&mut self) -> &[u8] {
        self.bytes(false, 0)
    }

    /// The same, to be changed.
    pub(crate) fn untagged_mut(&mut self) -> &mut [u8] {
        self.bytes(false, 0);
        &mut self.buffer[self.head..]
    }

    /// The frame with its tag, if it has one.
    #[inline(always)]
    pub fn tagged(&mut self) -> &[u8] {
        self.bytes(true, 0)
    }

    /// The frame as it is delivered, with or without its tag, and with its check sequence, if it was kept.
    #[inline(always)]
    pub fn delivered(&mut self, tagged: bool) -> &[u8] {
        self.bytes(tagged, self.trailer)
    }

    /// The check sequence's bytes, if it was kept.
    #[must_use]
    #[inline(always)]
    pub fn trailer(&self) -> usize {
        self.trailer
    }

    /// Bytes with the tag, without the check sequence.
    #[must_use]
    #[inline(always)]
    pub fn length(&self) -> usize {
        self.buffer.len() - self.start - self.trailer + if self.tag.is_some() { TAG } else { 0 }
    }

    /// Destination and source.
    #[must_use]
    #[inline(always)]
    pub fn ends(&self) -> Ends {
        Ends::of(&self.buffer[self.head..])
    }

    #[inline(always)]
    fn bytes(&mut self, tagged: bool, trailer: usize) -> &[u8] {
        if self.tag_in_place != (tagged && self.tag.is_some()) {
            self.move_tag();
        }
        &self.buffer[self.head..self.buffer.len() - self.trailer + trailer]
    }

    /// Puts the tag into the bytes, or takes it out.
    #[inline(always)]
    fn move_tag(&mut self) {
        let inserts = self.tag.filter(|_| !self.tag_in_place);
        let bytes = &mut self.buffer[self.start - TAG..];
        self.tag_in_place = move_tag(bytes, self.outer, self.kind, inserts);
        self.head = self.start - if self.tag_in_place { TAG } else { 0 };
    }
}

/// Puts a tag into bytes that begin where it shifts them to, or takes one out; returns whether one is in the bytes then.
#[inline(never)]
fn move_tag(bytes: &mut [u8], outer: Outer, kind: u16, inserts: Option<u16>) -> bool {
    match inserts {
        Some(tag) => tag::insert(bytes, place(outer), kind, tag),
        None => tag::strip(bytes, place(outer), kind).is_none(),
    }
}

/// Where the tag belongs.
#[inline]
fn place(outer: Outer) -> usize {
    if outer == Outer::Present { tag::BEHIND_OUTER } else { tag::OUTERMOST }
}

#[cfg(test)]
mod tests {
    use super::{Frame, HEADROOM, Outer};

    const PLAIN: &[u8] = b"aaaaaabbbbbb\x08\x00payload";
    const TAGGED: &[u8] = b"aaaaaabbbbbb\x81\x00\x20\x64\x08\x00payload";

    fn buffer(frame: &[u8]) -> alloc::vec::Vec<u8> {
        [&[0; HEADROOM], frame].concat()
    }

    #[test]
    fn a_tag_is_taken_out_and_put_back() {
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
    fn a_tag_is_given_to_an_untagged_frame() {
        let mut bytes = buffer(PLAIN);
        let mut frame = Frame::new(&mut bytes).unwrap();
        frame.take_tag();
        assert_eq!((frame.tag, frame.tagged()), (None, PLAIN));
        frame.tag = Some(0x2064);
        assert_eq!(frame.tagged(), TAGGED);
        assert_eq!(frame.ends().destination().0, *b"aaaaaa");
    }

    #[test]
    fn with_an_outer_tag_the_tag_is_the_inner_one() {
        let both = b"aaaaaabbbbbb\x88\xa8\x10\x01\x81\x00\x20\x64\x08\x00payload";
        let outer = b"aaaaaabbbbbb\x88\xa8\x10\x01\x08\x00payload";
        let mut bytes = buffer(both);
        let mut frame = Frame::new(&mut bytes).unwrap();
        frame.look_behind(0x8100, Some(0x88a8));
        frame.take_tag();
        assert_eq!((frame.outer, frame.tag), (Outer::Present, Some(0x2064)));
        assert_eq!(frame.untagged(), outer);
        assert_eq!(frame.ends().source().0, *b"bbbbbb");
        assert_eq!(frame.length(), both.len());
        assert_eq!(frame.tagged(), both);
        assert_eq!(frame.ends().source().0, *b"bbbbbb");
        let mut bytes = buffer(TAGGED);
        let mut frame = Frame::new(&mut bytes).unwrap();
        frame.look_behind(0x8100, Some(0x88a8));
        frame.take_tag();
        assert_eq!((frame.outer, frame.tag, frame.untagged()), (Outer::Missing, None, TAGGED));
    }

    #[test]
    fn a_check_sequence_is_no_part_of_the_frame_until_it_is_delivered() {
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
    fn a_frame_without_a_whole_header_is_none() {
        assert!(Frame::new(&mut buffer(b"aaaaaabbbbbb\x08")).is_none());
        let mut bytes = buffer(b"aaaaaabbbbbb\x81\x00\x20");
        let mut frame = Frame::new(&mut bytes).unwrap();
        frame.take_tag();
        assert_eq!(frame.tag, None);
    }
}
