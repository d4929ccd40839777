//! The last-level cache of a socket, by reuse distance: what was touched is still there if no more than the cache
//! holds was touched since. Left out: associativity, what devices put there, and the caches of a core.

/// A last-level cache, as far as streams of packet buffers go.
#[derive(Clone, Debug)]
pub struct LastLevelCache {
    bytes: u64,
    touched: u64,
}

impl LastLevelCache {
    /// An empty cache of so many bytes.
    pub const fn new(bytes: u64) -> LastLevelCache {
        LastLevelCache { bytes, touched: 0 }
    }
}

/// How often along a ring the cache is looked at.
const MARKS: usize = 16;

/// A ring of buffers that are touched in turn, again and again.
#[derive(Clone, Debug)]
pub struct BufferRing {
    /// Bytes the socket had touched when each part of the ring was touched last.
    marks: [u64; MARKS],
    slots: u64,
    next: u64,
    /// What the socket touched between the last two times that the present part was reached.
    distance: u64,
}

impl BufferRing {
    /// A ring of so many buffers (at least one), touched just now.
    pub fn new(slots: u32) -> BufferRing {
        BufferRing { marks: [0; MARKS], slots: u64::from(slots).max(1), next: 0, distance: 0 }
    }

    /// Touches the next buffer, which takes `bytes` of the cache: whether it was still there.
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

    /// Goes around some rings in turn, and says how often a buffer of the last round was there.
    fn hits(rings: usize, slots: u32, cache: u64) -> usize {
        let mut cache = LastLevelCache::new(cache);
        let mut rings = std::vec![BufferRing::new(slots); rings];
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
    fn a_ring_that_fits_is_found_again() {
        assert_eq!(hits(1, 1_024, 8_192 * KILOBYTE), 1_024);
        assert_eq!(hits(4, 1_024, 8_192 * KILOBYTE), 4 * 1_024);
    }

    #[test]
    fn rings_that_do_not_fit_together_push_each_other_out() {
        assert_eq!(hits(5, 1_024, 8_192 * KILOBYTE), 0);
    }

    #[test]
    fn nothing_is_found_in_a_cache_of_nothing() {
        assert_eq!(hits(1, 8, 0), 0);
    }
}
