//! The driver domain's turn, where there is one: cards' interrupts, received frames to guests by exchanging pages, guests'
//! frames to cards by mapping theirs, and answers to what has left.

use super::wire::Frame;
use super::{Core, Event, Network, PORTS};
use crate::machine::parts::cdna::RING;
use hypervisor::account::{Category, Charge};
use hypervisor::cost::{Cost, CostTable};
use hypervisor::cpu::{Step, Then, VcpuId};
use std::collections::{BTreeSet, VecDeque};

/// Frames of a turn in each direction.
const TURN: usize = 32;

/// The driver domain.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) vcpu: VcpuId,
    /// An event pends.
    pub(super) told: bool,
    /// Cards that have interrupted.
    pub(super) interrupts: [bool; PORTS],
    /// What cards have received.
    from_card: [VecDeque<(usize, Frame)>; PORTS],
    /// What cards are to send.
    pub(super) to_card: [VecDeque<(usize, Frame)>; PORTS],
    /// Frames that have left: whose and where.
    pub(super) done: VecDeque<usize>,
    turn: usize,
}

impl Driver {
    pub(super) fn new(vcpu: VcpuId) -> Self {
        Self {
            vcpu,
            told: false,
            interrupts: [false; PORTS],
            from_card: Default::default(),
            to_card: Default::default(),
            done: VecDeque::new(),
            turn: 0,
        }
    }

    /// Takes the event that pends, with the interrupts that it is for.
    fn upcall(&mut self, step: &mut Step, table: &CostTable) {
        if !core::mem::take(&mut self.told) {
            return;
        }
        step.charge(Category::EventChannel, table[Cost::EventUpcall]);
        for interrupt in &mut self.interrupts {
            if core::mem::take(interrupt) {
                step.charge(Category::Kernel, table[Cost::InterruptEntry]);
                step.charge(Category::Driver, table[Cost::InterruptHandler]);
            }
        }
        step.charge(Category::Kernel, table[Cost::Softirq]);
    }

    /// A card receives a frame, if its ring has room.
    pub(super) fn takes(&mut self, port: usize, guest: usize, frame: Frame) -> bool {
        let has_room = self.from_card[port].len() < RING as usize;
        if has_room {
            self.from_card[port].push_back((guest, frame));
        }
        has_room
    }
}

impl Network {
    pub(super) fn execute_driver(&mut self, mut step: Step, core: &mut Core) {
        let table = &core.table;
        self.driver.upcall(&mut step, table);
        let mut called = self.hand_to_guests(&mut step, table);
        called.extend(self.driver.done.drain(..));
        let kicked = self.hand_to_cards(&mut step, table);
        for guest in &called {
            let guest = &self.guests[*guest];
            if !guest.told {
                let blocked = core.processors.is_blocked(guest.vcpu);
                let blocked = if blocked { table[Cost::EventBlocked] } else { 0 };
                step.charge(Category::EventChannel, table[Cost::EventSend] + blocked);
            }
        }
        let then = if self.driver_has_work() { Then::Continue } else { Then::Block };
        if then == Then::Block {
            step.charge(Category::Hypercall, table[Cost::HypercallPv]);
        }
        let done = step.now();
        core.finish(step, then);
        for guest in called {
            self.guests[guest].told = true;
            core.wake(self.guests[guest].vcpu, done);
        }
        for port in (0..PORTS).filter(|port| kicked[*port]) {
            core.schedule(done, Event::Kick(port));
        }
    }

    /// What cards have received goes over the bridge to guests, page by page; whose there is something for.
    fn hand_to_guests(&mut self, step: &mut Step, table: &CostTable) -> BTreeSet<usize> {
        let mut called = BTreeSet::new();
        for (port, frames) in self.driver.from_card.iter_mut().enumerate() {
            let count = frames.len().min(TURN);
            for (guest, frame) in frames.drain(..count) {
                step.charge(Category::Driver, table[Cost::RxDriver]);
                step.charge(Category::Kernel, table[Cost::RxSkb]);
                step.charge(Category::Bridge, table[Cost::Bridge]);
                step.charge(Category::Backend, table[Cost::Backend]);
                step.charge(Category::Grant, table[Cost::PageFlip]);
                self.guests[guest].streams[port].inbox.push_back(frame);
                called.insert(guest);
            }
        }
        called
    }

    /// What guests have sent goes over the bridge to cards, guest by guest; which cards got anything.
    fn hand_to_cards(&mut self, step: &mut Step, table: &CostTable) -> [bool; PORTS] {
        let mut kicked = [false; PORTS];
        let count = self.guests.len();
        for n in 0..count * PORTS {
            let (guest, port) = ((self.driver.turn + n / PORTS) % count, n % PORTS);
            let stream = &mut self.guests[guest].streams[port];
            let room = RING as usize - self.driver.to_card[port].len();
            let frames = stream.described.len().min(room).min(TURN / 2);
            for frame in stream.described.drain(..frames) {
                step.charge(Category::Grant, table[Cost::GrantMapUnmap]);
                step.charge(Category::Backend, table[Cost::Backend]);
                step.charge(Category::Bridge, table[Cost::Bridge]);
                step.charge(Category::Driver, table[Cost::TxDriver]);
                self.driver.to_card[port].push_back((guest, frame));
            }
            // The answer that frees the slots goes with the next event to the guest.
            stream.requested -= frames as u32;
            kicked[port] |= frames > 0;
        }
        self.driver.turn = (self.driver.turn + 1) % count.max(1);
        kicked
    }

    /// Whether there is more to do at once. Frames that wait for a full card wait for its interrupt.
    fn driver_has_work(&self) -> bool {
        let waits = |port: usize| self.guests.iter().any(|guest| !guest.streams[port].described.is_empty());
        let sends = |port: usize| self.driver.to_card[port].len() < RING as usize && waits(port);
        let receives = self.driver.from_card.iter().any(|frames| !frames.is_empty());
        receives || (0..PORTS).any(sends)
    }
}
