//! Descriptors of plain frames, for the bursts of `rings`: the transmit descriptors that make plain frames, and the
//! receive descriptors of plain frames. Their contents equal those that [`classify`] finds for any frame.
//!
//! [`classify`]: super::receive::classify

use core::ops::RangeInclusive;
use i82576::bits::rxcsum::{IPOFL, TUOFL};
use i82576::descriptor::rx::{packet_type, status};
use i82576::descriptor::{DD, tx};
use offload::plain::PlainFrameKind;
use plane::frame::HEADER;
use rings::{FrameRunProperties, RxFormat, TxFormat};

/// Transmit descriptor format of the 82576, as crate `rings` uses it: advanced data descriptors.
#[derive(Debug)]
pub(crate) struct TxDescriptorFormat;

impl TxFormat for TxDescriptorFormat {
    /// Lengths in bytes of frames that may be sent as plain frames. The longest costs no more than one frame of the
    /// budget.
    const LENGTHS: RangeInclusive<u32> = HEADER as u32..=4095;

    #[inline(always)]
    fn plain(second: u64) -> Option<u32> {
        tx::plain_length(second)
    }

    #[inline(always)]
    fn summed(second: u64) -> Option<u32> {
        tx::summed_length(second)
    }
}

/// First two words of a plain frame's receive descriptor, for each combination of transport and checksum results:
/// packet type, then status.
const WORDS: [[u64; 2]; PlainFrameKind::ALL] = {
    let mut words = [[0; 2]; PlainFrameKind::ALL];
    let mut index = 0;
    while index < PlainFrameKind::ALL {
        words[index] = words_of(PlainFrameKind::of(index));
        index += 1;
    }
    words
};

const fn words_of(found: PlainFrameKind) -> [u64; 2] {
    let (kind, looked_at) = if found.is_udp() {
        (packet_type::IPV4 | packet_type::UDP, status::L4CS | status::UDPCS)
    } else {
        (packet_type::IPV4 | packet_type::TCP, status::L4CS)
    };
    let network = status::IPCS | if found.is_network_right() { 0 } else { status::IPE };
    let transport = match found.is_transport_right() {
        None => 0,
        Some(true) => looked_at,
        Some(false) => looked_at | status::L4E,
    };
    [(kind as u64) << 4, (DD | status::EOP | network | transport) as u64]
}

/// Receive descriptor format of a run of plain frames (consecutive ones for one queue): the bits that all of the run's
/// descriptors share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlainRxFormat {
    /// Mask for a descriptor's second word that clears the checksum results which RXCSUM does not select.
    asked: u64,
    /// Bits in the second word of all descriptors of a run of frames: VLAN tag, and PIF.
    common: u64,
}

impl PlainRxFormat {
    /// Creates the receive format for a run of frames under a value of RXCSUM.
    #[inline]
    pub(crate) fn new(rxcsum: u32, terms: FrameRunProperties) -> Self {
        let unasked = |bit: u32, bits: u32| if rxcsum & bit != 0 { 0 } else { bits };
        let network = unasked(IPOFL, status::IPCS | status::IPE);
        let transport = unasked(TUOFL, status::L4CS | status::UDPCS | status::L4E);
        let inexact = if terms.inexact { u64::from(status::PIF) } else { 0 };
        let tag = terms.tag.map_or(0, |tag| u64::from(status::VP) | u64::from(tag) << 48);
        Self { asked: !u64::from(network | transport), common: inexact | tag }
    }
}

impl RxFormat for PlainRxFormat {
    #[inline(always)]
    fn words(self, found: PlainFrameKind, _hash: Option<u32>, length: u32) -> [u64; 4] {
        let [first, second] = WORDS[found.index()];
        [first, second & self.asked | self.common | u64::from(length) << 32, 0, 0]
    }
}
