//! Network steps of the service domain: events first, then one turn of a softirq: a poll of a card, frames
//! from guests, or frames to guests. Each turn is bounded and the three alternate, so that none starves
//! another.

use super::host::BackEndRingAccess;
use super::{
    BridgedCard, EventChannelSource, PendingCpuWork, ServiceDomainNetwork, SplitConnections, SplitInterface,
};
use crate::machine::chipset::Chipset;
use crate::machine::parts::card::NicPort as Hardware;
use crate::machine::parts::registers::VfRegisters;
use driver::vf::{TxError, TxOffload, VfInterruptCause};
use hypervisor::account::{CycleCategory, CycleSink};
use hypervisor::cost::{CostConstant, CostTable};
use hypervisor::cpu::{LastLevelCache, VcpuStep};
use hypervisor::domain::DomainId;
use hypervisor::grant::GrantHandle;
use split::back::{FrameHandle, TransmitPollOutcome};
use split::bridge::{BridgeDecision, BridgePort};
use split::{NetworkBackend, PendingOffloads};

/// Number of frames that a virtual CPU of the service domain processes per step.
const TURN: usize = 64;
/// Port of a bridge to which the bridge's card is connected.
const CARD: BridgePort = BridgePort(0);

/// Virtual CPU of the service domain in a step, with the hardware that it accesses.
pub(crate) struct ServiceCpuView<'a> {
    pub(crate) cpu: usize,
    /// Socket of the virtual CPU.
    pub(crate) socket: usize,
    /// Last-level cache of that socket.
    pub(crate) cache: &'a mut LastLevelCache,
    pub(crate) step: &'a mut VcpuStep,
    pub(crate) ports: &'a mut [Hardware],
    pub(crate) chipset: &'a mut Chipset,
    pub(crate) table: &'a CostTable,
    /// Bit mask of cards whose registers the service domain accessed in this step.
    pub(crate) touched: u64,
}

impl ServiceCpuView<'_> {
    pub(super) fn charge(&mut self, category: CycleCategory, cost: CostConstant) {
        self.step.charge(category, self.table[cost]);
    }

    /// Returns the registers of a card's VF for its driver.
    fn card(&mut self, card: usize) -> VfRegisters<'_> {
        self.touched |= 1 << card;
        VfRegisters {
            step: self.step,
            port: &mut self.ports[card],
            vf: 0,
            chipset: self.chipset,
            table: self.table,
        }
    }

    /// Returns access to rings and grants for the back end, charged to this step.
    fn host<'b>(&'b mut self, wires: &'b mut SplitConnections, domain: DomainId) -> BackEndRingAccess<'b> {
        BackEndRingAccess {
            wires,
            domain,
            socket: self.socket,
            cache: self.cache,
            step: self.step,
            table: self.table,
        }
    }
}

impl ServiceDomainNetwork {
    /// Executes one network step of a virtual CPU: starts moves of back-end parts, takes events, sends delayed events,
    /// or polls and copies frames. Returns `false` if there was nothing to do.
    pub(crate) fn step(&mut self, view: &mut ServiceCpuView) -> bool {
        self.leave(view) || self.events(view) || self.notify_guests(view) || (0..3).any(|_| self.turn(view))
    }

    /// Returns `true` if a virtual CPU of the service domain has network work.
    pub(crate) fn has_work(&self, cpu: usize, chipset: &mut Chipset) -> bool {
        let due = chipset.channels.domain(self.domain).is_ok_and(|own| own.upcall_due(cpu as u16));
        let PendingCpuWork { polls, notify_due, .. } = &self.duties[cpu];
        due || *notify_due || !polls.is_empty() || self.may_leave(cpu) || self.has_frames(cpu)
    }

    /// Returns `true` if a worker thread on virtual CPU `cpu` has frames from guests or for guests.
    pub(crate) fn has_frames(&self, cpu: usize) -> bool {
        let has = |worker| self.backend.may_transmit(worker) || self.backend.may_receive(worker);
        self.workers_on(cpu).any(has)
    }

    fn workers_on(&self, cpu: usize) -> impl Iterator<Item = usize> {
        (0..self.backend.workers()).filter(move |worker| self.placement.workers[*worker].is_on(cpu))
    }

    /// Returns `true` if a virtual CPU has no timer and needs one: its worker threads delay events to guests.
    pub(crate) fn needs_timer(&mut self, cpu: usize) -> bool {
        let withholds = self.workers_on(cpu).any(|worker| self.backend.has_withheld_events(worker));
        withholds && !core::mem::replace(&mut self.duties[cpu].has_timer, true)
    }

    /// Handles the timer of a virtual CPU: its next step sends the delayed events to guests.
    pub(crate) fn timer(&mut self, cpu: usize) {
        (self.duties[cpu].has_timer, self.duties[cpu].notify_due) = (false, true);
    }

    /// Removes and returns the next guest to which the back end sent an event.
    pub(crate) fn next_notified(&mut self) -> Option<usize> {
        self.wires.notified.pop_front()
    }

    /// Returns the card a virtual CPU polls next.
    pub(crate) fn next_poll(&self, cpu: usize) -> Option<usize> {
        self.duties[cpu].polls.front().copied()
    }

    /// Takes an event-channel upcall of the service domain, with all its events. Returns `false` if no upcall
    /// is pending.
    fn events(&mut self, view: &mut ServiceCpuView) -> bool {
        let vcpu = view.cpu as u16;
        let Ok(own) = view.chipset.channels.domain(self.domain) else { return false };
        if !own.enter_upcall(vcpu) {
            return false;
        }
        view.charge(CycleCategory::EventChannel, CostConstant::EventUpcall);
        while let Some(port) = view.chipset.channels.domain(self.domain).ok().and_then(|own| own.next(vcpu)) {
            view.charge(CycleCategory::Kernel, CostConstant::InterruptEntry);
            match self.sources.get(usize::from(port)).copied().flatten() {
                Some(EventChannelSource::Guest(vif)) => self.backend.event(vif),
                Some(EventChannelSource::Card(card, vector)) => {
                    view.charge(CycleCategory::Driver, CostConstant::InterruptHandler);
                    let event = self.cards[card].driver.handle_interrupt(&mut view.card(card), vector);
                    if event == VfInterruptCause::Received {
                        self.schedule_poll(card);
                    }
                }
                None => {}
            }
        }
        if let Ok(own) = view.chipset.channels.domain(self.domain) {
            own.leave_upcall(vcpu);
        }
        true
    }

    /// Schedules a poll of a card on its virtual CPU, or after its move.
    fn schedule_poll(&mut self, card: usize) {
        let BridgedCard { location, is_due, .. } = &mut self.cards[card];
        let polls = &mut self.duties[location.cpu].polls;
        if location.is_moving {
            *is_due = true;
        } else if !polls.contains(&card) {
            polls.push_back(card);
        }
    }

    /// Sends the delayed events of a virtual CPU's worker threads to guests, after the virtual CPU's timer has expired.
    fn notify_guests(&mut self, view: &mut ServiceCpuView) -> bool {
        if !core::mem::take(&mut self.duties[view.cpu].notify_due) {
            return false;
        }
        view.charge(CycleCategory::Timer, CostConstant::HypervisorTick);
        let workers: Vec<usize> = self.workers_on(view.cpu).collect();
        for worker in workers {
            self.backend.notify_withheld(worker, &mut view.host(&mut self.wires, self.domain));
        }
        true
    }

    /// Polls a card, takes frames from guests, or copies frames to guests, whichever is next in turn. Returns `false`
    /// if that kind of work has nothing to do.
    fn turn(&mut self, view: &mut ServiceCpuView) -> bool {
        let cpu = view.cpu;
        let turn = self.duties[cpu].turn;
        self.duties[cpu].turn = (turn + 1) % 3;
        let found = match turn {
            0 => self.duties[cpu].polls.pop_front(),
            1 => self.next_worker(cpu, NetworkBackend::may_transmit),
            _ => self.next_worker(cpu, NetworkBackend::may_receive),
        };
        let Some(found) = found else { return false };
        let began = view.step.began();
        match turn {
            0 => self.poll(found, view),
            1 => self.transmit(found, view),
            _ => self.receive(found, view),
        }
        if turn > 0 {
            self.placement.turn(found, began, view.step.now());
        }
        true
    }

    /// Returns the back-end worker thread that runs next on a virtual CPU, in round-robin order, among those for which
    /// `may` finds work.
    fn next_worker(
        &mut self,
        cpu: usize,
        may: fn(&NetworkBackend<GrantHandle>, usize) -> bool,
    ) -> Option<usize> {
        let (count, last) = (self.backend.workers(), self.duties[cpu].worker);
        let mut turns = (1..=count).map(|step| (last + step) % count);
        let is_next =
            |worker: &usize| self.placement.workers[*worker].is_on(cpu) && may(&self.backend, *worker);
        let worker = turns.find(is_next)?;
        self.duties[cpu].worker = worker;
        Some(worker)
    }

    /// Polls a network card for at most `TURN` frames. If no frame is left, enables the card's interrupt.
    fn poll(&mut self, card: usize, view: &mut ServiceCpuView) {
        view.charge(CycleCategory::Kernel, CostConstant::Softirq);
        view.charge(CycleCategory::Driver, CostConstant::NapiEntry);
        let mut taken = 0;
        while taken < TURN {
            let Some(key) = self.backend.allocate() else { break };
            let buffer = self.backend.buffer(&key);
            let received = self.cards[card].driver.receive(&mut view.card(card), buffer);
            let Ok(Some(received)) = received else {
                self.backend.discard(key);
                break;
            };
            self.backend.set_filled(&key, received.length, PendingOffloads::default());
            view.charge(CycleCategory::Driver, CostConstant::RxDriver);
            view.charge(CycleCategory::Kernel, CostConstant::RxSkb);
            taken += 1;
            self.counts.arrived += 1;
            self.forward(card, CARD, key, view);
        }
        if taken < TURN {
            self.cards[card].driver.receive_done(&mut view.card(card));
        } else {
            self.duties[view.cpu].polls.push_back(card);
        }
    }

    /// Releases the pages of frames that were sent for the guests of a back-end worker thread, and takes more frames
    /// from these guests.
    fn transmit(&mut self, worker: usize, view: &mut ServiceCpuView) {
        view.charge(CycleCategory::Kernel, CostConstant::Softirq);
        self.backend.release(worker, &mut view.host(&mut self.wires, self.domain), TURN);
        for _ in 0..TURN {
            match self.backend.take(worker, &mut view.host(&mut self.wires, self.domain)) {
                TransmitPollOutcome::Frame(vif, key) => {
                    view.charge(CycleCategory::Backend, CostConstant::Backend);
                    let SplitInterface { card, port, .. } = self.wires.interfaces[usize::from(vif.0)];
                    self.forward(card, BridgePort(port), key, view);
                }
                TransmitPollOutcome::Nothing => {}
                TransmitPollOutcome::Idle => break,
            }
        }
    }

    /// Copies a batch of frames to the guests of a back-end worker thread.
    fn receive(&mut self, worker: usize, view: &mut ServiceCpuView) {
        view.charge(CycleCategory::Kernel, CostConstant::Softirq);
        let table = view.table;
        let frames = self.backend.receive(worker, &mut view.host(&mut self.wires, self.domain), TURN);
        view.step.charge(CycleCategory::Backend, frames as u64 * table[CostConstant::Backend]);
    }

    /// Forwards a frame on a card's bridge: to a port, to all other ports, or to none.
    fn forward(&mut self, card: usize, from: BridgePort, key: FrameHandle, view: &mut ServiceCpuView) {
        view.charge(CycleCategory::Bridge, CostConstant::Bridge);
        match self.cards[card].bridge.forward(from, self.backend.head(&key)) {
            BridgeDecision::To(to) => self.send(card, to, key, view),
            BridgeDecision::Filter => {
                self.counts.filtered += 1;
                self.backend.discard(key);
            }
            BridgeDecision::Flood => {
                let ports = 0..=self.cards[card].members.len() as u16;
                for to in ports.map(BridgePort).filter(|to| *to != from) {
                    let mut host = view.host(&mut self.wires, self.domain);
                    if let Some(copy) = self.backend.duplicate(&key, &mut host) {
                        self.counts.duplicated += 1;
                        self.send(card, to, copy, view);
                    }
                }
                self.counts.filtered += 1;
                self.backend.discard(key);
            }
        }
    }

    /// Sends a frame out of a bridge port.
    fn send(&mut self, card: usize, to: BridgePort, key: FrameHandle, view: &mut ServiceCpuView) {
        let member = usize::from(to.0).checked_sub(1).and_then(|at| self.cards[card].members.get(at));
        match member {
            // The back end drops and counts a frame without posted pages.
            Some(vif) => {
                self.backend.deliver(key, *vif, &mut view.host(&mut self.wires, self.domain));
            }
            None => self.depart(card, key, view),
        }
    }

    /// Sends a frame to the bridge's card, which applies the remaining offloads.
    fn depart(&mut self, card: usize, key: FrameHandle, view: &mut ServiceCpuView) {
        let PendingOffloads { csum_blank, segment } = self.backend.offload(&key);
        let offload = TxOffload { l4_checksum: csum_blank, tso: segment, ..TxOffload::default() };
        let mut host = view.host(&mut self.wires, self.domain);
        let length = self.backend.gather(&key, &mut host, &mut self.staging).unwrap_or(0);
        self.backend.discard(key);
        view.charge(CycleCategory::Driver, CostConstant::TxDriver);
        let (driver, frame) = (&mut self.cards[card].driver, &self.staging[..length]);
        let mut registers = view.card(card);
        let mut sent = driver.transmit(&mut registers, frame, &offload);
        if sent == Err(TxError::Full) {
            driver.clean(&mut registers);
            sent = driver.transmit(&mut registers, frame, &offload);
        }
        driver.flush(&mut registers);
        let count = if sent.is_ok() { &mut self.counts.departed } else { &mut self.counts.no_room };
        *count += 1;
    }
}
