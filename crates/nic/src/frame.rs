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
    pub(crate) tag: Option<u16>,
    /// The outer tag.
    pub(crate) outer: Outer,
    /// The frame is to be stamped when it leaves.
    pub(crate) timed: bool,
    /// What the card has sealed, seen from the start of the buffer.
    sealed: Option<Sealed>,
}

impl<'a> Frame<'a> {
    /// The frame that fills `buffer` from [`HEADROOM`] on; `None` if it has no complete header.
    pub(crate) fn new(buffer: &'a mut [u8]) -> Option<Self> {
        (buffer.len() >= HEADROOM + HEADER).then_some(Self {
            buffer,
            start: HEADROOM,
            head: HEADROOM,
            trailer: 0,
            tag_in_place: false,
            kind: vlan::TYPE,
            tag: None,
            outer: Outer::Unused,
            timed: false,
            sealed: None,
        })
    }

    /// The last `bytes` are the check sequence.
    pub(crate) fn set_trailer(&mut self, bytes: usize) {
        self.trailer = bytes.min(self.buffer.len() - HEADROOM - HEADER);
    }

    /// Tags are of type `inner`, and one of type `outer` is the outer one; `None` if outer tags are not in use.
    pub(crate) fn look_behind(&mut self, inner: u16, outer: Option<u16>) {
        self.kind = inner;
        self.outer = match outer {
            None => Outer::Unused,
            Some(kind) if vlan::has_outer(&self.buffer[self.start..], kind) => Outer::Present,
            Some(_) => Outer::Missing,
        };
    }

    /// The card has sealed a part, seen from the frame's start. Tags that come and go do not move that part.
    pub(crate) fn set_seal(&mut self, sealed: Option<Sealed>) {
        self.sealed = sealed.map(|sealed| sealed.behind(self.start));
    }

    /// What the card has sealed, seen from the start of [`Frame::untagged`].
    pub(crate) fn seal(&self) -> Option<Sealed> {
        self.sealed.map(|sealed| sealed.before(self.start))
    }

    /// Where the tag belongs.
    fn place(&self) -> usize {
        if self.outer == Outer::Present { vlan::BEHIND_OUTER } else { vlan::OUTERMOST }
    }

    /// Takes a tag out of the bytes, if one is there and something follows it. What should have an outer
    /// tag and has none is not looked into.
    pub(crate) fn take_tag(&mut self) {
        let place = self.place();
        let whole = self.buffer.len() >= self.start + place + 2 + TAG + self.trailer;
        if self.tag.is_none() && whole && self.outer != Outer::Missing {
            self.tag = vlan::strip(&mut self.buffer[self.start..], place, self.kind);
            self.start += if self.tag.is_some() { TAG } else { 0 };
            self.head = self.start;
        }
    }

    /// The frame without its tag.
    #[inline]
    pub(crate) fn untagged(&mut self) -> &[u8] {
        self.bytes(false, 0)
    }

    /// The frame with its tag, if it has one.
    pub(crate) fn tagged(&mut self) -> &[u8] {
        self.bytes(true, 0)
    }

    /// The frame as it is delivered, with or without its tag, and with its check sequence, if it was kept.
    #[inline]
    pub(crate) fn delivered(&mut self, tagged: bool) -> &[u8] {
        self.bytes(tagged, self.trailer)
    }

    /// The check sequence's bytes, if it was kept.
    pub(crate) fn trailer(&self) -> usize {
        self.trailer
    }

    /// Bytes with the tag, without the check sequence.
    pub(crate) fn length(&self) -> usize {
        self.buffer.len() - self.start - self.trailer + if self.tag.is_some() { TAG } else { 0 }
    }

    /// Destination and source.
    pub(crate) fn addresses(&self) -> (MacAddress, MacAddress) {
        let addresses = self.buffer[self.head..].first_chunk::<12>().copied().unwrap_or_default();
        let [a, b, c, d, e, f, g, h, i, j, k, l] = addresses;
        (MacAddress([a, b, c, d, e, f]), MacAddress([g, h, i, j, k, l]))
    }

    #[inline]
    fn bytes(&mut self, tagged: bool, trailer: usize) -> &[u8] {
        if self.tag_in_place != (tagged && self.tag.is_some()) {
            self.move_tag();
        }
        &self.buffer[self.head..self.buffer.len() - self.trailer + trailer]
    }

    /// Puts the tag into the bytes, or takes it out.
    fn move_tag(&mut self) {
        let (place, kind) = (self.place(), self.kind);
        let bytes = &mut self.buffer[self.start - TAG..];
        self.tag_in_place = match self.tag {
            Some(tag) if !self.tag_in_place => vlan::insert(bytes, place, kind, tag),
            _ => vlan::strip(bytes, place, kind).is_none(),
        };
        self.head = self.start - if self.tag_in_place { TAG } else { 0 };
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
        let mut frame = Frame::new(&mut bytes).unwrap();
        frame.look_behind(0x8100, Some(0x88a8));
        frame.take_tag();
        assert_eq!((frame.outer, frame.tag), (Outer::Present, Some(0x2064)));
        assert_eq!(frame.untagged(), outer);
        assert_eq!(frame.addresses().1.0, *b"bbbbbb");
        assert_eq!(frame.length(), both.len());
        assert_eq!(frame.tagged(), both);
        assert_eq!(frame.addresses().1.0, *b"bbbbbb");
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
