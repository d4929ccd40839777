//! Parameters of the single-processor machine with CDNA, Xen or native drivers.

use hypervisor::cost::{CostConstant, CostTable};
use hypervisor::cpu::PagingMode;
use sim::VirtualDuration;

/// Software that drives the network cards: driver domain, guests or a native kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardDriver {
    /// The driver domain drives the cards for guests, over a split driver.
    Xen,
    /// Each guest has a context of each card, with the hypervisor between the guest and the card's rings.
    Cdna,
    /// Each guest has a context of each card, and writes the card's rings itself.
    Unprotected,
    /// The driver domain drives the cards for its own programs.
    Own,
    /// A kernel on the bare machine, without a hypervisor, drives the cards.
    Native,
}

/// Direction in which the payload is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadDirection {
    /// Guests send the payload.
    Transmit,
    /// Guests receive the payload.
    Receive,
}

/// Offloads of a guest's network device, and the way in which packets reach the cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent mechanism")]
pub struct PacketChannelOptions {
    /// The guest's network device offers segmentation, scatter-gather and checksums: a packet has up to 64
    /// KB, and a program's pages are sent in place.
    pub offloads: bool,
    /// Guests' pages are sent in place without a mapping, and received frames are copied. Otherwise pages are
    /// mapped and exchanged.
    pub by_address: bool,
    /// Kernels have superpages and global pages, so that a switch between domains does not flush the kernels'
    /// TLB entries.
    pub large_pages: bool,
    /// The card offers segmentation, scatter-gather and checksums; otherwise the driver domain does these in
    /// software.
    pub card_offloads: bool,
}

impl PacketChannelOptions {
    /// Packet channel of unoptimised Xen 2.0.6, on a card with unused offloads.
    pub const XEN: Self =
        Self { offloads: false, by_address: false, large_pages: false, card_offloads: true };
}

/// Wire of each port of the single-processor machine, with its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SingleCpuWire {
    /// Speed of the wire in bits per second.
    pub bits_per_second: u64,
    /// Time from a frame's end on the wire until the client answers: card and stack of a machine of the time.
    pub turnaround: VirtualDuration,
}

/// Parameters of the single-processor machine with CDNA, Xen or native drivers.
#[derive(Debug, Clone)]
pub struct SingleCpuSetup {
    /// Cost table of the machine's processor.
    pub table: CostTable,
    /// Software that drives the network cards.
    pub drive: CardDriver,
    /// Packet channel between guests and cards: offloads, and copy or exchange of pages.
    pub channel: PacketChannelOptions,
    /// Direction in which the payload is sent.
    pub direction: PayloadDirection,
    /// Number of guests, each with a stream on each port; 1 to 128.
    pub guests: u8,
    /// Number of the machine's ports.
    pub ports: u8,
    /// TCP window of each stream, in segments.
    pub window: u32,
    /// Rate at which a guest's kernel copies a program's payload to send.
    pub send_copy: CostConstant,
    /// Number of ring slots that a guest processes per direction and port before interrupts are taken. A
    /// packet that was begun is completed.
    pub turn: u32,
    /// Number of frames that the driver domain processes per step in each direction.
    pub driver_turn: u32,
    /// Least time between two interrupts of a card.
    pub interval: VirtualDuration,
    /// Wire of each port.
    pub wire: SingleCpuWire,
    /// Seed of the streams' start times.
    pub seed: u64,
}

impl SingleCpuSetup {
    /// Returns the parameters of Willmann et al.'s machine, which has two ports. Its programs write the same buffer
    /// again and again, so it stays in the cache.
    #[must_use]
    pub fn willmann(table: CostTable, drive: CardDriver, direction: PayloadDirection, guests: u8) -> Self {
        let (channel, send_copy) = (PacketChannelOptions::XEN, CostConstant::CopyWarm);
        Self {
            table,
            drive,
            channel,
            direction,
            guests,
            ports: 2,
            window: 44,
            send_copy,
            turn: 16,
            driver_turn: 32,
            // 7,500 interrupts a second, a default of drivers of the time.
            interval: VirtualDuration::from_micros(133),
            wire: SingleCpuWire {
                bits_per_second: 1_000_000_000,
                turnaround: VirtualDuration::from_micros(50),
            },
            seed: 1,
        }
    }

    /// Returns the parameters of Menon et al.'s machine: four ports, and sockets large enough for long
    /// packets. A packet costs more there, so fewer are processed between two interrupts of a card, 320 K
    /// cycles. Its programs send files (`sendfile`) that the cache does not hold.
    #[must_use]
    pub fn menon(table: CostTable, drive: CardDriver, direction: PayloadDirection, guests: u8) -> Self {
        let window = if direction == PayloadDirection::Transmit { 132 } else { 44 };
        let send_copy = CostConstant::CopyCold;
        Self { ports: 4, window, send_copy, turn: 4, ..Self::willmann(table, drive, direction, guests) }
    }

    /// Returns the paging mode of the machine's kernels, which have 32 bits.
    pub(super) fn paging(&self) -> PagingMode {
        let is_large = self.drive == CardDriver::Native || self.channel.large_pages;
        if is_large { PagingMode::LARGE } else { PagingMode::PARAVIRTUAL_32 }
    }
}
