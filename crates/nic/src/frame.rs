//! A frame on its way through the card: its bytes without the outer VLAN tag, and the tag beside them. A tag
//! that one side inserts and the other strips never touches the bytes.
//!
//! Left out: everything above the second layer.

use crate::offload::transmit::Sealed;
use crate::offload::vlan::{self, TAG};
use i82576::MacAddress;

/// Bytes kept free before a frame so that inserting a tag moves the addresses and nothing else.
pub(crate) const HEADROOM: usize = TAG;
/// Bytes of the shortest thing that has an ether type.
pub(crate) const HEADER: usize = 14;

/// A frame in a buffer with [`HEADROOM`] bytes before it.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    buffer: &'a mut [u8],
    /// Where the untagged frame starts.
    start: usize,
    /// A tag stands in the bytes at the moment, and the frame starts a tag earlier.
    tag_in_place: bool,
    /// The tag: priority, DEI, VLAN id.
    pub(crate) tag: Option<u16>,
    /// What the card has sealed, seen from the start of the buffer.
    sealed: Option<Sealed>,
}

impl<'a> Frame<'a> {
    /// The frame that fills `buffer` from [`HEADROOM`] on; `None` if it has no complete header.
    pub(crate) fn new(buffer: &'a mut [u8]) -> Option<Self> {
        (buffer.len() >= HEADROOM + HEADER).then_some(Self {
            buffer,
            start: HEADROOM,
            tag_in_place: false,
            tag: None,
            sealed: None,
        })
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

    /// Takes an 802.1Q tag out of the bytes, if one is there and something follows it.
    pub(crate) fn take_tag(&mut self) {
        if self.tag.is_none() && self.buffer.len() >= self.start + HEADER + TAG {
            self.tag = vlan::strip(&mut self.buffer[self.start..]);
            self.start += if self.tag.is_some() { TAG } else { 0 };
        }
    }

    /// The frame without its tag.
    pub(crate) fn untagged(&mut self) -> &[u8] {
        if self.tag_in_place {
            self.tag_in_place = vlan::strip(&mut self.buffer[self.start - TAG..]).is_none();
        }
        &self.buffer[self.start..]
    }

    /// The frame with its tag, if it has one.
    pub(crate) fn tagged(&mut self) -> &[u8] {
        let Some(tag) = self.tag else { return self.untagged() };
        if !self.tag_in_place {
            self.tag_in_place = vlan::insert(&mut self.buffer[self.start - TAG..], tag);
        }
        &self.buffer[self.start - TAG..]
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
    use super::{Frame, HEADROOM};

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
    fn a_frame_without_a_whole_header_is_none() {
        assert!(Frame::new(&mut buffer(b"aaaaaabbbbbb\x08")).is_none());
        let mut bytes = buffer(b"aaaaaabbbbbb\x81\x00\x20");
        let mut frame = Frame::new(&mut bytes).unwrap();
        frame.take_tag();
        assert_eq!(frame.tag, None);
    }
}
