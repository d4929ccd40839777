//! The ether type filters (ETQF), for EAPOL, LLDP and the precision time protocol. A filter is compared with the ether
//! types behind the stripped tag: there are two if another tag follows.

use crate::file::RegisterFile;
use i82576::QueueIndex;
use i82576::bits::etqf;
use i82576::register as r;
use offload::FrameHeaders;
use plane::bytes::be16;

/// Offset of the first ether type in a frame, in bytes.
const FIRST: usize = 12;

/// Decoded registers of the eight ether type filters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct EtherTypeFilters {
    registers: [u32; 8],
}

impl EtherTypeFilters {
    pub(super) fn load(file: &RegisterFile) -> Self {
        Self { registers: core::array::from_fn(|i| file.get(r::etqf(i as u32))) }
    }

    pub(super) fn any(&self) -> bool {
        self.registers.iter().any(|filter| filter & etqf::ENABLE != 0)
    }

    /// Returns the ether type filters that match a frame, a bit each.
    pub(super) fn hits(&self, frame: &[u8], headers: &FrameHeaders) -> u8 {
        let types = [FIRST, headers.l3_offset.saturating_sub(2).max(FIRST)].map(|at| be16(frame, at));
        self.those(|filter| filter & etqf::ENABLE != 0 && types.contains(&Some(filter as u16)))
    }

    /// Returns the queue that the last matching ether type filter selects, or `None` if it selects no queue.
    pub(super) fn queue(&self, hits: u8) -> Option<QueueIndex> {
        let filter = self.registers[Self::last(hits)?];
        (filter & etqf::QUEUE_ENABLE != 0).then(|| QueueIndex::of_field(filter >> etqf::QUEUE_SHIFT))
    }

    /// Returns true if the last matching ether type filter interrupts at once.
    pub(super) fn immediate(&self, hits: u8) -> bool {
        Self::last(hits).is_some_and(|last| self.registers[last] & etqf::IMMEDIATE != 0)
    }

    /// Returns true if the last matching ether type filter is for the precision time protocol.
    pub(super) fn timed(&self, hits: u8) -> bool {
        Self::last(hits).is_some_and(|last| self.registers[last] & etqf::TIMED != 0)
    }

    /// Returns the number of the last matching ether type filter. `hits` has a bit for each match.
    pub(super) fn last(hits: u8) -> Option<usize> {
        hits.checked_ilog2().map(|last| last as usize)
    }

    fn those(&self, holds: impl Fn(u32) -> bool) -> u8 {
        self.registers.iter().rev().fold(0, |set, filter| set << 1 | u8::from(holds(*filter)))
    }
}
