//! The bus as a device sees it: memory it may read and write, and interrupts it may send, each time in the
//! name of one of its functions. Left out: who owns that memory and how an interrupt reaches a CPU.

use crate::VfIndex;
use crate::burst::{HEAD, Hint, LONGEST, Run};
use core::fmt;

/// An address as a device puts it on the bus: an I/O virtual address, translated per function.
pub type Iova = u64;

/// A function of an SR-IOV device: the physical one, or one of the virtual ones.
///
/// Memory and interrupts of a function are reached through the same value, so that they cannot disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Function {
    /// The physical function.
    Pf,
    /// Virtual function `n`, counted from 0.
    Vf(u8),
}

impl Function {
    /// The VF index, if the function is a VF.
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

/// A routing id: bus number in bits 15:8, function number (ARI) or device and function below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rid(pub u16);

impl fmt::Display for Rid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}:{:02x}.{}", self.0 >> 8, (self.0 >> 3) & 0x1f, self.0 & 7)
    }
}

/// A function's memory, as one ring or one set of buffers uses it.
#[derive(Debug)]
pub struct Space<'a> {
    /// The owner of the memory.
    pub function: Function,
    /// The window that was used last.
    pub hint: &'a mut Hint,
}

/// A memory request that the bus refused: nothing, or not all of it, is mapped there for this function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("DMA fault of {function} at {iova:#x}")]
pub struct DmaFault {
    /// The function that asked.
    pub function: Function,
    /// The first address that could not be reached.
    pub iova: Iova,
}

/// What is about to be done with memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It is read.
    Read,
    /// It is written.
    Write,
}

/// What a device needs of the bus. Requests are synchronous; a refused one moves no data that counts.
///
/// The card calls this in bursts: one `dma_read` fetches up to a few dozen descriptors.
pub trait Bus {
    /// Reads `into.len()` bytes at `iova` of the function's address space.
    ///
    /// # Errors
    /// [`DmaFault`] if any byte of the range is unmapped; `into` then holds unspecified bytes.
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault>;

    /// Writes `from` at `iova` of the function's address space. Bytes become visible in address order at the
    /// latest when a later write of the same function does.
    ///
    /// # Errors
    /// [`DmaFault`] if any byte of the range is unmapped or read-only.
    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault>;

    /// Reads descriptors. By default [`Bus::dma_read`].
    ///
    /// # Errors
    /// [`DmaFault`] if any byte of the range is unmapped.
    fn read_descriptors(&mut self, ring: Space<'_>, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        self.dma_read(ring.function, iova, into)
    }

    /// Writes descriptors of `size` bytes (16 or 32), one behind the other from `iova` on. A driver that finds the second eight
    /// bytes of a descriptor written, which say that it is done, finds the rest of it written, and every descriptor before it.
    /// By default one write, which is enough where no driver looks meanwhile.
    ///
    /// # Errors
    /// [`DmaFault`] if any byte of the range is unmapped or read-only; descriptors before it may have been written.
    fn write_descriptors(
        &mut self,
        ring: Space<'_>,
        iova: Iova,
        from: &[u8],
        size: usize,
    ) -> Result<(), DmaFault> {
        let _ = size;
        self.dma_write(ring.function, iova, from)
    }

    /// Copies the first [`HEAD`] bytes of up to [`crate::burst::BURST`] frames, and zeros behind those that are shorter. Returns how many
    /// frames it copied: it stops at the first one that cannot be read as a whole. By default it reads frame by frame.
    fn gather(
        &mut self,
        from: Space<'_>,
        sources: &[Iova],
        lengths: &[u32],
        heads: &mut [[u8; HEAD]],
    ) -> usize {
        gather(self, from.function, (sources, lengths), heads)
    }

    /// Puts frames of one function into buffers of another: their heads as they were gathered, and what is behind them straight from
    /// the sender, each byte read once. Returns how many frames it moved: it stops at the first one that cannot be read or
    /// written as a whole. By default it moves frame by frame.
    fn carry(&mut self, from: Space<'_>, to: Space<'_>, run: Run<'_>) -> usize {
        carry(self, from.function, to.function, run)
    }

    /// Says that `length` bytes from `iova` on are about to be read, or written. A hint: nothing happens if nothing is mapped there.
    /// By default nothing is done.
    #[inline]
    fn prefetch(&mut self, function: Function, (iova, length): (Iova, usize), access: Access) {
        let _ = (function, iova, length, access);
    }

    /// Sends the MSI-X message of the function's vector. Never blocks; a masked vector's message pends
    /// wherever the vector table is kept.
    fn msix(&mut self, function: Function, vector: u16);

    /// Sends the function's MSI message, of which there is one. By default nothing happens: a bus whose drivers
    /// all use MSI-X need not know of any other form.
    fn msi(&mut self, function: Function) {
        let _ = function;
    }

    /// Raises or lowers the function's interrupt pin: a level, told when it changes. By default nothing happens.
    fn intx(&mut self, function: Function, raised: bool) {
        let _ = (function, raised);
    }
}

/// Gathers heads by a request for each frame; see [`Bus::gather`].
fn gather<B: Bus + ?Sized>(
    bus: &mut B,
    from: Function,
    (sources, lengths): (&[Iova], &[u32]),
    heads: &mut [[u8; HEAD]],
) -> usize {
    let mut place = [0; LONGEST];
    for (at, ((source, length), head)) in sources.iter().zip(lengths).zip(heads).enumerate() {
        let Some(frame) = place.get_mut(..*length as usize) else { return at };
        if bus.dma_read(from, *source, frame).is_err() {
            return at;
        }
        let within = frame.len().min(HEAD);
        *head = [0; HEAD];
        head[..within].copy_from_slice(&frame[..within]);
    }
    sources.len()
}

/// Carries frames by two requests for each; see [`Bus::carry`].
fn carry<B: Bus + ?Sized>(bus: &mut B, from: Function, to: Function, run: Run<'_>) -> usize {
    let mut place = [0; LONGEST];
    let Run { heads, sources, lengths, targets, sums } = run;
    let buffers = sources.iter().zip(targets).zip(lengths);
    for (at, (((source, target), length), (head, sum))) in buffers.zip(heads.iter().zip(sums)).enumerate() {
        let Some(frame) = place.get_mut(..*length as usize) else { return at };
        if frame.len() > HEAD && bus.dma_read(from, *source, frame).is_err() {
            return at;
        }
        let within = frame.len().min(HEAD);
        frame[..within].copy_from_slice(&head[..within]);
        *sum = sum_of(&frame[within..]);
        if bus.dma_write(to, *target, frame).is_err() {
            return at;
        }
    }
    targets.len()
}

/// Sums 16-bit little-endian words. 2,048 bytes do not overflow.
fn sum_of(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<2>();
    let sum: u64 = words.iter().map(|word| u64::from(u16::from_le_bytes(*word))).sum();
    sum + rest.first().map_or(0, |byte| u64::from(*byte))
}
