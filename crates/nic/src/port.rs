//! One port of the card: its state, and the poll that moves frames. Left out: the stops themselves.

use crate::counters::Counters;
use crate::decoded::Derived;
use crate::interrupt::single::{Form, VECTOR_0};
use crate::interrupt::{Direction, Owners, master_bit, queue_vector};
use crate::queue::ring::Ring;
use crate::scratch::{PACKET, Scratch};
use crate::state::State;
use crate::switch::Storm;
use crate::uplink::Wire;
use core::num::NonZeroU64;
use i82576::bits::{ctrl, icr, rctl, srrctl, tctl};
use i82576::register::{self as r, rx, tx};
use i82576::{MacAddress, Queue, Time, ids};
use pcie::{Bus, DmaFault, Function};

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
/// set aside between two polls and continued, or continued twice; [`State`] is what of it must be kept for that.
#[derive(Debug, Clone)]
pub struct Nic {
    pub(crate) state: State,
    pub(crate) derived: Derived,
    pub(crate) scratch: Scratch,
}

impl Nic {
    /// A port after power-on: no VFs, link down, nothing enabled.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self::of(State::new(&config))
    }

    /// A port in a state.
    pub(crate) fn of(state: State) -> Self {
        let mut nic = Self { derived: Derived::new(&state), scratch: Scratch::new(), state };
        nic.prepare_to_hold();
        nic
    }

    /// Moves frames and sends interrupts, as far as the budget goes.
    pub fn poll<B: Bus, W: Wire>(&mut self, now: Time, budget: Budget, bus: &mut B, wire: &mut W) -> Poll {
        self.scratch.now = now;
        self.decode();
        self.pass_storm_windows(now);
        if self.state.timer.pass(self.state.file.get(r::TCPTIMER), now) {
            self.state.interrupts.raise_timer(&mut self.state.file);
        }
        let from_wire = self.receive_from_wire(budget, bus, wire);
        let (from_queues, frame) = self.transmit(budget, bus, wire);
        self.write_back_received(bus);
        self.scratch.tally.settle(&mut self.state.file);
        let (owners, form) = (self.masters(), self.form());
        let interrupt = self.state.interrupts.send(
            &mut self.state.file,
            &mut self.state.throttle,
            &owners,
            form,
            now,
            bus,
        );
        let storm = Storm::is_on(&self.state.file).then(|| self.state.storm.ends(&self.state.file));
        let deadline = [interrupt, frame, storm, self.state.timer.end()].into_iter().flatten().min();
        Poll { more: from_wire || from_queues, deadline }
    }

    fn receive_from_wire<B: Bus, W: Wire>(&mut self, budget: Budget, bus: &mut B, wire: &mut W) -> bool {
        for _ in 0..budget.frames {
            if !self.forward_from_wire(bus, wire) {
                return false;
            }
        }
        true
    }

    /// Visits every ready transmit queue once, and next time first those behind the one that came first now.
    /// A queue behind a closed gate stays ready, and so does one whose next frame has to wait. Answers whether one
    /// of the others has more, and when the first frame that waits may leave.
    fn transmit<B: Bus, W: Wire>(
        &mut self,
        budget: Budget,
        bus: &mut B,
        wire: &mut W,
    ) -> (bool, Option<Time>) {
        let (mut more, mut due, mut served) = (false, None, None);
        if self.state.tx_ready == 0 || self.state.file.get(r::TCTL) & tctl::EN == 0 {
            return (more, due);
        }
        let first = self.state.first;
        for queue in (0..ids::QUEUES as u8).filter_map(|i| Queue::new((first + i) & 15)) {
            let bit = 1 << queue.get();
            if self.state.tx_ready & bit == 0 {
                continue;
            }
            if !self.may_transmit(queue) {
                self.state.pacing.rest(queue);
                continue;
            }
            self.state.pacing.visit(&self.state.file, queue, self.scratch.now);
            let mut left = true;
            if self.state.pacing.due(queue.pool()) <= self.scratch.now {
                served.get_or_insert(queue.get());
                left = self.transmit_from(queue, budget, bus, wire);
            }
            left &= self.state.tx[queue.index()].has_more(&self.state.file);
            let next =
                Some(self.state.pacing.due(queue.pool())).filter(|due| left && *due > self.scratch.now);
            self.state.pacing.visited(queue, left, self.scratch.now);
            due = [due, next].into_iter().flatten().min();
            more |= left && next.is_none();
            self.state.tx_ready = if left { self.state.tx_ready | bit } else { self.state.tx_ready & !bit };
        }
        self.state.first = served.map_or(first, |queue| (queue + 1) & 15);
        (more, due)
    }

    /// Sends what a queue holds, up to the budget and to a frame that has to wait; `false` if no packet is left.
    fn transmit_from<B: Bus, W: Wire>(
        &mut self,
        queue: Queue,
        budget: Budget,
        bus: &mut B,
        wire: &mut W,
    ) -> bool {
        let (mut budget, mut left) = (budget.frames, true);
        while left && budget > 0 && self.state.pacing.due(queue.pool()) <= self.scratch.now {
            match self.forward_from_queue(queue, bus, wire) {
                Some(frames) => budget = budget.saturating_sub(frames),
                None => left = false,
            }
        }
        let function = self.state.owners.of_queue(queue);
        let announced = self.state.tx[queue.index()].write_back(&mut self.state.file, function, bus);
        self.announce(queue, Direction::Tx, announced);
        left
    }

    fn write_back_received<B: Bus>(&mut self, bus: &mut B) {
        let touched = core::mem::take(&mut self.scratch.rx_touched);
        let urgent = core::mem::take(&mut self.scratch.rx_urgent);
        for queue in Queue::all().filter(|queue| touched & 1 << queue.get() != 0) {
            let function = self.state.owners.of_queue(queue);
            let announced = self.state.rx[queue.index()].write_back(&mut self.state.file, function, bus);
            self.announce(queue, Direction::Rx, announced);
            if urgent & 1 << queue.get() != 0 {
                self.hurry(queue);
            }
        }
    }

    /// What a receive queue has to tell does not wait for its throttle.
    #[cold]
    fn hurry(&mut self, queue: Queue) {
        let own = queue.pool() < self.state.owners.vfs || self.form() == Form::Vectors;
        let named = || queue_vector(&self.state.file, queue, Direction::Rx, self.state.owners.vfs);
        if let Some(vector) = if own { named() } else { Some(VECTOR_0) } {
            let (eitr, gpie) = (self.state.file.get(r::eitr(vector)), self.state.file.get(r::GPIE));
            self.state.throttle.hurry(vector, eitr, gpie, self.scratch.now);
        }
    }

    /// Raises a queue's interrupt if something was given back, and counts a ring that could not be written.
    fn announce(&mut self, queue: Queue, direction: Direction, announced: Result<bool, DmaFault>) {
        match announced {
            Ok(true) => {
                let causes = match direction {
                    Direction::Tx => icr::TXDW,
                    Direction::Rx => icr::RXDW | self.few_descriptors(queue),
                };
                self.state.interrupts.raise_queue(
                    &mut self.state.file,
                    queue,
                    direction,
                    causes,
                    self.state.owners.vfs,
                );
            }
            Ok(false) => {}
            Err(_) => self.state.counters[usize::from(queue.pool())].dma_faults += 1,
        }
    }

    /// RXDMT0, if a receive queue has no more descriptors left than SRRCTL.RDMTS asks for, which is counted.
    fn few_descriptors(&mut self, queue: Queue) -> u32 {
        let few = srrctl::low_threshold(self.state.file.get(r::rx_block(queue) + rx::SRRCTL));
        let left = Ring::receive(&self.state.file, queue).map_or(0, |ring| ring.available(ring.head));
        if few == 0 || left > few {
            return 0;
        }
        self.state.file.count(r::ICRXDMTC, 1);
        icr::RXDMT0
    }

    /// The queue's pool may send, the queue is not blocked, and its function may read memory.
    fn may_transmit(&self, queue: Queue) -> bool {
        self.state.file.get(r::VFTE) & 1 << queue.pool() != 0
            && !self.is_blocked(queue)
            && self.masters().may_master(self.state.owners.of_queue(queue))
    }

    /// The port receives at all.
    pub(crate) fn receives(&self) -> bool {
        self.state.file.get(r::RCTL) & rctl::EN != 0
    }

    /// The functions that may master the bus now: none while the PF sleeps or has asked the card to stop.
    pub(crate) fn masters(&self) -> Owners {
        let stopped = self.sleeps() || self.state.file.get(r::CTRL) & ctrl::GIO_MASTER_DISABLE != 0;
        Owners { masters: if stopped { 0 } else { self.state.owners.masters }, ..self.state.owners }
    }

    /// A register of a queue was written: a doorbell makes a transmit queue ready, and a queue whose ring
    /// changes forgets what it has fetched.
    pub(crate) fn queue_written(&mut self, offset: u32) {
        let queue = usize::from((offset >> 6) as u8 & 0xf);
        match (offset & !0x3ff, offset & 0x3f) {
            (RX_BLOCKS, rx::RDBAL | rx::RDBAH | rx::RDLEN | rx::RDH | rx::RXDCTL) => {
                self.state.rx[queue].restart(&self.state.file);
            }
            // A queue that goes on, goes on with the packet that it is in.
            (TX_BLOCKS, tx::TXDCTL) if self.state.tx[queue].goes_on(&self.state.file) => {}
            (TX_BLOCKS, tx::TDBAL | tx::TDBAH | tx::TDLEN | tx::TDH | tx::TXDCTL) => {
                self.state.tx[queue].restart(&self.state.file);
                self.state.tx_ready |= 1 << queue;
            }
            (TX_BLOCKS, tx::TDT) => self.state.tx_ready |= 1 << queue,
            _ => {}
        }
    }

    /// A register was written that may be about rates.
    pub(crate) fn pacing_written(&mut self, offset: u32) {
        self.state.pacing.written(&mut self.state.file, offset);
        if offset == r::RTTBCNRC {
            self.prepare_to_hold();
        }
    }

    /// Queues that may have to stop between the segments of a packet get a place to keep it, now rather than when
    /// a frame passes.
    fn prepare_to_hold(&mut self) {
        for (tx, queue) in self.state.tx.iter_mut().zip(Queue::all()) {
            if !tx.held.is_empty() || self.state.pacing.may_delay(queue.pool()) {
                tx.held.prepare(PACKET);
            }
        }
    }

    /// Bus Master Enable of a function: without it, no memory request and no interrupt leaves the card in
    /// its name.
    pub fn set_bus_master(&mut self, function: Function, on: bool) {
        let bit = master_bit(function);
        self.state.owners.masters =
            if on { self.state.owners.masters | bit } else { self.state.owners.masters & !bit };
    }

    /// Whether a function may use the bus.
    #[must_use]
    pub fn is_bus_master(&self, function: Function) -> bool {
        self.state.owners.may_master(function)
    }

    /// What the card has counted, a set a pool.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.state.counters
    }
}
