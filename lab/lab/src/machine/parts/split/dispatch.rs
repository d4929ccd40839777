//! Moves back-end workers, cards and interfaces between virtual CPUs. A worker thread or card leaves a virtual CPU
//! between two of its turns and arrives at another when the current step ends, so it never runs on two at once. An
//! interface leaves its worker once drained. Its event channels are rebound on arrival, by [`EventChannels::rebind`],
//! which loses no event. The dispatcher's own cost is not charged.

use super::{ServiceCpuView, ServiceDomainNetwork};
use hypervisor::account::CycleCategory;
use hypervisor::cost::CostConstant;
use hypervisor::evtchn::{EventChannels, EventSendOutcome};
use sim::VirtualInstant;
use split::back::VifIndex;
use split::dispatch::EventDispatcher;
use std::collections::VecDeque;

/// Ticks of the service domain's first virtual CPU between samples of the back end's load: 10 ms.
const SAMPLE: u32 = 10;

/// Part of the back end that the dispatcher can move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MovableBackEndPart {
    /// Back-end worker thread, which moves to another virtual CPU.
    Worker(usize),
    /// The interrupts and polls of a card, which move to another virtual CPU.
    Card(usize),
    /// Guest's interface, which moves to another back-end worker thread.
    Interface(VifIndex),
}

/// Location of a back-end worker thread or card: its current virtual CPU, and the virtual CPU to which it has to move.
#[derive(Debug, Clone, Copy)]
pub(super) struct BackEndPartLocation {
    pub(super) cpu: usize,
    wanted: usize,
    /// The worker thread or card has left its virtual CPU and not arrived at the next.
    pub(super) is_moving: bool,
}

impl BackEndPartLocation {
    pub(super) fn on(cpu: usize) -> Self {
        Self { cpu, wanted: cpu, is_moving: false }
    }

    /// Returns `true` if the worker thread or card is on virtual CPU `cpu`.
    pub(super) fn is_on(self, cpu: usize) -> bool {
        self.cpu == cpu && !self.is_moving
    }

    /// Starts a move of the worker thread or card if it is on virtual CPU `cpu` and is to run on another. Returns
    /// `true` if the move has started.
    fn leaves(&mut self, cpu: usize) -> bool {
        let leaves = self.is_on(cpu) && self.wanted != cpu;
        self.is_moving |= leaves;
        leaves
    }

    fn arrives(&mut self) -> usize {
        (self.cpu, self.is_moving) = (self.wanted, false);
        self.cpu
    }
}

/// Virtual CPU of each worker, worker of each interface, and the moves in progress.
#[derive(Debug)]
pub(super) struct BackEndPlacement {
    dispatcher: EventDispatcher,
    /// Virtual CPUs in the order in which workers and cards are assigned to them.
    order: Vec<usize>,
    ticks: u32,
    /// Number of frames that all interfaces had counted at the last load sample.
    frames: u64,
    /// Number of frames that each interface had counted at the last load sample.
    loads: Vec<u64>,
    pub(super) workers: Vec<BackEndPartLocation>,
    /// Back-end worker thread that each interface should have.
    pub(super) assigned: Vec<usize>,
    /// Interfaces that are being drained to move.
    moving: Vec<VifIndex>,
    /// Workers, cards and interfaces that started to move in the current step of a virtual CPU.
    leaving: VecDeque<MovableBackEndPart>,
    /// Number of completed moves of workers, cards and interfaces.
    pub(super) arrived: u64,
    /// Time at which each back-end worker thread last stopped running, to detect overlaps.
    until: Vec<VirtualInstant>,
    /// Number of times that a back-end worker thread began to run before its previous run had ended.
    pub(super) overlaps: u64,
}

impl BackEndPlacement {
    pub(super) fn new(dispatcher: EventDispatcher, workers: usize, order: Vec<usize>) -> Self {
        Self {
            ticks: 0,
            frames: 0,
            loads: Vec::new(),
            workers: (0..workers)
                .map(|worker| BackEndPartLocation::on(order[dispatcher.cpu(worker, order.len())]))
                .collect(),
            assigned: Vec::new(),
            moving: Vec::new(),
            leaving: VecDeque::new(),
            arrived: 0,
            until: vec![VirtualInstant::ZERO; workers],
            overlaps: 0,
            order,
            dispatcher,
        }
    }

    /// Returns the virtual CPU that the dispatcher chooses for worker or card `n`.
    fn cpu(&self, n: usize) -> usize {
        self.order[self.dispatcher.cpu(n, self.order.len())]
    }

    /// Returns the placement that the dispatcher chooses for card `n`: its current and its next virtual CPU.
    pub(super) fn card(&self, n: usize) -> BackEndPartLocation {
        BackEndPartLocation::on(self.cpu(n))
    }

    /// Records one run of a back-end worker thread, and counts the run as an overlap if the worker's previous run had
    /// not ended.
    pub(super) fn turn(&mut self, worker: usize, from: VirtualInstant, to: VirtualInstant) {
        self.overlaps += u64::from(from < self.until[worker]);
        self.until[worker] = to;
    }
}

impl ServiceDomainNetwork {
    /// Returns the number of completed moves of back-end parts.
    pub(crate) fn moves(&self) -> u64 {
        self.placement.arrived
    }

    /// Counts a tick of the first virtual CPU. Returns `true` if the dispatcher requires moves: then every virtual CPU
    /// has to execute a step.
    pub(crate) fn tick(&mut self) -> bool {
        self.placement.ticks = (self.placement.ticks + 1) % SAMPLE;
        if self.placement.ticks > 0 {
            return false;
        }
        let of = |vif: u16| {
            let counters = self.backend.counters(VifIndex(vif));
            counters.transmitted + counters.received + counters.no_room
        };
        let loads: Vec<u64> = (0..self.wires.interfaces.len() as u16).map(of).collect();
        let frames: u64 = loads.iter().sum();
        let placement = &mut self.placement;
        let changes = placement.dispatcher.sample(frames - core::mem::replace(&mut placement.frames, frames));
        let before = core::mem::replace(&mut placement.loads, loads);
        if changes {
            let since = self.placement.loads.iter().enumerate();
            let since: Vec<u64> = since.map(|(at, now)| now - before.get(at).unwrap_or(&0)).collect();
            self.redirect(&since);
        }
        changes
    }

    /// Chooses new locations for all workers, cards and interfaces, given the load of each interface.
    fn redirect(&mut self, loads: &[u64]) {
        let placement = &mut self.placement;
        placement.assigned = placement.dispatcher.workers(loads, placement.workers.len());
        for n in 0..placement.workers.len() {
            placement.workers[n].wanted = placement.cpu(n);
        }
        for (n, card) in self.cards.iter_mut().enumerate() {
            card.location.wanted = placement.cpu(n);
        }
        (0..self.placement.assigned.len() as u16).for_each(|vif| self.reassign(VifIndex(vif)));
    }

    /// Starts to move an interface to its assigned worker thread. An interface that is already moving starts again
    /// after its arrival.
    fn reassign(&mut self, vif: VifIndex) {
        let worker = self.placement.assigned[usize::from(vif.0)];
        if self.backend.start_move(vif, worker) {
            self.placement.moving.push(vif);
        }
    }

    /// Returns `true` if an interface that is to move is drained, and its worker thread is on virtual CPU `cpu`.
    pub(super) fn may_leave(&self, cpu: usize) -> bool {
        let may = |vif: &VifIndex| {
            self.placement.workers[self.backend.worker_of(*vif)].is_on(cpu) && self.backend.is_drained(*vif)
        };
        self.placement.moving.iter().any(may)
    }

    /// Starts the move of all interfaces, workers and cards on this virtual CPU that are assigned to another. Returns
    /// `false` if there are none.
    pub(super) fn leave(&mut self, view: &mut ServiceCpuView) -> bool {
        let cpu = view.cpu;
        let BackEndPlacement { moving, leaving, workers, .. } = &mut self.placement;
        let before = leaving.len();
        moving.retain(|vif| {
            let is_here = workers[self.backend.worker_of(*vif)].is_on(cpu);
            let leaves = is_here && self.backend.is_drained(*vif);
            leaving.extend(leaves.then_some(MovableBackEndPart::Interface(*vif)));
            !leaves
        });
        for (worker, location) in workers.iter_mut().enumerate() {
            leaving.extend(location.leaves(cpu).then_some(MovableBackEndPart::Worker(worker)));
        }
        for (n, card) in self.cards.iter_mut().enumerate() {
            if card.location.leaves(cpu) {
                leaving.push_back(MovableBackEndPart::Card(n));
                let polls = &mut self.duties[cpu].polls;
                card.is_due |= polls.contains(&n);
                polls.retain(|polled| *polled != n);
            }
        }
        // One hypercall each, as if each had one event channel; a card's mailbox channel is neglected.
        let left = leaving.len() - before;
        (0..left).for_each(|_| view.charge(CycleCategory::Hypercall, CostConstant::HypercallPv));
        left > 0
    }

    /// Removes and returns the next worker thread, card or interface whose move started in the last step.
    pub(crate) fn next_leaving(&mut self) -> Option<MovableBackEndPart> {
        self.placement.leaving.pop_front()
    }

    /// Completes a move of a worker thread, card or interface. Returns its new virtual CPU, and the notifications from
    /// rebinding its event channels.
    pub(crate) fn arrive(
        &mut self,
        what: MovableBackEndPart,
        channels: &mut EventChannels,
    ) -> (usize, Vec<EventSendOutcome>) {
        self.placement.arrived += 1;
        let (cpu, ports) = match what {
            MovableBackEndPart::Worker(worker) => {
                let own = (0..self.wires.interfaces.len())
                    .filter(|n| self.backend.worker_of(VifIndex(*n as u16)) == worker);
                let ports = own.map(|n| self.wires.interfaces[n].own).collect();
                (self.placement.workers[worker].arrives(), ports)
            }
            MovableBackEndPart::Card(n) => {
                let card = &mut self.cards[n];
                let cpu = card.location.arrives();
                if core::mem::take(&mut card.is_due) {
                    self.duties[cpu].polls.push_back(n);
                }
                (cpu, card.interrupts.clone())
            }
            MovableBackEndPart::Interface(vif) => {
                self.backend.finish_move(vif);
                self.reassign(vif);
                let cpu = self.placement.workers[self.backend.worker_of(vif)].cpu;
                (cpu, vec![self.wires.interfaces[usize::from(vif.0)].own])
            }
        };
        let rebind = |port: u16| channels.rebind(self.domain, port, cpu as u16).ok().flatten();
        (cpu, ports.into_iter().filter_map(rebind).collect())
    }
}
