//! The bus as a device uses it: memory requests and interrupts on behalf of one of the device's functions.

use crate::VfIndex;
use crate::burst::{
    FrameCopyBatch, FramePlaces, HEAD, HEADERS, HeadCompleter, LONGEST, MemoryHint, SegmentPayloads,
};
use core::fmt;

/// I/O virtual address in a device's request, translated per function.
pub type Iova = u64;

/// Function of an SR-IOV device: the PF or a VF.
///
/// Memory and interrupts of a function are accessed through the same value, so that they cannot disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Function {
    /// Physical function of the device.
    Pf,
    /// Virtual function `n` of the device, from 0.
    Vf(u8),
}

impl Function {
    /// Returns the VF index, or `None` for the PF.
    #[must_use]
    pub const fn vf(self) -> Option<VfIndex> {
        match self {
            Self::Pf => None,
            Self::Vf(n) => VfIndex::new(n),
        }
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Function::Pf => f.write_str("pf"),
            Function::Vf(n) => write!(f, "vf{n}"),
        }
    }
}

/// Routing id: bus number in bits 15:8, function number (ARI) or device and function below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rid(pub u16);

impl fmt::Display for Rid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}:{:02x}.{}", self.0 >> 8, (self.0 >> 3) & 0x1f, self.0 & 7)
    }
}

/// Function whose memory a request accesses, with a hint to the part of the memory that a ring or a set of buffers
/// occupies.
#[derive(Debug)]
pub struct HintedMemory<'a> {
    /// Function that owns the announced or accessed memory.
    pub function: Function,
    /// Hint to the part of the memory that the ring or the buffers accessed last.
    pub hint: &'a mut MemoryHint,
}

/// Error: the bus refused a memory request, since part of the range is not mapped for the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("DMA fault: function {function} cannot access address {iova:#x}")]
pub struct DmaFault {
    /// Function whose memory request was refused.
    pub function: Function,
    /// First address that the function may not access.
    pub iova: Iova,
}

/// Kind of access, read or write, that a device announces for a range of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnnouncedAccess {
    /// The announced memory will be read.
    Read,
    /// The announced memory will be written.
    Write,
}

/// Device's interface to the bus. Requests are synchronous; the data of a refused one is undefined.
///
/// The card makes requests in bursts: one `dma_read` fetches up to a few dozen descriptors.
pub trait Bus {
    /// Reads `into.len()` bytes at `iova` of the function's address space.
    ///
    /// # Errors
    /// [`DmaFault`] if any byte of the range is unmapped; `into` then holds unspecified bytes.
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault>;

    /// Writes `from` at `iova` of the function's address space. Bytes become visible in address order, at the
    /// latest with a later write of the same function.
    ///
    /// # Errors
    /// [`DmaFault`] if any byte of the range is unmapped or read-only.
    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault>;

    /// Reads descriptors of a ring. The default is [`Bus::dma_read`].
    ///
    /// # Errors
    /// [`DmaFault`] if any byte of the range is unmapped.
    fn read_descriptors(
        &mut self,
        ring: HintedMemory<'_>,
        iova: Iova,
        into: &mut [u8],
    ) -> Result<(), DmaFault> {
        self.dma_read(ring.function, iova, into)
    }

    /// Writes consecutive descriptors of `size` bytes (16 or 32) at `iova`. A driver that finds the second eight
    /// bytes of a descriptor written, which hold the done bit, also finds the rest of it written, and every earlier
    /// descriptor. The default is one write, which suffices where no driver reads meanwhile.
    ///
    /// # Errors
    /// [`DmaFault`] if any byte of the range is unmapped or read-only; descriptors before it may have been written.
    fn write_descriptors(
        &mut self,
        ring: HintedMemory<'_>,
        iova: Iova,
        from: &[u8],
        size: usize,
    ) -> Result<(), DmaFault> {
        let _ = size;
        self.dma_write(ring.function, iova, from)
    }

    /// Copies the first [`HEAD`] bytes of up to [`crate::burst::BURST`] frames, padded with zeros. Stops at the first
    /// frame that cannot be read as a whole. Returns the number of frames whose bytes were copied. The default reads
    /// frame by frame.
    fn gather(
        &mut self,
        from: HintedMemory<'_>,
        sources: &[Iova],
        lengths: &[u32],
        heads: &mut [[u8; HEAD]],
    ) -> usize {
        gather(self, from.function, (sources, lengths), heads)
    }

    /// Copies frames of one function into buffers of another: their heads as gathered, the rest from the sender's
    /// memory, each byte read once. Stops at the first frame that cannot be read or written as a whole. Returns the
    /// number of copied frames. `complete` may change a head before it is delivered, also that of a frame that then cannot be
    /// written. The default copies frame by frame.
    fn carry(
        &mut self,
        from: HintedMemory<'_>,
        to: HintedMemory<'_>,
        run: FrameCopyBatch<'_>,
        complete: Option<&mut HeadCompleter<'_>>,
    ) -> usize {
        let (from, to) = (from.function, to.function);
        carry(
            self,
            run,
            complete,
            |bus, at, bytes| bus.dma_read(from, at, bytes),
            |bus, at, bytes| bus.dma_write(to, at, bytes),
        )
    }

    /// Copies frames of a function into the card's own memory, as [`Bus::carry`] does into buffers. The target addresses are
    /// offsets in `into`.
    fn carry_out(
        &mut self,
        from: HintedMemory<'_>,
        into: &mut [u8],
        run: FrameCopyBatch<'_>,
        complete: Option<&mut HeadCompleter<'_>>,
    ) -> usize {
        let function = from.function;
        carry(
            self,
            run,
            complete,
            |bus, iova, bytes| bus.dma_read(function, iova, bytes),
            |_, at, bytes| {
                let place =
                    usize::try_from(at).ok().and_then(|at| into.get_mut(at..)?.get_mut(..bytes.len()));
                place.map(|place| place.copy_from_slice(bytes)).ok_or(DmaFault { function, iova: at })
            },
        )
    }

    /// Copies up to [`crate::burst::BURST`] frames from the card's own memory into a function's buffers. Returns how many frames
    /// it copied: it stops at the first one that cannot be written as a whole.
    fn copy_in(&mut self, from: &[u8], to: HintedMemory<'_>, frames: FramePlaces<'_>) -> usize {
        let FramePlaces { sources, lengths, targets } = frames;
        let buffers = sources.iter().zip(targets).zip(lengths);
        let mut written = buffers.take_while(|((source, target), length)| {
            let frame =
                usize::try_from(**source).ok().and_then(|at| from.get(at..)?.get(..**length as usize));
            frame.is_some_and(|frame| self.dma_write(to.function, **target, frame).is_ok())
        });
        written.by_ref().count()
    }

    /// Copies payloads of up to [`crate::burst::BURST`] segments from one function's buffers to another's, each byte read once.
    /// Returns how many payloads it copied: it stops at the first one that cannot be read or written as a whole. By default it
    /// copies payload by payload.
    fn copy(&mut self, from: HintedMemory<'_>, to: HintedMemory<'_>, payloads: SegmentPayloads<'_>) -> usize {
        copy(self, from.function, to.function, payloads)
    }

    /// Writes the first `length` bytes of each element of `headers`, [`HEADERS`] at most, to the element's target
    /// address. Returns how many headers it wrote: it stops at the first one that cannot be written as a whole. By
    /// default it writes header by header.
    fn scatter(
        &mut self,
        to: HintedMemory<'_>,
        headers: &[[u8; HEADERS]],
        length: usize,
        targets: &[Iova],
    ) -> usize {
        let pairs = headers.iter().zip(targets);
        pairs.take_while(|(bytes, at)| self.dma_write(to.function, **at, &bytes[..length]).is_ok()).count()
    }

    /// Announces that `length` bytes at `iova` are about to be accessed. A hint without effect on unmapped memory.
    /// The default does nothing.
    #[inline]
    fn prefetch(&mut self, function: Function, (iova, length): (Iova, usize), access: AnnouncedAccess) {
        let _ = (function, iova, length, access);
    }

    /// Stores words of a ring's record, from word `first` on, in this order, each at once. A record is memory of the
    /// device that outlives its process. The default keeps no record.
    #[inline]
    fn record_ring(&mut self, ring: (Function, u8), first: usize, words: &[u64]) {
        let _ = (ring, first, words);
    }

    /// Reads words of a ring's record, from word `first` on. The default returns zeros.
    fn recorded_ring(&mut self, ring: (Function, u8), first: usize, into: &mut [u64]) {
        let _ = (ring, first);
        into.fill(0);
    }

    /// Sends the MSI-X message of a function's vector. Never blocks; a masked vector's message stays pending in the
    /// vector table.
    fn msix(&mut self, function: Function, vector: u16);

    /// Sends the function's only MSI message. The default does nothing, for buses whose drivers all use MSI-X.
    fn msi(&mut self, function: Function) {
        let _ = function;
    }

    /// Raises or lowers the function's interrupt pin; called on changes of the level. The default does nothing.
    fn intx(&mut self, function: Function, raised: bool) {
        let _ = (function, raised);
    }
}

/// Copies the first bytes of frames by one memory request per frame; see [`Bus::gather`].
fn gather<B: Bus + ?Sized>(
    bus: &mut B,
    from: Function,
    (sources, lengths): (&[Iova], &[u32]),
    heads: &mut [[u8; HEAD]],
) -> usize {
    let mut place = [0; LONGEST];
    for (at, ((source, length), head)) in sources.iter().zip(lengths).zip(heads).enumerate() {
        *head = [0; HEAD];
        for start in (0..*length as usize).step_by(LONGEST) {
            let piece = &mut place[..(*length as usize - start).min(LONGEST)];
            if bus.dma_read(from, source.wrapping_add(start as u64), piece).is_err() {
                return at;
            }
            if start == 0 {
                let within = piece.len().min(HEAD);
                head[..within].copy_from_slice(&piece[..within]);
            }
        }
    }
    sources.len()
}

/// Copies frames by two memory requests each, `read` and `write`; see [`Bus::carry`].
fn carry<B: Bus + ?Sized>(
    bus: &mut B,
    run: FrameCopyBatch<'_>,
    mut complete: Option<&mut HeadCompleter<'_>>,
    mut read: impl FnMut(&mut B, Iova, &mut [u8]) -> Result<(), DmaFault>,
    mut write: impl FnMut(&mut B, Iova, &[u8]) -> Result<(), DmaFault>,
) -> usize {
    let mut place = [0; LONGEST];
    let FrameCopyBatch { heads, sources, lengths, targets, sums } = run;
    let buffers = sources.iter().zip(targets).zip(lengths);
    for (at, (((source, target), length), (head, sum))) in buffers.zip(heads.iter_mut().zip(sums)).enumerate()
    {
        let Some(frame) = place.get_mut(..*length as usize) else { return at };
        if frame.len() > HEAD && read(bus, *source, frame).is_err() {
            return at;
        }
        let within = frame.len().min(HEAD);
        *sum = sum_of(&frame[within..]);
        let gathered = *head;
        if let Some(complete) = &mut complete {
            complete(at, head, *sum);
        }
        frame[..within].copy_from_slice(&head[..within]);
        if write(bus, *target, frame).is_err() {
            *head = gathered;
            return at;
        }
    }
    targets.len()
}

/// Copies payloads by two memory requests for each; see [`Bus::copy`].
fn copy<B: Bus + ?Sized>(bus: &mut B, from: Function, to: Function, payloads: SegmentPayloads<'_>) -> usize {
    let mut place = [0; LONGEST];
    let SegmentPayloads { sources, lengths, targets, sums } = payloads;
    let buffers = sources.iter().zip(targets).zip(lengths);
    for (at, (((source, target), length), sum)) in buffers.zip(sums).enumerate() {
        let Some(payload) = place.get_mut(..*length as usize) else { return at };
        if bus.dma_read(from, *source, payload).is_err() || bus.dma_write(to, *target, payload).is_err() {
            return at;
        }
        *sum = sum_of(payload);
    }
    targets.len()
}

/// Returns the sum of the 16-bit little-endian words of `bytes`. 2,048 bytes cannot overflow.
fn sum_of(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<2>();
    let sum: u64 = words.iter().map(|word| u64::from(u16::from_le_bytes(*word))).sum();
    sum + rest.first().map_or(0, |byte| u64::from(*byte))
}
