//! Clients and the line they share: one client a guest, all behind one gigabit wire. Datagrams are sent as fast
//! as the wire takes them; a stream is limited by its window; who asks waits for the response. Each client sends in
//! bursts. A stream's is what segmentation offload is given: it waits until a third of the window is open. Datagrams go
//! into a transmit ring that all clients of a port share. When it has room, whose program runs first takes what it can,
//! so bursts are of any length, and shorter the more clients there are. A request is alone. Left out: losses on the wire,
//! the queue before the ring, and what a client's own machine costs. A client whose request is lost elsewhere waits for
//! ever, as netperf's does.

use crate::machine::topology;
use guest::packet::{self, Packet, SHORTEST, TCP_HEADERS, TCP_PAYLOAD, UDP_HEADERS, UDP_PAYLOAD};
use i82576::MacAddress;
use nic::Wire;
use sim::{Generator, Instant, Span};
use std::collections::VecDeque;

/// What the clients of a port send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traffic {
    /// Nothing.
    Silent,
    /// Datagrams, as many as the wire takes.
    Udp,
    /// Datagrams that take this part of the wire.
    Paced {
        /// Thousandths.
        permille: u16,
    },
    /// The same, and another part from a moment on.
    Step {
        /// Thousandths before.
        before: u16,
        /// Thousandths after.
        after: u16,
        /// The moment.
        at: Instant,
    },
    /// Datagrams for all guests of the port, as many as the wire takes.
    Broadcast,
    /// A stream with so many segments under way at the most; the receiver may ask for fewer.
    Tcp {
        /// Segments.
        window: u16,
    },
    /// Requests of a byte, the next when the response to the last has come.
    RequestResponse,
}

impl Traffic {
    /// The part of the wire that clients take who keep to a rate, thousandths.
    fn pace(self, now: Instant) -> Option<u16> {
        match self {
            Traffic::Paced { permille } => Some(permille),
            Traffic::Step { before, after, at } => Some(if now < at { before } else { after }),
            _ => None,
        }
    }

    /// Clients keep to a rate.
    pub(crate) fn is_paced(self) -> bool {
        self.pace(Instant::ZERO).is_some()
    }
}

/// What a frame takes of the wire beside its bytes: preamble, frame check sequence, gap.
const OVERHEAD: usize = 24;
/// Bytes of a request.
const REQUEST: usize = 1;
/// Datagrams that a client sends at a time if it keeps to a rate.
const PACED: u32 = 8;
/// Segments that a client sends before it has heard of the receiver's window.
const INITIAL_WINDOW: u16 = 3;
/// A stream sends nothing until this part of its window is open (tcp_tso_win_divisor), or nothing is under way.
const DEFERRED: u32 = 3;
/// Acknowledgements that repeat the last before a client sends from there again.
const DUPLICATES: u32 = 3;

/// A client.
#[derive(Debug)]
struct Client {
    guest: MacAddress,
    /// The VF that the guest is behind.
    vf: u8,
    own: MacAddress,
    /// Number of the next byte to send, and of the first not acknowledged.
    next: u32,
    acknowledged: u32,
    /// Segments that the receiver has room for beyond that.
    room: u16,
    duplicates: u32,
    /// When it began to send what nobody has answered.
    asked: Option<Instant>,
    /// It may send nothing before this.
    ready: Instant,
}

/// A frame under way.
#[derive(Debug, Clone, Copy)]
struct Flight {
    arrives: Instant,
    client: usize,
    sequence: u32,
}

/// The address of client `n` of a port.
pub(crate) fn client_address(n: u8) -> MacAddress {
    MacAddress([0x02, 0xc1, 0, 0, 0, n])
}

/// The wire of a port.
#[derive(Debug)]
pub(crate) struct Line {
    traffic: Traffic,
    wire: topology::Wire,
    clients: Vec<Client>,
    /// Whose program runs first.
    chance: Generator,
    flights: VecDeque<Flight>,
    /// When the wire is free.
    free: Instant,
    /// Whose turn it is.
    turn: usize,
    /// Bytes of a frame without its padding.
    length: usize,
    frame_time: Span,
    /// The moment up to which frames have arrived.
    now: Instant,
    /// VFs, a bit each, that got a frame in the last poll.
    pub(crate) delivered: u8,
    /// Frames delivered, one for each guest that gets a copy.
    pub(crate) frames: u64,
    /// Frames that the card has sent.
    pub(crate) taken: u64,
    /// From request to response, for each response that has reached who asked.
    pub(crate) round_trips: Vec<Span>,
}

impl Line {
    /// The line of a port, with a client for each guest and the VF it is behind.
    pub(crate) fn new(
        traffic: Traffic,
        wire: topology::Wire,
        guests: &[(MacAddress, u8)],
        chance: Generator,
    ) -> Self {
        let clients = guests.iter().zip(0u8..).map(|(&(guest, vf), n)| (guest, vf, client_address(n)));
        Self::of_clients(traffic, wire, clients.collect(), chance)
    }

    /// The same with clients of these addresses: the guest that each talks to, the VF it is behind, and the client's own
    /// address, which no other has.
    pub(crate) fn of_clients(
        traffic: Traffic,
        wire: topology::Wire,
        clients: Vec<(MacAddress, u8, MacAddress)>,
        chance: Generator,
    ) -> Self {
        let length = match traffic {
            Traffic::Silent
            | Traffic::Udp
            | Traffic::Broadcast
            | Traffic::Paced { .. }
            | Traffic::Step { .. } => UDP_HEADERS + UDP_PAYLOAD,
            Traffic::Tcp { .. } => TCP_HEADERS + TCP_PAYLOAD,
            Traffic::RequestResponse => UDP_HEADERS + REQUEST,
        };
        let clients = clients.into_iter().map(|(guest, vf, own)| Client {
            guest,
            vf,
            own,
            next: 0,
            acknowledged: 0,
            room: INITIAL_WINDOW,
            duplicates: 0,
            asked: None,
            ready: Instant::ZERO,
        });
        Self {
            traffic,
            wire,
            clients: clients.collect(),
            chance,
            flights: VecDeque::new(),
            free: Instant::ZERO,
            turn: 0,
            length,
            frame_time: Span::of_bits(((length.max(SHORTEST) + OVERHEAD) * 8) as u64, wire.bits_per_second),
            now: Instant::ZERO,
            delivered: 0,
            frames: 0,
            taken: 0,
            round_trips: Vec::new(),
        }
    }

    /// Clients that keep to a rate begin so late.
    pub(crate) fn delay(&mut self, phase: Span) {
        for client in &mut self.clients {
            client.ready = Instant::ZERO + phase;
        }
    }

    /// What a frame with that sequence number is.
    fn packet(&self, sequence: u32) -> Packet {
        match self.traffic {
            Traffic::Tcp { .. } => {
                Packet::Tcp { sequence, acknowledgement: 0, window: 0, payload: TCP_PAYLOAD }
            }
            Traffic::RequestResponse => Packet::Udp(REQUEST),
            _ => Packet::Udp(UDP_PAYLOAD),
        }
    }

    /// Lets time pass up to `now`: what has arrived by then can be received.
    pub(crate) fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.delivered = 0;
        self.send();
    }

    /// When the next frame arrives, as far as anybody has sent one.
    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        self.flights.front().map(|flight| flight.arrives)
    }

    /// Clients send: a stream all that its window allows, datagrams until there is a frame in the future.
    fn send(&mut self) {
        let far_enough = |line: &Self| line.flights.back().is_some_and(|last| last.arrives > line.now);
        let has_no_end = matches!(self.traffic, Traffic::Udp | Traffic::Broadcast) || self.traffic.is_paced();
        while !(has_no_end && far_enough(self)) && self.send_burst() {}
    }

    /// The next client that may sends a burst; `false` if none may.
    fn send_burst(&mut self) -> bool {
        for step in 0..self.clients.len() {
            let index = (self.turn + step) % self.clients.len();
            let count = self.allowed(index);
            if count == 0 {
                continue;
            }
            self.turn = index + 1;
            let client = &mut self.clients[index];
            let mut at = self.free.max(client.ready);
            client.asked = Some(at);
            for _ in 0..count {
                at += self.frame_time;
                self.flights.push_back(Flight { arrives: at, client: index, sequence: client.next });
                client.next = client.next.wrapping_add(TCP_PAYLOAD as u32);
            }
            if let Some(permille) = self.traffic.pace(at) {
                let share = self.frame_time.times(u64::from(count) * self.clients.len() as u64 * 1_000);
                let client = &mut self.clients[index];
                client.ready += Span::from_picos(share.picos() / u64::from(permille));
            }
            self.free = at;
            return true;
        }
        false
    }

    /// Frames that a client may send in its turn.
    fn allowed(&mut self, index: usize) -> u32 {
        let clients = self.clients.len() as u32;
        let client = &self.clients[index];
        match self.traffic {
            Traffic::Silent => 0,
            // Half as much again at the most; one client alone has nobody to share with.
            Traffic::Udp if clients > 1 => {
                let mean = self.wire.burst(clients);
                mean.div_ceil(2) + self.chance.below(u64::from(mean / 2 * 2 + 1)) as u32
            }
            Traffic::Udp => self.wire.burst(clients),
            // One client is enough to reach all.
            Traffic::Broadcast => self.wire.burst(1),
            Traffic::Paced { permille: 0 } => 0,
            Traffic::Paced { .. } | Traffic::Step { .. } => PACED,
            Traffic::Tcp { window } => {
                let under_way = client.next.wrapping_sub(client.acknowledged);
                let segments = under_way.div_ceil(TCP_PAYLOAD as u32);
                let window = u32::from(window.min(client.room));
                let open = window.saturating_sub(segments).min(self.wire.segments);
                let deferred = segments > 0 && open < self.wire.segments.min(window.div_ceil(DEFERRED));
                if deferred { 0 } else { open }
            }
            Traffic::RequestResponse => client.asked.is_none().into(),
        }
    }

    /// A guest acknowledges what that client has sent.
    fn acknowledge(&mut self, to: MacAddress, number: u32, room: u16) {
        let now = self.now;
        let Some(client) = self.clients.iter_mut().find(|client| client.own == to) else { return };
        let repeated = number == client.acknowledged && room == client.room;
        client.room = room;
        if repeated {
            client.duplicates += 1;
            if client.duplicates == DUPLICATES {
                client.next = number;
            }
            return;
        }
        (client.acknowledged, client.duplicates) = (number, 0);
        // After going back, the guest may already have more than was sent again.
        if client.next.wrapping_sub(number) > u32::MAX / 2 {
            client.next = number;
        }
        client.ready = now + self.wire.turnaround;
        self.send();
    }

    /// A guest answers: the response takes the wire as long as the request did.
    fn answer(&mut self, to: MacAddress) {
        let arrives = self.now + self.frame_time;
        let Some(client) = self.clients.iter_mut().find(|client| client.own == to) else { return };
        let Some(asked) = client.asked.take() else { return };
        client.ready = arrives + self.wire.turnaround;
        self.round_trips.push(arrives.since(asked));
        self.send();
    }
}

impl Wire for Line {
    fn transmit(&mut self, frame: &[u8]) -> bool {
        self.taken += 1;
        let Some(to) = MacAddress::from_slice(frame) else { return true };
        match (packet::parse(frame), self.traffic) {
            (Packet::Tcp { acknowledgement, window, .. }, _) => {
                self.acknowledge(to, acknowledgement, window);
            }
            (Packet::Udp(_), Traffic::RequestResponse) => self.answer(to),
            _ => {}
        }
        true
    }

    fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        let flight = *self.flights.front().filter(|flight| flight.arrives <= self.now)?;
        self.flights.pop_front();
        let length = self.length.max(SHORTEST);
        let (frame, client) = (into.get_mut(..length)?, &self.clients[flight.client]);
        frame.fill(0);
        let packet = self.packet(flight.sequence);
        let all = self.traffic == Traffic::Broadcast;
        let to = if all { MacAddress::BROADCAST } else { client.guest };
        packet::fill(&mut frame[..self.length], client.own, to, packet);
        if let Packet::Udp(_) = packet {
            packet::set_number(&mut frame[..self.length], flight.sequence);
        }
        for client in if all { &self.clients[..] } else { &self.clients[flight.client..=flight.client] } {
            self.delivered |= 1 << (client.vf & 7);
            self.frames += 1;
        }
        Some(length)
    }
}
