//! A frame on its way through the card: its bytes without the VLAN tag, and the tag beside them. A tag that one
//! side inserts and the other strips never touches the bytes. With two tags in use (CTRL_EXT.EXT_VLAN) the outer
//! one stays in the bytes, and the tag is the inner.
//!
//! Left out: everything above the second layer.

use crate::offload::transmit::Sealed;
use crate::offload::vlan::{self, TAG};
use i82576::MacAddress;

/// Bytes kept free before a frame so that inserting a tag moves the addresses and nothing else.
pub(crate) const HEADROOM: usize = TAG;
/// Bytes of the shortest thing that has an ether type.
pub(crate) const HEADER: usize = 14;

/// Whether a frame has an outer tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outer {
    /// Outer tags are not in use.
    Unused,
    /// It has none, though they are in use.
    Missing,
    /// It has one.
    Present,
}

/// A frame in a buffer with [`HEADROOM`] bytes before it.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    buffer: &'a mut [u8],
    /// Where the untagged frame starts.
    start: usize,
    /// Bytes at the end that are the frame check sequence.
    trailer: usize,
    /// A tag stands in the bytes at the moment, and the frame starts a tag earlier.
    tag_in_place: bool,
    /// The tag: priority, DEI, VLAN id.
    pub(crate) tag: Option<u16>,
    /// The outer tag.
    pub(crate) outer: Outer,
    /// What the card has sealed, seen from the start of the buffer.
    sealed: Option<Sealed>,
}

impl<'a> Frame<'a> {
    /// The frame that fills `buffer` from [`HEADROOM`] on; `None` if it has no complete header.
    pub(crate) fn new(buffer: &'a mut [u8]) -> Option<Self> {
        (buffer.len() >= HEADROOM + HEADER).then_some(Self {
            buffer,
            start: HEADROOM,
            trailer: 0,
            tag_in_place: false,
            tag: None,
            outer: Outer::Unused,
            sealed: None,
        })
    }

    /// The frame, whose last `bytes` are its check sequence.
    pub(crate) fn with_trailer(self, bytes: usize) -> Self {
        Self { trailer: bytes.min(self.buffer.len() - HEADROOM - HEADER), ..self }
    }

    /// The frame, in which a tag of type `outer` is the outer one; `None` if outer tags are not in use.
    pub(crate) fn behind(self, outer: Option<u16>) -> Self {
        let outer = match outer {
            None => Outer::Unused,
            Some(kind) if vlan::has_outer(&self.buffer[self.start..], kind) => Outer::Present,
            Some(_) => Outer::Missing,
        };
        Self { outer, ..self }
    }

    /// The frame, of which the card has sealed a part, seen from the frame's start. Tags that come and go do not
    /// move that part.
    pub(crate) fn sealed(self, sealed: Option<Sealed>) -> Self {
        let start = self.start;
        Self { sealed: sealed.map(|sealed| sealed.behind(start)), ..self }
    }

    /// What the card has sealed, seen from the start of [`Frame::untagged`].
    pub(crate) fn seal(&self) -> Option<Sealed> {
        self.sealed.map(|sealed| sealed.before(self.start))
    }

    /// Where the tag belongs.
    fn place(&self) -> usize {
        if self.outer == Outer::Present { vlan::BEHIND_OUTER } else { vlan::OUTERMOST }
    }

    /// Takes an 802.1Q tag out of the bytes, if one is there and something follows it. What should have an outer
    /// tag and has none is not looked into.
    pub(crate) fn take_tag(&mut self) {
        let place = self.place();
        let whole = self.buffer.len() >= self.start + place + 2 + TAG + self.trailer;
        if self.tag.is_none() && whole && self.outer != Outer::Missing {
            self.tag = vlan::strip(&mut self.buffer[self.start..], place);
            self.start += if self.tag.is_some() { TAG } else { 0 };
        }
    }

    /// The frame without its tag.
    pub(crate) fn untagged(&mut self) -> &[u8] {
        self.bytes(false, 0)
    }

    /// The frame with its tag, if it has one.
    pub(crate) fn tagged(&mut self) -> &[u8] {
        self.bytes(true, 0)
    }

    /// The frame as it is delivered, with or without its tag, and with its check sequence, if it was kept.
    pub(crate) fn delivered(&mut self, tagged: bool) -> &[u8] {
        self.bytes(tagged, self.trailer)
    }

    /// The check sequence's bytes, if it was kept.
    pub(crate) fn trailer(&self) -> usize {
        self.trailer
    }

    fn bytes(&mut self, tagged: bool, trailer: usize) -> &[u8] {
        let (place, from) = (self.place(), self.start - TAG);
        match self.tag.filter(|_| tagged) {
            None if self.tag_in_place => {
                self.tag_in_place = vlan::strip(&mut self.buffer[from..], place).is_none();
            }
            Some(tag) if !self.tag_in_place => {
                self.tag_in_place = vlan::insert(&mut self.buffer[from..], place, tag);
            }
            _ => {}
        }
        let start = if self.tag_in_place { from } else { self.start };
        &self.buffer[start..self.buffer.len() - self.trailer + trailer]
    }

    /// Destination and source.
    pub(crate) fn addresses(&mut self) -> (MacAddress, MacAddress) {
        let frame = self.untagged();
        let address = |at: usize| MacAddress::from_slice(&frame[at..]).unwrap_or_default();
        (address(0), address(6))
    }
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
        assert_eq!(frame.addresses().0.0, *b"aaaaaa");
    }

    #[test]
    fn with_an_outer_tag_the_tag_is_the_inner_one() {
        let both = b"aaaaaabbbbbb\x88\xa8\x10\x01\x81\x00\x20\x64\x08\x00payload";
        let outer = b"aaaaaabbbbbb\x88\xa8\x10\x01\x08\x00payload";
        let mut bytes = buffer(both);
        let mut frame = Frame::new(&mut bytes).unwrap().behind(Some(0x88a8));
        frame.take_tag();
        assert_eq!((frame.outer, frame.tag), (Outer::Present, Some(0x2064)));
        assert_eq!(frame.untagged(), outer);
        assert_eq!(frame.addresses().1.0, *b"bbbbbb");
        assert_eq!(frame.tagged(), both);
        let mut bytes = buffer(TAGGED);
        let mut frame = Frame::new(&mut bytes).unwrap().behind(Some(0x88a8));
        frame.take_tag();
        assert_eq!((frame.outer, frame.tag, frame.untagged()), (Outer::Missing, None, TAGGED));
    }

    #[test]
    fn a_check_sequence_is_no_part_of_the_frame_until_it_is_delivered() {
        let mut bytes = buffer(TAGGED);
        let mut frame = Frame::new(&mut bytes).unwrap().with_trailer(4);
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
