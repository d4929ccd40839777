//! Shares of a port's functions and its uplink in the ring of a capture, so that the frames of one do not keep those of
//! the others out. Both ends of the ring count bytes: the port's end those that it writes, the reader's end those that it
//! takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Interface number of the uplink in the capture's ring. Other numbers are ports of the forwarding plane.
pub(crate) const UPLINK: u8 = u8::MAX;
/// Number of places: the ports of a forwarding plane, and the uplink.
const PLACES: usize = 65;
/// Greatest ratio of a function's bytes in the ring to the free ones. One function may fill three quarters of the ring,
/// and `n` functions leave a part in `3 n + 1` free.
const RATIO: u64 = 3;

/// Bytes and frames of one function or the uplink, counted since the begin of the capture.
#[derive(Debug, Default)]
struct PlaceCounts {
    /// Bytes that the reader has taken out of the ring.
    taken: AtomicU64,
    /// Number of frames that the ring had no room for.
    missing: AtomicU64,
}

/// Counts of all places, which both ends of the ring share.
#[derive(Debug, Clone)]
struct SharedCounts(Arc<[PlaceCounts]>);

impl SharedCounts {
    fn of(&self, place: u8) -> &PlaceCounts {
        &self.0[index(place)]
    }
}

/// Returns the index of a place's counts; the uplink has the last one.
fn index(place: u8) -> usize {
    if place == UPLINK { PLACES - 1 } else { usize::from(place) % (PLACES - 1) }
}

/// Port's end of the shares: decides which frames the ring has room for.
#[derive(Debug)]
pub(super) struct WriterShares {
    counts: SharedCounts,
    /// Bytes of each place that were written into the ring.
    written: [u64; PLACES],
}

impl WriterShares {
    /// Returns true if a place's frames may take more of the ring, of which `free` bytes are free.
    pub(super) fn admits(&self, place: u8, free: usize) -> bool {
        let taken = self.counts.of(place).taken.load(Ordering::Relaxed);
        self.written[index(place)].saturating_sub(taken) <= RATIO * free as u64
    }

    /// Counts a frame of a place: its bytes in the ring, or `None` if it is missing there.
    pub(super) fn count(&mut self, place: u8, bytes: Option<usize>) {
        match bytes {
            Some(bytes) => self.written[index(place)] += bytes as u64,
            None => {
                self.counts.of(place).missing.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Reader's end of the shares.
#[derive(Debug)]
pub(super) struct ReaderShares {
    counts: SharedCounts,
    /// Number of each place's missing frames that blocks of the file have stated so far.
    told: [u64; PLACES],
}

impl ReaderShares {
    /// Counts bytes of a place's frame that the reader has taken out of the ring.
    pub(super) fn take(&self, place: u8, bytes: usize) {
        self.counts.of(place).taken.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Returns the number of a place's missing frames.
    pub(super) fn missing(&self, place: u8) -> u64 {
        self.counts.of(place).missing.load(Ordering::Relaxed)
    }

    /// Returns the number of a place's missing frames since the last call for the place.
    pub(super) fn newly_missing(&mut self, place: u8) -> u64 {
        let missing = self.missing(place);
        missing - std::mem::replace(&mut self.told[index(place)], missing)
    }
}

/// Creates the shares of both ends of a ring.
pub(super) fn begin() -> (WriterShares, ReaderShares) {
    let counts = SharedCounts((0..PLACES).map(|_| PlaceCounts::default()).collect());
    let writer = WriterShares { counts: counts.clone(), written: [0; PLACES] };
    (writer, ReaderShares { counts, told: [0; PLACES] })
}
