//! Simulates a card with guests: their memory behind the bus, their drivers, and the forwarding plane between them.

use crate::address;
use crate::bus::{GuestsBus, TestWire};
use crate::driver::{Buffer, DriverRing, ReturnedChain, store};
use plane::ForwardingPlane;
use plane::ledger::PortCounters;
use plane::pacing::TransmitPacing;
use plane::switch::{PortMirrorRules, StormState, SwitchTables};
use units::{MacAddress, Time};
use virtio::VirtioFeatures;
use virtio::layout::RingFeatures;
use virtio::net::{NetHeader, NetHeaderFormat};
use virtio_nic::{MAX_VFS, Nic, RingStartParameters, VfRules};

/// Bytes of each guest's memory.
pub(crate) const MEMORY: usize = 0x56_0000;
/// Guest address of the first ring, and distance between the addresses of two rings.
pub(crate) const RING: u64 = 0x1_0000;
/// Guest address of the receive buffers. The next constant is the number of bytes reserved for each chain of them.
pub(crate) const POSTED: u64 = 0x8_0000;
const POSTED_CHAIN: u64 = 0x2800;
/// Guest address of the packets to send. The next constant is the number of bytes reserved for them.
pub(crate) const SENT: u64 = 0x44_0000;
const SENT_BYTES: u64 = 0x10_0000;
/// Number of entries of each ring.
pub(crate) const SIZE: u16 = 128;

/// Features of a modern driver: merged receive buffers and offloads.
pub(crate) const MODERN: VirtioFeatures = {
    use VirtioFeatures as F;
    F::VERSION_1.with(F::MRG_RXBUF).with(F::CSUM).with(F::GUEST_CSUM).with(F::HOST_TSO4).with(F::HOST_TSO6)
};

/// Frame that a guest has received: its header, its bytes, and its number of buffers.
pub(crate) type Received = (NetHeader, Vec<u8>, usize);

/// Format and number of a guest's rings, and the features that its driver accepts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GuestDriverConfig {
    pub(crate) packed: bool,
    pub(crate) features: VirtioFeatures,
    pub(crate) pairs: u8,
    /// Number of entries of each ring, at most [`SIZE`].
    pub(crate) size: u16,
}

/// Simulated guest with its driver.
#[derive(Debug, Clone)]
pub(crate) struct TestGuest {
    packed: bool,
    size: u16,
    pub(crate) features: VirtioFeatures,
    pub(crate) rings: Vec<DriverRing>,
    /// Number of chains that were posted to each receive ring.
    posted: Vec<u64>,
    /// Buffers that the driver has posted for received frames.
    granted: Vec<Buffer>,
    /// Guest address at which the next packet to send is stored.
    place: u64,
    /// Bytes by which rings and receive buffers are behind their usual addresses.
    shifts: [u64; 2],
}

/// A card with guests.
pub(crate) struct TestMachine {
    pub(crate) nic: Nic,
    pub(crate) plane: Box<ForwardingPlane<MAX_VFS>>,
    pub(crate) bus: GuestsBus,
    pub(crate) wire: TestWire,
    pub(crate) guests: Vec<TestGuest>,
    pub(crate) mirrors: PortMirrorRules,
}

impl TestMachine {
    /// Creates a card whose guests have these driver configurations, and starts all rings.
    pub(crate) fn with(guests: &[GuestDriverConfig]) -> Self {
        Self::shifted(guests, [0, 0])
    }

    /// Starts a card with guests of these kinds, whose rings and receive buffers are some bytes behind their usual addresses.
    pub(crate) fn shifted(guests: &[GuestDriverConfig], shifts: [u64; 2]) -> Self {
        let nic = Nic::new(guests.len() as u8);
        // Memory that is allocated as zeros costs nothing until it is touched.
        let memories = guests.iter().map(|_| vec![0; MEMORY]).collect();
        let bus = GuestsBus { memories, ..GuestsBus::default() };
        let counters = [PortCounters::default(); MAX_VFS];
        let plane = ForwardingPlane::new(
            SwitchTables::closed(0),
            TransmitPacing::new(None),
            StormState::default(),
            counters,
        );
        let (plane, wire, mirrors) = (Box::new(plane), TestWire::default(), PortMirrorRules::default());
        let count = guests.len() as u8;
        let guests = guests.iter().map(|guest| TestGuest::new(*guest, shifts)).collect();
        let mut machine = Self { nic, plane, bus, wire, guests, mirrors };
        for vf in 0..count {
            let rules = VfRules { addresses: vec![MacAddress(address(vf))], ..VfRules::default() };
            machine.nic.set_rules(vf, rules);
            machine.nic.set_features(vf, machine.guests[usize::from(vf)].features);
            for ring in 0..machine.guests[usize::from(vf)].rings.len() {
                let position = Some(machine.guests[usize::from(vf)].rings[ring].first_position());
                machine.start(vf, ring as u32, position).unwrap();
            }
        }
        machine
    }

    /// Restarts a ring of a guest from its first position, as after a driver that has forgotten its chains.
    pub(crate) fn restart(&mut self, vf: u8, ring: u32) {
        let guest = &mut self.guests[usize::from(vf)];
        let memory = &mut self.bus.memories[usize::from(vf)];
        let at = ring as usize;
        memory[(RING as usize * at)..][..RING as usize].fill(0);
        guest.rings[at] = guest.ring(ring);
        let position = Some(guest.rings[at].first_position());
        self.start(vf, ring, position).unwrap();
    }

    /// Returns a guest's number of queue pairs.
    pub(crate) fn pairs(&self, vf: u8) -> u8 {
        self.guests[usize::from(vf)].rings.len() as u8 / 2
    }

    /// Starts a ring of a guest at a ring position.
    pub(crate) fn start(
        &mut self,
        vf: u8,
        ring: u32,
        position: Option<u32>,
    ) -> Result<(), virtio_nic::RingStartError> {
        self.start_as(vf, ring, position, false)
    }

    /// Starts a ring as [`Self::start`] does, which has run on another card if `has_run_elsewhere`.
    pub(crate) fn start_as(
        &mut self,
        vf: u8,
        ring: u32,
        position: Option<u32>,
        has_run_elsewhere: bool,
    ) -> Result<(), virtio_nic::RingStartError> {
        let driver = &self.guests[usize::from(vf)].rings[ring as usize];
        let (size, packed, addresses) = (driver.size.into(), driver.packed, driver.addresses());
        let start = RingStartParameters {
            ring,
            size,
            packed,
            enabled: true,
            position,
            has_run_elsewhere,
            addresses,
            memory: 0,
        };
        self.nic.start_ring(vf, &start, &mut self.bus)
    }

    /// Stores a packet with its header in a guest's memory, in pieces of these lengths. Returns the pieces as buffers
    /// of a chain.
    pub(crate) fn place(&mut self, vf: u8, header: NetHeader, frame: &[u8], pieces: &[usize]) -> Vec<Buffer> {
        let guest = &mut self.guests[usize::from(vf)];
        let size = NetHeaderFormat::of(guest.features).size();
        let packet = [&header.emit()[..size], frame].concat();
        let (mut buffers, mut rest) = (Vec::new(), &packet[..]);
        if guest.place + (packet.len() + 16 * pieces.len() + 16) as u64 > SENT + SENT_BYTES {
            guest.place = SENT;
        }
        for piece in pieces.iter().copied().chain([usize::MAX]) {
            let (now, later) = rest.split_at(piece.min(rest.len()));
            if !now.is_empty() {
                store(&mut self.bus.memories[usize::from(vf)], guest.place, now);
                buffers.push((guest.place, now.len() as u32, false));
                guest.place += now.len() as u64 + 16;
            }
            rest = later;
        }
        buffers
    }

    /// Makes a chain of a guest available, and notifies the card if the card requests it. Returns false if too few
    /// descriptors are free.
    pub(crate) fn make_available(&mut self, vf: u8, ring: u32, buffers: &[Buffer]) -> bool {
        let memory = &mut self.bus.memories[usize::from(vf)];
        let driver = &mut self.guests[usize::from(vf)].rings[ring as usize];
        let added = driver.add(memory, buffers);
        if driver.needs_kick(memory) {
            self.nic.kick(vf, ring);
        }
        added
    }

    /// Posts a receive buffer of a guest: a chain of pieces with these lengths. Returns false if too few descriptors
    /// are free.
    pub(crate) fn post_one(&mut self, vf: u8, ring: u32, pieces: &[u32]) -> bool {
        let guest = &mut self.guests[usize::from(vf)];
        let pair = ring as usize / 2;
        let chain = pair as u64 * u64::from(SIZE) + guest.posted[pair] % u64::from(SIZE);
        let mut address = POSTED + POSTED_CHAIN * chain + guest.shifts[1];
        let chain: Vec<Buffer> = pieces
            .iter()
            .map(|length| {
                address += 0x40;
                let buffer = (address, *length, true);
                address += u64::from(*length);
                buffer
            })
            .collect();
        let added = self.make_available(vf, ring, &chain);
        let guest = &mut self.guests[usize::from(vf)];
        guest.posted[pair] += u64::from(added);
        guest.granted.extend(chain.iter().filter(|_| added));
        added
    }

    /// Returns the address of a byte that the card wrote in the receive area of a guest, but outside of all posted
    /// buffers.
    pub(crate) fn stray_byte(&self, vf: u8) -> Option<usize> {
        let (n, mut at) = (usize::from(vf), POSTED as usize);
        let mut granted = self.guests[n].granted.clone();
        granted.sort_unstable();
        granted.push((SENT, 0, true));
        for (address, length, _) in granted {
            let between = self.bus.memories[n].get(at..address as usize).unwrap_or_default();
            // Comparisons of pieces are much faster than a look at each byte.
            if between.chunks(0x1000).any(|piece| piece != &[0; 0x1000][..piece.len()]) {
                return between.iter().position(|byte| *byte != 0).map(|offset| at + offset);
            }
            at = at.max(address as usize + length as usize);
        }
        None
    }

    /// Polls the card once, with a budget of frames for each ring. Returns true if the card has more work.
    pub(crate) fn poll_once(&mut self, now_ns: u64, budget: usize) -> bool {
        // A caller without more work sleeps.
        self.poll_awake(now_ns, budget) || self.nic.arm_rings(&mut self.bus)
    }

    /// Polls the card once like [`Self::poll_once`], and does not prepare the card for a sleep.
    pub(crate) fn poll_awake(&mut self, now_ns: u64, budget: usize) -> bool {
        self.plane.now = Time::from_nanos(now_ns);
        (self.plane.uplink.link, self.plane.uplink.receives) = (true, true);
        if self.nic.take_changed().is_some() {
            self.nic.apply_policy(&mut self.plane, &self.mirrors);
        }
        let arrived = self.nic.arrive(&mut self.plane, budget, &mut self.bus, &mut self.wire);
        let more = self.nic.visit_ready(&mut self.plane, budget, &mut self.bus, &mut self.wire);
        arrived || more
    }

    /// Collects the chains of a ring that the card has returned.
    pub(crate) fn collect(&mut self, vf: u8, ring: u32) -> Vec<ReturnedChain> {
        let n = usize::from(vf);
        self.guests[n].rings[ring as usize].collect(&mut self.bus.memories[n])
    }

    /// Collects the frames that a guest has received in a ring.
    pub(crate) fn received_by(&mut self, vf: u8, ring: u32) -> Vec<Received> {
        let size = NetHeaderFormat::of(self.guests[usize::from(vf)].features).size();
        let mut chains = self.collect(vf, ring).into_iter();
        let memory = &self.bus.memories[usize::from(vf)];
        let mut frames = Vec::new();
        while let Some((buffers, written)) = chains.next() {
            let mut bytes = contents(memory, &buffers, written);
            let mut raw = [0; NetHeader::SIZE];
            raw[..size].copy_from_slice(&bytes[..size]);
            let header = NetHeader::parse(&raw);
            for _ in 1..header.buffers.max(1) {
                let (buffers, written) = chains.next().expect("all buffers of a frame are returned together");
                bytes.extend(contents(memory, &buffers, written));
            }
            frames.push((header, bytes.split_off(size), header.buffers.max(1).into()));
        }
        frames
    }
}

impl TestGuest {
    fn new(GuestDriverConfig { packed, features, pairs, size }: GuestDriverConfig, shifts: [u64; 2]) -> Self {
        let posted = vec![0; pairs.into()];
        let (rings, granted) = (Vec::new(), Vec::new());
        let mut guest = Self { packed, size, features, rings, posted, granted, place: SENT, shifts };
        guest.rings = (0..2 * u32::from(pairs)).map(|ring| guest.ring(ring)).collect();
        guest
    }

    fn ring(&self, ring: u32) -> DriverRing {
        let base = RING * u64::from(ring) + self.shifts[0];
        DriverRing::new(self.packed, base, self.size, RingFeatures::of(self.features))
    }
}

fn contents(memory: &[u8], buffers: &[Buffer], written: u32) -> Vec<u8> {
    let writable = buffers.iter().filter(|buffer| buffer.2);
    let bytes = writable.flat_map(|(address, length, _)| &memory[*address as usize..][..*length as usize]);
    bytes.copied().take(written as usize).collect()
}
