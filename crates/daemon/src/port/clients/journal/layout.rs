//! Where everything is in the shared memory, in bytes. The memory is a sparse file: pages that were never written cost
//! nothing.

use pcie::MAX_VFS;

/// "SIOVJRN" and the version of this layout, which changes with anything that is noted.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"SIOVJRN\x02");

const MIB: u64 = 1 << 20;

/// Single words at the beginning.
pub(super) struct Header {
    pub(super) magic: u64,
    /// The number of the next descriptor.
    pub(super) next: u64,
    /// Successors that have begun since one got going.
    pub(super) attempts: u64,
    /// The number of the software noted last. It is even or odd by which of the two states counts.
    pub(super) software: u64,
    /// The highest number of a software. Earlier versions know no number but 0 and 1, and leave this one alone.
    pub(super) highest: u64,
}

pub(super) const HEADER: Header = Header { magic: 0, next: 8, attempts: 16, software: 24, highest: 32 };

/// Where the notes on the whole port are.
#[derive(Debug, Clone, Copy)]
pub(super) struct PortPlaces {
    /// The two states of the software: each is its length, and its bytes.
    pub(super) software: [u64; 2],
    /// Bytes for each, including the eight of its length.
    pub(super) software_room: u64,
    /// The port at rest: whether it counts, its length, its bytes.
    pub(super) rest: u64,
    /// Bytes for that, including the mark and the length.
    pub(super) rest_room: u64,
}

impl PortPlaces {
    /// The places in the journal of a port with `vfs` VFs. The largest state is a list of all VLANs for each VF, both in force and
    /// configured; at rest, also a pending packet of 256 KB and eight pending messages of 4 KB for each VF. The space before
    /// the functions holds that for eight VFs; a journal for more VFs has the port's own notes behind the functions.
    pub(super) const fn of(vfs: usize) -> Self {
        let end = FIRST + STRIDE * (1 + vfs as u64);
        match vfs {
            0..=FEW => Self {
                software: [128 << 10, 256 << 10],
                software_room: 128 << 10,
                rest: MIB,
                rest_room: 7 * MIB,
            },
            _ => Self {
                software: [end, end + 2 * MIB],
                software_room: 2 * MIB,
                rest: end + 4 * MIB,
                rest_room: 28 * MIB,
            },
        }
    }
}

/// Places of a function's notes, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Function {
    /// Which of the two places of [`super::Progress`] counts.
    pub(super) which: u64,
    pub(super) progress: [u64; 2],
    /// Which of the two notes of the function's configuration is the later. Earlier versions leave them alone.
    pub(super) noted: u64,
    /// These notes, [`NOTE`] bytes each: the number of the software that it adds to, its length, and its bytes.
    pub(super) notes: [u64; 2],
    /// Eventfds, [`IRQ`] bytes each, [`IRQS_A_TYPE`] of each interrupt type.
    pub(super) irqs: u64,
    /// DMA windows, [`WINDOW`] bytes each.
    pub(super) windows: u64,
}

pub(super) const NOTE: u64 = 1536;
pub(super) const IRQ: u64 = 32;
pub(super) const IRQS_A_TYPE: u64 = 32;
pub(super) const IRQ_TYPES: u64 = 3;
pub(super) const WINDOW: u64 = 64;
/// As many windows as a client may have, and room for those it replaces within one step.
pub(super) const MOST_WINDOWS: u64 = 65_536 + 8_192;

const FIRST: u64 = 8 * MIB;
const STRIDE: u64 = 5 * MIB;
/// The most VFs for which the port's own notes fit before the functions' notes.
const FEW: usize = 8;
/// Bytes for the port's own notes behind the functions'.
const BEHIND: u64 = 32 * MIB;

/// Bytes of a journal for `vfs` VFs.
pub(super) const fn size(vfs: usize) -> u64 {
    FIRST + STRIDE * (1 + vfs as u64) + if vfs > FEW { BEHIND } else { 0 }
}

/// The number of VFs of the journal that is `bytes` long; `None` if no journal has that length.
pub(super) fn vfs(bytes: u64) -> Option<usize> {
    (1..=MAX_VFS).find(|vfs| size(*vfs) == bytes)
}

impl Function {
    /// The notes of the function at a place: the PF's at 0, then those of the VFs.
    pub(super) const fn at(place: usize) -> Self {
        let base = FIRST + place as u64 * STRIDE;
        Self {
            which: base,
            progress: [base + 256, base + 512],
            noted: base + 8,
            notes: [base + 1024, base + 1024 + NOTE],
            irqs: base + 12_288,
            windows: base + 16_384,
        }
    }
}

const _: () = {
    let (few, many) = (PortPlaces::of(FEW), PortPlaces::of(MAX_VFS));
    assert!(few.software[1] + few.software_room <= few.rest && few.rest + few.rest_room <= FIRST);
    assert!(
        many.software[1] + many.software_room <= many.rest && many.rest + many.rest_room <= size(MAX_VFS)
    );
};
// All that is noted as a client is served is in the first page.
const _: () = assert!(1024 + 2 * NOTE <= 4096);
const _: () = assert!(IRQ * IRQS_A_TYPE * IRQ_TYPES <= 4096);
const _: () = assert!(16_384 + WINDOW * MOST_WINDOWS <= STRIDE);
