//! Clients and the line they share: one client per guest, all behind one gigabit wire. Datagrams are sent at
//! line rate, a stream is limited by its window, and a requester waits for the response. Clients send in
//! bursts. A stream's burst is what segmentation offload is given: it waits until a third of the window is
//! open. Datagrams enter a transmit ring shared by all clients of a port; when it has room, the next client
//! to run takes what it can, so bursts have any length, and are shorter with more clients. No frame is lost
//! on the wire, the queue before the ring is unlimited, and clients cost nothing. A client whose request is
//! lost waits for ever, as with netperf.

use super::traffic::ClientTraffic;
use crate::machine::topology;
use guest::packet::{self, ReceivedPacket, SHORTEST, TCP_HEADERS, TCP_PAYLOAD, UDP_HEADERS, UDP_PAYLOAD};
use hypervisor::memory::{FRAME_HEADERS, is_frame};
use i82576::MacAddress;
use nic::UplinkWire;
use sim::{RandomStream, VirtualDuration, VirtualInstant};
use std::collections::VecDeque;

/// Bytes of preamble, frame check sequence and gap on the wire.
const OVERHEAD: usize = 24;
/// Payload bytes of a client's request.
const REQUEST: usize = 1;
/// Number of datagrams that a rate-limited client sends at once.
const PACED: u32 = 8;
/// Receive window in segments before the receiver's first acknowledgement.
const INITIAL_WINDOW: u16 = 3;
/// Divisor of the receiver's window: a stream waits until a third of the window is free (Linux
/// tcp_tso_win_divisor), unless all sent segments are acknowledged.
const DEFERRED: u32 = 3;
/// Number of duplicate acknowledgements that trigger a retransmission.
const DUPLICATES: u32 = 3;
/// Bursts of datagrams that are sent ahead of time at most, should no guest ever notice one.
const SENT_AHEAD: usize = 64;

/// Client on a port's wire, which sends to one guest.
#[derive(Debug)]
struct TrafficClient {
    /// Index of the guest's VF.
    vf: u8,
    own: MacAddress,
    /// Headers of the client's frames, whose sequence number is 0.
    headers: [u8; FRAME_HEADERS],
    /// Sequence number of the next byte that the client sends.
    next: u32,
    /// Sequence number of the first byte that the guest has not acknowledged.
    acknowledged: u32,
    /// Receive window of the guest, in segments from the first byte not acknowledged.
    room: u16,
    duplicates: u32,
    /// Time at which the client sent its outstanding request, or `None` without one.
    asked: Option<VirtualInstant>,
    /// Earliest time of the client's next transmission.
    ready: VirtualInstant,
}

/// Frames on the wire that a client has sent back to back and that the card has not received.
#[derive(Debug, Clone, Copy)]
struct BurstInFlight {
    client: usize,
    frames: u32,
    /// Time at which the burst's next frame arrives at the card.
    arrives: VirtualInstant,
    /// Sequence number of the burst's next frame.
    sequence: u32,
}

/// Returns the MAC address of client `n` of a port.
pub(crate) fn client_address(n: u8) -> MacAddress {
    MacAddress([0x02, 0xc1, 0, 0, 0, n])
}

/// Returns the headers of frames of `length` bytes that a client sends to a guest, with sequence number 0.
fn headers(
    traffic: ClientTraffic,
    length: usize,
    (client, guest): (MacAddress, MacAddress),
) -> [u8; FRAME_HEADERS] {
    let packet = match traffic {
        ClientTraffic::Tcp { .. } => {
            ReceivedPacket::Tcp { sequence: 0, acknowledgement: 0, window: 0, payload: TCP_PAYLOAD }
        }
        _ => ReceivedPacket::Udp(length - UDP_HEADERS),
    };
    let to = if traffic == ClientTraffic::Broadcast { MacAddress::BROADCAST } else { guest };
    let mut frame = vec![0; length.max(FRAME_HEADERS)];
    packet::fill(&mut frame[..length], client, to, packet);
    *frame.first_chunk().expect("the frame has room for headers")
}

/// Wire of a port with its clients, and the frames in flight.
#[derive(Debug)]
pub(crate) struct ClientWire {
    traffic: ClientTraffic,
    wire: topology::WireProperties,
    clients: Vec<TrafficClient>,
    /// Random generator of the lengths of clients' bursts.
    chance: RandomStream,
    bursts: VecDeque<BurstInFlight>,
    /// Time at which the wire is free for the clients' next frame: the arrival of the last frame in flight.
    free: VirtualInstant,
    /// Index of the client that sends next on the wire.
    turn: usize,
    /// Bytes of a data frame on the wire without padding.
    length: usize,
    frame_time: VirtualDuration,
    /// Time up to which frames on the wire have arrived at the card.
    now: VirtualInstant,
    /// Bit mask of VFs that received a frame in the last poll of the wire.
    pub(crate) delivered: u8,
    /// Number of frames delivered, counted per guest that gets a copy.
    pub(crate) frames: u64,
    /// Number of frames that the card has sent on the wire.
    pub(crate) taken: u64,
    /// Round-trip time of each response received by its client.
    pub(crate) round_trips: Vec<VirtualDuration>,
}

impl ClientWire {
    /// Creates the wire of a port, with a client for each guest, given by MAC address and VF index.
    pub(crate) fn new(
        traffic: ClientTraffic,
        wire: topology::WireProperties,
        guests: &[(MacAddress, u8)],
        chance: RandomStream,
    ) -> Self {
        let clients = guests.iter().zip(0u8..).map(|(&(guest, vf), n)| (guest, vf, client_address(n)));
        Self::of_clients(traffic, wire, clients.collect(), chance)
    }

    /// Creates a wire with the given clients: guest's MAC address, guest's VF index, and the client's own
    /// unique MAC address.
    pub(crate) fn of_clients(
        traffic: ClientTraffic,
        wire: topology::WireProperties,
        clients: Vec<(MacAddress, u8, MacAddress)>,
        chance: RandomStream,
    ) -> Self {
        let length = match traffic {
            ClientTraffic::Silent
            | ClientTraffic::Udp
            | ClientTraffic::Broadcast
            | ClientTraffic::Paced { .. }
            | ClientTraffic::Step { .. } => UDP_HEADERS + UDP_PAYLOAD,
            ClientTraffic::Tcp { .. } => TCP_HEADERS + TCP_PAYLOAD,
            ClientTraffic::RequestResponse => UDP_HEADERS + REQUEST,
        };
        let clients = clients.into_iter().map(|(guest, vf, own)| TrafficClient {
            vf,
            own,
            headers: headers(traffic, length, (own, guest)),
            next: 0,
            acknowledged: 0,
            room: INITIAL_WINDOW,
            duplicates: 0,
            asked: None,
            ready: VirtualInstant::ZERO,
        });
        Self {
            traffic,
            wire,
            clients: clients.collect(),
            chance,
            bursts: VecDeque::new(),
            free: VirtualInstant::ZERO,
            turn: 0,
            length,
            frame_time: VirtualDuration::of_bits(
                ((length.max(SHORTEST) + OVERHEAD) * 8) as u64,
                wire.bits_per_second,
            ),
            now: VirtualInstant::ZERO,
            delivered: 0,
            frames: 0,
            taken: 0,
            round_trips: Vec::new(),
        }
    }

    /// Sets the time at which the clients may send their first frame.
    pub(crate) fn delay(&mut self, phase: VirtualDuration) {
        for client in &mut self.clients {
            client.ready = VirtualInstant::ZERO + phase;
        }
    }

    /// Advances the wire to `now`: frames that have arrived by then can be received.
    pub(crate) fn advance(&mut self, now: VirtualInstant) {
        self.now = self.now.max(now);
        self.delivered = 0;
        self.send();
    }

    /// Returns the arrival time of the wire's next frame in flight.
    pub(crate) fn next_arrival(&self) -> Option<VirtualInstant> {
        self.bursts.front().map(|burst| burst.arrives)
    }

    /// Returns the arrival time of the first frame, in flight or sent later, that is not for a VF in the bit mask
    /// `waiting`. If there is none before `until`, returns the arrival of the last frame in flight, or `None` if all frames in
    /// flight have arrived.
    ///
    /// Datagrams are sent ahead of time: no event until then changes what clients send.
    pub(crate) fn first_noticed(&mut self, waiting: u8, until: VirtualInstant) -> Option<VirtualInstant> {
        let mut index = 0;
        loop {
            if index == self.bursts.len() {
                let ahead = self.sends_ahead() && self.free < until && index < SENT_AHEAD;
                if !(ahead && self.send_burst()) {
                    return Some(self.free).filter(|last| *last > self.now);
                }
            }
            let burst = &self.bursts[index];
            if !self.is_for(burst, waiting) {
                return Some(burst.arrives);
            }
            index += 1;
        }
    }

    /// Returns `true` if the arrival of datagrams does not depend on what the guests do, so that clients can send ahead of
    /// time.
    pub(crate) fn sends_ahead(&self) -> bool {
        self.traffic == ClientTraffic::Udp
    }

    /// Returns `true` if all frames that have arrived are for VFs in the bit mask `waiting`, and nothing depends on the
    /// time at which the card receives them. A broadcast is for all VFs, and clients that wait for a response or keep
    /// a rate are left alone.
    pub(crate) fn is_only_for(&self, waiting: u8) -> bool {
        matches!(self.traffic, ClientTraffic::Udp | ClientTraffic::Tcp { .. })
            && self
                .bursts
                .iter()
                .take_while(|burst| burst.arrives <= self.now)
                .all(|burst| self.is_for(burst, waiting))
    }

    fn is_for(&self, burst: &BurstInFlight, vfs: u8) -> bool {
        vfs >> (self.clients[burst.client].vf & 7) & 1 != 0
    }

    /// Returns the number of frames in flight that arrive before `end`.
    pub(crate) fn arriving_before(&self, end: VirtualInstant) -> u64 {
        let count = |burst: &BurstInFlight| {
            let arrival = |n: &u32| burst.arrives + self.frame_time.times(u64::from(*n));
            (0..burst.frames).take_while(|n| arrival(n) < end).count() as u64
        };
        self.bursts.iter().map(count).sum()
    }

    /// Sends for all clients of the wire: streams up to their window, datagrams until a frame arrives in the
    /// future.
    fn send(&mut self) {
        let far_enough = |line: &Self| line.free > line.now;
        let has_no_end =
            matches!(self.traffic, ClientTraffic::Udp | ClientTraffic::Broadcast) || self.traffic.is_paced();
        while !(has_no_end && far_enough(self)) && self.send_burst() {}
    }

    /// Puts a burst of the next client that may send on the wire. Returns `false` if no client may send.
    fn send_burst(&mut self) -> bool {
        for step in 0..self.clients.len() {
            let index = (self.turn + step) % self.clients.len();
            let count = self.allowed(index);
            if count == 0 {
                continue;
            }
            self.turn = index + 1;
            let client = &mut self.clients[index];
            let begins = self.free.max(client.ready);
            client.asked = Some(begins);
            self.bursts.push_back(BurstInFlight {
                client: index,
                frames: count,
                arrives: begins + self.frame_time,
                sequence: client.next,
            });
            client.next = client.next.wrapping_add(count.wrapping_mul(TCP_PAYLOAD as u32));
            let ends = begins + self.frame_time.times(count.into());
            if let Some(permille) = self.traffic.pace(ends) {
                let share = self.frame_time.times(u64::from(count) * self.clients.len() as u64 * 1_000);
                let client = &mut self.clients[index];
                client.ready += VirtualDuration::from_picos(share.picos() / u64::from(permille));
            }
            self.free = ends;
            return true;
        }
        false
    }

    /// Returns the number of frames that a client may send at once.
    fn allowed(&mut self, index: usize) -> u32 {
        let clients = self.clients.len() as u32;
        let client = &self.clients[index];
        match self.traffic {
            ClientTraffic::Silent => 0,
            // Between half and one and a half times the mean; a single client does not share the ring.
            ClientTraffic::Udp if clients > 1 => {
                let mean = self.wire.burst(clients);
                mean.div_ceil(2) + self.chance.below(u64::from(mean / 2 * 2 + 1)) as u32
            }
            ClientTraffic::Udp => self.wire.burst(clients),
            // One client suffices to reach all guests.
            ClientTraffic::Broadcast => self.wire.burst(1),
            ClientTraffic::Paced { permille: 0 } => 0,
            ClientTraffic::Paced { .. } | ClientTraffic::Step { .. } => PACED,
            ClientTraffic::Tcp { window } => {
                let under_way = client.next.wrapping_sub(client.acknowledged);
                let segments = under_way.div_ceil(TCP_PAYLOAD as u32);
                let window = u32::from(window.min(client.room));
                let open = window.saturating_sub(segments).min(self.wire.segments);
                let deferred = segments > 0 && open < self.wire.segments.min(window.div_ceil(DEFERRED));
                if deferred { 0 } else { open }
            }
            ClientTraffic::RequestResponse => client.asked.is_none().into(),
        }
    }

    /// Removes the next frame from the wire if it has arrived. Returns the frame's burst as it was before.
    fn take_arrived(&mut self) -> Option<BurstInFlight> {
        let burst = self.bursts.front_mut().filter(|burst| burst.arrives <= self.now)?;
        let before = *burst;
        if burst.frames == 1 {
            self.bursts.pop_front();
        } else {
            burst.frames -= 1;
            burst.arrives += self.frame_time;
            burst.sequence = burst.sequence.wrapping_add(TCP_PAYLOAD as u32);
        }
        Some(before)
    }

    /// Handles a guest's TCP acknowledgement at its client.
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
        // After a retransmission began, the guest may already have more than was sent again.
        if client.next.wrapping_sub(number) > u32::MAX / 2 {
            client.next = number;
        }
        client.ready = now + self.wire.turnaround;
        self.send();
    }

    /// Handles a guest's response at its client. A response occupies the wire as long as a request.
    fn answer(&mut self, to: MacAddress) {
        let arrives = self.now + self.frame_time;
        let Some(client) = self.clients.iter_mut().find(|client| client.own == to) else { return };
        let Some(asked) = client.asked.take() else { return };
        client.ready = arrives + self.wire.turnaround;
        self.round_trips.push(arrives.since(asked));
        self.send();
    }
}

impl UplinkWire for ClientWire {
    fn transmit(&mut self, frame: &[u8]) -> bool {
        self.taken += 1;
        let Some(to) = MacAddress::from_slice(frame) else { return true };
        match (packet::parse(frame), self.traffic) {
            (ReceivedPacket::Tcp { acknowledgement, window, .. }, _) => {
                self.acknowledge(to, acknowledgement, window);
            }
            (ReceivedPacket::Udp(_), ClientTraffic::RequestResponse) => self.answer(to),
            _ => {}
        }
        true
    }

    fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        let BurstInFlight { client: sender, sequence, .. } = self.take_arrived()?;
        let length = self.length.max(SHORTEST);
        let (frame, headers) = (into.get_mut(..length)?, FRAME_HEADERS.min(length));
        // The card's buffer had modelled frames only, and is zero behind their headers.
        frame[..headers].copy_from_slice(&self.clients[sender].headers[..headers]);
        debug_assert!(is_frame(frame), "the card's buffer has payload");
        match self.traffic {
            ClientTraffic::Tcp { .. } => packet::set_sequence(frame, sequence),
            _ => packet::set_number(&mut frame[..self.length], sequence),
        }
        let all = self.traffic == ClientTraffic::Broadcast;
        for client in if all { &self.clients[..] } else { &self.clients[sender..=sender] } {
            self.delivered |= 1 << (client.vf & 7);
            self.frames += 1;
        }
        Some(length)
    }
}
