//! The fixed part of every body, as it lies on the wire; the header is not included.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// `VERSION`, both ways; JSON text follows.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct VersionBody {
    /// Major version.
    pub major: U16,
    /// Minor version.
    pub minor: U16,
}

/// `DMA_MAP` request; the reply has no body.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct DmaMapBody {
    /// Bytes of this structure.
    pub argsz: U32,
    /// [`dma_flags`](super::dma_flags).
    pub flags: U32,
    /// Where the window starts in the file that rides along; 0 without one.
    pub offset: U64,
    /// First device address of the window.
    pub address: U64,
    /// Bytes.
    pub size: U64,
}

/// `DMA_UNMAP`, both ways.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct DmaUnmapBody {
    /// Bytes of the reply body.
    pub argsz: U32,
    /// 0 or [`dma_flags::UNMAP_ALL`](super::dma_flags::UNMAP_ALL).
    pub flags: U32,
    /// First device address.
    pub address: U64,
    /// Bytes.
    pub size: U64,
}

/// `DEVICE_GET_INFO`, both ways.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct DeviceInfoBody {
    /// Bytes of the reply body.
    pub argsz: U32,
    /// [`device_flags`](super::device_flags).
    pub flags: U32,
    /// Number of regions.
    pub num_regions: U32,
    /// Number of interrupt types.
    pub num_irqs: U32,
}

/// `DEVICE_GET_REGION_INFO`, both ways; capabilities may follow in the reply.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RegionInfoBody {
    /// Request: bytes the client has room for. Reply: bytes of the full reply body.
    pub argsz: U32,
    /// [`region_flags`](super::region_flags).
    pub flags: U32,
    /// Region number.
    pub index: U32,
    /// First capability, from the start of this structure; 0 when there is none.
    pub cap_offset: U32,
    /// Bytes of the region.
    pub size: U64,
    /// Where the region starts in its file.
    pub offset: U64,
}

/// In front of each region capability.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct CapabilityHeader {
    /// Which capability.
    pub id: U16,
    /// Version of its layout.
    pub version: U16,
    /// Next capability, from the start of [`RegionInfoBody`]; 0 ends the list.
    pub next: U32,
}

impl CapabilityHeader {
    /// `VFIO_REGION_INFO_CAP_SPARSE_MMAP`.
    pub const SPARSE_MMAP: u16 = 1;
}

/// Sparse mmap capability, after its header; `nr_areas` areas follow.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SparseMmapBody {
    /// How many areas follow.
    pub nr_areas: U32,
    /// Zero.
    pub reserved: U32,
}

/// One area that may be mapped.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SparseAreaBody {
    /// From the start of the region.
    pub offset: U64,
    /// Bytes.
    pub size: U64,
}

/// `DEVICE_GET_IRQ_INFO`, both ways.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct IrqInfoBody {
    /// Bytes of the reply body.
    pub argsz: U32,
    /// [`irq_flags`](super::irq_flags).
    pub flags: U32,
    /// Interrupt type.
    pub index: U32,
    /// Vectors of that type.
    pub count: U32,
}

/// `DEVICE_SET_IRQS` request; one byte per vector follows with `DATA_BOOL`. The reply has no body.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct IrqSetBody {
    /// Bytes of this structure and what follows.
    pub argsz: U32,
    /// [`irq_set`](super::irq_set).
    pub flags: U32,
    /// Interrupt type.
    pub index: U32,
    /// First vector.
    pub start: U32,
    /// How many vectors.
    pub count: U32,
}

/// `REGION_READ` and `REGION_WRITE`, both ways; data follows in a write and in the reply to a read.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RegionAccessBody {
    /// From the start of the region.
    pub offset: U64,
    /// Region number.
    pub region: U32,
    /// Bytes of data.
    pub count: U32,
}

/// `REGION_WRITE_MULTI`, both ways; the request has `wr_cnt` entries after it.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct MultiWriteBody {
    /// How many writes.
    pub wr_cnt: U64,
}

/// One write of `REGION_WRITE_MULTI`.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct MultiWriteEntry {
    /// From the start of the region.
    pub offset: U64,
    /// Region number.
    pub region: U32,
    /// Bytes of `data` that count, at most 8.
    pub count: U32,
    /// The data, first byte first.
    pub data: [u8; 8],
}

#[cfg(test)]
mod tests {
    use core::mem::size_of;

    use super::*;

    #[test]
    fn sizes_are_the_specifications() {
        assert_eq!(size_of::<VersionBody>(), 4);
        assert_eq!(size_of::<DmaMapBody>(), 32);
        assert_eq!(size_of::<DmaUnmapBody>(), 24);
        assert_eq!(size_of::<DeviceInfoBody>(), 16);
        assert_eq!(size_of::<RegionInfoBody>(), 32);
        assert_eq!(size_of::<CapabilityHeader>(), 8);
        assert_eq!(size_of::<SparseMmapBody>(), 8);
        assert_eq!(size_of::<SparseAreaBody>(), 16);
        assert_eq!(size_of::<IrqInfoBody>(), 16);
        assert_eq!(size_of::<IrqSetBody>(), 20);
        assert_eq!(size_of::<RegionAccessBody>(), 16);
        assert_eq!(size_of::<MultiWriteBody>(), 8);
        assert_eq!(size_of::<MultiWriteEntry>(), 24);
    }
}
