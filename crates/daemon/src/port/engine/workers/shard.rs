//! Shard of a port: the part of the card that a worker runs, with a plane and a bus of its own.

use super::divisible::{CardPlane, DivisibleCard, ShardRoundOutcome};
use super::trunk::{TrunkReceiver, VisitedVf, WorkerTrunks, WorkerUplink};
use crate::port::engine::access::{FunctionAccess, FunctionTable};
use host::eventfd::EventFdNotifier;
use i82576::Time;
use pcie::{Function, MAX_VFS};
use plane::pacing::TransmitPacing;
use plane::switch::{StormState, SwitchTables};
use plane::{ForwardingPlane, PortCounters, PortIndex, PortSet};
use std::time::Duration;

/// Maximum number of frames that one poll of the card, or of a part, moves from the uplink, and of packets from each transmit
/// ring.
pub(in crate::port) const BUDGET: usize = 64;

/// Part of the card that a worker runs. The port's own thread has it between two divisions of the card.
#[derive(Debug)]
pub(super) struct CardShard<C> {
    pub(super) card: C,
    pub(super) plane: Box<CardPlane>,
    pub(super) bus: FunctionTable<FunctionAccess>,
    pub(super) receiver: TrunkReceiver,
    pub(super) uplink: WorkerUplink,
    visited: VisitedVf,
    /// VFs whose devices are in the shard.
    pub(super) vfs: PortSet,
    /// Version of the switch's tables that the plane has.
    pub(super) tables: u64,
    /// Time for which the worker has run, since the last look at it.
    pub(super) busy: Duration,
}

impl<C: DivisibleCard> CardShard<C> {
    /// Creates a shard without devices, for a worker that has these trunks.
    pub(super) fn new(WorkerTrunks { sender, receiver, uplink, visited }: WorkerTrunks) -> Option<Self> {
        let plane = ForwardingPlane::new(
            SwitchTables::closed(0),
            TransmitPacing::new(None),
            StormState::default(),
            [PortCounters::default(); MAX_VFS],
        );
        let functions = std::iter::repeat_with(FunctionAccess::none).take(1 + MAX_VFS).collect();
        let mut card = C::new_part();
        card.set_trunk(Box::new(sender));
        Some(Self {
            card,
            plane: Box::new(plane),
            bus: FunctionTable { functions, notifier: EventFdNotifier::new(), interrupted: PortSet::NONE },
            receiver,
            uplink: uplink?,
            visited,
            vfs: PortSet::NONE,
            tables: 0,
            busy: Duration::ZERO,
        })
    }

    /// Moves frames and sends interrupts of the shard's VFs, within the budget of a poll.
    pub(super) fn round(&mut self, now: Time) -> ShardRoundOutcome {
        let Self { card, plane, bus, receiver, uplink, visited, .. } = self;
        plane.now = now;
        card.read_doorbells();
        let waiting = receiver.take(|batch| card.leave_trunk(plane, batch, bus));
        let visits = visited.begin();
        let outcome = card.move_frames(plane, bus, uplink, move || visits.advance());
        let stayed = uplink.flush();
        bus.charge_interrupts(&mut plane.shares);
        ShardRoundOutcome { more: outcome.more || waiting || stayed, ..outcome }
    }

    /// Looks for a packet or a doorbell in memory that the shard polls, and for a frame in a trunk. Returns true if there is
    /// one.
    pub(super) fn look(&mut self) -> bool {
        !self.receiver.are_empty() || self.card.look(&mut self.bus)
    }

    /// Prepares for sleep: asks drivers for notifications, and other workers to wake this one. Returns true if there is a packet
    /// or a frame already.
    pub(super) fn arm(&mut self) -> bool {
        let has_packet = self.card.arm(&mut self.bus);
        has_packet || !self.receiver.may_sleep()
    }

    /// Has the card look at a ring of one of the shard's VFs after a report of its kicks.
    pub(super) fn kick(&mut self, vf: u8, ring: u32) {
        if self.vfs.has(PortIndex::of_field(vf.into())) {
            self.card.kick(&mut self.bus, vf, ring);
        }
    }

    /// Exchanges the memory and interrupts of a VF with the port's bus.
    pub(super) fn exchange_access(&mut self, vf: u8, other: &mut FunctionAccess) {
        if let Some(access) = self.bus.access_mut(Function::Vf(vf)) {
            std::mem::swap(access, other);
        }
        self.bus.interrupted |= PortIndex::of_field(vf.into()).only();
    }
}
