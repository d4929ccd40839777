//! The card, one port with its functions: its state, and the poll that moves frames. Other modules have the stages that
//! a frame passes.

use crate::conditions::PollSettings;
use crate::config::NicConfig;
use crate::counters::PoolCounterArray;
use crate::decoded::DecodedRegisters;
use crate::interrupt::master_bit;
use crate::offload::rss::RssSettings;
use crate::saved::{NicState, RestoreError};
use crate::scratch::PollScratchMemory;
use crate::state::DeviceState;
use crate::steering::ReceiveFilters;
use crate::switch::PoolPlane;
use crate::work::FramePathState;
use crate::{mac, switch};
use i82576::table::DecodedRegisterSet;
use i82576::{Time, WorkCost, register as r};
use offload::headers::TYPE_IPV4;
use pcie::{Bus, Function};
use plane::UplinkWire;
use plane::pacing::{LatenessLimit, TransmitPacing};

/// Limit of the work that the card does in one poll.
#[derive(Debug, Clone, Copy)]
pub struct PollBudget {
    /// Maximum number of frames from the wire, and of frames from each transmit queue. A segment of a large packet
    /// counts as a frame.
    pub frames: usize,
}

impl Default for PollBudget {
    fn default() -> Self {
        Self { frames: 256 }
    }
}

/// Result of a poll of the card: the time at which the card has to be polled again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PollResult {
    /// True if the frame budget ran out before all pending work was done: poll again at once.
    pub more: bool,
    /// Latest time of the next poll: a throttled interrupt or a delayed frame is due, or the TCP timer, a storm's
    /// window or the PHY's negotiation ends.
    pub deadline: Option<Time>,
}

/// Port of an 82576: a PF and up to eight VFs. A clone behaves as the original would from there on. Between two polls a
/// port can be saved as a [`NicState`] and restored, also more than once.
#[derive(Debug, Clone)]
pub struct Nic {
    pub(crate) state: DeviceState,
    pub(crate) plane: PoolPlane,
    pub(crate) derived: DecodedRegisters,
    pub(crate) scratch: PollScratchMemory,
}

impl Nic {
    /// Creates a port after power-on: no VFs, link down, nothing enabled.
    #[must_use]
    pub fn new(config: NicConfig) -> Self {
        let card = DeviceState::new(&config);
        let (pacing, counters) = (TransmitPacing::new(config.loopback), PoolCounterArray::default());
        let plane = switch::resume(&card.file, 0, pacing, Time::ZERO, counters);
        Self::of(card, plane)
    }

    /// Creates a port from the state of the card and the port's forwarding plane.
    pub(crate) fn of(state: DeviceState, plane: PoolPlane) -> Self {
        let mut nic =
            Self { derived: DecodedRegisters::new(&state), scratch: PollScratchMemory::new(), plane, state };
        nic.prepare_to_hold();
        nic
    }

    /// Saves the port's state, from which another process can continue the port.
    #[must_use]
    pub fn save(&self) -> NicState {
        NicState::of(&self.state, &self.plane)
    }

    /// Creates a port from a saved state. The new port answers every later call as the saved port would have. Only the
    /// accounts of the pools' frames ([`plane::shares`]) begin anew.
    ///
    /// # Errors
    /// [`RestoreError`] if no port can be in this state. A state may come from a hostile file, so a restored port has the
    /// same bounds on its work as any other.
    pub fn restore(state: NicState) -> Result<Self, RestoreError> {
        let (card, plane) = state.resume()?;
        Ok(Self::of(card, plane))
    }

    /// Moves frames within the budget and sends the interrupts that are due.
    pub fn poll<B: Bus, W: UplinkWire>(
        &mut self,
        now: Time,
        budget: PollBudget,
        bus: &mut B,
        wire: &mut W,
    ) -> PollResult {
        self.scratch.now = now;
        if self.state.phy.pass(now) {
            self.renew_link();
        }
        self.scratch.conditions = PollSettings::of(&self.state);
        self.decode();
        (self.plane.now, self.plane.uplink) = (now, self.scratch.conditions.uplink);
        self.plane.pacing.set_lateness(LatenessLimit::Kilobytes(self.state.file.get(r::RTTBCNRM)));
        self.scratch.glances = self.may_glance();
        self.pass_storm_windows(now);
        if self.state.timer.pass(self.state.file.get(r::TCPTIMER), now) {
            self.state.interrupts.raise_timer(&mut self.state.file);
        }
        let Self { plane, state, derived, scratch } = self;
        let DeviceState { file, queues, interrupts, throttle, clock, .. } = state;
        let mut work = FramePathState { file, queues, interrupts, throttle, clock, derived, scratch, bus };
        // Frames that wait came first, so they get the descriptors first.
        let from_buffer = !work.queues.buffer.is_empty() && work.give_waiting(budget.frames, plane);
        let from_wire = rings::arrive(&mut work, plane, budget.frames, wire);
        let (from_queues, frame) = work.visit_ready(budget.frames, plane, wire);
        work.write_back_received(plane);
        mac::settle(&mut self.plane.tally, &mut self.state.file);
        self.show_storm();
        debug_assert_eq!(self.scratch.conditions, PollSettings::of(&self.state));
        // Messages leave last: a driver that one of them wakes finds its descriptors written.
        let PollSettings { owners, form, .. } = self.scratch.conditions;
        let interrupt = self.state.interrupts.send(
            &mut self.state.file,
            &mut self.state.throttle,
            &owners,
            form,
            now,
            bus,
        );
        let storm = self.end_of_storm_window();
        let negotiation = self.state.phy.negotiates_until();
        let deadline =
            [interrupt, frame, storm, self.state.timer.end(), negotiation].into_iter().flatten().min();
        PollResult { more: from_buffer || from_wire || from_queues, deadline }
    }

    /// Decodes the registers of switch, RSS and receive filters again if software wrote them since the last call.
    pub(crate) fn decode(&mut self) {
        let stale = core::mem::take(&mut self.derived.stale);
        if stale.has(DecodedRegisterSet::SWITCH) {
            let (mut tables, receive) = switch::load(&self.state.file, self.state.owners.vfs);
            tables.resets = self.scratch.resets;
            self.plane.set_tables(tables);
            self.derived.receive = receive;
        }
        if stale.has(DecodedRegisterSet::RSS) {
            self.derived.rss = RssSettings::load(&self.state.file);
        }
        if stale.has(DecodedRegisterSet::STEERING) {
            self.derived.steering = ReceiveFilters::load(&self.state.file);
        }
    }

    /// Returns true if the next poll computes the switch's tables again, because registers of the switch have changed.
    #[must_use]
    pub fn has_stale_tables(&self) -> bool {
        self.derived.stale.has(DecodedRegisterSet::SWITCH)
    }

    /// Returns true if plain frames may be received after a quick check of their first 64 bytes. Then no setting needs
    /// a frame's hash, fragments or headers, and the tag types are the usual ones.
    pub(crate) fn may_glance(&self) -> bool {
        let conditions = &self.scratch.conditions;
        let tables = self.plane.tables();
        let usual = tables.outer.is_none() && tables.inner != TYPE_IPV4;
        let asked = conditions.hashes || !conditions.reports_hash() || self.derived.steering.looks();
        self.scratch.shortcuts && usual && !asked
    }

    /// Switches off all optimizations of the frame path: the card remembers no flow, opens a ring anew for each frame
    /// and parses every header. Its behaviour stays the same; tests compare such a card with one that has them.
    pub fn take_no_shortcuts(&mut self) {
        self.scratch.shortcuts = false;
        self.plane.remember_no_flows();
    }

    /// Sets the cost of frames that each pool may send in a poll (`units::work`). Tests that compare two cards whose frames
    /// differ in cost set it high.
    pub fn set_frame_quantum(&mut self, quantum: WorkCost) {
        self.plane.shares.set_quantum(quantum);
    }

    /// Sets Bus Master Enable of a function. Without it the card sends no memory request and no interrupt in the
    /// function's name, and frames that wait for its queues are dropped.
    pub fn set_bus_master(&mut self, function: Function, on: bool) {
        let bit = master_bit(function);
        self.state.owners.masters =
            if on { self.state.owners.masters | bit } else { self.state.owners.masters & !bit };
        if !on {
            self.drop_waiting_of(function);
        }
    }

    /// Returns true if a function of the card may use the bus.
    #[must_use]
    pub fn is_bus_master(&self, function: Function) -> bool {
        self.state.owners.may_master(function)
    }

    /// Returns the card's counters, one set for each pool.
    #[must_use]
    pub fn counters(&self) -> &PoolCounterArray {
        &self.plane.ledger.counters
    }
}
