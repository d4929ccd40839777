//! What a machine is to be. Left out: putting it together.

use hypervisor::cost::CostTable;

/// Who drives the cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drive {
    /// A driver domain, over a split driver.
    Xen,
    /// Each guest a context, with the hypervisor between it and the card's rings.
    Cdna,
    /// Each guest a context, and writes the card's rings itself.
    Unprotected,
    /// The driver domain, for programs of its own.
    Own,
    /// A kernel without a hypervisor.
    Native,
}

/// Which way the payload goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From guests.
    Transmit,
    /// To guests.
    Receive,
}

/// What a kernel may leave to others, and how packets reach them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a mechanism of its own, there or not")]
pub struct Channel {
    /// The network device that a guest sees segments, gathers and takes checksums: a packet has up to 64 KB, and a
    /// program's pages go out as they are.
    pub offloads: bool,
    /// Guests' pages are sent from where they are, without a mapping; what they receive is copied. Else pages are mapped
    /// and exchanged.
    pub by_address: bool,
    /// Kernels have superpages that a switch does not flush.
    pub large_pages: bool,
    /// The card segments, gathers and takes checksums, so that the driver domain need not.
    pub card_offloads: bool,
}

impl Channel {
    /// Xen 2.0.6 as it was, on a card that can do more than it is asked for.
    pub const XEN: Self =
        Self { offloads: false, by_address: false, large_pages: false, card_offloads: true };
}

/// What a machine is to be.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What things cost.
    pub table: CostTable,
    /// Who drives the cards.
    pub drive: Drive,
    /// How packets reach them.
    pub channel: Channel,
    /// Which way the payload goes.
    pub direction: Direction,
    /// Guests, each with a stream on each port; 1 to 128.
    pub guests: u8,
    /// Ports.
    pub ports: u8,
    /// Segments of a stream that may be under way.
    pub window: u32,
    /// Slots of its rings that a guest handles in each direction on each port before interrupts come in between; a
    /// packet that has begun is finished.
    pub turn: u32,
    /// Decides when streams begin.
    pub seed: u64,
}

impl Plan {
    /// The machine of Willmann et al.: two ports.
    #[must_use]
    pub fn willmann(table: CostTable, drive: Drive, direction: Direction, guests: u8) -> Self {
        let channel = Channel::XEN;
        Self { table, drive, channel, direction, guests, ports: 2, window: 44, turn: 16, seed: 1 }
    }

    /// The machine of Menon et al.: four ports, and senders whose sockets were made large enough for long packets. A
    /// packet is dearer there, and between two interrupts of a card, 320 K cycles, fewer of them are handled.
    #[must_use]
    pub fn menon(table: CostTable, drive: Drive, direction: Direction, guests: u8) -> Self {
        let window = if direction == Direction::Transmit { 132 } else { 44 };
        Self { ports: 4, window, turn: 4, ..Self::willmann(table, drive, direction, guests) }
    }

    /// Whether a switch flushes the kernel's entries of the TLB.
    pub(super) fn flushes(&self) -> bool {
        self.drive != Drive::Native && !self.channel.large_pages
    }
}
