//! Finds the upper-layer header of an IPv6 packet behind extension headers, in bounded steps.

use crate::bytes::be16;

/// Bytes of the IPv6 header (RFC 8200, section 3).
pub(super) const HEADER: usize = 40;
/// Most headers that are read: seven extension headers and the upper layer's.
const MOST: usize = 8;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;

/// Upper layer of an IPv6 packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UpperLayer {
    /// Header of a protocol, at an offset of the packet.
    Header {
        protocol: u8,
        start: usize,
        /// True for the first fragment of a packet.
        fragmented: bool,
    },
    /// A fragment behind the first, which has no upper-layer header.
    LaterFragment,
    /// The headers end early, or are more than are read. A later fragment that begins with an extension header may
    /// overwrite the upper-layer header of the first (RFC 7113).
    Unreadable,
}

/// Returns `true` for an extension header whose second byte is its length.
fn is_extension(next: u8) -> bool {
    matches!(next, 0 | 43 | 60 | AUTHENTICATION | 135 | 139 | 140)
}

/// Returns the upper layer of an IPv6 packet.
pub(super) fn upper_layer(packet: &[u8]) -> UpperLayer {
    walk(packet).unwrap_or(UpperLayer::Unreadable)
}

fn walk(packet: &[u8]) -> Option<UpperLayer> {
    let (mut next, mut start, mut fragmented) = (*packet.get(6)?, HEADER, false);
    for _ in 0..MOST {
        match next {
            FRAGMENT => {
                let place = be16(packet, start + 2)?;
                next = *packet.get(start)?;
                if place & 0xfff8 != 0 {
                    let hides = is_extension(next) || next == FRAGMENT;
                    return (!hides).then_some(UpperLayer::LaterFragment);
                }
                fragmented |= place & 1 != 0;
                start += 8;
            }
            _ if is_extension(next) => {
                let length = usize::from(*packet.get(start + 1)?);
                let bytes = if next == AUTHENTICATION { (length + 2) * 4 } else { (length + 1) * 8 };
                next = *packet.get(start)?;
                start += bytes;
            }
            protocol => return Some(UpperLayer::Header { protocol, start, fragmented }),
        }
    }
    None
}
