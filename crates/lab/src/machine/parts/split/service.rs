//! The service domain's steps on the network: first events, then one turn of a softirq: a poll of a card, frames from
//! guests, frames to guests. Each is bounded, and they take turns, so that none starves another. Left out: when a
//! virtual CPU runs, which is the world's.

use super::host::Machine;
use super::{Card, Duty, Interface, Source, Split, Wires};
use crate::machine::chipset::Chipset;
use crate::machine::parts::card::Port as Hardware;
use crate::machine::parts::registers::Registers;
use driver::vf::{Event, TxError, TxOffload};
use hypervisor::account::{Category, Charge};
use hypervisor::cost::{Cost, CostTable};
use hypervisor::cpu::Step;
use hypervisor::domain::DomainId;
use hypervisor::grant::Handle;
use split::back::{Key, Taken};
use split::bridge::{Decision, Port};
use split::{Backend, Offload};

/// Frames of a turn.
const TURN: usize = 64;
/// The card's port of its bridge.
const CARD: Port = Port(0);

/// A virtual CPU of the service domain in a step, and what it reaches.
pub(crate) struct Around<'a> {
    pub(crate) cpu: usize,
    pub(crate) step: &'a mut Step,
    pub(crate) ports: &'a mut [Hardware],
    pub(crate) chipset: &'a mut Chipset,
    pub(crate) table: &'a CostTable,
    /// Cards, a bit each, whose registers were accessed.
    pub(crate) touched: u64,
}

impl Around<'_> {
    pub(super) fn charge(&mut self, category: Category, cost: Cost) {
        self.step.charge(category, self.table[cost]);
    }

    /// A card's VF as its driver reaches it.
    fn card(&mut self, card: usize) -> Registers<'_> {
        self.touched |= 1 << card;
        Registers {
            step: self.step,
            port: &mut self.ports[card],
            vf: 0,
            chipset: self.chipset,
            table: self.table,
        }
    }

    /// The machine as the back end reaches it.
    fn host<'b>(&'b mut self, wires: &'b mut Wires, domain: DomainId) -> Machine<'b> {
        Machine { wires, domain, step: self.step, table: self.table }
    }
}

impl Split {
    /// Gives away what should be elsewhere, or takes events, or tells guests, or has one turn. `false` if nothing was to
    /// be done.
    pub(crate) fn step(&mut self, around: &mut Around) -> bool {
        self.leave(around) || self.events(around) || self.tell(around) || (0..3).any(|_| self.turn(around))
    }

    /// Whether a virtual CPU has something to do, as far as it can know.
    pub(crate) fn has_work(&self, cpu: usize, chipset: &mut Chipset) -> bool {
        let due = chipset.channels.domain(self.domain).is_ok_and(|own| own.upcall_due(cpu as u16));
        let Duty { polls, tells, .. } = &self.duties[cpu];
        due || *tells || !polls.is_empty() || self.may_leave(cpu) || self.has_frames(cpu)
    }

    /// Whether a virtual CPU has a worker that has something to do.
    pub(crate) fn has_frames(&self, cpu: usize) -> bool {
        let has = |worker| self.backend.may_transmit(worker) || self.backend.may_receive(worker);
        self.workers_on(cpu).any(has)
    }

    fn workers_on(&self, cpu: usize) -> impl Iterator<Item = usize> {
        (0..self.backend.workers()).filter(move |worker| self.placing.workers[*worker].is_on(cpu))
    }

    /// Whether a virtual CPU needs a timer for events that its workers withhold: asked for once.
    pub(crate) fn needs_timer(&mut self, cpu: usize) -> bool {
        let withholds = self.workers_on(cpu).any(|worker| self.backend.withholds(worker));
        withholds && !core::mem::replace(&mut self.duties[cpu].has_timer, true)
    }

    /// A virtual CPU's timer has come: guests are to hear what was withheld.
    pub(crate) fn timer(&mut self, cpu: usize) {
        (self.duties[cpu].has_timer, self.duties[cpu].tells) = (false, true);
    }

    /// The next guest that was sent an event.
    pub(crate) fn next_notified(&mut self) -> Option<usize> {
        self.wires.notified.pop_front()
    }

    /// The card that a virtual CPU polls next.
    pub(crate) fn next_poll(&self, cpu: usize) -> Option<usize> {
        self.duties[cpu].polls.front().copied()
    }

    /// An upcall, with all its events.
    fn events(&mut self, around: &mut Around) -> bool {
        let vcpu = around.cpu as u16;
        let Ok(own) = around.chipset.channels.domain(self.domain) else { return false };
        if !own.enter_upcall(vcpu) {
            return false;
        }
        around.charge(Category::EventChannel, Cost::EventUpcall);
        while let Some(port) = around.chipset.channels.domain(self.domain).ok().and_then(|own| own.next(vcpu))
        {
            around.charge(Category::Kernel, Cost::InterruptEntry);
            match self.sources.get(usize::from(port)).copied().flatten() {
                Some(Source::Guest(vif)) => self.backend.event(vif),
                Some(Source::Card(card, vector)) => {
                    around.charge(Category::Driver, Cost::InterruptHandler);
                    let event = self.cards[card].driver.handle_interrupt(&mut around.card(card), vector);
                    if event == Event::Received {
                        self.schedule_poll(card);
                    }
                }
                None => {}
            }
        }
        if let Ok(own) = around.chipset.channels.domain(self.domain) {
            own.leave_upcall(vcpu);
        }
        true
    }

    /// A card is to be polled, where it is or where it arrives.
    fn schedule_poll(&mut self, card: usize) {
        let Card { place, is_due, .. } = &mut self.cards[card];
        let polls = &mut self.duties[place.cpu].polls;
        if place.is_away {
            *is_due = true;
        } else if !polls.contains(&card) {
            polls.push_back(card);
        }
    }

    /// After a timer, workers tell their guests of what they have withheld.
    fn tell(&mut self, around: &mut Around) -> bool {
        if !core::mem::take(&mut self.duties[around.cpu].tells) {
            return false;
        }
        around.charge(Category::Timer, Cost::HypervisorTick);
        let workers: Vec<usize> = self.workers_on(around.cpu).collect();
        for worker in workers {
            self.backend.tell(worker, &mut around.host(&mut self.wires, self.domain));
        }
        true
    }

    /// The next turn, if there is something to do in it.
    fn turn(&mut self, around: &mut Around) -> bool {
        let cpu = around.cpu;
        let turn = self.duties[cpu].turn;
        self.duties[cpu].turn = (turn + 1) % 3;
        let found = match turn {
            0 => self.duties[cpu].polls.pop_front(),
            1 => self.next_worker(cpu, Backend::may_transmit),
            _ => self.next_worker(cpu, Backend::may_receive),
        };
        let Some(found) = found else { return false };
        let began = around.step.began();
        match turn {
            0 => self.poll(found, around),
            1 => self.transmit(found, around),
            _ => self.receive(found, around),
        }
        if turn > 0 {
            self.placing.turn(found, began, around.step.now());
        }
        true
    }

    /// The next worker in turn on a virtual CPU that may do something.
    fn next_worker(&mut self, cpu: usize, may: fn(&Backend<Handle>, usize) -> bool) -> Option<usize> {
        let (count, last) = (self.backend.workers(), self.duties[cpu].worker);
        let mut turns = (1..=count).map(|step| (last + step) % count);
        let is_next =
            |worker: &usize| self.placing.workers[*worker].is_on(cpu) && may(&self.backend, *worker);
        let worker = turns.find(is_next)?;
        self.duties[cpu].worker = worker;
        Some(worker)
    }

    /// Polls a card: as many frames as there are, up to a turn's. If none is left the next may interrupt.
    fn poll(&mut self, card: usize, around: &mut Around) {
        around.charge(Category::Kernel, Cost::Softirq);
        around.charge(Category::Driver, Cost::NapiEntry);
        let mut taken = 0;
        while taken < TURN {
            let Some(key) = self.backend.vacant() else { break };
            let buffer = self.backend.buffer(&key);
            let received = self.cards[card].driver.receive(&mut around.card(card), buffer);
            let Ok(Some(received)) = received else {
                self.backend.discard(key);
                break;
            };
            self.backend.filled(&key, received.length, Offload::default());
            around.charge(Category::Driver, Cost::RxDriver);
            around.charge(Category::Kernel, Cost::RxSkb);
            taken += 1;
            self.counts.arrived += 1;
            self.forward(card, CARD, key, around);
        }
        if taken < TURN {
            self.cards[card].driver.receive_done(&mut around.card(card));
        } else {
            self.duties[around.cpu].polls.push_back(card);
        }
    }

    /// A worker's turn on frames from its guests: releases what has gone, then takes more.
    fn transmit(&mut self, worker: usize, around: &mut Around) {
        around.charge(Category::Kernel, Cost::Softirq);
        self.backend.release(worker, &mut around.host(&mut self.wires, self.domain), TURN);
        for _ in 0..TURN {
            match self.backend.take(worker, &mut around.host(&mut self.wires, self.domain)) {
                Taken::Frame(vif, key) => {
                    around.charge(Category::Backend, Cost::Backend);
                    let Interface { card, port, .. } = self.wires.interfaces[usize::from(vif.0)];
                    self.forward(card, Port(port), key, around);
                }
                Taken::Nothing => {}
                Taken::Idle => break,
            }
        }
    }

    /// A worker's turn on frames to its guests.
    fn receive(&mut self, worker: usize, around: &mut Around) {
        around.charge(Category::Kernel, Cost::Softirq);
        let table = around.table;
        let frames = self.backend.receive(worker, &mut around.host(&mut self.wires, self.domain), TURN);
        around.step.charge(Category::Backend, frames as u64 * table[Cost::Backend]);
    }

    /// A frame goes over a card's bridge.
    fn forward(&mut self, card: usize, from: Port, key: Key, around: &mut Around) {
        around.charge(Category::Bridge, Cost::Bridge);
        match self.cards[card].bridge.forward(from, self.backend.head(&key)) {
            Decision::To(to) => self.send(card, to, key, around),
            Decision::Filter => {
                self.counts.filtered += 1;
                self.backend.discard(key);
            }
            Decision::Flood => {
                let ports = 0..=self.cards[card].members.len() as u16;
                for to in ports.map(Port).filter(|to| *to != from) {
                    let mut host = around.host(&mut self.wires, self.domain);
                    if let Some(copy) = self.backend.duplicate(&key, &mut host) {
                        self.counts.duplicated += 1;
                        self.send(card, to, copy, around);
                    }
                }
                self.counts.filtered += 1;
                self.backend.discard(key);
            }
        }
    }

    /// A frame leaves the bridge at a port.
    fn send(&mut self, card: usize, to: Port, key: Key, around: &mut Around) {
        let member = usize::from(to.0).checked_sub(1).and_then(|at| self.cards[card].members.get(at));
        match member {
            // What has no room there is dropped, and counted by the back end.
            Some(vif) => {
                self.backend.deliver(key, *vif, &mut around.host(&mut self.wires, self.domain));
            }
            None => self.depart(card, key, around),
        }
    }

    /// A frame goes to a card, which does what was left undone.
    fn depart(&mut self, card: usize, key: Key, around: &mut Around) {
        let Offload { blank, segment } = self.backend.offload(&key);
        let offload = TxOffload { l4_checksum: blank, tso: segment, ..TxOffload::default() };
        let mut host = around.host(&mut self.wires, self.domain);
        let length = self.backend.gather(&key, &mut host, &mut self.staging).unwrap_or(0);
        self.backend.discard(key);
        around.charge(Category::Driver, Cost::TxDriver);
        let (driver, frame) = (&mut self.cards[card].driver, &self.staging[..length]);
        let mut registers = around.card(card);
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
