//! Posted receive descriptors: they are read in bursts, filled in place, and written back together. The card defines
//! the words of a filled descriptor.

use crate::ring::Ring;
use pcie::burst::BURST;
use pcie::low::low_dword;
use pcie::{Bus, DmaFault, Function, HintedMemory, Iova, MemoryHint};

/// Number of words in a burst of the longest descriptors.
const WORDS: usize = 4 * BURST;
/// Number of bytes in a word of a descriptor.
const WORD: usize = 8;

/// Consecutive receive descriptors of a ring. Those before `given` are written back to the driver's memory, and those
/// before `filled` are filled for the driver. The others, up to `end`, are as the driver has posted them.
#[derive(Debug, Clone)]
pub struct PostedDescriptors {
    raw: [[u8; WORD]; WORDS],
    given: usize,
    filled: usize,
    end: usize,
    /// Ring index of the next receive descriptor to write back.
    head: u32,
    /// Ring index of the next receive descriptor to read.
    fetch_at: u32,
    /// True if descriptors were written back of which the driver was not notified.
    spoke: bool,
    /// Number of descriptors written back since the driver was last notified.
    told_late: usize,
    ring: MemoryHint,
    /// Hint to the memory that holds the receive buffers.
    pub(crate) buffers: MemoryHint,
}

impl PostedDescriptors {
    /// Creates an empty burst of descriptors at a ring index.
    #[must_use]
    pub fn at(index: u32) -> Self {
        Self {
            raw: [[0; WORD]; WORDS],
            given: 0,
            filled: 0,
            end: 0,
            head: index,
            fetch_at: index,
            spoke: false,
            told_late: 0,
            ring: MemoryHint(0),
            buffers: MemoryHint(0),
        }
    }

    /// Returns the receive descriptors of `size` bytes that were read and not filled.
    pub fn unused(&self, size: usize) -> impl Iterator<Item = &[u8]> {
        let bytes = &self.raw.as_flattened()[self.filled * size..self.end * size];
        bytes.chunks_exact(size)
    }

    /// Restores a burst of posted receive descriptors from the bytes of [`PostedDescriptors::unused`], when the ring
    /// was read up to `fetch_at`. `spoke` is true if the driver was not notified of descriptors that were written back.
    /// Returns `None` if there are more than a burst.
    #[must_use]
    pub fn resume(unused: &[u8], size: usize, (head, fetch_at): (u32, u32), spoke: bool) -> Option<Self> {
        let mut posted = Self { fetch_at, spoke, end: unused.len() / size, ..Self::at(head) };
        posted.raw.as_flattened_mut().get_mut(..unused.len())?.copy_from_slice(unused);
        (posted.end <= BURST).then_some(posted)
    }

    /// Returns the ring index of the first receive descriptor that has not been written back.
    #[must_use]
    pub fn head(&self) -> u32 {
        self.head
    }

    /// Returns the ring index of the next receive descriptor to read.
    #[must_use]
    pub fn fetch_at(&self) -> u32 {
        self.fetch_at
    }

    /// Returns true if descriptors were written back of which the driver was not notified.
    #[must_use]
    pub fn spoke(&self) -> bool {
        self.spoke
    }

    /// Returns the number of receive descriptors that were filled since the driver was last notified. It cannot exceed
    /// the ring's size, unless the driver has moved the tail back.
    #[must_use]
    #[inline]
    pub fn used(&self) -> usize {
        self.told_late + self.filled - self.given
    }

    /// Returns the number of receive descriptors that were read and can be filled.
    #[must_use]
    #[inline]
    pub fn ready(&self) -> usize {
        self.end - self.filled
    }

    /// Writes back filled descriptors and reads posted ones, if no descriptor can be filled. Returns how many can be
    /// filled.
    ///
    /// # Errors
    /// [`DmaFault`] if the ring is not in the function's memory; nothing has changed then.
    #[inline(always)]
    pub fn prepare<B: Bus>(
        &mut self,
        ring: &Ring,
        function: Function,
        bus: &mut B,
    ) -> Result<usize, DmaFault> {
        if self.ready() == 0 {
            self.read(ring, function, bus)?;
        }
        Ok(self.ready())
    }

    #[inline(never)]
    fn read<B: Bus>(&mut self, ring: &Ring, function: Function, bus: &mut B) -> Result<(), DmaFault> {
        self.give_back(ring, function, bus)?;
        let count = ring.contiguous(self.fetch_at, ring.available(self.fetch_at).min(low_dword(BURST as u64)))
            as usize;
        if count == 0 {
            return Ok(());
        }
        let bytes = &mut self.raw.as_flattened_mut()[..count * ring.size()];
        let space = HintedMemory { function, hint: &mut self.ring };
        bus.read_descriptors(space, ring.address(self.fetch_at), bytes)?;
        (self.given, self.filled, self.end) = (0, 0, count);
        self.fetch_at = ring.advance(self.fetch_at, low_dword(count as u64));
        Ok(())
    }

    /// Replaces the descriptors by two-word descriptors of the receive buffers at `addresses`, a burst at most. A card
    /// whose rings hold no such descriptors offers its buffers in this way, and takes the filled ones by
    /// [`PostedDescriptors::take_filled`].
    pub fn offer_buffers(&mut self, addresses: impl Iterator<Item = Iova>) {
        (self.given, self.filled, self.end) = (0, 0, 0);
        for (descriptor, address) in self.raw.as_chunks_mut::<2>().0.iter_mut().zip(addresses).take(BURST) {
            descriptor[0] = address.to_le_bytes();
            self.end += 1;
        }
    }

    /// Takes the second words of the two-word descriptors that were filled since the last call.
    pub fn take_filled(&mut self) -> impl Iterator<Item = u64> + '_ {
        let first = core::mem::replace(&mut self.given, self.filled);
        let descriptors = self.raw.as_chunks::<2>().0.get(first..self.filled).unwrap_or_default();
        descriptors.iter().map(|descriptor| u64::from_le_bytes(descriptor[1]))
    }

    /// Returns a word of the receive descriptor that is `ahead` descriptors after the next one to be filled.
    #[must_use]
    #[inline(always)]
    pub fn word(&self, ring: &Ring, ahead: usize, word: usize) -> u64 {
        u64::from_le_bytes(self.raw[((self.filled + ahead) * (ring.size() / WORD) + word) % WORDS])
    }

    /// Returns the next receive descriptor to be filled, as the driver has posted it.
    #[must_use]
    #[inline]
    pub fn next(&self, ring: &Ring) -> Option<&[u8]> {
        let at = self.filled * ring.size();
        if self.ready() == 0 { None } else { self.raw.as_flattened().get(at..at + ring.size()) }
    }

    /// Fills the next receive descriptor, which was read before. Words beyond the descriptor's size are ignored.
    #[inline(always)]
    pub fn fill(&mut self, ring: &Ring, words: [u64; 4]) {
        self.fill_run(ring, 1, core::iter::once(words));
    }

    /// Fills the next `count` receive descriptors, which were read before, as [`PostedDescriptors::fill`] does with one.
    #[inline(always)]
    pub(crate) fn fill_run(&mut self, ring: &Ring, count: usize, words: impl Iterator<Item = [u64; 4]>) {
        match ring.size() / WORD {
            4 => self.fill_with::<4, _>(count, words),
            _ => self.fill_with::<2, _>(count, words),
        }
    }

    #[inline(always)]
    fn fill_with<const STRIDE: usize, I: Iterator<Item = [u64; 4]>>(&mut self, count: usize, words: I) {
        let (descriptors, _) = self.raw.as_chunks_mut::<STRIDE>();
        let slots = descriptors[self.filled..].iter_mut();
        slots.zip(words).for_each(|(slot, words)| *slot = core::array::from_fn(|at| words[at].to_le_bytes()));
        self.filled += count;
    }

    /// Copies the addresses of the receive buffers that can be filled, as many as `into` holds.
    #[inline(always)]
    pub(crate) fn addresses(&self, ring: &Ring, into: &mut [Iova]) {
        match ring.size() / WORD {
            4 => self.load::<4>(into),
            _ => self.load::<2>(into),
        }
    }

    #[inline(always)]
    fn load<const STRIDE: usize>(&self, into: &mut [Iova]) {
        let (descriptors, _) = self.raw.as_chunks::<STRIDE>();
        for (address, descriptor) in into.iter_mut().zip(&descriptors[self.filled..self.end]) {
            *address = u64::from_le_bytes(descriptor[0]);
        }
    }

    /// Writes filled descriptors back to the driver's memory. Returns true if there were any.
    ///
    /// # Errors
    /// [`DmaFault`] if the ring is not in the function's memory; a part of them may have been written, and all are kept.
    pub fn give_back<B: Bus>(
        &mut self,
        ring: &Ring,
        function: Function,
        bus: &mut B,
    ) -> Result<bool, DmaFault> {
        let count = low_dword((self.filled - self.given) as u64);
        if count == 0 || !ring.contains(self.head) {
            return Ok(false);
        }
        let size = ring.size();
        let before_wrap = ring.contiguous(self.head, count) as usize * size;
        let filled = &self.raw.as_flattened()[self.given * size..self.filled * size];
        let (one, two) = filled.split_at(before_wrap);
        for (at, bytes) in [(self.head, one), (0, two)] {
            if !bytes.is_empty() {
                let space = HintedMemory { function, hint: &mut self.ring };
                bus.write_descriptors(space, ring.address(at), bytes, size)?;
            }
        }
        self.told_late += count as usize;
        (self.given, self.spoke) = (self.filled, true);
        self.head = ring.advance(self.head, count);
        Ok(true)
    }

    /// Returns true if descriptors were written back since the last call. The caller notifies the driver.
    pub fn take_spoke(&mut self) -> bool {
        self.told_late = 0;
        core::mem::take(&mut self.spoke)
    }

    /// Drops the filled descriptors, because the ring cannot be written to.
    pub fn drop_filled(&mut self) {
        self.given = self.filled;
    }
}
