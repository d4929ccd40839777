//! Bounds of the arithmetic of descriptor rings (`rings::Ring`).

use crate::bound;
use rings::Ring;

/// Greatest number of descriptors of a ring for which the bounds hold. The 82576 has rings of 65,536 descriptors, AVF cards
/// of 4,096.
const MOST: u32 = 1 << 31;

bound! {
    /// A ring exists if and only if its tail is within it.
    fn ring_new(count: u32, tail: u32) if true; {
        let ring = Ring::new(0, count, 16, tail);
        [ring.is_some() == (tail < count), ring.is_some() == (tail <= count)]
    }
}

bound! {
    /// `advance` stays within the ring, and goes exactly the requested steps on.
    fn ring_advance(count: u32, tail: u32, from: u32, steps: u32)
    if count <= MOST && tail < count && from < count && steps <= count; {
        let Some(ring) = Ring::new(0, count, 16, tail) else { return 0 };
        let to = u64::from(ring.advance(from, steps));
        let (count, sum) = (u64::from(count), u64::from(from) + u64::from(steps));
        [to < count && (to == sum || to + count == sum), to < count && to == sum]
    }
}

bound! {
    /// The card has fewer descriptors than the ring, and they end at the tail.
    fn ring_available(count: u32, tail: u32, from: u32) if count <= MOST && tail < count && from < count; {
        let Some(ring) = Ring::new(0, count, 16, tail) else { return 0 };
        let available = ring.available(from);
        let ends = ring.advance(from, available) == tail;
        [ends && available <= ring.most(), ends && available < ring.most()]
    }
}

bound! {
    /// A contiguous part does not go beyond the ring's end, and is as long as possible.
    fn ring_contiguous(count: u32, tail: u32, from: u32, wanted: u32) if tail < count && from < count; {
        let Some(ring) = Ring::new(0, count, 16, tail) else { return 0 };
        let part = ring.contiguous(from, wanted);
        let end = u64::from(from) + u64::from(part);
        let longest = part == wanted || end == u64::from(count);
        [longest && part <= wanted && end <= u64::from(count), longest && end < u64::from(count)]
    }
}

bound! {
    /// The reserve for broadcasts is at most 8 descriptors, and leaves seven eighths of the ring.
    fn ring_reserve(count: u32, tail: u32) if tail < count; {
        let Some(ring) = Ring::new(0, count, 16, tail) else { return 0 };
        let reserve = ring.reserve();
        [reserve <= 8 && reserve <= ring.most() / 8, reserve < 8]
    }
}

bound! {
    /// A descriptor of 16 bytes is inside the ring's memory.
    fn ring_address_16(base: u64, count: u32, index: u32)
    if index < count && base <= u64::MAX - (u64::from(count) << 4); {
        let Some(ring) = Ring::new(base, count, 16, 0) else { return 0 };
        let (at, end) = (ring.address(index), base + (u64::from(count) << 4));
        [at >= base && at <= end - 16, at > base && at <= end - 16]
    }
}

bound! {
    /// A descriptor of 32 bytes is inside the ring's memory.
    fn ring_address_32(base: u64, count: u32, index: u32)
    if index < count && base <= u64::MAX - (u64::from(count) << 5); {
        let Some(ring) = Ring::new(base, count, 32, 0) else { return 0 };
        let (at, end) = (ring.address(index), base + (u64::from(count) << 5));
        [at >= base && at <= end - 32, at > base && at <= end - 32]
    }
}
