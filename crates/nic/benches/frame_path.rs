//! Measures the time of frames through the card. Each case is the median of many rounds, in nanoseconds and as a
//! multiple of one copy of the same bytes. On a shared machine compare two builds by running them in turn, or count
//! instructions: with FRAME_PATH_CALLS=n in the environment, cases whose name contains the first argument run n times
//! without a measurement, for callgrind.
//!
//! All memory stays in the CPU's cache, and no case makes a system call.

use i82576::bits::{dctl, dtxswc, mrqc, rctl, tctl, vlvf, vmolr, vmvir, vt_ctl};
use i82576::config::pf::SRIOV;
use i82576::descriptor::rx::PostedRxDescriptor;
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor, L4PacketType};
use i82576::register::{self as r, rx, tx, vf};
use i82576::{MacAddress, PoolIndex, Time};
use nic::{Nic, NicConfig, PollBudget, UplinkWire};
use pcie::Function::{Pf, Vf};
use pcie::capability::sriov;
use pcie::config::offset;
use pcie::{ConfigAccess, Iova};
use std::hint::black_box;
use std::time::{Duration, Instant};
use two_vfs::{TwoVfMemory, address, frame};

#[path = "../../pcie/benches/two_vfs/mod.rs"]
mod two_vfs;

const RING: usize = 64;
const RX_RING: Iova = 0;
const TX_RING: Iova = 0x1000;
const FRAME: Iova = 0x2000;
const BUFFERS: Iova = 0x2_0000;
const BUFFER: usize = 2048;
const PORT_VLAN: u32 = 100;
/// Number of measured rounds, of which the median counts.
const ROUNDS: usize = 41;
/// Minimum duration of a measured round of the benchmark.
const ROUND: Duration = Duration::from_millis(5);

/// A wire that delivers the same frame repeatedly and discards the frames that it gets.
#[derive(Default)]
struct ReplayWire {
    frame: Vec<u8>,
    left: usize,
    sent: Vec<u8>,
}

impl UplinkWire for ReplayWire {
    fn transmit(&mut self, frame: &[u8]) -> bool {
        self.sent.clear();
        self.sent.extend_from_slice(frame);
        true
    }

    fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        into[..self.frame.len()].copy_from_slice(&self.frame);
        Some(self.frame.len())
    }
}

struct CardBench {
    /// Bytes of the receive descriptors as a guest posts them.
    posted: Vec<u8>,
    /// Next index of VF 1's receive ring and of VF 0's transmit ring, which their guests know without a read.
    heads: [usize; 2],
    nic: Nic,
    memory: TwoVfMemory,
    wire: ReplayWire,
}

const fn pool_of(vf: u8) -> PoolIndex {
    PoolIndex::of_field(vf as u32)
}

const fn mac(n: u8) -> MacAddress {
    MacAddress(address(n))
}

impl CardBench {
    fn new() -> Self {
        Self::with(TwoVfMemory::new(false))
    }

    fn with(memory: TwoVfMemory) -> Self {
        let mut nic = Nic::new(NicConfig { mac: mac(255), iov: true, loopback: None });
        nic.set_link(true);
        let master = u32::from(offset::COMMAND_MEMORY | offset::COMMAND_BUS_MASTER);
        let enable = u32::from(sriov::CONTROL_ENABLE | sriov::CONTROL_MEMORY);
        nic.config_write(Pf, offset::COMMAND, 2, master);
        nic.config_write(Pf, SRIOV + sriov::NUM_VFS, 2, 2);
        nic.config_write(Pf, SRIOV + sriov::CONTROL, 2, enable);
        let pool = vmolr::STRCRC | vmolr::AUPE | vmolr::BAM | vmolr::LPE | i82576::ids::MAX_FRAME as u32;
        for (at, value) in [
            (r::MRQC, mrqc::VMDQ),
            (r::VT_CTL, vt_ctl::REPL_EN | 2 << vt_ctl::DEF_PL_SHIFT),
            (r::DTXSWC, dtxswc::LOOPBACK_EN),
            (r::RXCSUM, 0x2300),
            (r::VFRE, 0xff),
            (r::VFTE, 0xff),
            (r::RCTL, rctl::EN | rctl::LPE | rctl::SECRC),
            (r::TCTL, tctl::EN | tctl::PSP),
        ] {
            nic.write(Pf, at, value, Time::ZERO);
        }
        for n in 0..2 {
            nic.config_write(Vf(n), offset::COMMAND, 2, master);
            let (low, high) = mac(n).to_words();
            nic.write(Pf, r::vmolr(pool_of(n)), pool, Time::ZERO);
            nic.write(Pf, r::ral(1 + u32::from(n)), low, Time::ZERO);
            nic.write(Pf, r::rah(1 + u32::from(n)), high | 1 << 31 | 1 << (18 + n), Time::ZERO);
        }
        let posted =
            (0..RING).map(|i| PostedRxDescriptor { packet: BUFFERS + (i * BUFFER) as u64, header: 0 }.emit());
        let posted = posted.collect::<Vec<_>>().as_flattened().to_vec();
        let mut bench = Self { posted, heads: [0; 2], nic, memory, wire: ReplayWire::default() };
        (0..2).for_each(|n| bench.start(n));
        bench
    }

    /// Sets a host's policy on the card: anti-spoofing of addresses and VLANs, and a port VLAN that is inserted and
    /// stripped.
    fn police(&mut self) {
        let checked = 0xff << dtxswc::MAC_SPOOF_SHIFT | 0xff << dtxswc::VLAN_SPOOF_SHIFT;
        let member = vlvf::VLANID_EN | 0b11 << vlvf::POOLSEL_SHIFT | PORT_VLAN;
        self.nic.write(Pf, r::DTXSWC, dtxswc::LOOPBACK_EN | checked, Time::ZERO);
        self.nic.write(Pf, r::vlvf(0), member, Time::ZERO);
        for n in 0..2 {
            let pool = self.nic.read(Pf, r::vmolr(pool_of(n)), Time::ZERO);
            self.nic.write(Pf, r::vmolr(pool_of(n)), pool & !vmolr::AUPE | vmolr::STRVLAN, Time::ZERO);
            self.nic.write(Pf, r::vmvir(pool_of(n)), PORT_VLAN | vmvir::DEFAULT, Time::ZERO);
        }
    }

    fn start(&mut self, n: u8) {
        let length = 16 * RING as u32;
        for (at, value) in [
            (vf::RX_BLOCK + rx::RDBAL, RX_RING as u32),
            (vf::RX_BLOCK + rx::RDLEN, length),
            (vf::RX_BLOCK + rx::SRRCTL, 0x8200_0000 | (BUFFER / 1024) as u32),
            (vf::RX_BLOCK + rx::RXDCTL, dctl::ENABLE),
            (vf::TX_BLOCK + tx::TDBAL, TX_RING as u32),
            (vf::TX_BLOCK + tx::TDLEN, length),
            (vf::TX_BLOCK + tx::TXDCTL, dctl::ENABLE),
        ] {
            self.nic.write(Vf(n), at, value, Time::ZERO);
        }
    }

    /// Posts all of a VF's receive descriptors again, after the card has used them.
    fn post(&mut self, n: u8) {
        self.memory.store(n.into(), RX_RING, &self.posted);
        let tail = (self.heads[0] + RING - 1) as u32 % RING as u32;
        self.nic.write(Vf(n), vf::RX_BLOCK + rx::RDT, tail, Time::ZERO);
    }

    fn poll(&mut self) {
        while self.nic.poll(Time::ZERO, PollBudget::default(), &mut self.memory, &mut self.wire).more {}
    }

    /// Delivers `count` frames from the wire to VF 1, each in `buffers` buffers.
    fn receive(&mut self, count: usize, buffers: usize) {
        self.post(1);
        self.wire.left = count;
        self.poll();
        self.heads[0] = (self.heads[0] + count * buffers) % RING;
    }

    /// Sends the given descriptors from VF 0. The card makes `frames` frames of them.
    fn send(&mut self, descriptors: &[[u8; 16]], frames: usize) {
        self.post(1);
        let head = self.heads[1];
        let (one, two) = descriptors.split_at(descriptors.len().min(RING - head));
        self.memory.store(0, TX_RING + 16 * head as u64, one.as_flattened());
        self.memory.store(0, TX_RING, two.as_flattened());
        self.heads[1] = (head + descriptors.len()) % RING;
        let tail = self.heads[1] as u32;
        self.nic.write(Vf(0), vf::TX_BLOCK + tx::TDT, tail, Time::ZERO);
        self.poll();
        self.heads[0] = (self.heads[0] + frames) % RING;
    }

    fn place(&mut self, frame: &[u8]) {
        self.memory.store(0, FRAME, frame);
    }

    /// Asserts that the card dropped no frame during the measurement.
    fn check(&self) {
        let [sender, receiver, ..] = self.nic.counters();
        assert!(sender.tx_packets + receiver.rx_packets > 0, "no frame was moved");
        assert_eq!((sender.tx_invalid, sender.dma_faults, receiver.rx_no_descriptors), (0, 0, 0));
    }
}

fn packet(length: usize) -> AdvancedDataDescriptor {
    AdvancedDataDescriptor {
        address: FRAME,
        length: length as u16,
        end_of_packet: true,
        report_status: true,
        payload_length: length as u32,
        ..AdvancedDataDescriptor::default()
    }
}

fn context(mss: u16) -> AdvancedContextDescriptor {
    let lengths = AdvancedContextDescriptor {
        mac_length: 14,
        ip_length: 20,
        l4_length: 20,
        ..AdvancedContextDescriptor::default()
    };
    AdvancedContextDescriptor { ipv4: true, l4: L4PacketType::Tcp, mss, ..lengths }
}

/// Returns true if the program's arguments select the case `name`.
fn wanted(name: &str) -> bool {
    std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).all(|part| name.contains(&part))
}

/// Returns the number of calls of a case (FRAME_PATH_CALLS) if instructions are counted and time is not measured.
fn calls() -> Option<u32> {
    std::env::var("FRAME_PATH_CALLS").ok()?.parse().ok()
}

/// Returns the median time of a frame in nanoseconds. A call of `work` moves `frames` frames.
fn median(frames: usize, mut work: impl FnMut()) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let (start, mut calls) = (Instant::now(), 0u32);
            while start.elapsed() < ROUND {
                (0..8).for_each(|_| work());
                calls += 8;
            }
            start.elapsed().as_nanos() as f64 / f64::from(calls) / frames as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

/// Returns the time of copying `length` bytes, nanoseconds.
fn copy(length: usize) -> f64 {
    let (from, mut to) = (vec![1u8; length], vec![0u8; length]);
    median(64, || (0..64).for_each(|_| black_box(&mut to[..]).copy_from_slice(black_box(&from))))
}

/// Measures the time of `work` for a benchmark case, and prints it with the time of one copy of the same bytes.
fn case(
    name: &str,
    frames: usize,
    length: usize,
    bench: &mut CardBench,
    mut work: impl FnMut(&mut CardBench),
) {
    if !wanted(name) {
        return;
    }
    if let Some(calls) = calls() {
        return (0..calls).for_each(|_| work(bench));
    }
    let nanoseconds = median(frames, || work(bench));
    bench.check();
    println!("{name:40} {nanoseconds:9.1} ns/frame {:7.1} copies", nanoseconds / copy(length));
}

fn main() {
    for length in [64, 1514, 9014] {
        let mut bench = CardBench::new();
        bench.wire.frame = frame(1, 9, length);
        let count = if length > BUFFER { 8 } else { 32 };
        let name = format!("wire to VF, {length} bytes");
        case(&name, count, length, &mut bench, |bench| bench.receive(count, length.div_ceil(BUFFER)));
    }
    for (name, to, sums, police, three) in [
        ("wire", 9, false, false, false),
        ("VF", 1, false, false, false),
        ("VF, checksum inserted", 1, true, false, false),
        ("VF, with policy", 1, false, true, false),
        ("VF in three regions, with policy", 1, false, true, true),
    ] {
        for length in [64, 1514] {
            let mut bench = CardBench::with(TwoVfMemory::new(three));
            if police {
                bench.police();
            }
            bench.place(&frame(to, 0, length));
            let data = AdvancedDataDescriptor {
                insert_l4_checksum: sums,
                insert_ip_checksum: sums,
                ..packet(length)
            };
            // A packet without requests needs no context.
            let contexts = if sums { vec![context(0).emit()] } else { vec![] };
            let descriptors = [contexts, vec![data.emit(); 32]].concat();
            let name = format!("VF to {name}, {length} bytes");
            let received = if name.contains("wire") { 0 } else { 32 };
            case(&name, 32, length, &mut bench, |bench| bench.send(&descriptors, received));
        }
    }
    let mut bench = CardBench::new();
    bench.place(&frame(1, 0, 64));
    let sums = AdvancedDataDescriptor { insert_l4_checksum: true, insert_ip_checksum: true, ..packet(64) };
    // A stack with two flows in turn sets a context for each packet, so the card cannot reuse its last decision.
    let descriptors: Vec<_> = (1..=30).flat_map(|mss| [context(mss).emit(), sums.emit()]).collect();
    case("VF to VF, a context each, 64 bytes", 30, 64, &mut bench, |bench| bench.send(&descriptors, 30));
    let mut bench = CardBench::new();
    let length = 54 + 40 * 1448;
    bench.place(&frame(1, 0, length));
    let sums =
        AdvancedDataDescriptor { insert_l4_checksum: true, insert_ip_checksum: true, ..packet(length) };
    let descriptors = [context(1448).emit(), AdvancedDataDescriptor { segment: true, ..sums }.emit()];
    case("VF to VF, cut into 1502 bytes", 40, 1502, &mut bench, |bench| bench.send(&descriptors, 40));
}
