//! Benchmarks the VF drivers: cost of a frame in bursts that a VF sends and receives, over shared memory as live
//! guests have it. The benchmark plays the card and the PF: it completes descriptors and copies no frame.
//!
//! Prints the median of many rounds, and with FRAME_PATH_CALLS=n in the environment runs the cases whose name contains the
//! first argument n times without measuring, for callgrind.
//!
//! Without the card, and without cache lines that another processor holds.

use avf::admin::{self, AdminQueueDescriptor};
use avf::descriptor::rx as avf_rx;
use avf::virtchnl::reply::encode;
use avf::virtchnl::{QueuePairInfo, VfResources, VirtchnlRequest, VirtchnlVersion};
use driver::any_vf::{AnyVfConfig, DeviceFamily};
use driver::avf::vf::AvfDriverConfig;
use driver::hal::DESCRIPTOR;
use driver::vf::{TxOffload, VfDriverConfig};
use driver::{AnyVf, DmaAllocation, DmaHal, Hal, OutOfDmaMemory, PrefetchPurpose};
use i82576::descriptor::rx::status;
use i82576::register::{rx, tx, vf};
use i82576::{Time, bits, mailbox};
use std::hint::black_box;
use std::time::{Duration, Instant};
use vfio_client::{RAM_BASE, SharedDmaMemory};

const RING: usize = 256;
const BURST: usize = 32;
/// Bytes of the memory that driver and card share.
const MEMORY: u64 = 4 << 20;
/// Bytes of a transmit descriptor, in either family.
const TX_SIZE: usize = 16;
/// Bytes of a receive buffer. Buffers are contiguous.
const BUFFER: u64 = 2048;
const ROUNDS: usize = 51;
const ROUND: Duration = Duration::from_millis(4);

/// Ring of the benchmarked driver in shared memory, read and completed by the benchmark as the card.
#[derive(Debug, Default, Clone, Copy)]
struct CardSideRing {
    base: u64,
    /// Index of the ring slot that the benchmark, as the card, completes next.
    head: usize,
}

/// Registers and shared memory of a VF under benchmark, with the granting replies of its PF.
#[derive(Debug)]
struct MemoryVfBus {
    ram: SharedDmaMemory,
    /// Registers of the VF's BAR0, a 32-bit word each.
    registers: Vec<u32>,
    /// Number of replies that the PF has put into an AVF's admin queue.
    replies: usize,
    tx: CardSideRing,
    rx: CardSideRing,
}

impl Hal for MemoryVfBus {
    fn read(&mut self, offset: u32) -> u32 {
        let word = self.registers[offset as usize / 4];
        match offset {
            vf::V2PMAILBOX => word | bits::v2p::VFU,
            avf::register::VFGEN_RSTAT => 2,
            _ => word,
        }
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.registers[offset as usize / 4] = value;
        if (offset, value) == (vf::V2PMAILBOX, bits::v2p::REQ) {
            self.registers[vf::V2PMAILBOX as usize / 4] = bits::v2p::PFACK | bits::v2p::PFSTS;
            self.registers[vf::VMBMEM as usize / 4] |= mailbox::ACK | mailbox::CTS;
            let id = self.registers[vf::VMBMEM as usize / 4] & mailbox::ID_MASK;
            if id == mailbox::id::VF_RESET {
                self.registers[vf::VMBMEM as usize / 4] = id | mailbox::ACK;
            }
        }
        if offset == avf::register::VF_ATQT && value != 0 {
            self.reply(value as usize);
        }
    }

    fn now(&self) -> Time {
        Time::ZERO
    }

    fn wait(&mut self, _: Duration) {}
}

impl DmaHal for MemoryVfBus {
    fn dma_alloc(&mut self, length: usize, align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
        self.ram.allocate(length, align)
    }

    fn dma_read(&self, iova: u64, into: &mut [u8]) {
        self.ram.read(iova, into);
    }

    #[inline]
    fn read_completed(&self, iova: u64, size: usize, into: &mut [[u8; DESCRIPTOR]]) -> usize {
        self.ram.read_completed(iova, size, into)
    }

    fn dma_write(&mut self, iova: u64, from: &[u8]) {
        self.ram.write(iova, from);
    }

    #[inline]
    fn prefetch(&self, iova: u64, length: usize, access: PrefetchPurpose) {
        self.ram.prefetch(iova, length, access);
    }
}

impl MemoryVfBus {
    fn new() -> Self {
        let ram = SharedDmaMemory::new(RAM_BASE, MEMORY).expect("shared memory for the VF can be created");
        let registers = vec![0; avf::ids::BAR0_SIZE / 4];
        Self { ram, registers, replies: 0, tx: CardSideRing::default(), rx: CardSideRing::default() }
    }

    fn address(&self, low: u32, high: u32) -> u64 {
        let [low, high] = [low, high].map(|offset| self.registers[offset as usize / 4]);
        u64::from(low) | u64::from(high) << 32
    }

    /// Replies as the PF to the request before `tail` of an AVF's mailbox, and grants it.
    fn reply(&mut self, tail: usize) {
        let requests = self.address(avf::register::VF_ATQBAL, avf::register::VF_ATQBAH);
        let replies = self.address(avf::register::VF_ARQBAL, avf::register::VF_ARQBAH);
        let slots = (self.registers[avf::register::VF_ATQLEN as usize / 4] & 0x3ff) as usize;
        let mut raw = [0; admin::SIZE];
        self.ram.read(requests + ((tail + slots - 1) % slots * admin::SIZE) as u64, &mut raw);
        let request = AdminQueueDescriptor::parse(&raw);
        let mut body = vec![0; request.length.into()];
        self.ram.read(request.address.max(RAM_BASE), &mut body);
        let place = replies + (self.replies % slots * admin::SIZE) as u64;
        self.ram.read(place, &mut raw);
        let body = self.body(request.cookie_high, &body);
        self.ram.write(AdminQueueDescriptor::parse(&raw).address, &body);
        let reply = AdminQueueDescriptor {
            flags: admin::flag::DD | admin::flag::CMP | admin::flag::BUF,
            opcode: admin::opcode::SEND_TO_VF,
            length: body.len() as u16,
            cookie_high: request.cookie_high,
            ..AdminQueueDescriptor::default()
        };
        self.ram.write(place, &reply.emit());
        self.replies += 1;
    }

    fn body(&mut self, number: u32, body: &[u8]) -> Vec<u8> {
        match VirtchnlRequest::decode(number, body) {
            Ok(VirtchnlRequest::Version(_)) => encode(&VirtchnlVersion::V1_1),
            Ok(VirtchnlRequest::Resources(wanted)) => encode(&VfResources {
                pairs: 1,
                vectors: 2,
                max_frame: 0,
                capabilities: wanted.unwrap_or_default(),
                vsi: 1,
                mac: [2, 0, 0, 0, 0, 1],
            }),
            Ok(VirtchnlRequest::ConfigureQueues(_, pairs)) => {
                if let Some(QueuePairInfo { tx, rx }) = pairs.iter().next() {
                    (self.tx.base, self.rx.base) = (tx.base, rx.base);
                }
                Vec::new()
            }
            _ => Vec::new(),
        }
    }
}

/// Started VF with its bus, the frame to send, and the descriptors by which the benchmark completes a burst as the
/// card.
struct DriverFramePathBench {
    bus: MemoryVfBus,
    vf: AnyVf,
    frame: Vec<u8>,
    /// Completed descriptors of a burst of received frames, all alike.
    received: Vec<u8>,
    rx_size: usize,
    /// Report of a transmit descriptor: position and bit of the driver's request, and position and value of the card's
    /// answer.
    report: (usize, u8, usize, u8),
    buffer: Vec<u8>,
}

impl DriverFramePathBench {
    fn new(family: DeviceFamily, config: &AnyVfConfig, length: usize) -> Self {
        let mut bus = MemoryVfBus::new();
        let mut vf = AnyVf::probe(&mut bus, family, config).expect("the probe of the VF succeeds");
        vf.start(&mut bus).expect("the VF starts");
        let mut frame = vec![0; length];
        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
        let (descriptor, rx_size, report) = match family {
            DeviceFamily::I82576 => {
                bus.tx.base = bus.address(vf::TX_BLOCK + tx::TDBAL, vf::TX_BLOCK + tx::TDBAH);
                bus.rx.base = bus.address(vf::RX_BLOCK + rx::RDBAL, vf::RX_BLOCK + rx::RDBAH);
                let back = i82576::descriptor::rx::AdvancedRxWriteBack {
                    length: length as u16,
                    status: status::EOP,
                    ..Default::default()
                };
                (back.emit().to_vec(), 16, (11, 0x08, 12, 1))
            }
            DeviceFamily::Avf => {
                let form = config.avf.form;
                let back = avf_rx::RxWriteBack {
                    length: length as u16,
                    end_of_packet: true,
                    ..avf_rx::RxWriteBack::default()
                };
                (back.emit(form)[..form.size()].to_vec(), form.size(), (8, 0x20, 8, 0xf))
            }
        };
        let received = descriptor.repeat(BURST);
        let mut first = [0; 8];
        bus.ram.read(bus.rx.base, &mut first);
        for slot in 0..RING as u64 {
            bus.ram.write(u64::from_le_bytes(first) + slot * BUFFER, &frame);
        }
        Self { bus, vf, frame, received, rx_size, report, buffer: vec![0; 2048] }
    }

    /// Sends a burst of equal frames, and completes their descriptors as the card.
    fn send(&mut self) {
        let Self { bus, vf, frame, report: (asked_at, asked, at, done), .. } = self;
        let sent = vf.transmit_burst(bus, &[&frame[..]; BURST], &TxOffload::default());
        vf.flush(bus);
        assert_eq!(sent, BURST);
        let mut sent = [0; BURST * TX_SIZE];
        let base = bus.tx.base + (bus.tx.head * TX_SIZE) as u64;
        bus.ram.read(base, &mut sent);
        for (slot, raw) in (0..).zip(sent.as_chunks::<TX_SIZE>().0) {
            if raw[*asked_at] & *asked != 0 {
                bus.ram.write(base + slot * TX_SIZE as u64 + *at as u64, &[*done]);
            }
        }
        bus.tx.head = (bus.tx.head + BURST) % RING;
    }

    /// Completes a burst of receive descriptors as the card, and receives the frames.
    fn receive(&mut self) {
        let Self { bus, vf, frame, received, rx_size, buffer, .. } = self;
        bus.ram.write(bus.rx.base + (bus.rx.head * *rx_size) as u64, received);
        bus.rx.head = (bus.rx.head + BURST) % RING;
        let mut count = 0;
        vf.receive_burst(bus, BURST, |mut found| {
            if found.copy_to(buffer) == Ok(frame.len()) && buffer[6..12] == frame[6..12] {
                count += 1;
            }
        });
        assert_eq!(black_box(count), BURST);
    }
}

/// Returns the number of bursts to exchange without measuring (FRAME_PATH_CALLS), or `None` if the variable is not set.
fn calls() -> Option<u32> {
    std::env::var("FRAME_PATH_CALLS").ok()?.parse().ok()
}

/// Returns the nanoseconds that a frame takes: the median of all rounds.
fn median(mut exchange: impl FnMut()) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let (start, mut calls) = (Instant::now(), 0);
            while start.elapsed() < ROUND {
                (0..8).for_each(|_| exchange());
                calls += 8;
            }
            start.elapsed().as_nanos() as f64 / f64::from(calls) / BURST as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

/// Function that exchanges a burst of frames in one direction.
type BurstExchange = fn(&mut DriverFramePathBench);

/// Measured directions of the frame path (send and receive), each with its name.
const DIRECTIONS: [(&str, BurstExchange); 2] =
    [("VF driver sends", DriverFramePathBench::send), ("VF driver receives", DriverFramePathBench::receive)];

fn main() {
    let size = RING as u16;
    let i82576 = VfDriverConfig {
        batch: BURST as u16,
        rx_descriptors: size,
        tx_descriptors: size,
        ..VfDriverConfig::default()
    };
    let avf =
        AvfDriverConfig { pairs: 1, descriptors: size, batch: BURST as u16, ..AvfDriverConfig::default() };
    let legacy = AnyVfConfig { i82576, avf };
    let flexible = legacy.flexible();
    for (name, family, config) in [
        ("82576", DeviceFamily::I82576, legacy),
        ("AVF legacy", DeviceFamily::Avf, legacy),
        ("AVF flexible", DeviceFamily::Avf, flexible),
    ] {
        for (direction, exchange) in DIRECTIONS {
            for length in [64, 1514] {
                let name = format!("{direction}, {name}, {length} bytes");
                let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
                if !arguments.all(|part| name.contains(&part)) {
                    continue;
                }
                let mut bench = DriverFramePathBench::new(family, &config, length);
                match calls() {
                    Some(calls) => (0..calls).for_each(|_| exchange(&mut bench)),
                    None => println!("{name:45} {:7.1} ns/frame", median(|| exchange(&mut bench))),
                }
            }
        }
    }
}
