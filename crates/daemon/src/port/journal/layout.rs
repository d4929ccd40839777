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
    /// Which of the two states of the software counts.
    pub(super) software: u64,
}

pub(super) const HEADER: Header = Header { magic: 0, next: 8, attempts: 16, software: 24 };
/// The software's state is its length, and its bytes.
pub(super) const SOFTWARE_ROOM: u64 = 128 << 10;
pub(super) const SOFTWARE: [u64; 2] = [SOFTWARE_ROOM, 2 * SOFTWARE_ROOM];
/// The port at rest: whether it counts, its length, its bytes.
pub(super) const REST: u64 = MIB;
pub(super) const REST_ROOM: u64 = 7 * MIB;

/// Where a function's notes are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Function {
    /// Which of the two places of [`super::Progress`] counts.
    pub(super) which: u64,
    pub(super) progress: [u64; 2],
    /// Eventfds, [`IRQ`] bytes each, [`IRQS_A_TYPE`] of each interrupt type.
    pub(super) irqs: u64,
    /// DMA windows, [`WINDOW`] bytes each.
    pub(super) windows: u64,
}

pub(super) const IRQ: u64 = 32;
pub(super) const IRQS_A_TYPE: u64 = 32;
pub(super) const IRQ_TYPES: u64 = 3;
pub(super) const WINDOW: u64 = 64;
/// As many windows as a client may have, and room for those it replaces within one step.
pub(super) const MOST_WINDOWS: u64 = 65_536 + 8_192;

const FIRST: u64 = 8 * MIB;
const STRIDE: u64 = 5 * MIB;

/// Bytes of the memory for a port whose family has so many VFs.
pub(super) const fn size(vfs: usize) -> u64 {
    FIRST + STRIDE * (1 + vfs as u64)
}

/// VFs that memory of so many bytes has room for; none if it is as long as no such memory.
pub(super) fn vfs(size: u64) -> Option<usize> {
    let functions = size.checked_sub(FIRST).filter(|rest| rest.is_multiple_of(STRIDE))? / STRIDE;
    usize::try_from(functions).ok()?.checked_sub(1).filter(|vfs| (1..=MAX_VFS).contains(vfs))
}

impl Function {
    /// The notes of the function at a place: the PF's at 0, then those of the VFs.
    pub(super) const fn at(place: usize) -> Self {
        let base = FIRST + place as u64 * STRIDE;
        Self { which: base, progress: [base + 256, base + 512], irqs: base + 12_288, windows: base + 16_384 }
    }
}

const _: () = assert!(SOFTWARE[1] + SOFTWARE_ROOM <= REST && REST + REST_ROOM <= FIRST);
const _: () = assert!(IRQ * IRQS_A_TYPE * IRQ_TYPES <= 4096);
const _: () = assert!(16_384 + WINDOW * MOST_WINDOWS <= STRIDE);
