//! Reads and writes the most common descriptors by table look-ups: transmit descriptors that hold a whole packet, and
//! receive descriptors of TCP or UDP over IPv4 without options. Module `contents` parses the headers of all other
//! received frames.

use crate::contents::checksum_status;
use avf::descriptor::rx::{RxDescriptorFormat, RxWriteBackTemplate, contents};
use avf::descriptor::tx::{self, SIZE};
use avf::ids::{LONGEST, MIN_FRAME};
use avf::packet_type::{self, IpPayloadKind, IpVersion};
use core::ops::RangeInclusive;
use offload::plain::PlainFrameKind;
use pcie::burst::BURST;
use pcie::{Bus, DmaFault, HintedMemory};
use rings::{RxFormat, TxFormat};

/// Transmit descriptor format of this card for crate `rings`: data descriptors.
#[derive(Debug)]
pub(crate) struct TxDescriptorFormat;

impl TxFormat for TxDescriptorFormat {
    const LENGTHS: RangeInclusive<u32> = MIN_FRAME as u32..=LONGEST as u32;

    #[inline(always)]
    fn plain(second: u64) -> Option<u32> {
        tx::plain_length(second)
    }

    #[inline(always)]
    fn summed(second: u64) -> Option<u32> {
        tx::summed_length(second)
    }
}

/// Transmit descriptors of a burst of frames, in order from the ring's head.
#[derive(Debug, Clone, Default)]
pub(crate) struct BurstDescriptors {
    raw: [[u8; SIZE]; BURST],
    /// Bus address of the first descriptor of the burst of frames.
    at: u64,
}

impl BurstDescriptors {
    /// Returns the buffer for a read of `count` descriptors, at most a burst, from bus address `at`.
    pub(crate) fn place(&mut self, count: usize, at: u64) -> &mut [[u8; SIZE]] {
        self.at = at;
        &mut self.raw[..count.min(BURST)]
    }

    /// Returns the descriptor at an index of the burst.
    pub(crate) fn data(&self, index: usize) -> Option<tx::TxDataDescriptor> {
        self.raw.get(index).map(tx::TxDataDescriptor::parse)
    }

    /// Writes back the first `count` transmit descriptors, up to the last that requests a report (RS). Those with RS
    /// are written as done, those without RS as they were read. That is safe: a driver does not reuse a descriptor
    /// before a later one is done.
    pub(crate) fn report<B: Bus>(
        &mut self,
        count: usize,
        ring: HintedMemory<'_>,
        bus: &mut B,
    ) -> Result<(), DmaFault> {
        let (mut first, mut last) = (BURST, 0);
        for (at, raw) in self.raw.iter_mut().enumerate().take(count) {
            if tx::reports(raw) {
                raw[SIZE / 2..].copy_from_slice(&tx::done());
                (first, last) = (first.min(at), at + 1);
            }
        }
        let Some(told) = self.raw.get(first..last) else { return Ok(()) };
        let at = self.at.wrapping_add((first * SIZE) as u64);
        bus.write_descriptors(ring, at, told.as_flattened(), SIZE)
    }
}

/// First two words of a plain frame's receive descriptor, for each combination of transport and checksum results.
type PlainWordTable = [[u64; 2]; PlainFrameKind::ALL];
static LEGACY: PlainWordTable = table(RxDescriptorFormat::Legacy);
static FLEX: PlainWordTable = table(RxDescriptorFormat::FlexLate);

const fn table(form: RxDescriptorFormat) -> PlainWordTable {
    let mut table = [[0; 2]; PlainFrameKind::ALL];
    let mut index = 0;
    while index < PlainFrameKind::ALL {
        let found = PlainFrameKind::of(index);
        let checksums = checksum_status(Some(found.is_network_right()), found.is_transport_right());
        table[index] = contents(form, packet_type::ip(IpVersion::V4, payload(found.is_udp())), checksums);
        index += 1;
    }
    table
}

const fn payload(udp: bool) -> IpPayloadKind {
    if udp { IpPayloadKind::Udp } else { IpPayloadKind::Tcp }
}

/// Returns the bit in the enabled hash types (HENA) of plain frames with UDP or TCP.
pub(crate) const fn hash_type(udp: bool) -> u64 {
    packet_type::hash_type(IpVersion::V4, payload(udp))
}

/// Receive descriptor format of a run of plain frames (consecutive ones for one queue): the fields that all of the
/// run's descriptors share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlainRxFormat {
    words: RxWriteBackTemplate,
    found: &'static PlainWordTable,
}

impl PlainRxFormat {
    pub(crate) fn new(words: RxWriteBackTemplate) -> Self {
        let legacy = matches!(words.form(), RxDescriptorFormat::Short | RxDescriptorFormat::Legacy);
        Self { words, found: if legacy { &LEGACY } else { &FLEX } }
    }
}

impl RxFormat for PlainRxFormat {
    #[inline(always)]
    fn words(self, found: PlainFrameKind, hash: Option<u32>, length: u32) -> [u64; 4] {
        self.words.words(self.found[found.index()], hash, length)
    }
}

#[cfg(test)]
mod tests {
    use super::{PlainRxFormat, payload};
    use crate::contents::checksum_status;
    use avf::descriptor::rx::{RxDescriptorFormat, RxWriteBack, RxWriteBackTemplate};
    use avf::packet_type::{self, IpVersion};
    use offload::plain::PlainFrameKind;
    use proptest::prelude::{any, proptest};
    use rings::RxFormat;

    proptest! {
        #[test]
        fn fast_path_and_general_path_write_equal_rx_descriptors(
            form in 0..4_usize,
            found in 0..PlainFrameKind::ALL,
            length in 0..0x4000_u16,
            hash: Option<u32>,
            tag: Option<u16>,
            loopback in any::<bool>(),
        ) {
            let form = [RxDescriptorFormat::Short, RxDescriptorFormat::Legacy, RxDescriptorFormat::Flex(17), RxDescriptorFormat::FlexLate][form];
            let common = RxWriteBack { tag, loopback, end_of_packet: true, ..RxWriteBack::default() };
            let found = PlainFrameKind::of(found);
            let whole = RxWriteBack {
                length,
                hash,
                packet_type: packet_type::ip(IpVersion::V4, payload(found.is_udp())),
                checksums: checksum_status(Some(found.is_network_right()), found.is_transport_right()),
                ..common
            };
            let words = PlainRxFormat::new(RxWriteBackTemplate::new(form, tag, loopback)).words(found, hash, length.into());
            assert_eq!(words.map(u64::to_le_bytes).as_flattened(), whole.emit(form));
        }
    }
}
