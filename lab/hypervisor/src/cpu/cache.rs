//! Model of a processor socket's last-level cache by reuse distance: a buffer is cached if no more bytes than the cache
//! holds were touched since the buffer's last use. Buffers that one domain fills and another reads follow the coherence
//! protocol: a write leaves them in the cache of the writer's socket only. Associativity, device writes and a core's own
//! caches are not modelled.

use alloc::vec::Vec;

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
    /// Next slot that is the first of a part of the buffer ring.
    enters: u64,
    /// Bytes that the socket touched between the last two uses of the buffer ring's current part.
    distance: u64,
}

impl PacketBufferRing {
    /// Creates a ring of `slots` packet buffers (at least one), all just touched.
    pub fn new(slots: u32) -> PacketBufferRing {
        PacketBufferRing {
            marks: [0; MARKS],
            slots: u64::from(slots).max(1),
            next: 0,
            enters: 0,
            distance: 0,
        }
    }

    /// Touches the next packet buffer of a ring, of `bytes` bytes. Returns `true` if the last-level cache
    /// still held the buffer.
    pub fn touch(&mut self, cache: &mut LastLevelCache, bytes: u64) -> bool {
        cache.touched += bytes;
        if self.next == self.enters {
            let part = self.next * MARKS as u64 / self.slots;
            self.enters = ((part + 1) * self.slots).div_ceil(MARKS as u64) % self.slots;
            let mark = &mut self.marks[part as usize];
            self.distance = cache.touched - *mark;
            *mark = cache.touched;
        }
        self.next += 1;
        if self.next == self.slots {
            self.next = 0;
        }
        self.distance <= cache.bytes
    }
}

/// Ring of pages that one domain fills and another domain reads, on the same socket or on another. A write takes a page out of
/// the caches of other sockets (MESI), and a read leaves it in both. A page that only another socket has counts as one in
/// memory.
#[derive(Clone, Debug)]
pub struct SharedPageRing {
    /// Bytes that each socket had touched when it last used each part of the ring; `None` for parts that are not in the
    /// socket's cache.
    marks: Vec<[Option<u64>; MARKS]>,
    slots: u64,
    /// Number of pages that were filled.
    written: u64,
    /// Number of pages that were read or skipped.
    read: u64,
    /// Part that the reader used last.
    read_part: Option<usize>,
    /// The writer found its current part in its socket's cache.
    writes_cached: bool,
    /// The reader found its current part in its socket's cache.
    reads_cached: bool,
}

impl SharedPageRing {
    /// Creates a ring of `slots` pages (at least one) on a machine with `sockets` sockets, all just touched on each of them.
    pub fn new(slots: u32, sockets: usize) -> SharedPageRing {
        SharedPageRing {
            marks: alloc::vec![[Some(0); MARKS]; sockets],
            slots: u64::from(slots).max(1),
            written: 0,
            read: 0,
            read_part: None,
            writes_cached: false,
            reads_cached: false,
        }
    }

    /// Fills the next page of a ring with `bytes` bytes on a socket with this cache. Returns `true` if the cache held the
    /// page.
    pub fn write(&mut self, (socket, cache): (usize, &mut LastLevelCache), bytes: u64) -> bool {
        let part = self.part(self.written);
        let entered = self.written == 0 || self.part(self.written - 1) != part;
        self.written += 1;
        cache.touched += bytes;
        if entered {
            self.writes_cached = self.is_cached(part, socket, cache);
            self.marks.iter_mut().for_each(|marks| marks[part] = None);
            self.marks[socket][part] = Some(cache.touched);
        }
        self.writes_cached
    }

    /// Reads `bytes` bytes of the oldest unread page on a socket with this cache. Returns `true` if the cache held the page.
    /// The bytes of a page that the cache held are already counted. A reader that has skipped pages without
    /// [`SharedPageRing::skip`] continues at the oldest page that is not overwritten.
    pub fn read(&mut self, (socket, cache): (usize, &mut LastLevelCache), bytes: u64) -> bool {
        let oldest = self.written.saturating_sub(self.slots);
        let at = self.read.clamp(oldest, self.written.saturating_sub(1).max(oldest));
        self.read = at + 1;
        let part = self.part(at);
        let entered = self.read_part.replace(part) != Some(part);
        if entered {
            self.reads_cached = self.is_cached(part, socket, cache);
        }
        cache.touched += if self.reads_cached { 0 } else { bytes };
        if entered {
            self.marks[socket][part] = Some(cache.touched);
        }
        self.reads_cached
    }

    /// Skips all unread pages: their reader is idle.
    pub fn skip(&mut self) {
        self.read = self.written;
        self.read_part = None;
    }

    fn part(&self, page: u64) -> usize {
        (page % self.slots * MARKS as u64 / self.slots) as usize
    }

    fn is_cached(&self, part: usize, socket: usize, cache: &LastLevelCache) -> bool {
        self.marks[socket][part].is_some_and(|mark| cache.touched - mark <= cache.bytes)
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
    fn each_part_of_a_buffer_ring_is_sampled_once_a_round() {
        for slots in [1, 7, 16, 24, 1_000] {
            let bytes = 2 * KILOBYTE * u64::from(slots);
            let found = [bytes, bytes - 1].map(|cache| hits(1, slots, cache));
            assert_eq!(found, [slots as usize, 0], "a ring of {slots} slots");
        }
    }

    /// Fills and reads the pages of a ring in turn, on sockets `writer` and `reader`. Returns the cache hits of writes and of
    /// reads in the last of three rounds.
    fn shared_hits(writer: usize, reader: usize, between: u64) -> (usize, usize) {
        let mut caches = [LastLevelCache::new(8_192 * KILOBYTE), LastLevelCache::new(8_192 * KILOBYTE)];
        let mut ring = SharedPageRing::new(256, 2);
        let mut found = (0, 0);
        for page in 0..3 * 256 {
            let written = ring.write((writer, &mut caches[writer]), 2 * KILOBYTE);
            caches.iter_mut().for_each(|cache| cache.touched += between);
            let read = ring.read((reader, &mut caches[reader]), 2 * KILOBYTE);
            if page >= 2 * 256 {
                found = (found.0 + usize::from(written), found.1 + usize::from(read));
            }
        }
        found
    }

    #[test]
    fn filled_page_is_cached_for_a_reader_on_the_same_socket() {
        assert_eq!(shared_hits(0, 0, 0), (256, 256));
        assert_eq!(shared_hits(0, 1, 0), (256, 0));
        assert_eq!(shared_hits(1, 0, 0), (256, 0));
    }

    #[test]
    fn other_buffers_displace_pages_before_they_are_filled_again() {
        // The other buffers of a round exceed the cache, those between a write and its read do not.
        assert_eq!(shared_hits(0, 0, 40 * KILOBYTE), (0, 256));
        assert_eq!(shared_hits(0, 0, 9_000 * KILOBYTE), (0, 0));
    }

    #[test]
    fn page_filled_on_another_socket_leaves_the_cache() {
        let mut caches = [LastLevelCache::new(8_192 * KILOBYTE), LastLevelCache::new(8_192 * KILOBYTE)];
        let mut ring = SharedPageRing::new(16, 2);
        let mut write =
            |socket: usize| (0..16).filter(|_| ring.write((socket, &mut caches[socket]), KILOBYTE)).count();
        assert_eq!([0, 0, 1, 1, 0].map(&mut write), [16, 16, 0, 16, 0]);
    }

    /// Checks a reader that leaves pages unread: it continues with the next page after it was idle, and else with the oldest
    /// one.
    #[test]
    fn reader_of_pages_continues_behind_skipped_ones() {
        let mut cache = LastLevelCache::new(8 * KILOBYTE);
        let mut ring = SharedPageRing::new(16, 1);
        for _ in 0..40 {
            ring.write((0, &mut cache), KILOBYTE);
        }
        // The oldest page has left a cache of eight pages, and the newest has not.
        assert!(!ring.read((0, &mut cache), KILOBYTE));
        ring.skip();
        ring.write((0, &mut cache), KILOBYTE);
        assert!(ring.read((0, &mut cache), KILOBYTE));
        // No unread page is left; the newest one is read again.
        assert!(ring.read((0, &mut cache), KILOBYTE));
    }

    #[test]
    fn processor_cache_of_size_zero_never_hits() {
        assert_eq!(hits(1, 8, 0), 0);
    }
}
