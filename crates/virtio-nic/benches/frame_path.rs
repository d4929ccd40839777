//! Frames through the card of virtio devices, for callgrind: runs the cases whose name contains the first argument
//! FRAME_PATH_CALLS times. `cargo xtask instructions` counts the instructions per frame.

use plane::pacing::TransmitPacing;
use plane::switch::{PortMirrorRules, StormState, SwitchTables};
use plane::uplink::{UplinkMode, UplinkWire};
use plane::{ForwardingPlane, FrameTrunk, PortCounters, PortIndex, TrunkBatch};
use std::sync::{Arc, Mutex};
use two_vfs::{TwoVfMemory, address, frame};
use units::MacAddress;
use virtio::VirtioFeatures;
use virtio::descriptor::{PackedDescriptor, SplitDescriptor, flag};
use virtio::layout::RingAddresses;
use virtio::net::{self, NetHeader};
use virtio::packed::PackedPosition;
use virtio_nic::{MAX_VFS, Nic, RingStartParameters, VfRules, VlanMembership};

#[path = "../../pcie/benches/two_vfs/mod.rs"]
mod two_vfs;

const RING: u16 = 64;
/// Addresses of the receive ring and of the transmit ring, and of their parts from there.
const RINGS: [u64; 2] = [0, 0x1000];
const PARTS: [u64; 3] = [0, 0x800, 0xa00];
const FRAME: u64 = 0x2000;
const BUFFERS: u64 = 0x2_0000;
const BUFFER: u64 = 2048;
const PORT_VLAN: u16 = 100;
/// Number of frames that a call of [`CardBench::send`] sends.
const BURST: u16 = 32;
/// Frame budget of a visit to a transmit ring, as on a live port.
const BUDGET: usize = 64;

/// Packet header of a frame of [`two_vfs::frame`] whose TCP checksum the card completes.
const PARTIAL_TCP_SUM: NetHeader = NetHeader {
    flags: net::flag::NEEDS_CSUM,
    gso_type: 0,
    header_length: 0,
    gso_size: 0,
    checksum_start: 34,
    checksum_offset: 16,
    buffers: 0,
};

/// Uplink that drops every frame.
struct DroppingWire;

impl UplinkWire for DroppingWire {
    fn transmit(&mut self, _frame: &[u8]) -> bool {
        true
    }

    fn receive(&mut self, _into: &mut [u8]) -> Option<usize> {
        None
    }
}

struct CardBench {
    packed: bool,
    card: Nic,
    plane: ForwardingPlane<MAX_VFS>,
    memory: TwoVfMemory,
    /// Running index of the next chain of both rings, and its position in a packed ring.
    next: u16,
    position: PackedPosition,
    length: u32,
}

impl CardBench {
    /// Creates a card with two VFs as a host sets them up for tenants: on a port VLAN, with spoof check. VF 0 sends `frame` behind
    /// `header`.
    fn new(packed: bool, features: VirtioFeatures, header: &NetHeader, frame: &[u8]) -> Self {
        let (mut card, mut memory) = (Nic::new(2), TwoVfMemory::new(false));
        let (tables, pacing) = (SwitchTables::closed(0), TransmitPacing::new(None));
        let mut plane =
            ForwardingPlane::new(tables, pacing, StormState::default(), [PortCounters::default(); MAX_VFS]);
        plane.uplink = UplinkMode { link: true, receives: true, ..UplinkMode::default() };
        for vf in 0..2 {
            card.set_features(vf, features);
            let addresses = vec![MacAddress(address(vf))];
            let vlans = VlanMembership::Port(PORT_VLAN);
            card.set_rules(vf, VfRules { addresses, vlans, spoof_check: true, ..VfRules::default() });
            for ring in [0, 1] {
                let [descriptors, driver, device] = PARTS.map(|part| RINGS[ring as usize] + part);
                let addresses = RingAddresses { descriptors, driver, device };
                let position = Some(if packed { 0x8000_8000 } else { 0 });
                let start = RingStartParameters {
                    ring,
                    size: RING.into(),
                    packed,
                    enabled: true,
                    position,
                    has_run_elsewhere: false,
                    addresses,
                    memory: 0,
                };
                card.start_ring(vf, &start, &mut memory).expect("the ring is valid");
            }
        }
        card.apply_policy(&mut plane, &PortMirrorRules::NONE);
        memory.store(0, FRAME, &[&header.emit()[..], frame].concat());
        let length = (NetHeader::SIZE + frame.len()) as u32;
        let mut bench =
            Self { packed, card, plane, memory, next: 0, position: PackedPosition::START, length };
        if !packed {
            bench.fill_split_tables();
        }
        bench
    }

    /// Writes the descriptors of both split rings, and the entries of their available rings: entry n has descriptor n.
    fn fill_split_tables(&mut self) {
        for slot in 0..RING {
            let receive = (BUFFERS + u64::from(slot) * BUFFER, BUFFER as u32, flag::WRITE);
            for (n, (address, length, flags)) in [(1, receive), (0, (FRAME, self.length, 0))] {
                let ring = RINGS[1 - n];
                let raw = SplitDescriptor { address, length, flags, next: 0 }.emit();
                self.memory.store(n, ring + 16 * u64::from(slot), &raw);
                self.memory.store(n, ring + PARTS[1] + 4 + 2 * u64::from(slot), &slot.to_le_bytes());
            }
        }
    }

    /// Makes [`BURST`] buffers and as many packets available.
    fn make_available(&mut self) {
        self.next = self.next.wrapping_add(BURST);
        if !self.packed {
            for (n, ring) in [(1, RINGS[0]), (0, RINGS[1])] {
                self.memory.store(n, ring + PARTS[1] + 2, &self.next.to_le_bytes());
            }
            return;
        }
        let first = u64::from(self.position.index());
        let describe = |at: u16, address: u64, length: u32, flags: u16| {
            let position = self.position.after(at, RING);
            let flags = flags | position.available_flags();
            PackedDescriptor { address, length, id: position.index(), flags }.emit()
        };
        let buffer = |at: u16| BUFFERS + (first + u64::from(at)) * BUFFER;
        let posted: Vec<_> =
            (0..BURST).map(|at| describe(at, buffer(at), BUFFER as u32, flag::WRITE)).collect();
        let sent: Vec<_> = (0..BURST).map(|at| describe(at, FRAME, self.length, 0)).collect();
        self.memory.store(1, RINGS[0] + 16 * first, posted.as_flattened());
        self.memory.store(0, RINGS[1] + 16 * first, sent.as_flattened());
        self.position = self.position.after(BURST, RING);
    }

    /// Sends [`BURST`] frames from VF 0 to VF 1.
    fn send(&mut self) {
        self.make_available();
        self.card.kick(0, 1);
        while self.card.visit_ready(&mut self.plane, BUDGET, &mut self.memory, &mut DroppingWire) {}
    }
}

/// Trunk of one batch, to a part in the same thread.
#[derive(Debug, Default)]
struct BatchTrunk(Arc<Mutex<Vec<TrunkBatch>>>, TrunkBatch);

impl FrameTrunk for BatchTrunk {
    fn batch(&mut self, _port: PortIndex, bytes: usize) -> Option<&mut TrunkBatch> {
        if !self.1.has_room(bytes) {
            self.flush();
        }
        Some(&mut self.1)
    }

    fn flush(&mut self) -> bool {
        if !self.1.is_empty() {
            let mut batches = self.0.lock().expect("no other thread uses the trunk");
            let empty = batches.iter().position(|batch| batch.is_empty());
            let empty = empty.map_or_else(TrunkBatch::default, |at| batches.swap_remove(at));
            batches.push(std::mem::replace(&mut self.1, empty));
        }
        false
    }
}

/// Two parts of a card: VF 0 is in one, VF 1 in the other.
struct DividedCardBench {
    sender: CardBench,
    card: Nic,
    plane: ForwardingPlane<MAX_VFS>,
    batches: Arc<Mutex<Vec<TrunkBatch>>>,
}

impl DividedCardBench {
    fn new(mut sender: CardBench) -> Self {
        let (mut card, batches) = (Nic::new(2), Arc::default());
        card.follow(&sender.card);
        let (tables, pacing) = (sender.plane.tables().clone(), TransmitPacing::new(None));
        let plane =
            ForwardingPlane::new(tables, pacing, StormState::default(), [PortCounters::default(); MAX_VFS]);
        sender.card.set_trunk(Some(Box::new(BatchTrunk(Arc::clone(&batches), TrunkBatch::default()))));
        card.attach(sender.card.detach(1).expect("VF 1 is in the card"));
        Self { sender, card, plane, batches }
    }

    /// Sends [`BURST`] frames from VF 0 to VF 1.
    fn send(&mut self) {
        self.sender.send();
        let (plane, memory) = (&mut self.plane, &mut self.sender.memory);
        for batch in self.batches.lock().expect("no other thread uses the trunk").iter_mut() {
            self.card.leave_trunk(plane, batch, memory);
            batch.clear();
        }
        self.card.visit_ready(plane, BUDGET, memory, &mut DroppingWire);
    }
}

fn main() {
    let wanted = |name: &str| {
        let mut parts = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
        parts.all(|part| name.contains(&part))
    };
    let calls = std::env::var("FRAME_PATH_CALLS").ok().and_then(|calls| calls.parse().ok()).unwrap_or(1);
    let modern = VirtioFeatures::VERSION_1 | VirtioFeatures::MRG_RXBUF | VirtioFeatures::EVENT_IDX;
    for (kind, packed, more) in [
        ("split", false, VirtioFeatures::NONE),
        ("packed in any order", true, VirtioFeatures::NONE),
        ("packed in order", true, VirtioFeatures::IN_ORDER),
    ] {
        for length in [64, 1514] {
            let bench = |features: VirtioFeatures, header: &NetHeader| {
                CardBench::new(packed, modern | more | features, header, &frame(1, 0, length))
            };
            let card = || bench(VirtioFeatures::NONE, &NetHeader::default());
            let received = |name: &str, plane: &mut ForwardingPlane<MAX_VFS>| {
                let port = PortIndex::of_field(1);
                plane.ledger.settle_received(port);
                let received = plane.ledger.of(port).rx_packets;
                assert_eq!(received, calls * u64::from(BURST), "{name}");
            };
            let name = format!("virtio to virtio, with policy, {length} bytes, {kind}");
            if wanted(&name) {
                let mut bench = card();
                (0..calls).for_each(|_| bench.send());
                received(&name, &mut bench.plane);
            }
            let name = format!("virtio to virtio, checksum inserted, with policy, {length} bytes, {kind}");
            if wanted(&name) {
                // Both guests have the features of Linux, so the receiver would accept a partial checksum.
                let mut bench = bench(VirtioFeatures::CSUM | VirtioFeatures::GUEST_CSUM, &PARTIAL_TCP_SUM);
                (0..calls).for_each(|_| bench.send());
                received(&name, &mut bench.plane);
            }
            let name = format!("virtio to virtio of another worker, {length} bytes, {kind}");
            if wanted(&name) {
                let mut bench = DividedCardBench::new(card());
                (0..calls).for_each(|_| bench.send());
                received(&name, &mut bench.plane);
            }
        }
    }
}
