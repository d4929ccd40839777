//! A bulk TCP stream over a wire: full segments, back to back, limited by the window. Frames are counted, not
//! moved; the count follows from the start time. Windows fit the buffers, so no frame is lost.

use guest::packet::{TCP_HEADERS, TCP_PAYLOAD};
use sim::{VirtualDuration, VirtualInstant};

/// Bytes of preamble, frame check sequence and gap on the wire.
const OVERHEAD: usize = 24;

/// TCP stream of full segments over a wire, limited by its window.
#[derive(Debug)]
pub(crate) struct BulkStream {
    /// Time that a frame of the stream occupies the wire.
    frame: VirtualDuration,
    window: u64,
    arrived: u64,
    /// Time up to which the stream's arrived frames are counted.
    counted: VirtualInstant,
}

impl BulkStream {
    /// Creates a TCP stream with at most `window` frames in flight or unread.
    pub(crate) fn new(bits_per_second: u64, window: u64) -> Self {
        let bits = ((TCP_HEADERS + TCP_PAYLOAD + OVERHEAD) * 8) as u64;
        Self {
            frame: VirtualDuration::of_bits(bits, bits_per_second),
            window,
            arrived: 0,
            counted: VirtualInstant::ZERO,
        }
    }

    /// Returns the number of the stream's frames that have arrived.
    pub(crate) fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Counts one more arrived frame of the stream, regardless of the window.
    pub(crate) fn arrive(&mut self) {
        self.arrived += 1;
    }

    /// Returns the number of unread frames in excess of the stream's window, which must be 0.
    pub(crate) fn beyond(&self, read: u64) -> u64 {
        (self.arrived - read).saturating_sub(self.window)
    }

    /// Returns `true` if the stream's window is closed when the receiver has read `read` frames.
    pub(crate) fn is_shut(&self, read: u64) -> bool {
        self.arrived - read == self.window
    }

    /// Counts the stream's frames that arrived up to `now`, when the receiver has read `read` frames.
    pub(crate) fn count(&mut self, read: u64, now: VirtualInstant) {
        let passed = now.since(self.counted).picos() / self.frame.picos();
        let room = self.window - (self.arrived - read);
        self.arrived += passed.min(room);
        // A wire stopped by the window restarts when it opens.
        self.counted = if passed > room {
            now
        } else {
            self.counted + VirtualDuration::from_picos(passed * self.frame.picos())
        };
    }
}

#[cfg(test)]
mod tests {
    use super::BulkStream;
    use sim::VirtualInstant;

    #[test]
    fn bulk_tcp_frames_arrive_at_line_rate_until_the_window_closes() {
        let mut bulk = BulkStream::new(10_000_000_000, 1_000);
        bulk.count(0, VirtualInstant::from_nanos(12_310));
        assert_eq!(bulk.arrived(), 10, "a frame takes 1,230.4 ns");
        bulk.count(0, VirtualInstant::from_nanos(10_000_000));
        assert!(bulk.is_shut(0) && bulk.beyond(0) == 0);
        bulk.count(500, VirtualInstant::from_nanos(10_012_310));
        assert_eq!(bulk.arrived(), 1_010, "no frame is sent ahead while the window is closed");
    }
}
