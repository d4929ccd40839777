//! One port of the card: its state, and the poll that moves frames. Left out: the stops themselves.

use crate::conditions::Conditions;
use crate::config::Config;
use crate::counters::Counters;
use crate::decoded::Derived;
use crate::interrupt::master_bit;
use crate::offload::rss::Rss;
use crate::policy::Plane;
use crate::saved::{RestoreError, State};
use crate::scratch::Scratch;
use crate::state::Card;
use crate::steering::Steering;
use crate::work::Work;
use crate::{policy, uplink};
use i82576::table::Forms;
use i82576::{Time, register as r};
use offload::headers::TYPE_IPV4;
use pcie::{Bus, Function};
use plane::Wire;
use plane::pacing::{Lateness, Pacing};

/// How much one poll may do.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Frames from the wire, and frames (segments counted) from each transmit queue.
    pub frames: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { frames: 256 }
    }
}

/// What a poll left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Poll {
    /// The budget ran out before the work did: poll again.
    pub more: bool,
    /// When a throttled interrupt or a frame that waits for its time is due, the TCP timer or a window of a storm ends:
    /// poll then at the latest.
    pub deadline: Option<Time>,
}

/// One port: a PF and up to eight VFs. It is a value: a copy goes on where the original stood, so that a port can be
/// set aside between two polls and continued, or continued twice; [`State`] is what of it must be kept for that.
#[derive(Debug, Clone)]
pub struct Nic {
    pub(crate) state: Card,
    pub(crate) plane: Plane,
    pub(crate) derived: Derived,
    pub(crate) scratch: Scratch,
}

impl Nic {
    /// A port after power-on: no VFs, link down, nothing enabled.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let card = Card::new(&config);
        let (pacing, counters) = (Pacing::new(config.loopback), Counters::default());
        let plane = policy::resume(&card.file, 0, pacing, Time::ZERO, counters);
        Self::of(card, plane)
    }

    /// A port whose card and plane are in a state.
    pub(crate) fn of(state: Card, plane: Plane) -> Self {
        let mut nic = Self { derived: Derived::new(&state), scratch: Scratch::new(), plane, state };
        nic.prepare_to_hold();
        nic
    }

    /// All that a successor needs to go on where this port stands. To be called between two calls, as everything is.
    #[must_use]
    pub fn save(&self) -> State {
        State::of(&self.state, &self.plane)
    }

    /// A port that goes on from a state: whatever it is called for, it does as the one that was saved would have.
    ///
    /// # Errors
    /// [`RestoreError`] if no port can be in this state. Whatever a state says that is restored, the port is bounded
    /// in what it does as any other.
    pub fn restore(state: State) -> Result<Self, RestoreError> {
        let (card, plane) = state.resume()?;
        Ok(Self::of(card, plane))
    }

    /// Moves frames and sends interrupts, as far as the budget goes.
    pub fn poll<B: Bus, W: Wire>(&mut self, now: Time, budget: Budget, bus: &mut B, wire: &mut W) -> Poll {
        self.scratch.now = now;
        self.scratch.conditions = Conditions::of(&self.state);
        self.decode();
        (self.plane.now, self.plane.uplink) = (now, self.scratch.conditions.uplink);
        self.plane.pacing.set_lateness(Lateness::Kilobytes(self.state.file.get(r::RTTBCNRM)));
        self.scratch.glances = self.may_glance();
        self.pass_storm_windows(now);
        if self.state.timer.pass(self.state.file.get(r::TCPTIMER), now) {
            self.state.interrupts.raise_timer(&mut self.state.file);
        }
        let Self { plane, state, derived, scratch } = self;
        let Card { file, queues, interrupts, throttle, clock, .. } = state;
        let mut work = Work { file, queues, interrupts, throttle, clock, derived, scratch, bus };
        let from_buffer = !work.queues.buffer.is_empty() && work.give_waiting(budget.frames, plane);
        let from_wire = rings::arrive(&mut work, plane, budget.frames, wire);
        let (from_queues, frame) = work.transmit(budget.frames, plane, wire);
        work.write_back_received(plane);
        uplink::settle(&mut self.plane.tally, &mut self.state.file);
        self.show_storm();
        debug_assert_eq!(self.scratch.conditions, Conditions::of(&self.state));
        let Conditions { owners, form, .. } = self.scratch.conditions;
        let interrupt = self.state.interrupts.send(
            &mut self.state.file,
            &mut self.state.throttle,
            &owners,
            form,
            now,
            bus,
        );
        let storm = self.end_of_storm_window();
        let deadline = [interrupt, frame, storm, self.state.timer.end()].into_iter().flatten().min();
        Poll { more: from_buffer || from_wire || from_queues, deadline }
    }

    /// Decodes anew what is out of date.
    pub(crate) fn decode(&mut self) {
        let stale = core::mem::take(&mut self.derived.stale);
        if stale.has(Forms::SWITCH) {
            let (tables, receive) = policy::load(&self.state.file, self.state.owners.vfs);
            self.plane.set_tables(tables);
            self.derived.receive = receive;
        }
        if stale.has(Forms::RSS) {
            self.derived.rss = Rss::load(&self.state.file);
        }
        if stale.has(Forms::STEERING) {
            self.derived.steering = Steering::load(&self.state.file);
        }
    }

    /// A glance at a frame may be all that it takes: no setting asks for its hash, its fragments or its headers, and tags
    /// are what they usually are.
    pub(crate) fn may_glance(&self) -> bool {
        let conditions = &self.scratch.conditions;
        let tables = self.plane.tables();
        let usual = tables.outer.is_none() && tables.inner != TYPE_IPV4;
        let asked = conditions.hashes || !conditions.tells_hash() || self.derived.steering.looks();
        self.scratch.shortcuts && usual && !asked
    }

    /// From now on every frame goes the long way: no flow is remembered, no ring opened for several frames, nothing only
    /// glanced at. What the card does is the same, and tests hold it to that.
    pub fn take_no_shortcuts(&mut self) {
        self.scratch.shortcuts = false;
        self.plane.remember_no_flows();
    }

    /// Bus Master Enable of a function: without it, no memory request and no interrupt leaves the card in
    /// its name.
    pub fn set_bus_master(&mut self, function: Function, on: bool) {
        let bit = master_bit(function);
        self.state.owners.masters =
            if on { self.state.owners.masters | bit } else { self.state.owners.masters & !bit };
        if !on {
            self.drop_waiting_of(function);
        }
    }

    /// Whether a function may use the bus.
    #[must_use]
    pub fn is_bus_master(&self, function: Function) -> bool {
        self.state.owners.may_master(function)
    }

    /// What the card has counted, a set a pool.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.plane.ledger.counters
    }
}
