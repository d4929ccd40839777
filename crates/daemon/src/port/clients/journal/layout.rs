//! Offsets of all saved state in the journal's shared memory, in bytes. The memory is a sparse file, so pages that
//! were never written cost nothing.

use crate::port::engine::ring_records::RECORDS;
use pcie::MAX_VFS;

/// "SIOVJRN" and the version of the journal's layout. Every incompatible change of the saved state changes the
/// version.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"SIOVJRN\x02");

const MIB: u64 = 1 << 20;

/// Offsets of single words at the journal's beginning.
pub(super) struct JournalHeaderOffsets {
    pub(super) magic: u64,
    /// Offset of the number for the next kept file descriptor.
    pub(super) next: u64,
    /// Offset of the number of attempts of successor processes to use the journal since the last successful attempt.
    pub(super) attempts: u64,
    /// Offset of the number of the driver state saved last. Its parity says which of the two copies is valid.
    pub(super) software: u64,
    /// Offset of the highest number of a saved driver state so far. Earlier versions use only the numbers 0 and 1,
    /// and do not write this word.
    pub(super) highest: u64,
}

pub(super) const HEADER: JournalHeaderOffsets =
    JournalHeaderOffsets { magic: 0, next: 8, attempts: 16, software: 24, highest: 32 };

/// Offsets of the state of the whole port in the journal, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct PortJournalOffsets {
    /// Offsets in the journal of the two copies of the saved driver state. Each copy is a length, followed by the
    /// bytes.
    pub(super) software: [u64; 2],
    /// Bytes for each copy of the driver state, including the eight of its length.
    pub(super) software_room: u64,
    /// Offset of the saved state of the whole port: valid mark, length, bytes.
    pub(super) rest: u64,
    /// Bytes for the saved state of the whole port, including the mark and the length.
    pub(super) rest_room: u64,
}

impl PortJournalOffsets {
    /// Returns the offsets in the journal of a port with `vfs` VFs. The largest driver state has a list of all VLANs
    /// for each VF, both in force and configured. The state of the whole port also has a pending packet of 256 KB and
    /// eight pending messages of 4 KB for each VF. The space before the functions' state holds that for eight VFs. A
    /// journal for more VFs has the port's state behind the functions' state.
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

/// Offsets of one function's state in the journal, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct FunctionJournalOffsets {
    /// Offset of the word that says which of the two copies of [`super::ClientMessageProgress`] is valid.
    pub(super) which: u64,
    pub(super) progress: [u64; 2],
    /// Offset of the word that selects the later of the function's two saved PCI configurations. Earlier versions do
    /// not write the word.
    pub(super) noted: u64,
    /// Offsets of the two saved PCI configurations, [`NOTE`] bytes each: number of the configuration's driver state,
    /// length, bytes.
    pub(super) notes: [u64; 2],
    /// Offset of the eventfds, [`IRQ`] bytes each, [`IRQS_A_TYPE`] of each interrupt type.
    pub(super) irqs: u64,
    /// Offset of the DMA windows, [`WINDOW`] bytes each.
    pub(super) windows: u64,
    /// Offset of the records of packed rings, [`RECORDS`] bytes. Earlier versions do not write them.
    pub(super) records: u64,
}

pub(super) const NOTE: u64 = 1536;
pub(super) const IRQ: u64 = 32;
pub(super) const IRQS_A_TYPE: u64 = 32;
pub(super) const IRQ_TYPES: u64 = 3;
pub(super) const WINDOW: u64 = 64;
/// Number of DMA window entries: the most that a client may have, and some more for windows that the client replaces
/// between two commits.
pub(super) const MOST_WINDOWS: u64 = 65_536 + 8_192;

const FIRST: u64 = 8 * MIB;
const STRIDE: u64 = 5 * MIB;
/// Maximum number of VFs of a journal that stores the port's state before the functions' states.
const FEW: usize = 8;
/// Bytes for the port's state in a journal of more than [`FEW`] VFs, which stores it after the functions' states.
const BEHIND: u64 = 32 * MIB;

/// Returns the bytes of a journal for `vfs` VFs.
pub(super) const fn size(vfs: usize) -> u64 {
    FIRST + STRIDE * (1 + vfs as u64) + if vfs > FEW { BEHIND } else { 0 }
}

/// Returns the number of VFs for which a journal of `bytes` bytes was made, or `None` if no journal has that length.
pub(super) fn vfs(bytes: u64) -> Option<usize> {
    (1..=MAX_VFS).find(|vfs| size(*vfs) == bytes)
}

impl FunctionJournalOffsets {
    /// Returns the offsets of a function's saved state, by index: 0 for the PF, then the VFs.
    pub(super) const fn at(place: usize) -> Self {
        let base = FIRST + place as u64 * STRIDE;
        Self {
            which: base,
            progress: [base + 256, base + 512],
            noted: base + 8,
            notes: [base + 1024, base + 1024 + NOTE],
            irqs: base + 12_288,
            windows: base + 16_384,
            records: base + 16_384 + WINDOW * MOST_WINDOWS,
        }
    }
}

const _: () = {
    let (few, many) = (PortJournalOffsets::of(FEW), PortJournalOffsets::of(MAX_VFS));
    assert!(few.software[1] + few.software_room <= few.rest && few.rest + few.rest_room <= FIRST);
    assert!(
        many.software[1] + many.software_room <= many.rest && many.rest + many.rest_room <= size(MAX_VFS)
    );
};
// Everything that is saved while a client is served is in the function's first page.
const _: () = assert!(1024 + 2 * NOTE <= 4096);
const _: () = assert!(IRQ * IRQS_A_TYPE * IRQ_TYPES <= 4096);
const _: () = assert!(16_384 + WINDOW * MOST_WINDOWS + RECORDS <= STRIDE);

/// Bound of the numbers that a journal counts: commits, descriptors, driver states, attempts. No process counts so far, so
/// a larger number is damage, and counting on from it would overflow.
pub(super) const COUNT_LIMIT: u64 = 1 << 62;
