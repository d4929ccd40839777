//! Interface between a vfio-user session and the device that the session serves.

use alloc::vec::Vec;
use core::ops::Range;

use crate::types::{DeviceInfo, IrqInfo, SparseArea};
use crate::wire::Errno;

/// Properties of a region, as the device describes them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RegionInfo<'a> {
    /// Size of the device's region in bytes; 0 for a missing region.
    pub size: u64,
    /// Flags of the region. The device sets [`region_flags`](crate::wire::region_flags) `READ`, `WRITE` and `MMAP`; the
    /// session adds `CAPS` where needed.
    pub flags: u32,
    /// Offset of the region in the file of [`ServedDevice::region_fd`].
    pub offset: u64,
    /// Mappable areas of the region. With flag `MMAP` and an empty list, the whole region is mappable.
    pub sparse: &'a [SparseArea],
}

impl RegionInfo<'_> {
    /// Returns true if the region has `flag` (readable or writable) and contains all `count` bytes from `offset` on.
    pub fn allows(&self, offset: u64, count: usize, flag: u32) -> bool {
        let end = offset.checked_add(count as u64);
        self.flags & flag != 0 && end.is_some_and(|end| end <= self.size)
    }
}

/// DMA window of the client. The session checks size, wrap-around, alignment and overlap before the device sees it.
#[derive(Debug, PartialEq, Eq)]
pub struct DmaWindow<F> {
    /// First device address of the DMA window, a multiple of 4,096.
    pub iova: u64,
    /// Size of the DMA window in bytes, a multiple of 4,096 and not 0; `iova + size` does not overflow.
    pub size: u64,
    /// True if the device may read the DMA window.
    pub readable: bool,
    /// True if the device may write the DMA window.
    pub writable: bool,
    /// File of the DMA window's memory; `None` for a window that cannot be accessed: a ROM, another device's RAM, or a
    /// guest whose memory is not shared.
    pub file: Option<DmaWindowFile<F>>,
}

/// File that contains the memory of a DMA window. The device checks the file's kind and size.
#[derive(Debug, PartialEq, Eq)]
pub struct DmaWindowFile<F> {
    /// Descriptor of the file with guest memory.
    pub fd: F,
    /// Offset of the DMA window in the file, a multiple of 4,096; `offset + size` is below 2^63.
    pub offset: u64,
}

/// Change of a device's interrupts. The session has checked that `index` is a known interrupt type and that vectors are
/// below the type's number of vectors.
#[derive(Debug, PartialEq, Eq)]
pub enum IrqChange<F> {
    /// Change: disables an interrupt type, so that every interrupt vector loses its eventfd.
    Disable {
        /// Number of the interrupt type that is disabled.
        index: u32,
    },
    /// Change: assigns eventfds to the interrupt vectors from `start` on, replacing earlier ones.
    Assign {
        /// Interrupt type whose vectors get eventfds.
        index: u32,
        /// First interrupt vector that gets an eventfd.
        start: u32,
        /// Eventfds for the interrupt vectors from `start` on; not empty.
        fds: Vec<F>,
    },
    /// Change: removes the eventfds of interrupt vectors, while the interrupt type stays enabled.
    Deassign {
        /// Interrupt type whose vectors lose their eventfds.
        index: u32,
        /// Interrupt vectors that lose their eventfds; not empty.
        vectors: Range<u32>,
    },
    /// Change: fires an interrupt vector at once.
    Trigger {
        /// Interrupt type of the vector that fires.
        index: u32,
        /// Interrupt vector that fires.
        vector: u32,
    },
    /// Change: masks an interrupt vector. Only for types with [`irq_flags::MASKABLE`](crate::wire::irq_flags).
    Mask {
        /// Interrupt type of the vector that is masked.
        index: u32,
        /// Interrupt vector that is masked.
        vector: u32,
    },
    /// Change: unmasks an interrupt vector.
    Unmask {
        /// Interrupt type of the vector that is unmasked.
        index: u32,
        /// Interrupt vector that is unmasked.
        vector: u32,
    },
}

/// Time at which the device finishes a client's request: within the call, or later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestCompletionTiming {
    /// The device has finished the client's request.
    Now,
    /// The device finishes the client's request later. The session handles no further message until
    /// [`ServerSession::complete`](super::ServerSession::complete) is called, so that the client's messages stay in
    /// order.
    Later,
}

/// Device that a [`ServerSession`](super::ServerSession) serves to a client.
///
/// Calls come in the order of the client's messages. An error number is sent to the client unchanged.
pub trait ServedDevice<F> {
    /// Returns the device's flags, and the numbers of its regions and interrupt types.
    fn info(&self) -> DeviceInfo;

    /// Returns the properties of region `index`, or `None` if it is out of range. The session calls this method at
    /// every access, so it must be cheap.
    fn region(&self, index: u32) -> Option<RegionInfo<'_>>;

    /// Returns a file descriptor of a mappable region's memory for the client. `None` makes the session describe the
    /// region as not mappable.
    fn region_fd(&mut self, index: u32) -> Option<F>;

    /// Returns the properties of interrupt type `index`, or `None` if it is out of range.
    fn irq(&self, index: u32) -> Option<IrqInfo>;

    /// Reads `data.len()` bytes from an offset inside a readable region into the zeroed `data`. Returns the number of bytes
    /// read: all, or fewer if the device suspends the read, as with [`write`](Self::write).
    fn read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> usize;

    /// Writes bytes to an offset inside a writable region. Returns the number of bytes written: all, or fewer if the
    /// device suspends the message. Then the session returns [`SessionProgress::Suspended`](super::SessionProgress),
    /// and its next step continues with the rest of the bytes, and with the further writes of the same message.
    fn write(&mut self, region: u32, offset: u64, data: &[u8]) -> usize;

    /// Maps a DMA window. After an error the window counts as not mapped. If the device finishes the mapping later, the
    /// session may close before that: [`dma_unmap_all`](Self::dma_unmap_all) is then called before the window exists.
    ///
    /// # Errors
    /// The descriptor is unsuitable, or a limit is reached.
    fn dma_map(&mut self, map: DmaWindow<F>) -> Result<RequestCompletionTiming, Errno>;

    /// Unmaps the DMA windows inside the `size` bytes at `iova`, the highest first. The range holds at least one window, and
    /// cuts none. Returns 0, or, if the device suspends the message, the size of the rest at `iova`: at most `size`, with at
    /// least one window, and without cutting one. Then the session's next step continues with the rest. The device must not access a window after its removal,
    /// not even by pending transfers: the client frees the memory after the reply.
    fn dma_unmap(&mut self, iova: u64, size: u64) -> u64;

    /// Unmaps all DMA windows of the client, whose connection ends.
    fn dma_unmap_all(&mut self);

    /// Changes or fires interrupts of the device. A request about several vectors may become several calls; if any of
    /// them returns [`RequestCompletionTiming::Later`], one completion finishes the request. The session may close meanwhile,
    /// as with [`dma_map`](Self::dma_map).
    ///
    /// # Errors
    /// The device does not support the change.
    fn set_irqs(&mut self, set: IrqChange<F>) -> Result<RequestCompletionTiming, Errno>;

    /// Resets the device to its state after power-on; DMA windows and eventfds stay.
    ///
    /// # Errors
    /// The device cannot be reset.
    fn reset(&mut self) -> Result<(), Errno>;
}
