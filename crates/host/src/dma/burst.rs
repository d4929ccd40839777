//! Moves bursts of frames between the memories of two clients. A ring keeps one hint for its descriptors and one for
//! its buffers, so that descriptors and buffers in different DMA regions cost no more look-ups. A hint is a region's
//! index and is verified on use.
//!
//! A frame that crosses regions ends a burst; [`DmaTable::read`] and [`DmaTable::write`] move it.

use super::access::DmaDirection;
use super::{DmaFault, DmaTable};
use crate::memory::frames::{
    self, BURST, DmaRegionSelector, FrameAddresses, FrameCopyList, FrameHeadCompletion, HEAD,
    LongFrameAddresses, MappedBytes, PayloadCopyList, own,
};

/// Cursor over the DMA regions of a client. The cursor makes look-ups of guest addresses cheap if most addresses lie in
/// one region.
struct DmaRegionCursor<'table, 'hint, const WRITES: bool> {
    table: &'table DmaTable,
    hint: &'hint mut u32,
    first: u64,
    region: MappedBytes<'table, WRITES>,
}

impl<'table, 'hint, const WRITES: bool> DmaRegionCursor<'table, 'hint, WRITES> {
    fn new(table: &'table DmaTable, hint: &'hint mut u32) -> Self {
        let mut cursor = Self { table, hint, first: 0, region: MappedBytes::NONE };
        cursor.enter();
        cursor
    }

    /// Selects the DMA region whose index a ring's hint holds. Selects no region if the hint is out of date or the
    /// region does not permit the access.
    fn enter(&mut self) {
        let direction = if WRITES { DmaDirection::Write } else { DmaDirection::Read };
        let region = self.table.regions.get(*self.hint as usize);
        let region = region.filter(|region| direction.is_permitted(region));
        let backed = region.and_then(|region| Some((region.first, region.backing.as_ref()?)));
        (self.first, self.region) = backed
            .map_or((0, MappedBytes::NONE), |(first, backing)| (first, MappedBytes::whole(backing.view())));
    }
}

impl<'table, const WRITES: bool> DmaRegionSelector<'table, WRITES> for DmaRegionCursor<'table, '_, WRITES> {
    #[inline(always)]
    fn region(&self) -> (u64, MappedBytes<'table, WRITES>) {
        (self.first, self.region)
    }

    fn enter_region_of(&mut self, iova: u64) -> Option<()> {
        *self.hint = self.table.index_of(iova)?;
        self.enter();
        Some(())
    }
}

impl DmaTable {
    /// Copies the first 64 bytes of up to 32 frames, and pads shorter frames with zeros. Stops at the first frame
    /// that is not permitted or crosses regions. Returns the number of copied heads.
    pub fn gather(
        &self,
        hint: &mut u32,
        sources: &[u64],
        lengths: &[u32],
        heads: &mut [[u8; HEAD]],
    ) -> usize {
        let mut cursor = DmaRegionCursor::new(self, hint);
        let count = sources.len().min(lengths.len()).min(heads.len());
        let places = FrameAddresses::find(&sources[..count], lengths, &mut cursor);
        frames::gather(&places, heads);
        places.len()
    }

    /// Copies up to 32 frames from this DMA table's memory into buffers of another DMA table: the first 64 bytes from
    /// private copies, the rest from the sender's memory. Stops at the first frame that is not permitted or crosses
    /// regions. Returns the number of copied frames. `complete` may change a private copy before it is delivered.
    pub fn carry(
        &self,
        hint: &mut u32,
        (to, to_hint): (&Self, &mut u32),
        run: FrameCopyList<'_>,
        complete: Option<&mut FrameHeadCompletion<'_>>,
    ) -> usize {
        let (targets, lengths) = (run.targets, run.lengths);
        let carried = self.carry_to(hint, &mut DmaRegionCursor::new(to, to_hint), run, complete);
        to.carried(&targets[..carried], lengths);
        carried
    }

    /// Copies up to 32 frames from this DMA table's memory into this process's own memory, as [`DmaTable::carry`] does into
    /// buffers. The target addresses are offsets in `into`.
    pub fn carry_out(
        &self,
        hint: &mut u32,
        into: &mut [u8],
        run: FrameCopyList<'_>,
        complete: Option<&mut FrameHeadCompletion<'_>>,
    ) -> usize {
        self.carry_to(hint, &mut MappedBytes::<true>::own(into), run, complete)
    }

    #[inline(always)]
    fn carry_to<'map>(
        &self,
        hint: &mut u32,
        into: &mut impl DmaRegionSelector<'map, true>,
        run: FrameCopyList<'_>,
        complete: Option<&mut FrameHeadCompletion<'_>>,
    ) -> usize {
        let FrameCopyList { heads, sources, lengths, targets, sums } = run;
        let mut from = DmaRegionCursor::new(self, hint);
        let count = sources.len().min(targets.len()).min(lengths.len()).min(heads.len()).min(sums.len());
        let mut written = FrameAddresses::find(&targets[..count], lengths, into);
        let read = written
            .any_long()
            .then(|| LongFrameAddresses::find(&sources[..written.len()], lengths, &mut from));
        written.truncate(read.as_ref().map_or(count, LongFrameAddresses::len));
        frames::carry(heads, read.as_ref(), &written, sums, complete);
        written.len()
    }

    /// Marks copied frames or payloads in the migration log, if there is one.
    #[inline(always)]
    fn carried(&self, targets: &[u64], lengths: &[u32]) {
        if self.is_logged() {
            self.log_writes(targets, |at| lengths[at] as usize);
        }
    }

    /// Copies up to 32 payloads from this DMA table's memory to buffers of another DMA table. Stops at the first
    /// payload that is not permitted, or not in one region. Returns the number of copied payloads.
    pub fn copy(&self, hint: &mut u32, to: &Self, to_hint: &mut u32, payloads: PayloadCopyList<'_>) -> usize {
        let PayloadCopyList { sources, lengths, targets, sums } = payloads;
        let (mut from, mut into) = (DmaRegionCursor::new(self, hint), DmaRegionCursor::new(to, to_hint));
        let count = sources.len().min(targets.len()).min(lengths.len()).min(sums.len());
        let mut written = FrameAddresses::find(&targets[..count], lengths, &mut into);
        let read = FrameAddresses::find(&sources[..written.len()], lengths, &mut from);
        written.truncate(read.len());
        frames::copy(&read, &written, sums);
        to.carried(&targets[..written.len()], lengths);
        written.len()
    }

    /// Copies up to 32 frames from this process's own memory to buffers of this DMA table. `from` is that memory, with the frames'
    /// offsets. Stops at the first frame that is not permitted, or not in one region. Returns the number of copied frames.
    pub fn copy_in(
        &self,
        hint: &mut u32,
        (from, sources): (&[u8], &[u64]),
        lengths: &[u32],
        targets: &[u64],
    ) -> usize {
        let count = sources.len().min(targets.len()).min(lengths.len());
        let mut into = DmaRegionCursor::new(self, hint);
        let written = FrameAddresses::find(&targets[..count], lengths, &mut into);
        let copied = own::copy_in(from, sources, &written);
        self.carried(&targets[..copied], lengths);
        copied
    }

    /// Writes up to 32 headers, the first `length` bytes of each, to guest memory. Stops at the first target address
    /// that is not permitted, or not in one region. Returns the number of written headers.
    pub fn scatter<const N: usize>(
        &self,
        hint: &mut u32,
        headers: &[[u8; N]],
        length: usize,
        targets: &[u64],
    ) -> usize {
        let count = targets.len().min(BURST);
        let written =
            frames::scatter(headers, length, &targets[..count], &mut DmaRegionCursor::new(self, hint));
        if self.is_logged() {
            self.log_writes(&targets[..written], |_| length.min(N));
        }
        written
    }

    /// Reads descriptors of a ring from guest memory. The ring's hint is the index of the DMA region that the ring used
    /// last.
    ///
    /// # Errors
    /// [`DmaFault`]; `buffer` is then unchanged.
    pub fn read_by(&self, hint: &mut u32, iova: u64, buffer: &mut [u8]) -> Result<(), DmaFault> {
        self.go_to(hint, iova);
        self.read(iova, buffer)
    }

    /// Writes descriptors of a ring as [`DmaTable::write_descriptors`] does. The ring's hint is the index of the DMA
    /// region that the ring used last.
    ///
    /// # Errors
    /// Returns the errors of [`DmaTable::write_descriptors`].
    pub fn write_descriptors_by(
        &self,
        hint: &mut u32,
        iova: u64,
        bytes: &[u8],
        size: usize,
    ) -> Result<(), DmaFault> {
        self.go_to(hint, iova);
        self.write_descriptors(iova, bytes, size)
    }

    /// Makes the DMA region of a ring's hint the last accessed one. Searches for the region if the hint is out of date.
    #[inline]
    fn go_to(&self, hint: &mut u32, iova: u64) {
        let holds = self.regions.get(*hint as usize).is_some_and(|region| region.holds(iova));
        if !holds && let Some(index) = self.index_of(iova) {
            *hint = index;
        }
        self.last_hit.set(*hint as usize);
    }

    /// Returns the index of the region that holds an I/O virtual address.
    fn index_of(&self, iova: u64) -> Option<u32> {
        let index = self.regions.partition_point(|region| region.last < iova);
        self.regions.get(index).filter(|region| region.holds(iova)).map(|_| index as u32)
    }
}
