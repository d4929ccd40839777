//! Fixed parts of all message bodies in their wire layout, without the header.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Body of `VERSION`, request and reply; JSON text follows.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct VersionBody {
    /// Major version of the vfio-user protocol.
    pub major: U16,
    /// Minor version of the vfio-user protocol.
    pub minor: U16,
}

/// Body of a `DMA_MAP` request; the reply has no body.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct DmaMapBody {
    /// Bytes of the `DMA_MAP` request's body.
    pub argsz: U32,
    /// Flags of the mapping, see [`dma_flags`](super::dma_flags).
    pub flags: U32,
    /// Offset of the DMA window in the attached file; 0 without a file.
    pub offset: U64,
    /// First device address of the DMA window.
    pub address: U64,
    /// Size of the DMA window in bytes.
    pub size: U64,
}

/// Body of `DMA_UNMAP`, request and reply.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct DmaUnmapBody {
    /// Bytes of the body of the `DMA_UNMAP` reply.
    pub argsz: U32,
    /// Flags of the unmapping: 0 or [`dma_flags::UNMAP_ALL`](super::dma_flags::UNMAP_ALL).
    pub flags: U32,
    /// First device address to unmap.
    pub address: U64,
    /// Size of the range to unmap in bytes.
    pub size: U64,
}

/// Body of `DEVICE_GET_INFO`, request and reply.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct DeviceInfoBody {
    /// Bytes of the body of the `DEVICE_GET_INFO` reply.
    pub argsz: U32,
    /// Flags of the device, see [`device_flags`](super::device_flags).
    pub flags: U32,
    /// Number of the device's regions.
    pub num_regions: U32,
    /// Number of the device's interrupt types.
    pub num_irqs: U32,
}

/// Body of `DEVICE_GET_REGION_INFO`, request and reply; region capabilities may follow in the reply.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct RegionInfoBody {
    /// Request: maximum bytes of the reply body. Reply: bytes of the full reply body.
    pub argsz: U32,
    /// Flags of the region, see [`region_flags`](super::region_flags).
    pub flags: U32,
    /// Number of the requested region.
    pub index: U32,
    /// Offset of the first capability from the start of this structure; 0 when there is none.
    pub cap_offset: U32,
    /// Size of the region in bytes.
    pub size: U64,
    /// Offset of the region in the file that holds it.
    pub offset: U64,
}

/// Header of each region capability.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct RegionCapabilityHeader {
    /// Id of the region capability.
    pub id: U16,
    /// Version of the region capability's layout.
    pub version: U16,
    /// Offset of the next capability from the start of [`RegionInfoBody`]; 0 ends the list.
    pub next: U32,
}

impl RegionCapabilityHeader {
    /// Capability id of sparse mmap areas (`VFIO_REGION_INFO_CAP_SPARSE_MMAP`).
    pub(crate) const SPARSE_MMAP: u16 = 1;
}

/// Sparse mmap capability after its header; `nr_areas` areas follow.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct SparseMmapBody {
    /// Number of mappable areas that follow.
    pub nr_areas: U32,
    /// Reserved field of the sparse mmap capability, zero.
    pub reserved: U32,
}

/// Mappable area of a region.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct SparseAreaBody {
    /// Offset of the mappable area from the start of the region in bytes.
    pub offset: U64,
    /// Size of the region's mappable area in bytes.
    pub size: U64,
}

/// Body of `DEVICE_GET_IRQ_INFO`, request and reply.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct IrqInfoBody {
    /// Bytes of the body of the `DEVICE_GET_IRQ_INFO` reply.
    pub argsz: U32,
    /// Flags of the interrupt type, see [`irq_flags`](super::irq_flags).
    pub flags: U32,
    /// Number of the interrupt type.
    pub index: U32,
    /// Number of interrupt vectors of that interrupt type.
    pub count: U32,
}

/// Body of a `DEVICE_SET_IRQS` request; one byte per interrupt vector follows with `DATA_BOOL`. The reply has no body.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct IrqSetBody {
    /// Bytes of the `DEVICE_SET_IRQS` request's body and the data after it.
    pub argsz: U32,
    /// Data kind and action, see [`irq_set`](super::irq_set).
    pub flags: U32,
    /// Number of the interrupt type.
    pub index: U32,
    /// First interrupt vector that the action applies to.
    pub start: U32,
    /// Number of interrupt vectors that the action applies to.
    pub count: U32,
}

/// Body of `REGION_READ` and `REGION_WRITE`, request and reply; data follows in a write and in the reply to a read.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct RegionAccessBody {
    /// Offset of the access from the start of the region in bytes.
    pub offset: U64,
    /// Number of the region that is read or written.
    pub region: U32,
    /// Number of bytes that the region access reads or writes.
    pub count: U32,
}

/// Body of `REGION_WRITE_MULTI`, request and reply; `wr_cnt` entries follow in the request.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct MultiWriteBody {
    /// Number of writes in the `REGION_WRITE_MULTI` message.
    pub wr_cnt: U64,
}

/// Value that a `REGION_WRITE_MULTI` writes, with its destination.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct MultiWriteEntry {
    /// Offset of the write from the start of the region in bytes.
    pub offset: U64,
    /// Number of the region that is written.
    pub region: U32,
    /// Number of used bytes of the write's `data`, at most 8.
    pub count: U32,
    /// Data that is written to the region, first byte first.
    pub data: [u8; 8],
}

#[cfg(test)]
mod tests {
    use core::mem::size_of;

    use super::*;

    #[test]
    fn vfio_user_body_sizes_match_the_specification() {
        assert_eq!(size_of::<VersionBody>(), 4);
        assert_eq!(size_of::<DmaMapBody>(), 32);
        assert_eq!(size_of::<DmaUnmapBody>(), 24);
        assert_eq!(size_of::<DeviceInfoBody>(), 16);
        assert_eq!(size_of::<RegionInfoBody>(), 32);
        assert_eq!(size_of::<RegionCapabilityHeader>(), 8);
        assert_eq!(size_of::<SparseMmapBody>(), 8);
        assert_eq!(size_of::<SparseAreaBody>(), 16);
        assert_eq!(size_of::<IrqInfoBody>(), 16);
        assert_eq!(size_of::<IrqSetBody>(), 20);
        assert_eq!(size_of::<RegionAccessBody>(), 16);
        assert_eq!(size_of::<MultiWriteBody>(), 8);
        assert_eq!(size_of::<MultiWriteEntry>(), 24);
    }
}
