//! A guest's turn: what has come, acknowledgements, what its windows allow, and descriptors for the card or requests to
//! the driver domain.

use super::wire::{Frame, PER_ACK};
use super::{Core, Direction, Drive, Event, Network, PAGES, PORTS};
use crate::machine::parts::cdna::card::{RECEIVE, TRANSMIT};
use crate::machine::parts::cdna::guard::Guard;
use crate::machine::parts::cdna::{Buffer, Domain, PAGE, RING};
use guest::packet::TCP_PAYLOAD;
use hypervisor::account::{Category, Charge};
use hypervisor::cost::{Cost, CostTable};
use hypervisor::cpu::{Step, Then, VcpuId};
use std::collections::VecDeque;

/// Frames of a turn in each direction on each port.
const TURN: u32 = 16;
/// Segments of a system call: 16 KB.
const PER_CALL: u32 = 11;

/// A guest.
#[derive(Debug)]
pub(super) struct Guest {
    pub(super) vcpu: VcpuId,
    /// An event pends.
    pub(super) told: bool,
    pub(super) streams: [Stream; PORTS],
    /// Payload that has gone where it was to go.
    pub(super) payload: u64,
}

/// A guest's stream over a port, and its rings there.
#[derive(Debug)]
pub(super) struct Stream {
    /// What has come, and was not looked at.
    pub(super) inbox: VecDeque<Frame>,
    /// Frames described to the card, in order; to the driver domain, if that drives.
    pub(super) described: VecDeque<Frame>,
    pub(super) rings: [Guard; 2],
    /// Segments that are not acknowledged.
    under_way: u32,
    /// Segments received since the last acknowledgement; acknowledgements to be sent.
    owes: u32,
    acks: u32,
    /// Segments that the client has received since its last.
    pub(super) client_owes: u32,
    /// Requests to the driver domain without an answer.
    pub(super) requested: u32,
    /// The next buffers of either ring.
    buffers: [u64; 2],
}

impl Stream {
    fn new(owner: Domain) -> Self {
        Self {
            inbox: VecDeque::new(),
            described: VecDeque::new(),
            rings: [Guard::new(owner), Guard::new(owner)],
            under_way: 0,
            owes: 0,
            acks: 0,
            client_owes: 0,
            requested: 0,
            buffers: [0; 2],
        }
    }
}

impl Guest {
    /// Descriptors that refer to its pages.
    pub(super) fn described(&self) -> u64 {
        let rings = self.streams.iter().flat_map(|stream| &stream.rings);
        rings.map(|ring| u64::from(RING - ring.room())).sum()
    }
}

/// A guest's turn, and what it costs.
struct Turn<'a> {
    step: &'a mut Step,
    table: &'a CostTable,
    drive: Drive,
}

impl Turn<'_> {
    fn charge(&mut self, category: Category, cost: Cost, times: u32) {
        self.step.charge(category, self.table[cost] * u64::from(times));
    }

    /// The program's copy of segments: nothing of them is in the cache.
    fn copy(&mut self, segments: u32) {
        let bytes = u64::from(segments) * TCP_PAYLOAD as u64;
        self.step.charge(Category::User, self.table.bytes(Cost::CopyCold, bytes));
    }

    /// A frame in the guest's driver: the card's, or a front end.
    fn driver(&mut self, own: Cost, times: u32) {
        let cost = if self.drive == Drive::Xen { Cost::Frontend } else { own };
        self.charge(Category::Driver, cost, times);
    }

    /// The hypervisor puts descriptors on a ring and the guest tells the card; without protection, the guest does both.
    fn describe(&mut self, count: u32) {
        if self.drive == Drive::Cdna {
            self.charge(Category::Hypercall, Cost::HypercallPv, 1);
            self.charge(Category::Hypercall, Cost::EnqueueCheck, count);
        }
        self.charge(Category::Driver, Cost::MmioWrite, 1);
    }

    /// What has come over one stream: how many frames were looked at.
    fn receive(&mut self, stream: &mut Stream) -> u32 {
        let count = TURN.min(stream.inbox.len() as u32);
        let frames = stream.inbox.drain(..count as usize);
        let segments = frames.filter(|frame| *frame == Frame::Data).count() as u32;
        self.driver(Cost::RxDriver, count);
        if self.drive == Drive::Xen {
            // In one call for all, each page that came is mapped, and another is given away.
            self.charge(Category::Hypercall, Cost::HypercallPv, 2 * count);
        }
        self.charge(Category::Kernel, Cost::RxSkb, count);
        self.charge(Category::Kernel, Cost::RxTcp, count);
        if segments > 0 {
            self.charge(Category::User, Cost::RxWake, 1);
            self.copy(segments);
        }
        stream.owes += segments;
        let acks = stream.owes / PER_ACK;
        stream.owes %= PER_ACK;
        self.charge(Category::Kernel, Cost::RxAck, acks);
        stream.acks += acks;
        stream.under_way -= (count - segments) * PER_ACK;
        count
    }

    /// What is to be sent over one stream, as far as there is room: acknowledgements first.
    fn transmit(&mut self, stream: &mut Stream, window: u32, room: u32) -> (u32, u32) {
        let acks = stream.acks.min(room);
        let segments = (window - stream.under_way).min(room - acks).min(TURN);
        self.charge(Category::User, Cost::TxSyscall, segments.div_ceil(PER_CALL));
        self.copy(segments);
        self.charge(Category::Kernel, Cost::TxStack, segments);
        self.driver(Cost::TxDriver, segments + acks);
        stream.acks -= acks;
        stream.under_way += segments;
        stream.described.extend((0..acks).map(|_| Frame::Ack));
        stream.described.extend((0..segments).map(|_| Frame::Data));
        (acks, segments)
    }
}

impl Network {
    /// Adds a guest: pages, and a context of each card with every receive buffer posted.
    pub(super) fn add_guest(&mut self, vcpu: VcpuId) {
        let at = self.guests.len();
        let domain = at as Domain;
        for page in 0..PAGES {
            self.pages.give(at as u64 * PAGES + page, domain);
        }
        let streams = [Stream::new(domain), Stream::new(domain)];
        self.guests.push(Guest { vcpu, told: false, streams, payload: 0 });
        for port in 0..PORTS {
            self.ports[port].card.assign(domain);
            if self.drive != Drive::Xen {
                self.describe(at, port, RECEIVE, RING);
            }
        }
    }

    /// Payload that guests have sent or received, bytes.
    pub(super) fn payload(&self) -> u64 {
        self.guests.iter().map(|guest| guest.payload).sum()
    }

    /// Puts buffers on a context's ring and tells the card.
    fn describe(&mut self, guest: usize, port: usize, direction: usize, count: u32) {
        let stream = &mut self.guests[guest].streams[port];
        let first = guest as u64 * PAGES + (port * 2 + direction) as u64 * u64::from(RING);
        let batch: Vec<Buffer> = (0..u64::from(count))
            .map(|n| first + (stream.buffers[direction] + n) % u64::from(RING))
            .map(|page| Buffer { address: page * PAGE, length: 1_514 })
            .collect();
        stream.buffers[direction] += u64::from(count);
        let (card, owner) = (&mut self.ports[port].card, guest as Domain);
        let consumed = card.consumed(guest, direction);
        let index = stream.rings[direction].enqueue(owner, &batch, consumed, &mut self.pages);
        let index = index.expect("a guest's own pages, and no more than there is room for");
        card.mailbox(owner, guest, direction, index);
    }

    pub(super) fn execute_guest(&mut self, at: usize, mut step: Step, core: &mut Core) {
        let mut turn = Turn { step: &mut step, table: &core.table, drive: self.drive };
        let mut kicked = [false; PORTS];
        let mut asks = false;
        if core::mem::take(&mut self.guests[at].told) {
            turn.charge(Category::EventChannel, Cost::EventUpcall, 1);
            turn.charge(Category::Kernel, Cost::InterruptEntry, 1);
            turn.charge(Category::Driver, Cost::InterruptHandler, 1);
            turn.charge(Category::Kernel, Cost::Softirq, 1);
            turn.charge(Category::Driver, Cost::NapiEntry, 1);
        }
        for (port, kicked) in kicked.iter_mut().enumerate() {
            let sent = self.exchange(at, port, &mut turn);
            *kicked = sent && self.drive != Drive::Xen;
            asks |= sent && self.drive == Drive::Xen;
        }
        let notifies = asks && !core::mem::replace(&mut self.driver.told, true);
        if notifies {
            turn.charge(Category::Hypercall, Cost::HypercallPv, 1);
            turn.charge(Category::EventChannel, Cost::EventSend, 1);
            if core.processors.is_blocked(self.driver.vcpu) {
                turn.charge(Category::EventChannel, Cost::EventBlocked, 1);
            }
        }
        let then = if self.has_work(at) { Then::Continue } else { Then::Block };
        if then == Then::Block {
            turn.charge(Category::Hypercall, Cost::HypercallPv, 1);
        }
        let done = step.now();
        core.finish(step, then);
        if notifies {
            core.wake(self.driver.vcpu, done);
        }
        for port in (0..PORTS).filter(|port| kicked[*port]) {
            core.schedule(done, Event::Kick(port));
        }
    }

    /// A guest takes what has come over a port and sends what it may; whether it has sent anything.
    fn exchange(&mut self, at: usize, port: usize, turn: &mut Turn) -> bool {
        let stream = &mut self.guests[at].streams[port];
        let received = turn.receive(stream);
        let window = if self.direction == Direction::Transmit { self.window } else { 0 };
        let room = match self.drive {
            Drive::Xen => RING - stream.requested,
            _ => {
                let consumed = self.ports[port].card.consumed(at, TRANSMIT);
                stream.rings[TRANSMIT].release(consumed, &mut self.pages);
                stream.rings[TRANSMIT].room()
            }
        };
        let (acks, segments) = turn.transmit(stream, window, room);
        let payload = if window > 0 { segments } else { acks * PER_ACK };
        self.guests[at].payload += u64::from(payload) * TCP_PAYLOAD as u64;
        if self.drive == Drive::Xen {
            self.guests[at].streams[port].requested += acks + segments;
        } else {
            for (direction, count) in [(TRANSMIT, acks + segments), (RECEIVE, received)] {
                if count > 0 {
                    self.describe(at, port, direction, count);
                    turn.describe(count);
                }
            }
        }
        acks + segments > 0
    }

    /// Whether a guest can do more without hearing of anything.
    fn has_work(&self, at: usize) -> bool {
        let transmits = self.direction == Direction::Transmit;
        self.guests[at].streams.iter().any(|stream| {
            let room = match self.drive {
                Drive::Xen => RING - stream.requested,
                _ => stream.rings[TRANSMIT].room(),
            };
            let more = stream.acks > 0 || transmits && stream.under_way < self.window;
            !stream.inbox.is_empty() || room > 0 && more
        })
    }
}
