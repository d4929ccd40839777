//! Shard of a port: the part of the card that a worker runs, with a plane and a bus of its own.

use super::trunk::{TrunkReceiver, WorkerTrunks, WorkerUplink};
use crate::port::engine::access::{FunctionAccess, FunctionTable};
use host::eventfd::EventFdNotifier;
use i82576::Time;
use pcie::Function;
use plane::frame::Frame;
use plane::pacing::TransmitPacing;
use plane::switch::{StormState, SwitchTables};
use plane::{ForwardingPlane, PortCounters, PortIndex, PortSet};
use std::time::Duration;
use virtio_nic::{MAX_VFS, Nic};

/// Maximum number of frames that one poll of the card, or of a part, moves from the uplink, and of packets from each transmit
/// ring.
pub(in crate::port) const BUDGET: usize = 64;

/// Part of the card that a worker runs. The port's own thread has it between two divisions of the card.
#[derive(Debug)]
pub(super) struct CardShard {
    pub(super) nic: Nic,
    pub(super) plane: Box<ForwardingPlane<MAX_VFS>>,
    pub(super) bus: FunctionTable<FunctionAccess>,
    pub(super) receiver: TrunkReceiver,
    pub(super) uplink: WorkerUplink,
    /// VFs whose devices are in the shard.
    pub(super) vfs: PortSet,
    /// Version of the switch's tables that the plane has.
    pub(super) tables: u64,
    /// Time for which the worker has run, since the last look at it.
    pub(super) busy: Duration,
}

/// Outcome of one round of a shard.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShardRoundOutcome {
    /// True if the shard has more work now.
    pub(super) more: bool,
    /// Time at which a frame that its VF's rate delays may leave.
    pub(super) deadline: Option<Time>,
}

impl CardShard {
    /// Creates a shard without devices, for a worker that has these trunks.
    pub(super) fn new(WorkerTrunks { sender, receiver, uplink }: WorkerTrunks) -> Option<Self> {
        let plane = ForwardingPlane::new(
            SwitchTables::closed(0),
            TransmitPacing::new(None),
            StormState::default(),
            [PortCounters::default(); MAX_VFS],
        );
        let functions = std::iter::repeat_with(FunctionAccess::none).take(1 + MAX_VFS).collect();
        let mut nic = Nic::new(MAX_VFS as u8);
        nic.set_trunk(Some(Box::new(sender)));
        Some(Self {
            nic,
            plane: Box::new(plane),
            bus: FunctionTable { functions, notifier: EventFdNotifier::new() },
            receiver,
            uplink: uplink?,
            vfs: PortSet::NONE,
            tables: 0,
            busy: Duration::ZERO,
        })
    }

    /// Moves frames and sends interrupts of the shard's VFs, within the budget of a poll.
    pub(super) fn round(&mut self, now: Time) -> ShardRoundOutcome {
        let Self { nic, plane, bus, receiver, uplink, .. } = self;
        plane.now = now;
        let waiting = receiver.take(|header, place| {
            if let Some(mut frame) = Frame::new(place) {
                nic.leave_trunk(plane, header, &mut frame, bus);
            }
        });
        let more = nic.visit_ready(plane, BUDGET, bus, uplink);
        uplink.flush();
        ShardRoundOutcome { more: more || waiting, deadline: nic.due() }
    }

    /// Looks for a packet in the rings that the shard polls, and for a frame in a trunk. Returns true if there is one.
    pub(super) fn look(&mut self) -> bool {
        !self.receiver.are_empty() || self.nic.look_at_rings(&mut self.bus)
    }

    /// Prepares for sleep: asks drivers for notifications, and other workers to wake this one. Returns true if there is a packet
    /// or a frame already.
    pub(super) fn arm(&mut self) -> bool {
        let has_packet = self.nic.arm_rings(&mut self.bus);
        has_packet || !self.receiver.may_sleep()
    }

    /// Has the card look at a ring of one of the shard's VFs after a report of its kicks.
    pub(super) fn kick(&mut self, vf: u8, ring: u32) {
        if self.vfs.has(PortIndex::of_field(vf.into())) {
            self.bus.note_kick(&mut self.nic, vf, ring);
        }
    }

    /// Exchanges the memory and interrupts of a VF with the port's bus.
    pub(super) fn exchange_access(&mut self, vf: u8, other: &mut FunctionAccess) {
        if let Some(access) = self.bus.access_mut(Function::Vf(vf)) {
            std::mem::swap(access, other);
        }
    }
}
