//! Memory for the frames and descriptors that pass through the card in one call. No later call reads its contents.

use crate::plain::BurstDescriptors;
use crate::tx_ring::PacketDescriptors;
use alloc::boxed::Box;
use alloc::vec::Vec;
use avf::ids::MAX_VFS;
use pcie::VfSet;
use plane::switch::ResetCounts;
use plane::{FrameTrunk, PortIndex, PortSet};
use rings::FrameMemory;
use units::WorkCost;

/// Memory for the frames and descriptors of one call of the card.
#[derive(Debug, Clone, Default)]
pub(crate) struct PollScratchMemory {
    /// True if the card sends each frame alone, and never a burst.
    pub(crate) careful: bool,
    /// Cost of the function-level resets that [`Nic::take_work`](crate::Nic::take_work) has not returned yet.
    pub(crate) work: WorkCost,
    /// Resets of the VFs, for the switch's tables.
    pub(crate) resets: ResetCounts<MAX_VFS>,
    /// VFs with a dropped packet, some of whose segments have left, since the last call of
    /// [`Nic::visit_ready`](crate::Nic::visit_ready).
    pub(crate) dropped: VfSet,
    /// Work for VFs that [`Nic::settle_work`](crate::Nic::settle_work) has not charged yet.
    pub(crate) owed: OwedWork,
    /// VFs with receive descriptors that were filled and not yet written back, a bit each. The set is empty between two
    /// calls of the card.
    pub(crate) reached: u64,
    /// VFs in other parts of the card, or of cards of other families on the same plane.
    pub(crate) away: AwayVfs,
    /// Memory of crate `rings` for frames and packets; `None` before the first frame, and while `rings` uses it.
    pub(crate) places: Option<Box<FrameMemory>>,
    /// Transmit descriptors of a burst of frames.
    pub(crate) plain: BurstDescriptors,
    /// Descriptors of the packet that was last taken from a transmit queue.
    pub(crate) gathered: PacketDescriptors,
    /// Bytes of a received frame, followed by its frame check sequence.
    pub(crate) checked: Vec<u8>,
}

/// Cost of work for each VF that the port has not charged yet, and the VFs without credit.
#[derive(Debug, Clone)]
pub(crate) struct OwedWork {
    pub(crate) costs: [WorkCost; MAX_VFS],
    pub(crate) vfs: VfSet,
    /// VFs whose messages stay in their mailboxes.
    pub(crate) held: VfSet,
}

impl Default for OwedWork {
    fn default() -> Self {
        Self { costs: [WorkCost::default(); MAX_VFS], vfs: VfSet::NONE, held: VfSet::NONE }
    }
}

/// VFs that other parts of the card or cards of other families serve, and the trunk to these.
#[derive(Debug, Default)]
pub(crate) struct AwayVfs {
    pub(crate) vfs: PortSet,
    pub(crate) trunk: Option<Box<dyn FrameTrunk>>,
}

/// A copy of the card, as for a saved state, moves no frames, so it needs no trunk.
impl Clone for AwayVfs {
    fn clone(&self) -> Self {
        Self { vfs: self.vfs, trunk: None }
    }
}

impl AwayVfs {
    /// Returns true if a VF is away.
    #[inline]
    pub(crate) fn have(&self, port: PortIndex) -> bool {
        self.vfs.has(port)
    }

    /// Hands the frames that the card has put into the trunk to their receivers. Returns true if some have stayed.
    #[inline]
    pub(crate) fn flush(&mut self) -> bool {
        self.trunk.as_mut().is_some_and(|trunk| trunk.flush())
    }
}
