//! Memory and frames of VF 0 and VF 1 for the benchmarks of both cards. The guests' memory is behind `host`'s DMA
//! tables, as on a live port. A guest writes through the file, so that its writes are not counted.

use host::dma::{DmaLimits, DmaPermissions, DmaTable};
use host::shared::SharedMemory;
use pcie::Function::{self, Vf};
use pcie::burst::{FrameCopyBatch, FramePlaces, HEAD, HEADERS, HeadCompleter, SegmentPayloads};
use pcie::{AnnouncedAccess, Bus, DmaFault, HintedMemory, Iova};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

/// Size of each benchmarked VF's memory in bytes.
const LENGTH: u64 = 0x4_0000;
/// Bytes of the memory of each ring's record.
const RECORD: u64 = 4096;
/// Ends of three DMA regions in a VF's memory: of the rings, the sent frames' buffers and the receive buffers.
const ENDS: [u64; 3] = [0x2000, 0x2_0000, LENGTH];

/// Memory of the guests of VF 0 and VF 1: for each a DMA table and the file that it maps. The memory of the records of
/// rings follows, one page for each ring.
pub(crate) struct TwoVfMemory([(DmaTable, File); 2], SharedMemory);

impl TwoVfMemory {
    /// Creates the memory of both VFs: each in one DMA region, or in `three` for rings, sent frames and receive
    /// buffers.
    pub(crate) fn new(three: bool) -> Self {
        let ends = if three { &ENDS[..] } else { &ENDS[2..] };
        let memories = [0, 1].map(|_| {
            let shared = SharedMemory::new(LENGTH).expect("shared memory for a VF can be created");
            let fd = || shared.as_fd().try_clone_to_owned().expect("the file descriptor can be cloned");
            let (mut table, mut start) = (DmaTable::new(DmaLimits::default()), 0);
            for end in ends {
                let pending = table.admit(start, end - start, DmaPermissions::READ_WRITE, Some(start));
                let pending = pending.expect("the DMA region is valid").expect("the DMA region has memory");
                let region = pending.map(fd()).expect("the DMA region can be mapped");
                table.insert(region).expect("the DMA regions do not overlap");
                start = *end;
            }
            (table, File::from(fd()))
        });
        Self(memories, SharedMemory::new(4 * RECORD).expect("shared memory for records can be created"))
    }

    /// Writes to the memory of the guest of VF `n`.
    pub(crate) fn store(&self, n: usize, at: Iova, bytes: &[u8]) {
        self.0[n].1.write_all_at(bytes, at).expect("the bytes lie within the guest's memory");
    }

    fn of(&self, function: Function, iova: Iova) -> Result<&DmaTable, DmaFault> {
        let Vf(n @ 0..2) = function else { return Err(DmaFault { function, iova }) };
        Ok(&self.0[usize::from(n)].0)
    }
}

impl Bus for TwoVfMemory {
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        let read = self.of(function, iova)?.read(iova, into);
        read.map_err(|fault| DmaFault { function, iova: fault.iova })
    }

    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault> {
        let written = self.of(function, iova)?.write(iova, from);
        written.map_err(|fault| DmaFault { function, iova: fault.iova })
    }

    fn read_descriptors(
        &mut self,
        ring: HintedMemory<'_>,
        iova: Iova,
        into: &mut [u8],
    ) -> Result<(), DmaFault> {
        let HintedMemory { function, hint } = ring;
        let read = self.of(function, iova)?.read_by(&mut hint.0, iova, into);
        read.map_err(|fault| DmaFault { function, iova: fault.iova })
    }

    fn write_descriptors(
        &mut self,
        ring: HintedMemory<'_>,
        iova: Iova,
        from: &[u8],
        size: usize,
    ) -> Result<(), DmaFault> {
        let HintedMemory { function, hint } = ring;
        let written = self.of(function, iova)?.write_descriptors_by(&mut hint.0, iova, from, size);
        written.map_err(|fault| DmaFault { function, iova: fault.iova })
    }

    fn gather(
        &mut self,
        from: HintedMemory<'_>,
        sources: &[Iova],
        lengths: &[u32],
        heads: &mut [[u8; HEAD]],
    ) -> usize {
        let memory = self.of(from.function, 0);
        memory.map_or(0, |memory| memory.gather(&mut from.hint.0, sources, lengths, heads))
    }

    fn carry(
        &mut self,
        from: HintedMemory<'_>,
        to: HintedMemory<'_>,
        run: FrameCopyBatch<'_>,
        complete: Option<&mut HeadCompleter<'_>>,
    ) -> usize {
        let (Ok(source), Ok(target)) = (self.of(from.function, 0), self.of(to.function, 0)) else { return 0 };
        let FrameCopyBatch { heads, sources, lengths, targets, sums } = run;
        let run = host::dma::FrameCopyList { heads, sources, lengths, targets, sums };
        source.carry(&mut from.hint.0, (target, &mut to.hint.0), run, complete)
    }

    fn carry_out(
        &mut self,
        from: HintedMemory<'_>,
        into: &mut [u8],
        run: FrameCopyBatch<'_>,
        complete: Option<&mut HeadCompleter<'_>>,
    ) -> usize {
        let Ok(source) = self.of(from.function, 0) else { return 0 };
        let FrameCopyBatch { heads, sources, lengths, targets, sums } = run;
        let run = host::dma::FrameCopyList { heads, sources, lengths, targets, sums };
        source.carry_out(&mut from.hint.0, into, run, complete)
    }

    fn copy_in(&mut self, from: &[u8], to: HintedMemory<'_>, frames: FramePlaces<'_>) -> usize {
        let Ok(target) = self.of(to.function, 0) else { return 0 };
        let FramePlaces { sources, lengths, targets } = frames;
        target.copy_in(&mut to.hint.0, (from, sources), lengths, targets)
    }

    fn copy(&mut self, from: HintedMemory<'_>, to: HintedMemory<'_>, payloads: SegmentPayloads<'_>) -> usize {
        let (Ok(source), Ok(target)) = (self.of(from.function, 0), self.of(to.function, 0)) else { return 0 };
        let SegmentPayloads { sources, lengths, targets, sums } = payloads;
        let payloads = host::dma::PayloadCopyList { sources, lengths, targets, sums };
        source.copy(&mut from.hint.0, target, &mut to.hint.0, payloads)
    }

    fn scatter(
        &mut self,
        to: HintedMemory<'_>,
        headers: &[[u8; HEADERS]],
        length: usize,
        targets: &[Iova],
    ) -> usize {
        let memory = self.of(to.function, 0);
        memory.map_or(0, |memory| memory.scatter(&mut to.hint.0, headers, length, targets))
    }

    fn prefetch(&mut self, function: Function, range: (Iova, usize), access: AnnouncedAccess) {
        if let Ok(memory) = self.of(function, range.0) {
            memory.prefetch(range, access == AnnouncedAccess::Write);
        }
    }

    fn record_ring(&mut self, (function, ring): (Function, u8), first: usize, words: &[u64]) {
        if let Vf(n @ 0..2) = function {
            let place = RECORD * u64::from(2 * n + ring % 2) + 8 * first as u64;
            self.1.memory().store_words(place, words).expect("the record is inside the memory");
        }
    }

    fn msix(&mut self, _function: Function, _vector: u16) {}
}

/// Returns the MAC address of station `n`; 0 and 1 are the VFs.
pub(crate) const fn address(n: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, n]
}

/// Builds a TCP frame over IPv4 from one station to another. Its checksum field holds the sum of the pseudo header.
pub(crate) fn frame(to: u8, from: u8, length: usize) -> Vec<u8> {
    let mut frame = [address(to), address(from)].concat();
    let total = (length - 14) as u16;
    frame.extend([8, 0, 0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([3, 232, 7, 208, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
    let seed = 0x0a00 + 1 + 0x0a00 + 2 + 6 + (total - 20);
    frame[50..52].copy_from_slice(&seed.to_be_bytes());
    frame.resize(length, 0x5a);
    frame
}
