//! Executes steps of the driver domain: interrupts of cards, received frames to guests by page exchange or copy,
//! guests' packets to cards, whole or segmented, and responses to sent packets.

use super::wire::ModelFrame;
use super::{PacketChannelOptions, SingleCpuCore, SingleCpuEvent, SingleCpuMachine};
use crate::machine::parts::cdna::card::TRANSMIT;
use crate::machine::parts::cdna::{GuestNumber, PAGE, PageBuffer, RING};
use crate::machine::parts::channel::offload::cut;
use crate::machine::parts::channel::{DriverDomainPacket, PacketChannelRequest, accept};
use guest::packet::{self, TCP_HEADERS, TCP_PAYLOAD};
use hypervisor::account::{CycleCategory, CycleSink};
use hypervisor::cost::{CostConstant, CostTable};
use hypervisor::cpu::{VcpuId, VcpuStep, VcpuStepOutcome};
use i82576::MacAddress;
use split::PendingOffloads;
use std::collections::{BTreeSet, VecDeque};

/// Frame to send, with the index of its guest; under a driver domain also the packet whose pages are released once the
/// frame has left.
#[derive(Debug)]
pub(super) struct OutgoingFrame {
    pub(super) guest: usize,
    pub(super) frame: ModelFrame,
    pub(super) packet: Option<DriverDomainPacket>,
}

impl OutgoingFrame {
    fn pages(&self) -> u64 {
        self.packet.as_ref().map_or(0, |packet| packet.pages() as u64)
    }
}

/// State of the driver domain: pending interrupts, and frames between cards and guests.
#[derive(Debug)]
pub(super) struct DriverDomain {
    pub(super) vcpu: VcpuId,
    /// An event of a guest for the driver domain is pending.
    pub(super) event_pending: bool,
    /// Flag for each card that is set while the card's interrupt is pending.
    pub(super) interrupts: Vec<bool>,
    /// Frames received from each card that wait for the driver domain, each with the index of the guest that receives
    /// it.
    from_card: Vec<VecDeque<(usize, ModelFrame)>>,
    /// Frames of guests that wait to be sent, one queue per card.
    pub(super) to_card: Vec<VecDeque<OutgoingFrame>>,
    /// Guests, by index, whose frames were sent and whose requests the driver domain has to answer on the ring.
    pub(super) done: VecDeque<usize>,
    turn: usize,
    /// Number of guests' transmit requests that were inconsistent or whose segmentation failed.
    pub(super) refused: u64,
    /// Number of packets that a card read from a page of another domain than the sending guest.
    pub(super) stray_reads: u64,
}

/// Step of the driver domain under simulation, with the cost table to charge for its work.
struct DriverDomainVcpuStep<'a> {
    step: &'a mut VcpuStep,
    table: &'a CostTable,
    channel: PacketChannelOptions,
    /// A page was exchanged in this step.
    has_exchanged: bool,
}

impl DriverDomainVcpuStep<'_> {
    fn charge(&mut self, category: CycleCategory, cost: CostConstant, times: u32) {
        self.step.charge(category, self.table[cost] * u64::from(times));
    }

    fn copy(&mut self, category: CycleCategory, bytes: u64) {
        self.step.charge(category, self.table.bytes(CostConstant::CopyCold, bytes));
    }

    /// Charges for passing a frame from a card over the bridge into a guest's page. As in Xen's back end
    /// (`net_rx_action`), the exchanges of a step are entries of one multicall. So the first pays for the trap and the TLB
    /// flush too.
    fn receive(&mut self, frame: ModelFrame) {
        self.charge(CycleCategory::Driver, CostConstant::RxDriver, 1);
        self.charge(CycleCategory::Kernel, CostConstant::RxSkb, 1);
        self.charge(CycleCategory::Bridge, CostConstant::Bridge, 1);
        self.charge(CycleCategory::Backend, CostConstant::Backend, 1);
        if self.channel.by_address {
            self.charge(CycleCategory::Grant, CostConstant::GrantCopy, 1);
            self.copy(CycleCategory::Grant, TCP_HEADERS as u64 + frame.payload());
        } else {
            let is_first = !core::mem::replace(&mut self.has_exchanged, true);
            let cost = if is_first { CostConstant::PageFlip } else { CostConstant::PageFlipBatched };
            self.charge(CycleCategory::Grant, cost, 1);
        }
    }

    /// Charges for passing a guest's packet over the bridge to a card, in `frames` frames.
    fn transmit(&mut self, packet: &DriverDomainPacket, frame: ModelFrame, frames: u32) {
        let is_cut = frames > 1;
        if self.channel.by_address {
            self.charge(CycleCategory::Grant, CostConstant::GrantCopy, 1);
            self.copy(CycleCategory::Grant, packet.header().len() as u64);
            self.charge(CycleCategory::Grant, CostConstant::GrantAddress, packet.pages() as u32);
        }
        // Payload that software copies must be mapped.
        if !self.channel.by_address || is_cut {
            self.charge(CycleCategory::Grant, CostConstant::GrantMapUnmap, frame.slots());
        }
        self.charge(CycleCategory::Backend, CostConstant::Backend, 1);
        self.charge(CycleCategory::Bridge, CostConstant::Bridge, 1);
        if is_cut {
            self.charge(CycleCategory::Kernel, CostConstant::CutSegment, frames);
            self.copy(CycleCategory::Kernel, frame.payload());
        }
        self.charge(
            CycleCategory::Driver,
            CostConstant::TxDriver,
            if is_cut { frames } else { frame.slots() },
        );
    }
}

impl DriverDomain {
    pub(super) fn new(vcpu: VcpuId, ports: usize) -> Self {
        Self {
            vcpu,
            event_pending: false,
            interrupts: vec![false; ports],
            from_card: vec![VecDeque::new(); ports],
            to_card: (0..ports).map(|_| VecDeque::new()).collect(),
            done: VecDeque::new(),
            turn: 0,
            refused: 0,
            stray_reads: 0,
        }
    }

    /// Charges a step for the driver domain's pending event, with its card interrupts.
    fn upcall(&mut self, step: &mut VcpuStep, table: &CostTable) {
        if !core::mem::take(&mut self.event_pending) {
            return;
        }
        step.charge(CycleCategory::EventChannel, table[CostConstant::EventUpcall]);
        for interrupt in &mut self.interrupts {
            if core::mem::take(interrupt) {
                step.charge(CycleCategory::Kernel, table[CostConstant::InterruptEntry]);
                step.charge(CycleCategory::Driver, table[CostConstant::InterruptHandler]);
            }
        }
        step.charge(CycleCategory::Kernel, table[CostConstant::Softirq]);
    }

    /// Queues a frame that a card received for a guest. Returns `false` if the driver domain's receive ring is full.
    pub(super) fn takes(&mut self, port: usize, guest: usize, frame: ModelFrame) -> bool {
        let has_room = self.from_card[port].len() < RING as usize;
        if has_room {
            self.from_card[port].push_back((guest, frame));
        }
        has_room
    }
}

impl SingleCpuMachine {
    pub(super) fn execute_driver(&mut self, mut step: VcpuStep, core: &mut SingleCpuCore) {
        let table = &core.table;
        self.driver.upcall(&mut step, table);
        let channel = self.channel;
        let mut turn = DriverDomainVcpuStep { step: &mut step, table, channel, has_exchanged: false };
        let mut called = self.hand_to_guests(&mut turn);
        called.extend(self.driver.done.drain(..));
        let kicked = self.hand_to_cards(&mut turn);
        for guest in &called {
            let guest = &self.guests[*guest];
            if !guest.event_pending {
                let blocked = core.processors.is_blocked(guest.vcpu);
                let blocked = if blocked { table[CostConstant::EventBlocked] } else { 0 };
                step.charge(CycleCategory::EventChannel, table[CostConstant::EventSend] + blocked);
            }
        }
        let then = if self.driver_has_work() { VcpuStepOutcome::Continue } else { VcpuStepOutcome::Block };
        if then == VcpuStepOutcome::Block {
            step.charge(CycleCategory::Hypercall, table[CostConstant::HypercallPv]);
        }
        let done = step.now();
        core.finish(step, then);
        for guest in called {
            self.guests[guest].event_pending = true;
            core.wake(self.guests[guest].vcpu, done);
        }
        for port in kicked {
            core.schedule(done, SingleCpuEvent::Kick(port));
        }
    }

    /// Passes frames received by cards over the bridge to guests. Returns the guests to notify.
    fn hand_to_guests(&mut self, turn: &mut DriverDomainVcpuStep) -> BTreeSet<usize> {
        let mut called = BTreeSet::new();
        for (port, frames) in self.driver.from_card.iter_mut().enumerate() {
            let count = frames.len().min(self.driver_turn);
            for (guest, frame) in frames.drain(..count) {
                turn.receive(frame);
                self.guests[guest].streams[port].inbox.push_back(frame);
                called.insert(guest);
            }
        }
        called
    }

    /// Passes guests' packets over the bridge to cards. Returns the cards with new frames. As Xen's back end, takes one
    /// packet of an interface, and the next one after all other interfaces' (`net_tx_action`). So the frames of guests
    /// alternate on the wires, and each guest learns of few sent frames at a time.
    fn hand_to_cards(&mut self, turn: &mut DriverDomainVcpuStep) -> BTreeSet<usize> {
        let mut kicked = BTreeSet::new();
        let (count, ports) = (self.guests.len(), self.ports.len());
        for _ in 0..(self.driver_turn / 2).max(1) {
            let mut is_done = true;
            for n in 0..count * ports {
                let (guest, port) = ((self.driver.turn + n / ports) % count, n % ports);
                if self.hand_over(guest, port, turn) {
                    kicked.insert(port);
                    is_done = false;
                }
            }
            if is_done {
                break;
            }
        }
        self.driver.turn = (self.driver.turn + 1) % count.max(1);
        kicked
    }

    /// Passes a guest's next packet to a card. Returns `false` if there is no packet or the card has no room for it.
    fn hand_over(&mut self, guest: usize, port: usize, turn: &mut DriverDomainVcpuStep) -> bool {
        let Some(frame) = self.guests[guest].streams[port].described.front().copied() else { return false };
        let frames = self.frames_of(frame);
        if self.driver.to_card[port].len() + frames as usize > RING as usize {
            return false;
        }
        let request = self.request(guest, port, frame);
        let stream = &mut self.guests[guest].streams[port];
        stream.described.pop_front();
        // The response that frees the slots is sent with the guest's next event.
        stream.requested -= frame.slots();
        let Ok(packet) = accept(&request, guest as GuestNumber, &mut self.pages) else {
            self.driver.refused += 1;
            return true;
        };
        turn.transmit(&packet, frame, frames);
        let queue = &mut self.driver.to_card[port];
        if frames == 1 {
            queue.push_back(OutgoingFrame { guest, frame, packet: Some(packet) });
            return true;
        }
        let cut = cut(&packet).into_iter().filter(|segment| segment.length == TCP_PAYLOAD).count();
        self.driver.refused += u64::from(cut != frames as usize);
        // The guest's pages are released with the last segment.
        queue.extend((1..frames).map(|_| OutgoingFrame { guest, frame: ModelFrame::Data(1), packet: None }));
        queue.push_back(OutgoingFrame { guest, frame: ModelFrame::Data(1), packet: Some(packet) });
        true
    }

    /// Returns the number of frames in which the driver domain sends a packet.
    fn frames_of(&self, frame: ModelFrame) -> u32 {
        if self.channel.card_offloads { 1 } else { frame.segments().max(1) }
    }

    /// Creates the transmit request that a guest puts on the channel for a packet.
    fn request(&mut self, guest: usize, port: usize, frame: ModelFrame) -> PacketChannelRequest {
        let first = self.first_page(guest, port, TRANSMIT);
        let stream = &mut self.guests[guest].streams[port];
        let payload = frame.payload() as usize;
        let mut header = vec![0; TCP_HEADERS + payload];
        let (sequence, own) = (stream.buffers[TRANSMIT] as u32, MacAddress([2, 0, 0, 0, 0, guest as u8]));
        let tcp = packet::ReceivedPacket::Tcp { sequence, acknowledgement: 0, window: 0, payload };
        packet::fill(&mut header, own, MacAddress([2, 1, 0, 0, 0, port as u8]), tcp);
        header.truncate(TCP_HEADERS);
        let pieces = (0..payload.div_ceil(PAGE as usize)).map(|n| PageBuffer {
            address: (first + (stream.buffers[TRANSMIT] + n as u64) % u64::from(RING)) * PAGE,
            length: (payload - n * PAGE as usize).min(PAGE as usize) as u16,
        });
        let pieces: Vec<PageBuffer> = pieces.collect();
        stream.buffers[TRANSMIT] += pieces.len() as u64;
        let segment = (frame.segments() > 1).then_some(TCP_PAYLOAD as u16);
        PacketChannelRequest {
            header,
            pieces,
            offload: PendingOffloads { csum_blank: self.channel.offloads, segment },
        }
    }

    /// Returns `true` if the driver domain has more work. Frames for a full card wait for the card's interrupt.
    fn driver_has_work(&self) -> bool {
        let waits = |port: usize| {
            let next = self.guests.iter().filter_map(|guest| guest.streams[port].described.front());
            next.map(|frame| self.frames_of(*frame)).min()
        };
        let room = |port: usize| RING as usize - self.driver.to_card[port].len();
        let sends = |port: usize| waits(port).is_some_and(|frames| frames as usize <= room(port));
        let receives = self.driver.from_card.iter().any(|frames| !frames.is_empty());
        receives || (0..self.ports.len()).any(sends)
    }

    /// Returns the number of guest pages pinned by outgoing packets, and the number of segments given to cards or the
    /// driver domain but not sent.
    pub(super) fn in_flight(&self) -> (u64, u64) {
        let sending = self.ports.iter().filter_map(|port| port.sending.as_ref());
        let outgoing: Vec<&OutgoingFrame> = self.driver.to_card.iter().flatten().chain(sending).collect();
        let described = self.guests.iter().flat_map(|guest| &guest.streams).flat_map(|it| &it.described);
        let segments = outgoing.iter().map(|it| it.frame).chain(described.copied());
        let segments = segments.map(|frame| u64::from(frame.segments())).sum();
        (outgoing.iter().map(|it| it.pages()).sum(), segments)
    }
}
