//! A card with guests: their memory behind the bus, their drivers, and the plane between them.

use crate::address;
use crate::driver::{Buffer, DriverRing, store};
use pcie::{Bus, DmaFault, Function, Iova};
use plane::frame::HEADROOM;
use plane::ledger::PortCounters;
use plane::pacing::Pacing;
use plane::switch::{PortMirrorRules, StormState, SwitchTables};
use plane::{Plane, UnsegmentedLayout, UplinkWire};
use std::collections::VecDeque;
use units::{MacAddress, Time};
use virtio::VirtioFeatures;
use virtio::net::{NetHeader, NetHeaderFormat};
use virtio_nic::{MAX_VFS, Nic, RingStart, VfRules};

/// Bytes of each guest's memory.
const MEMORY: usize = 0x10_0000;
/// Addresses of the receive ring, the transmit ring, receive buffers and sent packets.
const RINGS: [u64; 2] = [0x1000, 0x8000];
const POSTED: u64 = 0x1_0000;
const SENT: u64 = 0x8_0000;
/// Number of entries of each ring.
pub(crate) const SIZE: u16 = 128;

/// Features of a modern driver: merged receive buffers and offloads.
pub(crate) const MODERN: VirtioFeatures = {
    use VirtioFeatures as F;
    F::VERSION_1.with(F::MRG_RXBUF).with(F::CSUM).with(F::GUEST_CSUM).with(F::HOST_TSO4).with(F::HOST_TSO6)
};

/// Memory and interrupts of all guests.
#[derive(Debug, Clone, Default)]
pub(crate) struct GuestsBus {
    pub(crate) memories: Vec<Vec<u8>>,
    /// Interrupts that were sent: VF and ring.
    pub(crate) calls: Vec<(u8, u16)>,
}

impl GuestsBus {
    fn range(&mut self, function: Function, iova: Iova, length: usize) -> Result<&mut [u8], DmaFault> {
        let fault = DmaFault { function, iova };
        let Function::Vf(n) = function else { return Err(fault) };
        let memory = self.memories.get_mut(usize::from(n)).ok_or(fault)?;
        let start = usize::try_from(iova).unwrap_or(usize::MAX);
        memory.get_mut(start..start.saturating_add(length)).ok_or(fault)
    }
}

impl Bus for GuestsBus {
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        into.copy_from_slice(self.range(function, iova, into.len())?);
        Ok(())
    }

    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault> {
        self.range(function, iova, from.len())?.copy_from_slice(from);
        Ok(())
    }

    fn msix(&mut self, function: Function, vector: u16) {
        let Function::Vf(n) = function else { panic!("only VFs interrupt") };
        self.calls.push((n, vector));
    }
}

/// Uplink whose frames a test puts in and takes out.
#[derive(Debug, Clone, Default)]
pub(crate) struct TestWire {
    pub(crate) sent: Vec<Vec<u8>>,
    pub(crate) arriving: VecDeque<Vec<u8>>,
    /// Unsegmented packet that is next, behind headroom, as its kernel gives it.
    pub(crate) large: Option<(Vec<u8>, UnsegmentedLayout)>,
    /// Number of segments of it that were received.
    taken: u32,
}

impl UplinkWire for TestWire {
    fn transmit(&mut self, frame: &[u8]) -> bool {
        self.sent.push(frame.to_vec());
        true
    }

    fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        if let Some((packet, layout)) = &self.large {
            let mut segments =
                offload::uncut::segments(layout, &packet[HEADROOM..]).unwrap().skip(self.taken);
            if let Some(length) = segments.write_next(into) {
                self.taken += 1;
                return Some(length);
            }
            (self.large, self.taken) = (None, 0);
        }
        let frame = self.arriving.pop_front()?;
        into[..frame.len()].copy_from_slice(&frame);
        Some(frame.len())
    }

    fn uncut(&mut self) -> Option<(&mut [u8], UnsegmentedLayout)> {
        self.large.as_mut().filter(|_| self.taken == 0).map(|(packet, layout)| (&mut packet[..], *layout))
    }

    fn pass_uncut(&mut self) {
        self.large = None;
    }
}

/// Frame that a guest has received: its header, its bytes, and its number of buffers.
pub(crate) type Received = (NetHeader, Vec<u8>, usize);

/// A card with guests.
pub(crate) struct Machine {
    pub(crate) nic: Nic,
    pub(crate) plane: Box<Plane<MAX_VFS>>,
    pub(crate) bus: GuestsBus,
    pub(crate) wire: TestWire,
    /// Receive and transmit ring of each guest.
    pub(crate) rings: Vec<[DriverRing; 2]>,
    features: Vec<VirtioFeatures>,
    place: u64,
}

impl Machine {
    /// Starts a card whose guests have these ring formats and features. VF n has the address of [`address`].
    pub(crate) fn new(guests: &[(bool, VirtioFeatures)]) -> Self {
        let mut nic = Nic::new(guests.len() as u8);
        let rings = |packed| [0, 1].map(|ring| DriverRing::new(packed, RINGS[ring], SIZE));
        let rings: Vec<_> = guests.iter().map(|(packed, _)| rings(*packed)).collect();
        for (n, (packed, features)) in (0..).zip(guests) {
            let rules = VfRules { addresses: vec![MacAddress(address(n))], ..VfRules::default() };
            nic.set_rules(n, rules);
            nic.set_features(n, *features);
            for ring in [0, 1] {
                let addresses = rings[usize::from(n)][ring as usize].addresses();
                let (size, position) = (SIZE.into(), Some(if *packed { 0x8000_8000 } else { 0 }));
                nic.start_ring(
                    n,
                    &RingStart { ring, size, packed: *packed, enabled: true, position, addresses },
                )
                .unwrap();
            }
        }
        let bus = GuestsBus { memories: vec![vec![0; MEMORY]; guests.len()], calls: Vec::new() };
        let features = guests.iter().map(|(_, features)| *features).collect();
        let counters = [PortCounters::default(); MAX_VFS];
        let plane = Plane::new(SwitchTables::closed(0), Pacing::new(None), StormState::default(), counters);
        let (plane, wire) = (Box::new(plane), TestWire::default());
        Self { nic, plane, bus, wire, rings, features, place: SENT }
    }

    /// Sends a packet of a guest with its header, in pieces of these lengths; the last piece has the rest.
    pub(crate) fn send(&mut self, vf: u8, header: NetHeader, frame: &[u8], pieces: &[usize]) -> bool {
        let n = usize::from(vf);
        let size = NetHeaderFormat::of(self.features[n]).size();
        let packet = [&header.emit()[..size], frame].concat();
        let (mut buffers, mut rest) = (Vec::new(), &packet[..]);
        for piece in pieces.iter().copied().chain([usize::MAX]) {
            let (now, later) = rest.split_at(piece.min(rest.len()));
            if !now.is_empty() {
                store(&mut self.bus.memories[n], self.place, now);
                buffers.push((self.place, now.len() as u32, false));
                self.place += now.len() as u64 + 16;
            }
            rest = later;
        }
        if self.place > (MEMORY - 0x2_0000) as u64 {
            self.place = SENT;
        }
        let sent = self.rings[n][1].add(&mut self.bus.memories[n], &buffers);
        self.nic.kick(vf, 1);
        sent
    }

    /// Posts receive buffers of a guest, each a chain of pieces with these lengths.
    pub(crate) fn post(&mut self, vf: u8, buffers: &[&[u32]]) {
        let n = usize::from(vf);
        for (at, pieces) in buffers.iter().enumerate() {
            let mut address = POSTED + (at as u64 % 100) * 0x1000;
            let chain: Vec<Buffer> = pieces
                .iter()
                .map(|length| {
                    address += 0x40;
                    let buffer = (address, *length, true);
                    address += u64::from(*length);
                    buffer
                })
                .collect();
            assert!(self.rings[n][0].add(&mut self.bus.memories[n], &chain));
        }
    }

    /// Polls the card until it has no more work.
    pub(crate) fn poll(&mut self, now_ns: u64) {
        self.plane.now = Time::from_nanos(now_ns);
        (self.plane.uplink.link, self.plane.uplink.receives) = (true, true);
        loop {
            if self.nic.take_changed() {
                self.nic.apply_policy(&mut self.plane, &PortMirrorRules::default());
            }
            let arrived = self.nic.arrive(&mut self.plane, 64, &mut self.bus, &mut self.wire);
            let more = self.nic.visit_ready(&mut self.plane, 64, &mut self.bus, &mut self.wire);
            if !arrived && !more {
                return;
            }
        }
    }

    /// Collects the frames that a guest has received.
    pub(crate) fn received(&mut self, vf: u8) -> Vec<Received> {
        let n = usize::from(vf);
        let size = NetHeaderFormat::of(self.features[n]).size();
        let memory = &self.bus.memories[n];
        let mut chains = self.rings[n][0].collect(memory).into_iter();
        let mut frames = Vec::new();
        while let Some((buffers, written)) = chains.next() {
            let mut bytes = contents(memory, &buffers, written);
            let mut raw = [0; NetHeader::SIZE];
            raw[..size].copy_from_slice(&bytes[..size]);
            let header = NetHeader::parse(&raw);
            let more = usize::from(header.buffers).saturating_sub(1);
            chains.by_ref().take(more).for_each(|(buffers, written)| {
                bytes.extend(contents(memory, &buffers, written));
            });
            frames.push((header, bytes.split_off(size), more + 1));
        }
        frames
    }

    /// Collects the chains of a guest's transmit ring that the card has returned. Returns their number.
    pub(crate) fn finished(&mut self, vf: u8) -> usize {
        let n = usize::from(vf);
        self.rings[n][1].collect(&self.bus.memories[n]).len()
    }
}

fn contents(memory: &[u8], buffers: &[Buffer], written: u32) -> Vec<u8> {
    let bytes =
        buffers.iter().flat_map(|(address, length, _)| &memory[*address as usize..][..*length as usize]);
    bytes.copied().take(written as usize).collect()
}
