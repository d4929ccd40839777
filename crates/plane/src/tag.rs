//! Inserts VLAN tags into frames and strips them. A buffer keeps [`TAG`] bytes of headroom before an untagged frame, so that
//! only the bytes before the tag move, never the payload:
//!
//! ```text
//! tagged    [ addresses | 8100 tag | type payload.. ]
//! untagged  [  headroom  | addresses | type payload.. ]
//! ```
//!
//! An outer tag stays in place and counts as part of the addresses.

use crate::bytes::{be16, put16};

/// Number of bytes in a VLAN tag, and in the headroom before an untagged frame.
pub const TAG: usize = 4;
/// Ether type of a customer VLAN tag, the C-TAG (IEEE 802.1Q, table 9-1).
pub const TYPE: u16 = 0x8100;
/// Canonical form indicator of a tag, called drop eligible indicator (DEI) since IEEE 802.1Q-2011.
pub const CFI: u16 = 1 << 12;
/// Mask of the VLAN id in a tag.
pub const ID_MASK: u16 = 0xfff;

/// Number of bytes in both Ethernet addresses.
const ADDRESSES: usize = 12;
/// Offset in a frame of an inner VLAN tag, behind an outer tag.
pub(crate) const BEHIND_OUTER: usize = ADDRESSES + TAG;
/// Offset of a VLAN tag in a frame without an outer tag.
pub const OUTERMOST: usize = ADDRESSES;

/// Returns `true` if a frame has an outer tag of type `kind`.
#[must_use]
pub(crate) fn has_outer(frame: &[u8], kind: u16) -> bool {
    be16(frame, ADDRESSES) == Some(kind)
}

/// Returns the tag of type `kind` at an offset of a frame: priority, DEI and id. `None` if the frame has none there.
#[must_use]
pub fn read(frame: &[u8], at: usize, kind: u16) -> Option<u16> {
    if be16(frame, at)? == kind { be16(frame, at + 2) } else { None }
}

/// Inserts a tag at an offset of the frame that starts behind the headroom of `buffer`. The frame then starts at the buffer's first
/// byte. Returns `false` and changes nothing if the frame is too short.
#[must_use]
pub fn insert(buffer: &mut [u8], at: usize, kind: u16, tag: u16) -> bool {
    if buffer.len() < TAG + at {
        return false;
    }
    buffer.copy_within(TAG..TAG + at, 0);
    put16(buffer, at, kind);
    put16(buffer, at + 2, tag);
    true
}

/// Strips the tag of a type at an offset of the frame that starts at the first byte of `buffer`. The frame then starts
/// [`TAG`] bytes later. Returns `None` and changes nothing without a tag of that type.
#[must_use]
pub fn strip(buffer: &mut [u8], at: usize, kind: u16) -> Option<u16> {
    let tag = read(buffer, at, kind)?;
    buffer.copy_within(..at, TAG);
    Some(tag)
}

#[cfg(test)]
mod tests {
    use super::{BEHIND_OUTER, OUTERMOST, TAG, TYPE, insert, read, strip};

    #[test]
    fn stripping_an_inserted_vlan_tag_restores_the_frame() {
        let untagged: [u8; 20] = core::array::from_fn(|i| i as u8);
        let mut buffer = [0; 24];
        buffer[TAG..].copy_from_slice(&untagged);
        assert!(insert(&mut buffer, OUTERMOST, TYPE, 0x6064));
        assert_eq!(buffer[..18], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0x81, 0, 0x60, 0x64, 12, 13]);
        assert_eq!(read(&buffer, OUTERMOST, TYPE), Some(0x6064));
        assert_eq!(strip(&mut buffer, OUTERMOST, TYPE), Some(0x6064));
        assert_eq!(buffer[TAG..], untagged);
    }

    #[test]
    fn stripping_a_tag_behind_an_outer_tag_restores_the_frame() {
        let outer: [u8; 20] = core::array::from_fn(|i| i as u8);
        let mut buffer = [0; 24];
        buffer[TAG..].copy_from_slice(&outer);
        assert!(insert(&mut buffer, BEHIND_OUTER, TYPE, 0x6064));
        assert_eq!(buffer[10..22], [10, 11, 12, 13, 14, 15, 0x81, 0, 0x60, 0x64, 16, 17]);
        assert_eq!(strip(&mut buffer, BEHIND_OUTER, TYPE), Some(0x6064));
        assert_eq!(buffer[TAG..], outer);
    }

    #[test]
    fn frames_too_short_for_a_vlan_tag_stay_unchanged() {
        let frame = [0x81; 20];
        for (at, longest) in [(OUTERMOST, 16), (BEHIND_OUTER, 20)] {
            for length in 0..longest {
                let mut short = frame;
                assert_eq!(strip(&mut short[..length], at, TYPE), None);
                assert!(!insert(&mut short[..length], at, TYPE, 1));
                assert_eq!(short, frame);
            }
            let mut shortest = frame;
            assert!(insert(&mut shortest[..longest], at, TYPE, 1));
        }
    }
}
