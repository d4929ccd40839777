//! One port of the card: its state, and the poll that moves frames. Left out: the stops themselves.

use crate::conditions::Conditions;
use crate::counters::Counters;
use crate::decoded::Derived;
use crate::interrupt::master_bit;
use crate::policy::{Plane, port};
use crate::scratch::{PACKET, Scratch};
use crate::state::Card;
use crate::work::Work;
use crate::{policy, uplink};
use core::num::NonZeroU64;
use i82576::register::{self as r, rx, tx};
use i82576::{MacAddress, Queue, Time};
use pcie::{Bus, Function};
use plane::Wire;
use plane::pacing::{Lateness, Pacing};

/// Where the queues' register blocks start; there are 16 of 64 bytes in either kind.
const RX_BLOCKS: u32 = 0xc000;
const TX_BLOCKS: u32 = 0xe000;

/// What a port is made with: what silicon finds in its NVM.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// The port's own address.
    pub mac: MacAddress,
    /// I/O virtualization is on: without it the card has no VFs, and says so in configuration space.
    pub iov: bool,
    /// What pools together may send to each other inside the card, bits a second (frame check sequence counted);
    /// `None` is without a limit. Silicon reaches 2.8 Gb/s (Dong et al., HPCA 2010).
    pub loopback: Option<NonZeroU64>,
}

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
/// set aside between two polls and continued, or continued twice; [`State`](crate::State) is what of it must be kept for that.
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
        let mut work = Work { state, derived, scratch, bus };
        let from_buffer = !work.state.buffer.is_empty() && work.give_waiting(budget.frames, plane);
        let from_wire = work.receive_from_wire(budget.frames, plane, wire);
        let (from_queues, frame) = work.transmit(budget.frames, plane, wire);
        work.write_back_received(plane);
        uplink::settle(&mut self.plane.tally, &mut self.state.file);
        self.show_storm();
        debug_assert_eq!(self.scratch.conditions, Conditions::of(&self.state));
        let (owners, form) = (self.scratch.conditions.owners, self.state.form());
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

    /// A register of a queue was written: a doorbell makes a transmit queue ready, and a queue whose ring
    /// changes forgets what it has fetched.
    pub(crate) fn queue_written(&mut self, offset: u32) {
        let queue = usize::from((offset >> 6) as u8 & 0xf);
        match (offset & !0x3ff, offset & 0x3f) {
            (RX_BLOCKS, rx::RDBAL | rx::RDBAH | rx::RDLEN | rx::RDH | rx::RXDCTL) => {
                self.restart_receive(Queue::of_field(queue as u32));
            }
            (RX_BLOCKS, rx::RDT) => self.state.rx[queue].decode(&self.state.file),
            // A queue that goes on, goes on with the packet that it is in.
            (TX_BLOCKS, tx::TXDCTL) if self.state.tx[queue].goes_on(&self.state.file) => {}
            (TX_BLOCKS, tx::TDBAL | tx::TDBAH | tx::TDLEN | tx::TDH | tx::TXDCTL) => {
                self.state.tx[queue].restart(&self.state.file);
                self.state.tx_ready |= 1 << queue;
            }
            (TX_BLOCKS, tx::TDT) => {
                self.state.tx[queue].decode(&self.state.file);
                self.state.tx_ready |= 1 << queue;
            }
            _ => {}
        }
    }

    /// A register was written that may be about rates.
    pub(crate) fn pacing_written(&mut self, offset: u32) {
        self.state.rates.written(&mut self.state.file, &mut self.plane, offset);
        if offset == r::RTTBCNRC {
            self.prepare_to_hold();
        }
    }

    /// Queues that may have to stop between the segments of a packet get a place to keep it, now rather than when
    /// a frame passes.
    fn prepare_to_hold(&mut self) {
        for (tx, queue) in self.state.tx.iter_mut().zip(Queue::all()) {
            if !tx.held.is_empty() || self.plane.pacing.may_delay(port(queue.pool())) {
                tx.held.prepare(PACKET);
            }
        }
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
