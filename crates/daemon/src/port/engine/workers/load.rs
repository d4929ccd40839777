//! Work of a worker: the time for which it was busy, and its frames.

use plane::PortCounters;
use std::time::Duration;

/// Work of a worker, since the port was opened.
#[derive(Debug, Clone, Default)]
pub(super) struct WorkerLoad {
    pub(super) busy: Duration,
    /// Value of `busy` at the begin of the present window.
    before: Duration,
    /// Share of the last window for which the worker was busy, in permille.
    pub(super) share: u32,
    /// Number of frames that its VFs have sent and received on it.
    pub(super) frames: u64,
}

impl WorkerLoad {
    /// Computes the share of a window for which the worker was busy.
    pub(super) fn end_window(&mut self, length: Duration) {
        let busy = self.busy - std::mem::replace(&mut self.before, self.busy);
        let share = busy.as_nanos() * 1_000 / length.as_nanos().max(1);
        self.share = u32::try_from(share).unwrap_or(1_000).min(1_000);
    }
}

/// Returns the number of frames that a VF has sent and received.
pub(super) fn frames_of(counters: &PortCounters) -> u64 {
    counters.rx_packets + counters.tx_packets
}

/// Returns the number of frames that a VF has sent and received, and of those that were refused. A refused frame costs as much
/// work as a sent one.
pub(super) fn load_of(counters: &PortCounters) -> u64 {
    frames_of(counters) + counters.tx_invalid + counters.tx_blocked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_frames_are_load_of_their_sender() {
        let counters = PortCounters {
            rx_packets: 1,
            tx_packets: 2,
            tx_invalid: 4,
            tx_blocked: 8,
            ..PortCounters::default()
        };
        assert_eq!((frames_of(&counters), load_of(&counters)), (3, 15));
    }
}
