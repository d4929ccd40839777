//! Workers, cards and interfaces that go elsewhere. A worker or a card leaves a virtual CPU between two of its turns and
//! arrives at another when the turn that gave it away is over, so that no work is done on two at once; an interface
//! leaves its worker when that has nothing of it any more. Event channels are bound anew at the arrival, by
//! [`Channels::rebind`], which loses no event. Left out: what the dispatcher itself costs.

use super::{Around, Split};
use hypervisor::account::Category;
use hypervisor::cost::Cost;
use hypervisor::evtchn::{Channels, Notified};
use sim::Instant;
use split::back::Vif;
use split::dispatch::Dispatcher;
use std::collections::VecDeque;

/// Ticks of the first virtual CPU from one look at the load to the next: 10 ms.
const SAMPLE: u32 = 10;

/// What can go elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Movable {
    /// A worker, to another virtual CPU.
    Worker(usize),
    /// A card's interrupts and polls, to another virtual CPU.
    Card(usize),
    /// An interface, to another worker.
    Interface(Vif),
}

/// Where a worker or a card is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) cpu: usize,
    wanted: usize,
    /// It has left and not arrived.
    pub(super) is_away: bool,
}

impl Place {
    pub(super) fn on(cpu: usize) -> Self {
        Self { cpu, wanted: cpu, is_away: false }
    }

    /// Whether that virtual CPU has it.
    pub(super) fn is_on(self, cpu: usize) -> bool {
        self.cpu == cpu && !self.is_away
    }

    /// Leaves a virtual CPU, if it is there and should be elsewhere.
    fn leaves(&mut self, cpu: usize) -> bool {
        let leaves = self.is_on(cpu) && self.wanted != cpu;
        self.is_away |= leaves;
        leaves
    }

    fn arrives(&mut self) -> usize {
        (self.cpu, self.is_away) = (self.wanted, false);
        self.cpu
    }
}

/// Who should be where, and who is on the way.
#[derive(Debug)]
pub(super) struct Placing {
    dispatcher: Dispatcher,
    ticks: u32,
    /// Frames up to the last sample: in all, and of each interface.
    frames: u64,
    loads: Vec<u64>,
    pub(super) workers: Vec<Place>,
    /// The worker that each interface should be with.
    pub(super) assigned: Vec<usize>,
    /// Interfaces that wait until they are drained.
    moving: Vec<Vif>,
    /// What has left in this step.
    leaving: VecDeque<Movable>,
    /// How many have arrived.
    pub(super) arrived: u64,
    /// When each worker's last turn ends, and turns that began before the last had ended.
    until: Vec<Instant>,
    pub(super) overlaps: u64,
}

impl Placing {
    pub(super) fn new(dispatcher: Dispatcher, workers: usize, cpus: usize) -> Self {
        Self {
            ticks: 0,
            frames: 0,
            loads: Vec::new(),
            workers: (0..workers).map(|worker| Place::on(dispatcher.cpu(worker, cpus))).collect(),
            assigned: Vec::new(),
            moving: Vec::new(),
            leaving: VecDeque::new(),
            arrived: 0,
            until: vec![Instant::ZERO; workers],
            overlaps: 0,
            dispatcher,
        }
    }

    /// The virtual CPU for card `n`.
    pub(super) fn card(&self, n: usize, cpus: usize) -> Place {
        Place::on(self.dispatcher.cpu(n, cpus))
    }

    /// A turn of a worker, from then to then.
    pub(super) fn turn(&mut self, worker: usize, from: Instant, to: Instant) {
        self.overlaps += u64::from(from < self.until[worker]);
        self.until[worker] = to;
    }
}

impl Split {
    /// How often something has gone elsewhere.
    pub(crate) fn moves(&self) -> u64 {
        self.placing.arrived
    }

    /// A tick of the first virtual CPU: whether something is to go elsewhere now, for which every virtual CPU must look.
    pub(crate) fn tick(&mut self) -> bool {
        self.placing.ticks = (self.placing.ticks + 1) % SAMPLE;
        if self.placing.ticks > 0 {
            return false;
        }
        let of = |vif: u16| {
            let counters = self.backend.counters(Vif(vif));
            counters.transmitted + counters.received + counters.no_room
        };
        let loads: Vec<u64> = (0..self.wires.interfaces.len() as u16).map(of).collect();
        let frames: u64 = loads.iter().sum();
        let placing = &mut self.placing;
        let changes = placing.dispatcher.sample(frames - core::mem::replace(&mut placing.frames, frames));
        let before = core::mem::replace(&mut placing.loads, loads);
        if changes {
            let since = self.placing.loads.iter().enumerate();
            let since: Vec<u64> = since.map(|(at, now)| now - before.get(at).unwrap_or(&0)).collect();
            self.redirect(&since);
        }
        changes
    }

    /// Says where everything should be, by what each interface had to do.
    fn redirect(&mut self, loads: &[u64]) {
        let (cpus, placing) = (self.duties.len(), &mut self.placing);
        placing.assigned = placing.dispatcher.workers(loads, placing.workers.len());
        for (n, place) in placing.workers.iter_mut().enumerate() {
            place.wanted = placing.dispatcher.cpu(n, cpus);
        }
        for (n, card) in self.cards.iter_mut().enumerate() {
            card.place.wanted = placing.dispatcher.cpu(n, cpus);
        }
        (0..self.placing.assigned.len() as u16).for_each(|vif| self.reassign(Vif(vif)));
    }

    /// An interface begins to go where it should be. One that is on its way does so when it has arrived.
    fn reassign(&mut self, vif: Vif) {
        let worker = self.placing.assigned[usize::from(vif.0)];
        if self.backend.move_to(vif, worker) {
            self.placing.moving.push(vif);
        }
    }

    /// Whether an interface on a virtual CPU may leave.
    pub(super) fn may_leave(&self, cpu: usize) -> bool {
        let may = |vif: &Vif| {
            self.placing.workers[self.backend.worker_of(*vif)].is_on(cpu) && self.backend.is_drained(*vif)
        };
        self.placing.moving.iter().any(may)
    }

    /// What should be elsewhere leaves a virtual CPU. `false` if nothing does.
    pub(super) fn leave(&mut self, around: &mut Around) -> bool {
        let cpu = around.cpu;
        let Placing { moving, leaving, workers, .. } = &mut self.placing;
        let before = leaving.len();
        moving.retain(|vif| {
            let is_here = workers[self.backend.worker_of(*vif)].is_on(cpu);
            let leaves = is_here && self.backend.is_drained(*vif);
            leaving.extend(leaves.then_some(Movable::Interface(*vif)));
            !leaves
        });
        for (worker, place) in workers.iter_mut().enumerate() {
            leaving.extend(place.leaves(cpu).then_some(Movable::Worker(worker)));
        }
        for (n, card) in self.cards.iter_mut().enumerate() {
            if card.place.leaves(cpu) {
                leaving.push_back(Movable::Card(n));
                let polls = &mut self.duties[cpu].polls;
                card.is_due |= polls.contains(&n);
                polls.retain(|polled| *polled != n);
            }
        }
        // A hypercall for each, as if each had one event channel; that of a card's mailbox is not worth counting.
        let left = leaving.len() - before;
        (0..left).for_each(|_| around.charge(Category::Hypercall, Cost::HypercallPv));
        left > 0
    }

    /// What has left in the last step, one after the other.
    pub(crate) fn next_leaving(&mut self) -> Option<Movable> {
        self.placing.leaving.pop_front()
    }

    /// It arrives: at which virtual CPU, and what binding its event channels anew notified.
    pub(crate) fn arrive(&mut self, what: Movable, channels: &mut Channels) -> (usize, Vec<Notified>) {
        self.placing.arrived += 1;
        let (cpu, ports) = match what {
            Movable::Worker(worker) => {
                let own = (0..self.wires.interfaces.len())
                    .filter(|n| self.backend.worker_of(Vif(*n as u16)) == worker);
                let ports = own.map(|n| self.wires.interfaces[n].own).collect();
                (self.placing.workers[worker].arrives(), ports)
            }
            Movable::Card(n) => {
                let card = &mut self.cards[n];
                let cpu = card.place.arrives();
                if core::mem::take(&mut card.is_due) {
                    self.duties[cpu].polls.push_back(n);
                }
                (cpu, card.interrupts.clone())
            }
            Movable::Interface(vif) => {
                self.backend.arrive(vif);
                self.reassign(vif);
                let cpu = self.placing.workers[self.backend.worker_of(vif)].cpu;
                (cpu, vec![self.wires.interfaces[usize::from(vif.0)].own])
            }
        };
        let rebind = |port: u16| channels.rebind(self.domain, port, cpu as u16).ok().flatten();
        (cpu, ports.into_iter().filter_map(rebind).collect())
    }
}
