//! Card that can be divided among workers, of any family.

use crate::port::engine::access::{FunctionAccess, FunctionTable};
use i82576::Time;
use pcie::{Bus, MAX_VFS};
use plane::{ForwardingPlane, FrameTrunk, PortSet, TrunkBatch, UplinkWire};
use std::fmt::Debug;

/// Plane of a card or of a part of it.
pub(in crate::port) type CardPlane = ForwardingPlane<MAX_VFS>;

/// Outcome of one round of a shard.
#[derive(Debug, Clone, Copy)]
pub(in crate::port) struct ShardRoundOutcome {
    /// True if the shard has more work now.
    pub(in crate::port) more: bool,
    /// Time at which a frame that its VF's rate delays may leave, or a delayed interrupt is due.
    pub(in crate::port) deadline: Option<Time>,
}

/// Card of a family, or a part of it. The whole card belongs to the port's own thread, and a part to a worker.
pub(in crate::port) trait DivisibleCard: Debug + Send + 'static {
    /// Device of a VF that is in no part of the card.
    type Device;

    /// Creates a part without devices.
    fn new_part() -> Self;

    /// Sets the trunk to the other parts.
    fn set_trunk(&mut self, trunk: Box<dyn FrameTrunk>);

    /// Returns true if another part may serve a VF. The whole card serves the others.
    fn may_detach(&self, vf: u8) -> bool;

    /// Takes a VF's device out of this part. Frames for the VF then go to the trunk.
    fn detach(&mut self, vf: u8) -> Option<Self::Device>;

    /// Puts a VF's device into this part. The part finds everything that the VF's driver has requested meanwhile.
    fn attach(&mut self, device: Self::Device);

    /// Prepares a part without devices for devices of the whole card.
    fn follow(&mut self, whole: &Self);

    /// Reads the doorbells that the guests of all VFs in this part have stored in memory.
    fn read_doorbells(&mut self) {}

    /// Delivers the frames of a batch from a trunk. [`Self::move_frames`] or [`Self::give_back`] notifies their receivers.
    fn leave_trunk<B: Bus>(&mut self, plane: &mut CardPlane, batch: &mut TrunkBatch, bus: &mut B);

    /// Hands this part's frames in the trunk to their receivers. Returns true if some have stayed ([`FrameTrunk::flush`]).
    fn flush_trunk(&mut self) -> bool;

    /// Returns filled receive buffers to the drivers.
    fn give_back<B: Bus>(&mut self, plane: &mut CardPlane, bus: &mut B);

    /// Moves frames and sends interrupts of the VFs in a part, within the budget of a poll. The plane has the time. Calls
    /// `after_vf` after the visit to each VF's rings.
    fn move_frames<B: Bus, W: UplinkWire>(
        &mut self,
        plane: &mut CardPlane,
        bus: &mut B,
        uplink: &mut W,
        after_vf: impl FnMut(),
    ) -> ShardRoundOutcome;

    /// Returns true if a part polls rings whose drivers send no notifications.
    fn polls_rings(&self) -> bool {
        false
    }

    /// Returns true if guests of VFs in a part store doorbells in memory, which wake no thread.
    fn polls_pages(&self) -> bool {
        false
    }

    /// Looks for a packet in polled rings, and for a new doorbell in memory. Returns true if there is one.
    fn look<B: Bus>(&mut self, bus: &mut B) -> bool;

    /// Asks the drivers of polled rings for notifications, before the worker sleeps. Returns true if a ring has a packet
    /// already.
    fn arm<B: Bus>(&mut self, _: &mut B) -> bool {
        false
    }

    /// Has the card look at a ring of one of a part's VFs after a report of its kicks.
    fn kick(&mut self, _: &mut FunctionTable<FunctionAccess>, _vf: u8, _ring: u32) {}
}

/// Returns the set of all VFs, as ports of the plane.
pub(super) const fn all_vfs() -> PortSet {
    PortSet::new(u64::MAX)
}
