//! Executes steps of a guest of the single-processor machine: received frames, acknowledgements, data within
//! its windows, and descriptors for the card or requests to the driver domain.

use super::wire::{ModelFrame, PER_ACK};
use super::{CardDriver, PayloadDirection, SingleCpuCore, SingleCpuEvent, SingleCpuMachine};
use crate::machine::parts::cdna::card::{RECEIVE, TRANSMIT};
use crate::machine::parts::cdna::guard::CdnaGuardedRing;
use crate::machine::parts::cdna::{GuestNumber, PAGE, PageBuffer, RING};
use crate::machine::parts::channel::slots;
use ::guest::packet::TCP_PAYLOAD;
use hypervisor::account::{CycleCategory, CycleSink};
use hypervisor::cost::{CostConstant, CostTable};
use hypervisor::cpu::{PagingMode, Tlb, VcpuId, VcpuStep, VcpuStepOutcome};
use std::collections::VecDeque;

/// TCP segments that a program sends per system call: 16 KB.
const PER_CALL: u32 = 11;
/// Maximum number of TCP segments in a packet that a guest sends.
const MAX_SEGMENTS: u32 = 44;
/// Divisor of the window: a packet waits until a third of the window is open (Linux tcp_tso_win_divisor),
/// unless nothing is in flight.
const DEFERRED: u32 = 3;

/// Returns the number of memory pages that hold a guest's frame buffers for all ports.
pub(super) const fn pages(ports: usize) -> u64 {
    2 * ports as u64 * RING as u64
}

/// State of a guest of the single-processor machine: its streams and counters.
#[derive(Debug)]
pub(super) struct SingleCpuGuest {
    pub(super) vcpu: VcpuId,
    /// An event for the guest is pending.
    pub(super) event_pending: bool,
    /// Streams of the guest, by port.
    pub(super) streams: Vec<GuestStream>,
    /// Bytes of the guest's payload delivered to their destination.
    pub(super) payload: u64,
    /// Number of the guest's TCP segments given to cards or to the driver domain.
    pub(super) given: u64,
}

/// TCP stream of a guest over a port, with its rings there.
#[derive(Debug)]
pub(super) struct GuestStream {
    /// Frames that the guest received and has not processed yet.
    pub(super) inbox: VecDeque<ModelFrame>,
    /// Frames that the guest has posted to the card, or under Xen to the driver domain, and that have not
    /// been taken yet, oldest first.
    pub(super) described: VecDeque<ModelFrame>,
    pub(super) rings: [CdnaGuardedRing; 2],
    /// Number of segments of the stream that are not acknowledged.
    in_flight: u32,
    /// Number of segments that the guest received since its last acknowledgement.
    unacknowledged: u32,
    /// Number of acknowledgements that the guest has to send.
    acks: u32,
    /// Number of segments that the client received since its last acknowledgement.
    pub(super) client_unacknowledged: u32,
    /// Number of ring slots with a request of the guest to which the driver domain has not responded.
    pub(super) requested: u32,
    /// Indices of the next buffer of the stream's transmit ring and of its receive ring.
    pub(super) buffers: [u64; 2],
}

impl GuestStream {
    fn new(owner: GuestNumber) -> Self {
        Self {
            inbox: VecDeque::new(),
            described: VecDeque::new(),
            rings: [CdnaGuardedRing::new(owner), CdnaGuardedRing::new(owner)],
            in_flight: 0,
            unacknowledged: 0,
            acks: 0,
            client_unacknowledged: 0,
            requested: 0,
            buffers: [0; 2],
        }
    }

    /// Returns the number of segments of the stream's next packet, within the window and the free slots, or
    /// `None` if the packet must wait.
    fn next_packet(&self, (window, largest): (u32, u32), room: u32) -> Option<u32> {
        let open = window.saturating_sub(self.in_flight);
        let segments = open.min(largest);
        let waits = segments < largest && self.in_flight > 0 && open < window.div_ceil(DEFERRED);
        let fits = ModelFrame::Data(segments).slots() <= room;
        (segments > 0 && !waits && fits).then_some(segments)
    }
}

impl SingleCpuGuest {
    /// Returns the number of descriptors that reference the guest's pages.
    pub(super) fn described(&self) -> u64 {
        let rings = self.streams.iter().flat_map(|stream| &stream.rings);
        rings.map(|ring| u64::from(RING - ring.room())).sum()
    }
}

/// Step of a guest under simulation, with the cost table to charge for its work.
struct GuestVcpuStep<'a> {
    step: &'a mut VcpuStep,
    table: &'a CostTable,
    drive: CardDriver,
    /// The guest's network device offers segmentation, scatter-gather and checksums.
    offloads: bool,
    /// Paging mode of the kernel, which decides whether waking one of the guest's programs flushes the processor's TLB,
    /// and whether a received segment misses it.
    paging: PagingMode,
    /// Rate at which the kernel copies a program's payload to send.
    send_copy: CostConstant,
    /// Maximum number of ring slots that the guest processes per step, direction and port.
    most: u32,
}

/// Way in which received frames reach a guest's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameArrival {
    /// A card writes frames to the guest's pages.
    ByCard,
    /// The driver domain exchanges pages, which a card has written.
    Exchanged,
    /// The driver domain copies frames to the guest's pages.
    Copied,
}

impl FrameArrival {
    /// Returns the rate at which the kernel copies payload to a program. A frame that the driver domain has just copied
    /// is in the cache: 32 frames have 48 KB. What a card has written comes from memory.
    fn copy(self) -> CostConstant {
        match self {
            Self::ByCard | Self::Exchanged => CostConstant::CopyCold,
            Self::Copied => CostConstant::CopyWarm,
        }
    }
}

/// Frames that a guest sent over a port in one step.
#[derive(Debug, Default)]
struct SentFrames {
    acks: u32,
    segments: u32,
    slots: u32,
    packets: Vec<ModelFrame>,
}

impl GuestVcpuStep<'_> {
    fn charge(&mut self, category: CycleCategory, cost: CostConstant, times: u32) {
        self.step.charge(category, self.table[cost] * u64::from(times));
    }

    /// Charges the guest's program for a copy of segments at a rate, which includes their checksum.
    fn copy(&mut self, rate: CostConstant, segments: u32) {
        let bytes = ModelFrame::Data(segments).payload();
        self.step.charge(CycleCategory::User, self.table.bytes(rate, bytes));
    }

    /// Charges a wake-up of a guest's program, which is a switch from another program.
    fn wake(&mut self, cost: CostConstant, calls: u32) {
        self.charge(CycleCategory::User, cost, calls);
        self.step.charge(CycleCategory::Refill, Tlb::new(self.table).switch(self.paging));
    }

    /// Charges the guest's driver for `times` frames: `own` per frame for a card's driver, or the front end's
    /// cost under Xen. A driver domain that runs programs of its own is also charged for its bridge.
    fn driver(&mut self, own: CostConstant, times: u32) {
        let cost = if self.drive == CardDriver::Xen { CostConstant::Frontend } else { own };
        self.charge(CycleCategory::Driver, cost, times);
        if self.drive == CardDriver::Own {
            self.charge(CycleCategory::Bridge, CostConstant::Bridge, times);
        }
    }

    /// Charges the posting of `count` buffers: the hypervisor fills the ring and the guest notifies the card;
    /// without protection, the guest does both.
    fn describe(&mut self, count: u32) {
        if self.drive == CardDriver::Cdna {
            self.charge(CycleCategory::Hypercall, CostConstant::HypercallPv, 1);
            self.charge(CycleCategory::Hypercall, CostConstant::EnqueueCheck, count);
        }
        self.charge(CycleCategory::Driver, CostConstant::MmioWrite, 1);
    }

    /// Takes the received frames of a stream and charges for their processing. Returns their number.
    fn receive(&mut self, stream: &mut GuestStream, arrival: FrameArrival) -> u32 {
        let count = self.most.min(stream.inbox.len() as u32);
        let segments: u32 = stream.inbox.drain(..count as usize).map(ModelFrame::segments).sum();
        self.driver(CostConstant::RxDriver, count);
        if arrival == FrameArrival::Exchanged {
            // Four entries of multicalls, at half a hypercall each: a multicall saves the traps, not the entries. Xen's
            // front end maps the page and writes its machine address (`netif_poll`), and unmaps and releases another
            // one (`network_alloc_rx_buffers`).
            self.charge(CycleCategory::Hypercall, CostConstant::HypercallPv, 2 * count);
        }
        self.charge(CycleCategory::Kernel, CostConstant::RxSkb, count);
        self.charge(CycleCategory::Kernel, CostConstant::RxTcp, segments);
        self.charge(CycleCategory::Kernel, CostConstant::RxPureAck, count - segments);
        if segments > 0 {
            self.wake(CostConstant::RxWake, 1);
            self.copy(arrival.copy(), segments);
            // Between switches too: small pages of a segment's path may not fit the TLB together.
            let misses = Tlb::new(self.table).packet(self.paging, TCP_PAYLOAD as u64);
            self.step.charge(CycleCategory::Refill, misses * u64::from(segments));
        }
        stream.unacknowledged += segments;
        let acks = stream.unacknowledged / PER_ACK;
        stream.unacknowledged %= PER_ACK;
        self.charge(CycleCategory::Kernel, CostConstant::RxAck, acks);
        stream.acks += acks;
        stream.in_flight -= (count - segments) * PER_ACK;
        count
    }

    /// Takes the next acknowledgements and packets of a stream, as many as fit the ring and the window, and
    /// charges for sending these.
    fn transmit(&mut self, stream: &mut GuestStream, window: u32, room: u32) -> SentFrames {
        let acks = stream.acks.min(room);
        let mut sent = SentFrames { acks, slots: acks, ..SentFrames::default() };
        stream.acks -= acks;
        let largest = if self.offloads { MAX_SEGMENTS } else { 1 };
        while sent.slots - acks < self.most
            && let Some(segments) = stream.next_packet((window, largest), room - sent.slots)
        {
            let packet = ModelFrame::Data(segments);
            stream.in_flight += segments;
            sent.segments += segments;
            sent.slots += packet.slots();
            sent.packets.push(packet);
        }
        if sent.segments > 0 {
            self.wake(CostConstant::TxSyscall, sent.segments.div_ceil(PER_CALL));
            if !self.offloads {
                self.copy(self.send_copy, sent.segments);
            }
            self.charge(CycleCategory::Kernel, CostConstant::TxStack, sent.packets.len() as u32);
        }
        self.driver(CostConstant::TxDriver, sent.slots);
        stream.described.extend((0..acks).map(|_| ModelFrame::Ack));
        stream.described.extend(&sent.packets);
        sent
    }
}

impl SingleCpuMachine {
    /// Adds a guest with its pages, and a context of each card with every receive buffer posted.
    pub(super) fn add_guest(&mut self, vcpu: VcpuId) {
        let (at, ports) = (self.guests.len(), self.ports.len());
        let domain = at as GuestNumber;
        for page in 0..pages(ports) {
            self.pages.give(at as u64 * pages(ports) + page, domain);
        }
        let streams = (0..ports).map(|_| GuestStream::new(domain)).collect();
        self.guests.push(SingleCpuGuest { vcpu, event_pending: false, streams, payload: 0, given: 0 });
        for port in 0..ports {
            self.ports[port].card.assign(domain);
            if self.drive != CardDriver::Xen {
                self.describe(at, port, RECEIVE, RING);
            }
        }
    }

    /// Returns the payload sent or received by guests, in bytes.
    pub(super) fn payload(&self) -> u64 {
        self.guests.iter().map(|guest| guest.payload).sum()
    }

    /// Returns the index of the first page of a guest's buffers for a port and direction.
    pub(super) fn first_page(&self, guest: usize, port: usize, direction: usize) -> u64 {
        guest as u64 * pages(self.ports.len()) + (port * 2 + direction) as u64 * u64::from(RING)
    }

    /// Posts `count` of a guest's buffers on the ring of the guest's context, and notifies the card.
    fn describe(&mut self, guest: usize, port: usize, direction: usize, count: u32) {
        let first = self.first_page(guest, port, direction);
        let stream = &mut self.guests[guest].streams[port];
        let batch: Vec<PageBuffer> = (0..u64::from(count))
            .map(|n| first + (stream.buffers[direction] + n) % u64::from(RING))
            .map(|page| PageBuffer { address: page * PAGE, length: 1_514 })
            .collect();
        stream.buffers[direction] += u64::from(count);
        let (card, owner) = (&mut self.ports[port].card, guest as GuestNumber);
        let consumed = card.consumed(guest, direction);
        let index = stream.rings[direction].enqueue(owner, &batch, consumed, &mut self.pages);
        let index = index.expect("the batch has the guest's own pages and fits the ring");
        card.mailbox(owner, guest, direction, index);
    }

    pub(super) fn execute_guest(&mut self, at: usize, mut step: VcpuStep, core: &mut SingleCpuCore) {
        let is_native = self.drive == CardDriver::Native;
        let (offloads, paging, send_copy, most) =
            (self.channel.offloads, self.paging, self.send_copy, self.turn);
        let (drive, table) = (self.drive, &core.table);
        let mut turn = GuestVcpuStep { step: &mut step, table, drive, offloads, paging, send_copy, most };
        let mut kicked = vec![false; self.ports.len()];
        let mut asks = false;
        if core::mem::take(&mut self.guests[at].event_pending) {
            turn.charge(CycleCategory::EventChannel, CostConstant::EventUpcall, u32::from(!is_native));
            turn.charge(CycleCategory::Kernel, CostConstant::InterruptEntry, 1);
            turn.charge(CycleCategory::Driver, CostConstant::InterruptHandler, 1);
            turn.charge(CycleCategory::Kernel, CostConstant::Softirq, 1);
            turn.charge(CycleCategory::Driver, CostConstant::NapiEntry, 1);
        }
        for (port, kicked) in kicked.iter_mut().enumerate() {
            let sent = self.exchange(at, port, &mut turn);
            *kicked = sent && self.drive != CardDriver::Xen;
            asks |= sent && self.drive == CardDriver::Xen;
        }
        let notifies = asks && !core::mem::replace(&mut self.driver.event_pending, true);
        if notifies {
            turn.charge(CycleCategory::Hypercall, CostConstant::HypercallPv, 1);
            turn.charge(CycleCategory::EventChannel, CostConstant::EventSend, 1);
            if core.processors.is_blocked(self.driver.vcpu) {
                turn.charge(CycleCategory::EventChannel, CostConstant::EventBlocked, 1);
            }
        }
        let then = if self.has_work(at) { VcpuStepOutcome::Continue } else { VcpuStepOutcome::Block };
        if then == VcpuStepOutcome::Block && !is_native {
            turn.charge(CycleCategory::Hypercall, CostConstant::HypercallPv, 1);
        }
        let done = step.now();
        core.finish(step, then);
        if notifies {
            core.wake(self.driver.vcpu, done);
        }
        for (port, _) in kicked.iter().enumerate().filter(|(_, kicked)| **kicked) {
            core.schedule(done, SingleCpuEvent::Kick(port));
        }
    }

    /// Receives a guest's frames of a port, and sends the frames that the window allows. Returns `true` if
    /// any frame was sent.
    fn exchange(&mut self, at: usize, port: usize, turn: &mut GuestVcpuStep) -> bool {
        let stream = &mut self.guests[at].streams[port];
        let arrival = match self.drive {
            CardDriver::Xen if self.channel.by_address => FrameArrival::Copied,
            CardDriver::Xen => FrameArrival::Exchanged,
            _ => FrameArrival::ByCard,
        };
        let received = turn.receive(stream, arrival);
        let window = if self.direction == PayloadDirection::Transmit { self.window } else { 0 };
        let room = match self.drive {
            CardDriver::Xen => RING - stream.requested,
            _ => {
                let consumed = self.ports[port].card.consumed(at, TRANSMIT);
                stream.rings[TRANSMIT].release(consumed, &mut self.pages);
                stream.rings[TRANSMIT].room()
            }
        };
        let sent = turn.transmit(stream, window, room);
        let payload = if window > 0 { sent.segments } else { sent.acks * PER_ACK };
        self.guests[at].payload += ModelFrame::Data(payload).payload();
        self.guests[at].given += u64::from(sent.segments);
        let packets = sent.acks + sent.packets.len() as u32;
        if self.drive == CardDriver::Xen {
            self.guests[at].streams[port].requested += sent.slots;
        } else {
            for (direction, count) in [(TRANSMIT, packets), (RECEIVE, received)] {
                if count > 0 {
                    self.describe(at, port, direction, count);
                    turn.describe(count);
                }
            }
        }
        packets > 0
    }

    /// Returns `true` if a guest has work that it can do without a notification from a card or the driver
    /// domain.
    fn has_work(&self, at: usize) -> bool {
        let window = if self.direction == PayloadDirection::Transmit { self.window } else { 0 };
        let largest = if self.channel.offloads { MAX_SEGMENTS } else { 1 };
        self.guests[at].streams.iter().any(|stream| {
            let room = match self.drive {
                CardDriver::Xen => RING - stream.requested,
                _ => stream.rings[TRANSMIT].room(),
            };
            let sends = stream.next_packet((window, largest), room).is_some();
            !stream.inbox.is_empty() || room > 0 && stream.acks > 0 || sends
        })
    }
}

impl ModelFrame {
    /// Returns the number of ring slots, or card buffers, that a frame occupies.
    pub(super) fn slots(self) -> u32 {
        slots(self.payload() as usize)
    }
}
