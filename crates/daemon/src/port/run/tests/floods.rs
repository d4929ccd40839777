//! Tests floods of an AVF guest by counted cost: the flooder pays for its requests, and its neighbours' requests and frames take
//! the rounds that they take on a quiet port.

mod flooder;
mod interrupts;

use super::shares::client_of;
use super::{PortFixture, message};
use driver::avf::vf::{AvfDriver, AvfDriverConfig};
use driver::{DmaAllocation, DmaHal, Hal, OutOfDmaMemory};
use flooder::{AvfFlooder, RawPacket};
use host::dma::DmaPermissions;
use i82576::{MacAddress, Time};
use pcie::Function;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::{pread, pwrite};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use units::WorkCost;
use units::work::{FRAME_OVERDRAFT, FRAME_QUANTUM, QUANTUM};
use vfio_user::wire::pci_region;

/// VFs of the port: one that floods, and two that exchange frames.
const VFS: u8 = 3;
const FLOODER: u8 = 0;
/// Bytes of each guest's memory.
const MEMORY: u64 = 64 << 20;
/// Times that the neighbours exchange a request and a frame during a flood.
const EXCHANGES: usize = 60;
/// Rounds in which the rest of the flooder's credit is measured.
const ROUNDS: u64 = 100;
/// Messages of the flooder's client before each round. They cost more than the flooder's credit of a round.
const MESSAGES: usize = 40;
/// Cost of a client's message.
const MESSAGE: u64 = WorkCost::MESSAGE.0 as u64;

/// Action of the flooding guest before each round of the port.
type GuestFlood = fn(&mut FloodedPort);

/// AVF port with three guests, whose drivers run in the test.
struct FloodedPort {
    world: PortFixture,
    memories: Vec<OwnedFd>,
    used: [usize; VFS as usize],
    /// Drivers of VFs 1 and 2.
    drivers: [Option<AvfDriver>; 2],
    flooder: Option<AvfFlooder>,
    client: UnixStream,
    flood: Option<GuestFlood>,
    rounds: u64,
    /// Descriptors of the flooder's mailbox that the card has taken, and resets of the flooder.
    served: u64,
}

impl FloodedPort {
    fn open() -> Self {
        // No limit of requests for each second: only their cost counts.
        let config = format!("[[port]]\nfamily = \"avf\"\nvfs = {VFS}\nlimits = {{ mailbox = {{}} }}\n");
        let mut world = PortFixture::open_with(&config);
        let client = client_of(&mut world, usize::from(FLOODER));
        let memories = (0..VFS).map(|vf| memory(&mut world, vf)).collect();
        let mut port = Self {
            world,
            memories,
            used: [0; VFS as usize],
            drivers: [None, None],
            flooder: None,
            client,
            flood: None,
            rounds: 0,
            served: 0,
        };
        for vf in 0..VFS {
            let now = port.world.port_time();
            let card = port.world.port.engine.card_mut();
            // Memory space and bus master.
            card.write(Function::Vf(vf), pci_region::CONFIG, 4, &[6, 0], now);
            let mac = MacAddress([2, 0, 0, 0, 0, vf]);
            if vf == FLOODER {
                port.flooder = Some(AvfFlooder::start(&mut port.hal(vf), vf, mac));
                continue;
            }
            let config = AvfDriverConfig { pairs: 1, descriptors: 64, ..AvfDriverConfig::default() };
            let mut driver = AvfDriver::probe_with(&mut port.hal(vf), mac, config).unwrap();
            driver.start(&mut port.hal(vf)).unwrap();
            port.drivers[usize::from(vf) - 1] = Some(driver);
        }
        port
    }

    fn hal(&mut self, vf: u8) -> GuestHal<'_> {
        GuestHal { port: self, vf }
    }

    /// Calls `act` with the driver of VF 1 or 2.
    fn with<R>(&mut self, vf: u8, act: impl FnOnce(&mut AvfDriver, &mut GuestHal<'_>) -> R) -> R {
        let place = usize::from(vf) - 1;
        let mut driver = self.drivers[place].take().unwrap();
        let result = act(&mut driver, &mut self.hal(vf));
        self.drivers[place] = Some(driver);
        result
    }

    /// Calls `act` with the flooding guest.
    fn with_flooder<R>(&mut self, act: impl FnOnce(&mut AvfFlooder, &mut GuestHal<'_>) -> R) -> R {
        let mut flooder = self.flooder.take().unwrap();
        let result = act(&mut flooder, &mut self.hal(FLOODER));
        self.flooder = Some(flooder);
        result
    }

    fn round(&mut self) {
        if let Some(flood) = self.flood {
            flood(self);
        }
        self.world.round_after(Duration::from_micros(1));
        self.rounds += 1;
    }

    /// Has VF 1 send a request to the PF, and a frame to VF 2. Returns the numbers of rounds until the reply and the frame
    /// arrive.
    fn exchange(&mut self) -> [u64; 2] {
        let before = self.rounds;
        self.with(1, |driver, hal| driver.statistics(hal).unwrap());
        let answered = self.rounds;
        let to = self.with(2, |driver, _| driver.mac().0);
        self.with(1, |driver, hal| {
            let frame = [&to[..], &driver.mac().0, &[0x88, 0xb5], &[7; 50]].concat();
            driver.clean(hal);
            assert!(driver.transmit(hal, 0, &frame));
            driver.flush(hal);
        });
        let mut into = [0; 2048];
        let mut arrives = |port: &mut Self| {
            port.round();
            port.with(2, |driver, hal| driver.receive(hal, 0, &mut into).is_some())
        };
        assert!((0..100).any(|_| arrives(self)));
        [answered - before, self.rounds - answered]
    }

    /// Runs a flood, during which the neighbours exchange requests and frames as fast as on the quiet port.
    fn flood(&mut self, flood: GuestFlood) {
        let quiet = self.exchange();
        self.flood = Some(flood);
        let began = self.rounds;
        for n in 0..EXCHANGES {
            assert_eq!(self.exchange(), quiet, "exchange {n}");
        }
        self.rounds -= began;
    }

    /// Has the flooder's client send messages, which the port handles while the flooder has credit.
    fn send_messages(&mut self) {
        let mut unanswered = message(1, 99, &[]);
        // No_reply.
        unanswered[8] = 0x10;
        let _ = self.client.write(&unanswered.repeat(MESSAGES));
    }

    /// Returns the numbers of frames that the flooder has sent, and of its malformed packets.
    fn sent(&mut self) -> [u64; 2] {
        let counters = self.world.port.engine.card_mut().counters(Function::Vf(FLOODER));
        [counters.tx_packets, counters.tx_invalid]
    }

    /// Returns the number of messages of the flooder's client that the port has handled.
    fn handled(&self) -> u64 {
        self.world.slot().connection().unwrap().counters().messages
    }
}

/// Gives a guest memory from address 0 on.
fn memory(world: &mut PortFixture, vf: u8) -> OwnedFd {
    let file = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, MEMORY).unwrap();
    let memory = world.port.engine.reach_mut(Function::Vf(vf)).memory_mut();
    let region = memory.admit(0, MEMORY, DmaPermissions::READ_WRITE, Some(0)).unwrap().unwrap();
    memory.insert(region.map(file.try_clone().unwrap()).unwrap()).unwrap();
    file
}

/// Access of a guest's driver to its VF and its memory.
struct GuestHal<'a> {
    port: &'a mut FloodedPort,
    vf: u8,
}

impl Hal for GuestHal<'_> {
    fn read(&mut self, offset: u32) -> u32 {
        let now = self.now();
        let (mut bytes, card) = ([0; 4], self.port.world.port.engine.card_mut());
        card.read(Function::Vf(self.vf), pci_region::BAR0, offset.into(), &mut bytes, now);
        u32::from_le_bytes(bytes)
    }

    fn write(&mut self, offset: u32, value: u32) {
        let now = self.now();
        let card = self.port.world.port.engine.card_mut();
        card.write(Function::Vf(self.vf), pci_region::BAR0, offset.into(), &value.to_le_bytes(), now);
    }

    fn now(&self) -> Time {
        self.port.world.port_time()
    }

    fn wait(&mut self, _: Duration) {
        self.port.round();
    }
}

impl DmaHal for GuestHal<'_> {
    fn dma_alloc(&mut self, length: usize, align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
        let used = &mut self.port.used[usize::from(self.vf)];
        let start = used.next_multiple_of(align);
        if start + length > MEMORY as usize {
            return Err(OutOfDmaMemory(length));
        }
        *used = start + length;
        Ok(DmaAllocation { iova: start as u64, length })
    }

    fn dma_read(&self, iova: u64, into: &mut [u8]) {
        assert_eq!(pread(&self.port.memories[usize::from(self.vf)], &mut *into, iova), Ok(into.len()));
    }

    fn dma_write(&mut self, iova: u64, from: &[u8]) {
        assert_eq!(pwrite(&self.port.memories[usize::from(self.vf)], from, iova), Ok(from.len()));
    }
}

/// Resets the flooder's function, as its client can.
fn reset(port: &mut FloodedPort) {
    assert!(port.world.port.engine.card_mut().reset_function(Function::Vf(FLOODER)));
    port.served += 1;
}

#[test]
fn avf_flooder_pays_for_its_requests_and_resets() {
    // The costs are those of `units::work`: 15 for a descriptor, 40 and more for a request, 40 and more for the switch's
    // tables, 80 and more for the PF driver's part in a reset.
    let floods: [(&str, GuestFlood, std::ops::Range<u64>); 5] = [
        (
            "commands",
            |port| port.served += port.with_flooder(|flooder, hal| flooder.send_commands(hal)),
            15..25,
        ),
        (
            "requests",
            |port| port.served += port.with_flooder(|flooder, hal| flooder.send_requests(hal)),
            55..75,
        ),
        (
            "lists of addresses",
            |port| port.served += port.with_flooder(|flooder, hal| flooder.send_address_lists(hal)),
            55..200,
        ),
        (
            "switched queues",
            |port| port.served += port.with_flooder(|flooder, hal| flooder.switch_queues(hal)),
            55..200,
        ),
        ("function-level resets", reset, 80..400),
    ];
    for (name, flood, cost) in floods {
        let mut port = FloodedPort::open();
        port.flood(flood);
        // The rest of the flooder's credit pays for messages of its client.
        let counts = |port: &FloodedPort| [port.handled(), port.served];
        let before = counts(&port);
        for _ in 0..ROUNDS {
            port.send_messages();
            port.round();
        }
        let after = counts(&port);
        let [handled, served] = [0, 1].map(|at| after[at] - before[at]);
        assert!(served > 0, "{name}: the flooder is served too");
        let paid = (ROUNDS * u64::from(QUANTUM.0)).saturating_sub(handled * MESSAGE);
        assert!(cost.contains(&(paid / served)), "{name}: {paid} units for {served}, {handled} messages");
    }
}

/// Floods with packets. Returns the frames that the flooder has sent, its malformed packets, and the rounds.
fn flood_of_packets(flood: GuestFlood) -> [u64; 3] {
    let mut port = FloodedPort::open();
    let before = port.sent();
    port.flood(flood);
    let after = port.sent();
    [after[0] - before[0], after[1] - before[1], port.rounds]
}

#[test]
fn avf_flood_of_segments_on_all_pairs_keeps_to_one_share() {
    let [sent, _, rounds] = flood_of_packets(|port| {
        port.with_flooder(|flooder, hal| {
            flooder.send_segments(hal, MacAddress([2, 9, 9, 9, 9, 9]));
        });
    });
    // A segment costs 2 units, and all queues of a VF have one account.
    let most = (rounds * u64::from(FRAME_QUANTUM.0) + u64::from(FRAME_OVERDRAFT.0)) / 2;
    assert!(sent <= most && sent > most / 4, "{sent} segments in {rounds} rounds, at most {most}");
}

#[test]
fn avf_flood_of_malformed_packets_ends_at_the_queue_stop() {
    let [sent, malformed, _] =
        flood_of_packets(|port| port.with_flooder(|flooder, hal| flooder.send_malformed(hal)));
    // Each of 16 queues stops at 64 malformed packets.
    assert_eq!((sent, malformed), (0, 16 * 64));
}

/// Opens a port whose flooder has rings of its own, full of a packet. It has rung no doorbell of them.
fn with_raw_rings(packet: RawPacket) -> FloodedPort {
    let mut port = FloodedPort::open();
    port.with_flooder(|flooder, hal| flooder.take_raw_rings(hal, packet));
    port
}

#[test]
fn avf_floods_of_costly_packets_keep_to_one_share() {
    // Segments of 950 bytes cost 3 units at least. SCTP packets of 9.7 KB cost 75 units for the checksum and 5 for a frame of a
    // burst. The 16 rings have more packets than the flood can pay for.
    let floods: [(&str, RawPacket, GuestFlood, u64); 2] = [
        (
            "headers of 822 bytes",
            RawPacket::LongHeaders,
            |port| port.with_flooder(|flooder, hal| flooder.send_raw(hal, RawPacket::LongHeaders)),
            3,
        ),
        (
            "SCTP",
            RawPacket::Sctp,
            |port| port.with_flooder(|flooder, hal| flooder.send_raw(hal, RawPacket::Sctp)),
            80,
        ),
    ];
    for (name, packet, flood, cost) in floods {
        let mut port = with_raw_rings(packet);
        let before = port.sent();
        port.flood(flood);
        let (after, rounds) = (port.sent(), port.rounds);
        let [sent, malformed] = [0, 1].map(|at| after[at] - before[at]);
        let most = (rounds * u64::from(FRAME_QUANTUM.0) + u64::from(FRAME_OVERDRAFT.0)) / cost;
        assert!(sent <= most && sent > most / 4, "{name}: {sent} in {rounds} rounds, at most {most}");
        assert_eq!(malformed, 0, "{name}");
    }
}

#[test]
fn avf_flood_of_contexts_ends_at_the_queue_stop() {
    let mut port = with_raw_rings(RawPacket::Context);
    assert_eq!(port.sent(), [0; 2]);
    port.flood(|port| port.with_flooder(|flooder, hal| flooder.send_raw(hal, RawPacket::Context)));
    assert_eq!(port.sent(), [0, 16 * 64]);
}
