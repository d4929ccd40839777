//! Transmit and receive descriptors of plain frames, for the bursts of `rings`. `contents` handles all other frames.

use crate::contents::checksum_status;
use avf::descriptor::rx::{Form, PlainWords, contents};
use avf::descriptor::tx::{self, SIZE};
use avf::ids::{LONGEST, MIN_FRAME};
use avf::packet_type::{self, Ip, Payload};
use core::ops::RangeInclusive;
use offload::plain::PlainKind;
use pcie::burst::BURST;
use pcie::{Bus, DmaFault, Space};
use rings::{RxFormat, TxFormat};

/// Transmit format: data descriptors of the Adaptive Virtual Function card.
#[derive(Debug)]
pub(crate) struct Data;

impl TxFormat for Data {
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
pub(crate) struct Descriptors {
    raw: [[u8; SIZE]; BURST],
    /// Bus address of the first descriptor.
    at: u64,
}

impl Descriptors {
    /// Returns the buffer for `count` descriptors, at most a burst. They are read from bus address `at`.
    pub(crate) fn place(&mut self, count: usize, at: u64) -> &mut [[u8; SIZE]] {
        self.at = at;
        &mut self.raw[..count.min(BURST)]
    }

    /// Returns the descriptor at an index of the burst.
    pub(crate) fn data(&self, index: usize) -> Option<tx::Data> {
        self.raw.get(index).map(tx::Data::parse)
    }

    /// Writes back the first `count` descriptors, from the first to the last that requests a report (RS): those with RS
    /// as done, the others as they were read. That is safe: a driver does not reuse a descriptor before a later one is
    /// done.
    pub(crate) fn report<B: Bus>(
        &mut self,
        count: usize,
        ring: Space<'_>,
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

/// Words of receive descriptors by the properties of a plain frame.
type Table = [[u64; 2]; PlainKind::ALL];
static LEGACY: Table = table(Form::Legacy);
static FLEX: Table = table(Form::FlexLate);

const fn table(form: Form) -> Table {
    let mut table = [[0; 2]; PlainKind::ALL];
    let mut index = 0;
    while index < PlainKind::ALL {
        let found = PlainKind::of(index);
        let checksums = checksum_status(Some(found.is_network_right()), found.is_transport_right());
        table[index] = contents(form, packet_type::ip(Ip::V4, payload(found.is_udp())), checksums);
        index += 1;
    }
    table
}

const fn payload(udp: bool) -> Payload {
    if udp { Payload::Udp } else { Payload::Tcp }
}

/// Returns the bit of plain frames in the hash types (HENA).
pub(crate) const fn hash_type(udp: bool) -> u64 {
    packet_type::hash_type(Ip::V4, payload(udp))
}

/// Receive format of a run of frames: the words that its descriptors share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Described {
    words: PlainWords,
    found: &'static Table,
}

impl Described {
    pub(crate) fn new(words: PlainWords) -> Self {
        let legacy = matches!(words.form(), Form::Short | Form::Legacy);
        Self { words, found: if legacy { &LEGACY } else { &FLEX } }
    }
}

impl RxFormat for Described {
    #[inline(always)]
    fn words(self, found: PlainKind, hash: Option<u32>, length: u32) -> [u64; 4] {
        self.words.words(self.found[found.index()], hash, length)
    }
}

#[cfg(test)]
mod tests {
    use super::{Described, payload};
    use crate::contents::checksum_status;
    use avf::descriptor::rx::{Form, PlainWords, WriteBack};
    use avf::packet_type::{self, Ip};
    use offload::plain::PlainKind;
    use proptest::prelude::{any, proptest};
    use rings::RxFormat;

    proptest! {
        #[test]
        fn quick_write_back_of_checked_frames_equals_the_full_one(
            form in 0..4_usize,
            found in 0..PlainKind::ALL,
            length in 0..0x4000_u16,
            hash: Option<u32>,
            tag: Option<u16>,
            loopback in any::<bool>(),
        ) {
            let form = [Form::Short, Form::Legacy, Form::Flex(17), Form::FlexLate][form];
            let common = WriteBack { tag, loopback, end_of_packet: true, ..WriteBack::default() };
            let found = PlainKind::of(found);
            let whole = WriteBack {
                length,
                hash,
                packet_type: packet_type::ip(Ip::V4, payload(found.is_udp())),
                checksums: checksum_status(Some(found.is_network_right()), found.is_transport_right()),
                ..common
            };
            let words = Described::new(PlainWords::new(form, tag, loopback)).words(found, hash, length.into());
            assert_eq!(words.map(u64::to_le_bytes).as_flattened(), whole.emit(form));
        }
    }
}
