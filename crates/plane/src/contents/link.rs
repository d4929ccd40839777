//! Finds the packet of a frame behind VLAN tags and a SNAP header. Receivers read both, so a guard that did not would be
//! passed by (CVE-2021-27853, CVE-2021-27854).

use crate::bytes::be16;

/// Most ether types and lengths that are read: those of three tags or SNAP headers, and the packet's.
const MOST: usize = 4;
/// Longest length field of an LLC frame in bytes (IEEE 802.3, 3.2.6).
const LLC: u16 = 1500;
/// Lowest ether type (IEEE 802.3, 3.2.6).
const TYPES: u16 = 0x600;
/// SNAP headers that an ether type follows: RFC 1042, and IEEE 802.1H.
const SNAP: [[u8; 6]; 2] = [[0xaa, 0xaa, 3, 0, 0, 0], [0xaa, 0xaa, 3, 0, 0, 0xf8]];

/// Packet of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkPayload {
    /// Packet of an ether type, which begins at an offset of the frame.
    Packet(u16, usize),
    /// The frame has an LLC header without an ether type.
    Llc,
    /// The frame ends early, or has more tags than are read.
    Unreadable,
}

/// Returns `true` for the ether type of a VLAN tag: IEEE 802.1Q, 802.1ad, and those that older cards use.
pub(super) fn is_tag(kind: u16) -> bool {
    matches!(kind, 0x8100 | 0x88a8 | 0x9100 | 0x9200)
}

/// Returns the packet of a frame whose ether type or length is at the offset `at`.
pub(super) fn payload(frame: &[u8], mut at: usize) -> LinkPayload {
    for _ in 0..MOST {
        match be16(frame, at) {
            Some(kind) if is_tag(kind) => at += 4,
            Some(kind) if kind >= TYPES => return LinkPayload::Packet(kind, at + 2),
            Some(length) if length <= LLC => match frame.get(at + 2..at + 8) {
                Some(header) if SNAP.iter().any(|snap| snap == header) => at += 8,
                _ => return LinkPayload::Llc,
            },
            _ => return LinkPayload::Unreadable,
        }
    }
    LinkPayload::Unreadable
}
