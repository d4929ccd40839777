//! What a session needs from the device behind it.

use alloc::vec::Vec;
use core::ops::Range;

use crate::types::{DeviceInfo, IrqInfo, SparseArea};
use crate::wire::Errno;

/// One region, as the device describes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RegionInfo<'a> {
    /// Bytes; 0 for a region that is not there.
    pub size: u64,
    /// [`region_flags`](crate::wire::region_flags) `READ`, `WRITE` and `MMAP`; `CAPS` is added where needed.
    pub flags: u32,
    /// Where the region starts in the file that [`Device::region_fd`] returns.
    pub offset: u64,
    /// The areas that may be mapped; with `MMAP` and none, the whole region may.
    pub sparse: &'a [SparseArea],
}

/// A DMA window: checked for size, wrap-around, alignment and overlap before the device sees it.
#[derive(Debug, PartialEq, Eq)]
pub struct DmaMap<F> {
    /// First device address, a multiple of 4,096.
    pub iova: u64,
    /// Bytes, a multiple of 4,096 and not 0; `iova + size` does not overflow.
    pub size: u64,
    /// The device may read the window.
    pub readable: bool,
    /// The device may write the window.
    pub writable: bool,
    /// The memory. Without one the window is known, but cannot be reached: a ROM, another device's RAM, or a guest
    /// whose memory is not shared.
    pub file: Option<DmaFile<F>>,
}

/// The file behind a DMA window. Nothing is known about it: the device checks its kind and its size.
#[derive(Debug, PartialEq, Eq)]
pub struct DmaFile<F> {
    /// The descriptor.
    pub fd: F,
    /// Where the window starts in it, a multiple of 4,096; `offset + size` is below 2^63.
    pub offset: u64,
}

/// A change of interrupts. `index` is a known interrupt type, vectors are below its count.
#[derive(Debug, PartialEq, Eq)]
pub enum IrqSet<F> {
    /// The type is switched off: every vector loses its eventfd.
    Disable {
        /// Interrupt type.
        index: u32,
    },
    /// Vectors from `start` on signal these eventfds from now on, instead of what they signalled before.
    Assign {
        /// Interrupt type.
        index: u32,
        /// First vector.
        start: u32,
        /// One eventfd per vector, not empty.
        fds: Vec<F>,
    },
    /// These vectors are in use, but have no eventfd.
    Deassign {
        /// Interrupt type.
        index: u32,
        /// The vectors, not empty.
        vectors: Range<u32>,
    },
    /// The client wants this vector to fire now.
    Trigger {
        /// Interrupt type.
        index: u32,
        /// Vector.
        vector: u32,
    },
    /// This vector is to be held back. Only for types with [`irq_flags::MASKABLE`](crate::wire::irq_flags).
    Mask {
        /// Interrupt type.
        index: u32,
        /// Vector.
        vector: u32,
    },
    /// This vector is to be let through again.
    Unmask {
        /// Interrupt type.
        index: u32,
        /// Vector.
        vector: u32,
    },
}

/// When what a device was asked for is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// It is done.
    Now,
    /// Somebody else does it, who takes time. The session handles no further message until
    /// [`Session::complete`](super::Session::complete) is called, so that what the client sends stays in order.
    Later,
}

/// A device that a [`Session`](super::Session) makes available to a client.
///
/// Calls come in the order in which the client sent them. An error number goes to the client as it is.
pub trait Device<F> {
    /// How many regions and interrupt types.
    fn info(&self) -> DeviceInfo;

    /// Region `index`, or `None` if it is beyond the device's count. Asked at every access: keep it cheap.
    fn region(&self, index: u32) -> Option<RegionInfo<'_>>;

    /// A descriptor of a mappable region's memory, to be sent to the client. A region whose descriptor cannot be
    /// had is described as not mappable.
    fn region_fd(&mut self, index: u32) -> Option<F>;

    /// Interrupt type `index`, or `None` if it is beyond the device's count.
    fn irq(&self, index: u32) -> Option<IrqInfo>;

    /// A load of `data.len()` bytes, inside the region, which is readable. `data` comes zeroed.
    fn read(&mut self, region: u32, offset: u64, data: &mut [u8]);

    /// A store, inside the region, which is writable.
    fn write(&mut self, region: u32, offset: u64, data: &[u8]);

    /// A new DMA window. After an error it counts as not mapped. If it is mapped later, the session may close
    /// meanwhile: [`dma_unmap_all`](Self::dma_unmap_all) then comes before the window is there.
    ///
    /// # Errors
    /// The descriptor cannot be used, or there is no room for it.
    fn dma_map(&mut self, map: DmaMap<F>) -> Result<Completion, Errno>;

    /// Every window inside this range goes away; there are some, and the range cuts none. Nothing may refer to them
    /// after the return, transfers in flight included: the client frees the memory when it sees the reply.
    fn dma_unmap(&mut self, iova: u64, size: u64);

    /// All windows go away.
    fn dma_unmap_all(&mut self);

    /// Interrupts change. A request about several vectors may become several calls; if the answer to any of them is
    /// "later", one completion answers the request. The session may close meanwhile, as with
    /// [`dma_map`](Self::dma_map).
    ///
    /// # Errors
    /// The device cannot do that.
    fn set_irqs(&mut self, set: IrqSet<F>) -> Result<Completion, Errno>;

    /// Back to the state after power-on; DMA windows and eventfds stay.
    ///
    /// # Errors
    /// The device cannot be reset.
    fn reset(&mut self) -> Result<(), Errno>;
}
