//! Storm control: counts broadcast and multicast traffic in windows of time, and keeps frames beyond a threshold from the ports.
//! Frames to the uplink are not dropped: a port's rate limits them. A threshold of zero is no limit.
//!
//! Windows follow each other without a gap. [`StormState::advance`] catches up with windows that passed between two
//! polls.

use super::storm_parts::{self, StormPart};
use core::time::Duration;
use serde::{Deserialize, Serialize};
use units::{FCS, MacAddress, Time};

/// Number of bytes in a block, the unit in which storm control counts traffic (82576 datasheet, BSCTRH and MSCTRH).
const BLOCK: usize = 64;

/// Kind of traffic that storm control counts together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StormKind {
    /// Traffic of broadcasts and, with [`StormLimits::counts_unknown`], of unicast frames that no filter matches.
    Broadcast,
    /// Traffic of multicast frames.
    Multicast,
}

/// Limit on a kind of traffic in a window of storm control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "StormLimit")]
pub struct StormLimit {
    /// Threshold in blocks of 64 bytes per window; 0 is no limit.
    pub threshold: u32,
    /// True to drop the frames in the rest of a window that is over the threshold.
    pub drops: bool,
    /// True to drop all frames in the window after one that was over the threshold.
    pub drops_next: bool,
}

/// Settings of storm control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "StormLimits")]
pub struct StormLimits {
    /// Limits on broadcast traffic and on multicast traffic.
    pub kinds: [StormLimit; 2],
    /// Length of a storm control window in nanoseconds, never 0.
    pub window: u64,
    /// True to count unicast frames that no filter matches as broadcast.
    pub counts_unknown: bool,
}

/// Traffic of a kind in the current window of storm control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "StormWindow")]
pub struct StormWindowTraffic {
    /// Number of blocks of 64 bytes counted in this window.
    pub count: u32,
    /// True if the traffic in this window is over the threshold.
    pub over: bool,
    /// True if the traffic in the window before was over the threshold.
    pub was_over: bool,
}

/// Settings and current windows of storm control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "Windows")]
pub struct StormState {
    /// Limits of storm control.
    pub limits: StormLimits,
    /// Current windows of broadcast and of multicast traffic.
    pub windows: [StormWindowTraffic; 2],
    /// Start time of storm control's current window.
    pub began: Time,
}

impl StormState {
    /// Counts a frame of `length` bytes that the switch has ports for. Returns `false` if the frame is to be dropped.
    /// `known` is true if a filter matches the frame's destination. With divided thresholds the frame is charged to its sender's
    /// `part` first, and what exceeds that is counted in the window.
    pub fn admits(
        &mut self,
        dst: MacAddress,
        known: bool,
        length: usize,
        part: Option<StormPart<'_>>,
    ) -> bool {
        let kind = match dst.is_group() {
            true if dst.is_broadcast() => StormKind::Broadcast,
            true => StormKind::Multicast,
            false if self.limits.counts_unknown && !known => StormKind::Broadcast,
            false => return true,
        };
        let (limit, window) = (&self.limits.kinds[kind as usize], &mut self.windows[kind as usize]);
        if limit.threshold == 0 {
            return true;
        }
        let blocks = u32::try_from((length + FCS).div_ceil(BLOCK)).unwrap_or(u32::MAX);
        let mut threshold = limit.threshold;
        if let Some(StormPart { spent, senders }) = part {
            let (own, spent) = (storm_parts::part(threshold, senders), &mut spent[kind as usize]);
            if let Some(sum) = spent.checked_add(blocks).filter(|sum| *sum <= own) {
                *spent = sum;
                return true;
            }
            threshold -= own * senders;
        }
        window.count = window.count.saturating_add(blocks);
        window.over |= window.count > threshold;
        !(limit.drops && window.over || limit.drops_next && window.was_over)
    }

    /// Returns `true` if the traffic of a window, or of the one before, is over its threshold.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.windows.iter().any(|window| window.over || window.was_over)
    }

    /// Ends the storm control windows that have passed.
    pub fn advance(&mut self, now: Time) {
        let window = self.limits.window.max(1);
        let since = u64::try_from(now.since(self.began).as_nanos()).unwrap_or(u64::MAX);
        let passed = since / window;
        if passed > 0 {
            for window in &mut self.windows {
                // With more than one window passed, the one before the current was empty.
                *window = StormWindowTraffic {
                    was_over: window.over && passed == 1,
                    ..StormWindowTraffic::default()
                };
            }
            self.began = self.began + Duration::from_nanos(passed * window);
        }
    }

    /// Returns the end time of storm control's current window.
    #[must_use]
    pub fn ends(&self) -> Time {
        self.began + Duration::from_nanos(self.limits.window)
    }

    /// Begins a new window of storm control, with nothing counted.
    pub fn restart(&mut self, now: Time) {
        (self.windows, self.began) = ([StormWindowTraffic::default(); 2], now);
    }
}
