//! Rings of a function in the tests. The function's software writes descriptors to memory, rings doorbells, and reads
//! results. Each function uses the first queue pair of its pool, with 2 KiB receive buffers.

use super::{BASE, CardFixture, SIZE, TestPciFunction, index, slot};
use i82576::bits::{dctl, srrctl};
use i82576::descriptor::rx::{AdvancedRxWriteBack, PostedRxDescriptor, status};
use i82576::descriptor::tx::AdvancedDataDescriptor;
use i82576::descriptor::{DD, SIZE as DESCRIPTOR, legacy};
use i82576::register::{self as r, rx, tx, vf};
use pcie::{Function, Iova};

pub(crate) const RX_RING: Iova = BASE;
pub(crate) const TX_RING: Iova = BASE + 0x1000;
const HEAD: Iova = BASE + 0x2000;
const BUFFERS: Iova = BASE + 0x1_0000;
const HEADERS: Iova = BASE + 0x4_0000;
const FRAMES: Iova = BASE + 0x6_0000;
const BUFFER: u64 = 2048;
const HEADER: u64 = 1024;

/// Number of descriptors in a ring, unless a test chooses another number.
pub(crate) const RING: u32 = 64;

/// Sizes of a function's two rings, and the positions of its software in them.
#[derive(Clone, Copy)]
pub(crate) struct RingPositions {
    pub(crate) rx_count: u32,
    pub(crate) rx_tail: u32,
    pub(crate) rx_next: u32,
    pub(crate) tx_count: u32,
    pub(crate) tx_tail: u32,
    frames: Iova,
}

impl Default for RingPositions {
    fn default() -> Self {
        Self { rx_count: RING, rx_tail: 0, rx_next: 0, tx_count: RING, tx_tail: 0, frames: FRAMES }
    }
}

/// A received frame: its bytes, and the descriptors that the card has written back for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReceivedFrame {
    pub(crate) bytes: Vec<u8>,
    pub(crate) parts: Vec<AdvancedRxWriteBack>,
}

impl ReceivedFrame {
    /// Returns the frame's last descriptor, which has its status.
    pub(crate) fn last(&self) -> &AdvancedRxWriteBack {
        self.parts.last().unwrap()
    }
}

/// Returns the bus address of the packet buffer of receive descriptor `i`.
pub(crate) fn buffer(i: u32) -> Iova {
    BUFFERS + u64::from(i) * BUFFER
}

fn header(i: u32) -> Iova {
    HEADERS + u64::from(i) * HEADER
}

/// Parses a written-back descriptor in the format of SRRCTL.
fn parse(raw: &[u8; DESCRIPTOR], control: u32) -> Option<AdvancedRxWriteBack> {
    if srrctl::descriptor_type(control) != srrctl::LEGACY {
        return AdvancedRxWriteBack::parse(raw);
    }
    let legacy::LegacyRxWriteBack { length, checksum, status, vlan_tag, .. } =
        legacy::LegacyRxWriteBack::parse(raw)?;
    Some(AdvancedRxWriteBack {
        length,
        hash: checksum.into(),
        status,
        vlan_tag,
        ..AdvancedRxWriteBack::default()
    })
}

/// Returns the number of bytes in a frame's header buffer, by its first descriptor.
fn in_header_buffer(first: &AdvancedRxWriteBack, control: u32) -> usize {
    let told = usize::from(first.header_length);
    let overflow = first.status & status::HBO != 0;
    match srrctl::descriptor_type(control) {
        srrctl::HEADER_SPLIT if first.split && !overflow => told,
        srrctl::ALWAYS_SPLIT => told.min(srrctl::header_buffer(control)),
        _ => 0,
    }
}

/// Returns the bus address to which tests have the transmit head written back.
pub(crate) fn head_address() -> Iova {
    HEAD
}

/// Returns a transmit data descriptor in the middle of a packet, without offload requests.
pub(crate) fn data(address: Iova, length: u16) -> AdvancedDataDescriptor {
    AdvancedDataDescriptor { address, length, ..AdvancedDataDescriptor::default() }
}

/// Returns a transmit data descriptor of a whole packet, which requests a report (RS).
pub(crate) fn packet(address: Iova, length: u16) -> AdvancedDataDescriptor {
    AdvancedDataDescriptor {
        end_of_packet: true,
        report_status: true,
        payload_length: length.into(),
        ..data(address, length)
    }
}

impl TestPciFunction<'_> {
    /// Returns the offset of a register of the function's first receive queue.
    pub(crate) fn rx(&mut self, at: u32) -> u32 {
        match self.function {
            Function::Pf => r::rx_block(index(self.pf_pool()).queue(0)) + at,
            Function::Vf(_) => r::vf::RX_BLOCK + at,
        }
    }

    /// Returns the offset of a register of the function's first transmit queue.
    pub(crate) fn tx(&mut self, at: u32) -> u32 {
        match self.function {
            Function::Pf => r::tx_block(index(self.pf_pool()).queue(0)) + at,
            Function::Vf(_) => r::vf::TX_BLOCK + at,
        }
    }

    fn pf_pool(&mut self) -> u8 {
        self.bench.vfs().min(7)
    }

    pub(crate) fn rings(&mut self) -> &mut RingPositions {
        &mut self.bench.rings[slot(self.function)]
    }

    /// Sets up the receive and the transmit ring and posts all receive descriptors. A VF also gets its vectors:
    /// transmit 0, receive 1, mailbox 2, auto-cleared and unmasked.
    pub(crate) fn start(&mut self) {
        self.start_sized(RING, RING);
    }

    /// Starts the VF's second receive queue, with seven descriptors at the end of its memory.
    pub(crate) fn start_second_receive(&mut self) {
        let ring = BASE + SIZE as u64 - 0x1_0000;
        for i in 0..8u64 {
            self.poke(ring + 16 * i, &PostedRxDescriptor { packet: ring + 2048 * (i + 1), header: 0 }.emit());
        }
        for (at, value) in [
            (rx::RDBAL, ring as u32),
            (rx::RDLEN, 128),
            (rx::SRRCTL, 2 | srrctl::ONE_BUFFER << srrctl::DESCTYPE_SHIFT),
            (rx::RXDCTL, dctl::ENABLE),
            (rx::RDT, 7),
        ] {
            self.write(vf::RX_BLOCK + vf::QUEUE_STRIDE + at, value);
        }
    }

    pub(crate) fn start_sized(&mut self, rx_count: u32, tx_count: u32) {
        *self.rings() = RingPositions { rx_count, tx_count, ..RingPositions::default() };
        for (at, value) in [
            (rx::RDBAL, RX_RING as u32),
            (rx::RDBAH, 0),
            (rx::RDLEN, rx_count * DESCRIPTOR as u32),
            (rx::SRRCTL, 0x8200_0002),
            (rx::RDH, 0),
            (rx::RDT, 0),
            (rx::RXDCTL, dctl::ENABLE),
        ] {
            let offset = self.rx(at);
            self.write(offset, value);
        }
        for (at, value) in [
            (tx::TDBAL, TX_RING as u32),
            (tx::TDBAH, 0),
            (tx::TDLEN, tx_count * DESCRIPTOR as u32),
            (tx::TDH, 0),
            (tx::TDT, 0),
            (tx::TXDCTL, dctl::ENABLE),
        ] {
            let offset = self.tx(at);
            self.write(offset, value);
        }
        self.post(rx_count - 1);
        if matches!(self.function, Function::Vf(_)) {
            self.write(r::vf::VTIVAR, 0x8081);
            self.write(r::vf::VTIVAR_MISC, 0x82);
            self.write(r::vf::VTEIAC, 7);
            self.write(r::vf::VTEIMS, 7);
        }
    }

    /// Posts `count` more receive descriptors.
    pub(crate) fn post(&mut self, count: u32) {
        for _ in 0..count {
            let rings = *self.rings();
            let i = rings.rx_tail;
            let posted = PostedRxDescriptor { packet: buffer(i), header: header(i) };
            self.poke(RX_RING + u64::from(i) * DESCRIPTOR as u64, &posted.emit());
            self.rings().rx_tail = (i + 1) % rings.rx_count;
        }
        let (offset, tail) = (self.rx(rx::RDT), self.rings().rx_tail);
        self.write(offset, tail);
    }

    /// Reads bytes of the function's memory.
    pub(crate) fn peek(&mut self, iova: Iova, length: usize) -> Vec<u8> {
        let at = (iova - BASE) as usize;
        self.bench.world.bus.memory(self.function)[at..at + length].to_vec()
    }

    /// Writes bytes to the function's memory.
    pub(crate) fn poke(&mut self, iova: Iova, bytes: &[u8]) {
        let at = (iova - BASE) as usize;
        self.bench.world.bus.memory(self.function)[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Copies bytes to a free part of the function's memory, and returns its bus address for a transmit descriptor.
    pub(crate) fn place(&mut self, bytes: &[u8]) -> Iova {
        let at = self.rings().frames;
        let next = at + bytes.len() as u64;
        let full = next > BASE + super::SIZE as u64 - 0x4_0000;
        self.rings().frames = if full { FRAMES } else { next };
        self.poke(at, bytes);
        at
    }

    /// Writes a transmit descriptor at the tail without a doorbell, and returns its ring index.
    pub(crate) fn put(&mut self, raw: [u8; DESCRIPTOR]) -> u32 {
        let rings = *self.rings();
        self.poke(TX_RING + u64::from(rings.tx_tail) * DESCRIPTOR as u64, &raw);
        self.rings().tx_tail = (rings.tx_tail + 1) % rings.tx_count;
        rings.tx_tail
    }

    /// Rings the doorbell of the transmit ring.
    pub(crate) fn ring(&mut self) {
        let (offset, tail) = (self.tx(tx::TDT), self.rings().tx_tail);
        self.write(offset, tail);
    }

    /// Writes transmit descriptors to the ring, rings the doorbell, and polls the card.
    pub(crate) fn transmit(&mut self, descriptors: &[[u8; DESCRIPTOR]]) {
        for raw in descriptors {
            self.put(*raw);
        }
        self.ring();
        self.bench.poll();
    }

    /// Sends a frame in one transmit descriptor, and polls the card.
    pub(crate) fn send(&mut self, frame: &[u8]) {
        let address = self.place(frame);
        self.transmit(&[packet(address, frame.len() as u16).emit()]);
    }

    /// Returns true if transmit descriptor `i` has its done bit (DD) set.
    pub(crate) fn is_done(&mut self, i: u32) -> bool {
        let status = self.peek(TX_RING + u64::from(i) * DESCRIPTOR as u64 + 12, 4);
        status[0] & DD as u8 != 0
    }

    /// Returns the frames received since the last call, without posting new descriptors.
    pub(crate) fn received(&mut self) -> Vec<ReceivedFrame> {
        let (mut frames, mut current) = (Vec::new(), ReceivedFrame { bytes: Vec::new(), parts: Vec::new() });
        let control = self.rx(rx::SRRCTL);
        let control = self.read(control);
        loop {
            let RingPositions { rx_next: i, rx_count, .. } = *self.rings();
            let at = RX_RING + u64::from(i) * DESCRIPTOR as u64;
            let raw = self.peek(at, DESCRIPTOR).try_into().unwrap();
            let Some(back) = parse(&raw, control) else { break };
            // A driver clears a descriptor that it has read, so that it does not read the frame again.
            self.poke(at, &[0; DESCRIPTOR]);
            self.rings().rx_next = (i + 1) % rx_count;
            if current.parts.is_empty() {
                current.bytes.extend(self.peek(header(i), in_header_buffer(&back, control)));
            }
            current.bytes.extend(self.peek(buffer(i), back.length.into()));
            current.parts.push(back);
            if back.end_of_packet() {
                frames.push(core::mem::replace(
                    &mut current,
                    ReceivedFrame { bytes: Vec::new(), parts: Vec::new() },
                ));
            }
        }
        assert!(current.parts.is_empty(), "a frame without EOP: {current:?}");
        frames
    }

    /// Returns the received frame, and asserts that there is exactly one.
    #[track_caller]
    pub(crate) fn expect_frame(&mut self) -> ReceivedFrame {
        let mut frames = self.received();
        assert_eq!(frames.len(), 1, "one frame expected");
        frames.remove(0)
    }

    /// Asserts that the function has received no frame.
    #[track_caller]
    pub(crate) fn expect_no_frame(&mut self) {
        assert_eq!(self.received(), []);
    }
}

impl CardFixture {
    /// Returns the number of the test card's VFs.
    pub(crate) fn vfs(&mut self) -> u8 {
        let status = self.nic.read(Function::Pf, r::STATUS, self.now);
        (status >> i82576::bits::status::NUM_VFS_SHIFT & 0xf) as u8
    }
}
