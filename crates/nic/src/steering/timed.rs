//! Packets of the precision time protocol (IEEE 1588) whose arrival is stamped: those of the kind in TSYNCRXCTL, if a filter
//! has found the protocol. Peer delay messages of version 2 are stamped as events only.

use crate::file::RegisterFile;
use i82576::bits::{tsync, tsyncrxcfg};
use i82576::register as r;
use offload::headers::{FrameHeaders, TransportHeaderKind};
use plane::bytes::be16;

/// Length of a UDP header, bytes (RFC 768).
const UDP: usize = 8;
/// Offset of the control field in a message of version 1, bytes (IEEE 1588-2002).
const CONTROL: usize = 32;
/// First message type of version 2 that is a general message and no event (IEEE 1588-2008).
const GENERAL: u8 = 8;

/// Kind of the precision time packets whose arrival is stamped (TSYNCRXCTL).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimestampFilter {
    kind: u32,
    control: u8,
    message: u8,
}

impl TimestampFilter {
    /// Decodes the stamp settings TSYNCRXCTL and TSYNCRXCFG. Returns `None` if no packet is stamped.
    pub(super) fn load(file: &RegisterFile) -> Option<Self> {
        let (control, which) = (file.get(r::TSYNCRXCTL), file.get(r::TSYNCRXCFG));
        (control & tsync::ENABLE != 0).then_some(Self {
            kind: control >> tsync::KIND_SHIFT & 7,
            control: (which & tsyncrxcfg::CONTROL) as u8,
            message: (which >> tsyncrxcfg::MESSAGE_SHIFT) as u8,
        })
    }

    /// Returns true if a frame with the ether type of the precision time protocol is stamped.
    pub(super) fn over_ethernet(self, frame: &[u8], headers: &FrameHeaders) -> bool {
        let message = frame.get(headers.l3_offset..).unwrap_or_default();
        self.kind != tsync::L4_V1 && self.is_version_2(message)
    }

    /// Returns true if a datagram that the protocol's five-tuple filter matches is stamped.
    pub(super) fn over_udp(self, frame: &[u8], headers: &FrameHeaders) -> bool {
        let message = frame.get(headers.l4_offset + UDP..).unwrap_or_default();
        headers.l4 == TransportHeaderKind::Udp
            && match self.kind {
                tsync::L4_V1 => be16(message, 0) == Some(1) && message.get(CONTROL) == Some(&self.control),
                tsync::L2_V2 => false,
                _ => self.is_version_2(message),
            }
    }

    fn is_version_2(self, message: &[u8]) -> bool {
        let Some([kind, version]) = message.first_chunk() else { return false };
        version & 0xf == 2
            && match self.kind {
                tsync::L2_V2 | tsync::V2 => kind & 0xf == self.message & 0xf,
                tsync::EVENT_V2 => kind & 0xf < GENERAL,
                _ => false,
            }
    }
}
