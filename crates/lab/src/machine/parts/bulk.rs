//! A bulk stream over a wire: full segments, back to back, as long as the window allows. Frames are counted, not moved:
//! how many have come by now follows from when the first of them began. Left out: losses, which windows that fit the
//! buffers avoid.

use guest::packet::{TCP_HEADERS, TCP_PAYLOAD};
use sim::{Instant, Span};

/// Preamble, frame check sequence, gap.
const OVERHEAD: usize = 24;

/// The stream.
#[derive(Debug)]
pub(crate) struct Bulk {
    /// How long a frame takes of the wire.
    frame: Span,
    window: u64,
    arrived: u64,
    /// Up to when they are counted.
    counted: Instant,
}

impl Bulk {
    /// A stream with so many frames under way or unread at most.
    pub(crate) fn new(bits_per_second: u64, window: u64) -> Self {
        let bits = ((TCP_HEADERS + TCP_PAYLOAD + OVERHEAD) * 8) as u64;
        Self { frame: Span::of_bits(bits, bits_per_second), window, arrived: 0, counted: Instant::ZERO }
    }

    /// Frames that have arrived.
    pub(crate) fn arrived(&self) -> u64 {
        self.arrived
    }

    /// One more has arrived, whatever the window says.
    pub(crate) fn arrive(&mut self) {
        self.arrived += 1;
    }

    /// Frames beyond the window: there must be none.
    pub(crate) fn beyond(&self, read: u64) -> u64 {
        (self.arrived - read).saturating_sub(self.window)
    }

    /// Whether the window is shut when so many frames have been read.
    pub(crate) fn is_shut(&self, read: u64) -> bool {
        self.arrived - read == self.window
    }

    /// Counts what has arrived up to `now`, when so many frames have been read.
    pub(crate) fn count(&mut self, read: u64, now: Instant) {
        let passed = now.since(self.counted).picos() / self.frame.picos();
        let room = self.window - (self.arrived - read);
        self.arrived += passed.min(room);
        // A wire that waits for the window begins anew when it opens.
        self.counted =
            if passed > room { now } else { self.counted + Span::from_picos(passed * self.frame.picos()) };
    }
}

#[cfg(test)]
mod tests {
    use super::Bulk;
    use sim::Instant;

    #[test]
    fn frames_come_as_fast_as_the_wire_gives_them_and_stop_at_the_window() {
        let mut bulk = Bulk::new(10_000_000_000, 1_000);
        bulk.count(0, Instant::from_nanos(12_310));
        assert_eq!(bulk.arrived(), 10, "1,230.4 ns each");
        bulk.count(0, Instant::from_nanos(10_000_000));
        assert!(bulk.is_shut(0) && bulk.beyond(0) == 0);
        bulk.count(500, Instant::from_nanos(10_012_310));
        assert_eq!(bulk.arrived(), 1_010, "the wire did not run ahead while it waited");
    }
}
