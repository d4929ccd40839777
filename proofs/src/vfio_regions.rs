//! Bounds of accesses to the regions of a vfio-user device.

use crate::bound;
use vfio_user::server::RegionInfo;

bound! {
    /// An access is allowed if and only if all its bytes are in the region, and the region has the flag.
    fn vfio_region_access(size: u64, offset: u64, count: u64, flags: u32, flag: u32) if true; {
        let region = RegionInfo { size, flags, ..RegionInfo::default() };
        let allowed = region.allows(offset, count as usize, flag);
        let inside = count <= size && offset <= size - count;
        [allowed == (inside && flags & flag != 0), allowed == (offset < size && flags & flag != 0)]
    }
}

bound! {
    /// Each byte of an allowed access has an offset below the region's size.
    fn vfio_region_bytes(size: u64, offset: u64, count: u64, byte: u64) if byte < count; {
        let region = RegionInfo { size, flags: 1, ..RegionInfo::default() };
        if !region.allows(offset, count as usize, 1) {
            return 3;
        }
        let at = offset + byte;
        [at < size, at < size - 1]
    }
}
