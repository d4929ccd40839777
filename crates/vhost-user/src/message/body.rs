//! Converts message bodies between values and their wire layout: the fixed parts of each body.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::areas::{InflightArea, LogArea, MemoryRegion};
use super::ring::RingAddresses;

/// Flag of `SET_VRING_ADDR`: writes to the used ring are logged.
const RING_LOGGED: u32 = 1;

/// Body of requests that name a ring and a number ("vring state description").
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct VringStateBody {
    pub(super) ring: U32,
    pub(super) number: U32,
}

/// Body of `SET_VRING_ADDR`.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct VringAddressBody {
    ring: U32,
    flags: U32,
    descriptors: U64,
    used: U64,
    available: U64,
    log: U64,
}

impl From<&RingAddresses> for VringAddressBody {
    fn from(addresses: &RingAddresses) -> Self {
        Self {
            ring: U32::new(addresses.ring),
            flags: U32::new(if addresses.logged { RING_LOGGED } else { 0 }),
            descriptors: U64::new(addresses.descriptors),
            used: U64::new(addresses.used),
            available: U64::new(addresses.available),
            log: U64::new(addresses.log),
        }
    }
}

impl From<VringAddressBody> for RingAddresses {
    fn from(body: VringAddressBody) -> Self {
        Self {
            ring: body.ring.get(),
            logged: body.flags.get() & RING_LOGGED != 0,
            descriptors: body.descriptors.get(),
            used: body.used.get(),
            available: body.available.get(),
            log: body.log.get(),
        }
    }
}

/// First part of `SET_MEM_TABLE`; the regions follow.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct MemoryTableHead {
    pub(super) regions: U32,
    pub(super) padding: U32,
}

/// Memory region of `SET_MEM_TABLE`.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct RegionBody {
    guest_address: U64,
    size: U64,
    user_address: U64,
    file_offset: U64,
}

impl From<&MemoryRegion> for RegionBody {
    fn from(region: &MemoryRegion) -> Self {
        Self {
            guest_address: U64::new(region.guest_address),
            size: U64::new(region.size),
            user_address: U64::new(region.user_address),
            file_offset: U64::new(region.file_offset),
        }
    }
}

impl From<&RegionBody> for MemoryRegion {
    fn from(body: &RegionBody) -> Self {
        Self {
            guest_address: body.guest_address.get(),
            size: body.size.get(),
            user_address: body.user_address.get(),
            file_offset: body.file_offset.get(),
        }
    }
}

/// Body of `ADD_MEM_REG` and `REM_MEM_REG`.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct SingleRegionBody {
    pub(super) padding: U64,
    pub(super) region: RegionBody,
}

/// Body of `SET_LOG_BASE`.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct LogBody {
    size: U64,
    offset: U64,
}

impl From<&LogArea> for LogBody {
    fn from(area: &LogArea) -> Self {
        Self { size: U64::new(area.size), offset: U64::new(area.offset) }
    }
}

impl From<LogBody> for LogArea {
    fn from(body: LogBody) -> Self {
        Self { size: body.size.get(), offset: body.offset.get() }
    }
}

/// First part of `GET_CONFIG` and `SET_CONFIG`; the contents follow.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct ConfigHead {
    pub(super) offset: U32,
    pub(super) size: U32,
    pub(super) flags: U32,
}

/// Body of `GET_INFLIGHT_FD` and `SET_INFLIGHT_FD`, padded to 24 bytes as QEMU and the `vhost` crate do.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct InflightBody {
    size: U64,
    offset: U64,
    queues: U16,
    queue_size: U16,
    padding: U32,
}

impl From<&InflightArea> for InflightBody {
    fn from(area: &InflightArea) -> Self {
        Self {
            size: U64::new(area.size),
            offset: U64::new(area.offset),
            queues: U16::new(area.queues),
            queue_size: U16::new(area.queue_size),
            padding: U32::ZERO,
        }
    }
}

impl From<InflightBody> for InflightArea {
    fn from(body: InflightBody) -> Self {
        Self {
            size: body.size.get(),
            offset: body.offset.get(),
            queues: body.queues.get(),
            queue_size: body.queue_size.get(),
        }
    }
}
