//! VLAN tags in frames. A buffer keeps [`TAG`] bytes of headroom before an untagged frame, so that a tag goes
//! in or out by moving twelve bytes of addresses and never the payload:
//!
//! ```text
//! tagged    [ addresses | 8100 tag | type payload.. ]
//! untagged  [  headroom  | addresses | type payload.. ]
//! ```
//!
//! Left out: tag types other than 0x8100.

use super::{be16, put16};

/// Bytes of a tag, and of the headroom before an untagged frame.
pub const TAG: usize = 4;
/// The type of a tagged frame (the inner half of VET after reset).
pub const TYPE: u16 = 0x8100;
/// The bits of a tag that are the VLAN id.
pub const ID_MASK: u16 = 0xfff;

const ADDRESSES: usize = 12;

/// The tag of a frame: priority, DEI and id. `None` if it is not tagged.
#[must_use]
pub fn read(frame: &[u8]) -> Option<u16> {
    if be16(frame, ADDRESSES)? == TYPE { be16(frame, ADDRESSES + 2) } else { None }
}

/// Tags the frame that starts behind the headroom of `buffer`; it then starts at the buffer's first byte.
/// False, and nothing changed, if there are no addresses to put it behind.
#[must_use]
pub fn insert(buffer: &mut [u8], tag: u16) -> bool {
    if buffer.len() < TAG + ADDRESSES {
        return false;
    }
    buffer.copy_within(TAG..TAG + ADDRESSES, 0);
    put16(buffer, ADDRESSES, TYPE);
    put16(buffer, ADDRESSES + 2, tag);
    true
}

/// Takes the tag out of the frame that starts at the first byte of `buffer`; it then starts [`TAG`] bytes
/// later. `None`, and nothing changed, if it is not tagged.
#[must_use]
pub fn strip(buffer: &mut [u8]) -> Option<u16> {
    let tag = read(buffer)?;
    buffer.copy_within(..ADDRESSES, TAG);
    Some(tag)
}

#[cfg(test)]
mod tests {
    use super::{TAG, insert, read, strip};

    #[test]
    fn a_tag_goes_in_and_comes_out() {
        let untagged: [u8; 20] = core::array::from_fn(|i| i as u8);
        let mut buffer = [0; 24];
        buffer[TAG..].copy_from_slice(&untagged);
        assert!(insert(&mut buffer, 0x6064));
        assert_eq!(buffer[..18], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0x81, 0, 0x60, 0x64, 12, 13]);
        assert_eq!(read(&buffer), Some(0x6064));
        assert_eq!(strip(&mut buffer), Some(0x6064));
        assert_eq!(buffer[TAG..], untagged);
    }

    #[test]
    fn frames_too_short_for_a_tag_are_left_alone() {
        let frame = [0x81; 16];
        for length in 0..16 {
            let mut short = frame;
            assert_eq!(strip(&mut short[..length]), None);
            assert!(!insert(&mut short[..length], 1));
            assert_eq!(short, frame);
        }
    }
}
