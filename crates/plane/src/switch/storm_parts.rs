//! Divides the thresholds of storm control among senders, so that the storm of one sender leaves a part to each other one.
//!
//! Each port and the uplink may send [`part`] of a threshold in each window whatever others send. The rest is for all of
//! them, first come, first served.

use super::FrameOrigin;
use units::Time;

/// Blocks of 64 bytes of the longest frame, of 9,728 bytes and its check sequence.
const LONGEST_FRAME: u32 = 153;

/// Traffic that senders have charged to their own parts in the current window of storm control.
#[derive(Debug, Clone)]
pub(crate) struct StormParts<const N: usize> {
    /// True if the thresholds are divided.
    pub(crate) divided: bool,
    /// Start time of the window.
    began: Time,
    /// Blocks of each kind of traffic that each port has charged to its part.
    ports: [[u32; 2]; N],
    /// Blocks of each kind that the uplink has charged to its part.
    uplink: [u32; 2],
}

/// Part of a sender in the thresholds of storm control.
#[derive(Debug)]
pub struct StormPart<'a> {
    /// Blocks of each kind that the sender has charged to its part in this window.
    pub(super) spent: &'a mut [u32; 2],
    /// Number of senders that have a part.
    pub(super) senders: u32,
}

impl<const N: usize> StormParts<N> {
    /// Creates thresholds that are not divided, as the datasheet of the 82576 has them.
    pub(crate) fn new() -> Self {
        Self { divided: false, began: Time::ZERO, ports: [[0; 2]; N], uplink: [0; 2] }
    }

    /// Returns the part of a sender in the window that began at `began`, or `None` if the thresholds are not divided. The `ports`
    /// ports and the uplink have equal parts.
    pub(crate) fn of(&mut self, origin: FrameOrigin, ports: u32, began: Time) -> Option<StormPart<'_>> {
        if !self.divided {
            return None;
        }
        if self.began != began {
            (self.began, self.ports, self.uplink) = (began, [[0; 2]; N], [0; 2]);
        }
        let spent = match origin {
            FrameOrigin::Port(port) => &mut self.ports[port.index::<N>()],
            FrameOrigin::Uplink => &mut self.uplink,
        };
        Some(StormPart { spent, senders: ports + 1 })
    }
}

/// Returns the part of a threshold, in blocks, that each of `senders` senders has for itself. At least half of the threshold, and
/// room for the longest frame, is for all of them.
pub(super) fn part(threshold: u32, senders: u32) -> u32 {
    (threshold / 2).min(threshold.saturating_sub(LONGEST_FRAME)) / senders.max(1)
}

#[cfg(test)]
mod tests {
    use super::super::{StormLimit, StormLimits, StormState};
    use super::{LONGEST_FRAME, StormParts};
    use crate::PortIndex;
    use crate::switch::FrameOrigin;
    use core::time::Duration;
    use units::{MacAddress, Time};

    const PORTS: usize = 7;

    struct DividedStorm {
        storm: StormState,
        /// Parts of 8 ports, of which 7 are enabled.
        parts: StormParts<8>,
    }

    impl DividedStorm {
        fn new(threshold: u32, divided: bool) -> Self {
            let limit = StormLimit { threshold, drops: true, drops_next: false };
            let limits = StormLimits { kinds: [limit; 2], window: 1_000_000, counts_unknown: false };
            let storm = StormState { limits, ..StormState::default() };
            Self { storm, parts: StormParts { divided, ..StormParts::new() } }
        }

        fn admits(&mut self, origin: FrameOrigin, length: usize) -> bool {
            let part = self.parts.of(origin, PORTS as u32, self.storm.began);
            self.storm.admits(MacAddress::BROADCAST, true, length, part)
        }

        /// Returns how many of 1,000 frames of one block are admitted.
        fn flood(&mut self, origin: FrameOrigin) -> usize {
            (0..1_000).filter(|_| self.admits(origin, 60)).count()
        }

        /// Floods from port 0 first, then from all other senders, and returns the numbers of admitted frames.
        fn flood_all(&mut self) -> [usize; PORTS + 1] {
            core::array::from_fn(|n| self.flood(sender(n)))
        }
    }

    /// Returns port `n`, or the uplink behind the last port.
    fn sender(n: usize) -> FrameOrigin {
        if n == PORTS { FrameOrigin::Uplink } else { FrameOrigin::Port(PortIndex::of_field(n as u32)) }
    }

    #[test]
    fn storm_of_one_sender_leaves_a_part_to_each_other_one() {
        let mut storm = DividedStorm::new(800, true);
        for window in 0..3 {
            let mut wanted = [50; PORTS + 1];
            wanted[0] = 400 + 50;
            assert_eq!(storm.flood_all(), wanted, "window {window}");
            assert!(storm.storm.is_on());
            storm.storm.advance(storm.storm.began + Duration::from_millis(1));
        }
        assert_eq!(DividedStorm::new(800, false).flood_all(), [800, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn storm_parts_leave_room_for_the_longest_frame() {
        for threshold in [1, 24, 100, 153, 154, 195, 306, 307, 5_000] {
            for n in 0..=PORTS {
                let mut storm = DividedStorm::new(threshold, true);
                let blocks = threshold.min(LONGEST_FRAME) as usize;
                assert!(storm.admits(sender(n), 64 * blocks - 4), "{threshold}, {n}");
            }
            let sum: usize = DividedStorm::new(threshold, true).flood_all().iter().sum();
            assert_eq!(sum, threshold as usize);
        }
    }

    #[test]
    fn parts_are_for_one_window() {
        let mut storm = DividedStorm::new(800, true);
        storm.flood_all();
        storm.storm.restart(Time::from_micros(7));
        assert_eq!(storm.flood_all()[1], 50);
    }
}
