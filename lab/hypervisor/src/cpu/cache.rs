//! Model of a processor socket's last-level cache by reuse distance: a buffer is cached if no more bytes than the cache
//! holds were touched since the buffer's last use. Associativity, device writes and a core's own caches are not
//! modelled.

/// Last-level cache of a processor socket, as seen by streams of packet buffers.
#[derive(Clone, Debug)]
pub struct LastLevelCache {
    bytes: u64,
    touched: u64,
}

impl LastLevelCache {
    /// Creates an empty cache of `bytes` bytes.
    pub const fn new(bytes: u64) -> LastLevelCache {
        LastLevelCache { bytes, touched: 0 }
    }
}

/// Number of samples that the cache model keeps per ring of packet buffers. A sample is the number of bytes that the
/// socket had touched.
const MARKS: usize = 16;

/// Ring of packet buffers that are touched in turn, with samples to find which buffers are still in the
/// last-level cache.
#[derive(Clone, Debug)]
pub struct PacketBufferRing {
    /// Total bytes that the socket had touched when each part of the buffer ring was last touched.
    marks: [u64; MARKS],
    slots: u64,
    next: u64,
    /// Bytes that the socket touched between the last two uses of the buffer ring's current part.
    distance: u64,
}

impl PacketBufferRing {
    /// Creates a ring of `slots` packet buffers (at least one), all just touched.
    pub fn new(slots: u32) -> PacketBufferRing {
        PacketBufferRing { marks: [0; MARKS], slots: u64::from(slots).max(1), next: 0, distance: 0 }
    }

    /// Touches the next packet buffer of a ring, of `bytes` bytes. Returns `true` if the last-level cache
    /// still held the buffer.
    pub fn touch(&mut self, cache: &mut LastLevelCache, bytes: u64) -> bool {
        cache.touched += bytes;
        let part = (self.next * MARKS as u64 / self.slots) as usize;
        let entered = self.next == 0 || ((self.next - 1) * MARKS as u64 / self.slots) as usize != part;
        self.next = (self.next + 1) % self.slots;
        let mark = &mut self.marks[part];
        if entered {
            self.distance = cache.touched - *mark;
            *mark = cache.touched;
        }
        self.distance <= cache.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KILOBYTE: u64 = 1_024;

    /// Touches the packet buffers of `rings` rings in turn, three times. Returns the cache hits of the last
    /// round.
    fn hits(rings: usize, slots: u32, cache: u64) -> usize {
        let mut cache = LastLevelCache::new(cache);
        let mut rings = std::vec![PacketBufferRing::new(slots); rings];
        let mut found = 0;
        for round in 0..3 {
            for _ in 0..slots {
                for ring in &mut rings {
                    let hit = ring.touch(&mut cache, 2 * KILOBYTE);
                    found += usize::from(hit && round == 2);
                }
            }
        }
        found
    }

    #[test]
    fn buffer_rings_that_fit_the_processor_cache_always_hit() {
        assert_eq!(hits(1, 1_024, 8_192 * KILOBYTE), 1_024);
        assert_eq!(hits(4, 1_024, 8_192 * KILOBYTE), 4 * 1_024);
    }

    #[test]
    fn buffer_rings_larger_than_the_processor_cache_never_hit() {
        assert_eq!(hits(5, 1_024, 8_192 * KILOBYTE), 0);
    }

    #[test]
    fn processor_cache_of_size_zero_never_hits() {
        assert_eq!(hits(1, 8, 0), 0);
    }
}
