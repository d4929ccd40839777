//! Storm control: counts broadcast and multicast traffic in windows of time, and keeps frames beyond a threshold from the ports.
//! Frames to the uplink are not dropped: a port's rate limits them. A threshold of zero is no limit.
//!
//! Windows follow each other without a gap. [`Storm::advance`] catches up with windows that passed between two polls.

use core::time::Duration;
use serde::{Deserialize, Serialize};
use units::{FCS, MacAddress, Time};

/// Bytes of a block, the unit in which traffic is counted (82576 datasheet, BSCTRH and MSCTRH).
const BLOCK: usize = 64;

/// Kind of traffic that is counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Broadcasts and, with [`Limits::counts_unknown`], unicast frames that no filter matches.
    Broadcast,
    /// Multicasts.
    Multicast,
}

/// Limit of a kind of traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "StormLimit")]
pub struct Limit {
    /// Blocks of 64 bytes per window; 0 is no limit.
    pub threshold: u32,
    /// Frames are dropped for the rest of a window that is over the threshold.
    pub drops: bool,
    /// All frames are dropped in the window after one that was over the threshold.
    pub drops_next: bool,
}

/// Settings of storm control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "StormLimits")]
pub struct Limits {
    /// Limits of broadcast and multicast.
    pub kinds: [Limit; 2],
    /// Length of a window, nanoseconds, never 0.
    pub window: u64,
    /// Unicast frames that no filter matches count as broadcast.
    pub counts_unknown: bool,
}

/// Traffic of a kind in the current window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "StormWindow")]
pub struct Window {
    /// Blocks in this window, 64 bytes each.
    pub count: u32,
    /// This window is over the threshold.
    pub over: bool,
    /// The window before was over the threshold.
    pub was_over: bool,
}

/// Settings and current windows of storm control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "Windows")]
pub struct Storm {
    /// Settings.
    pub limits: Limits,
    /// Windows of broadcast and multicast.
    pub windows: [Window; 2],
    /// Start of the current window.
    pub began: Time,
}

impl Storm {
    /// Counts a frame of `length` bytes that the switch has ports for. Returns `false` if it is to be dropped. `known` if a filter
    /// matches its destination.
    pub fn admits(&mut self, dst: MacAddress, known: bool, length: usize) -> bool {
        let kind = match dst.is_group() {
            true if dst.is_broadcast() => Kind::Broadcast,
            true => Kind::Multicast,
            false if self.limits.counts_unknown && !known => Kind::Broadcast,
            false => return true,
        };
        let (limit, window) = (&self.limits.kinds[kind as usize], &mut self.windows[kind as usize]);
        if limit.threshold == 0 {
            return true;
        }
        window.count = window.count.saturating_add((length + FCS).div_ceil(BLOCK) as u32);
        window.over |= window.count > limit.threshold;
        !(limit.drops && window.over || limit.drops_next && window.was_over)
    }

    /// Returns `true` if a window, or the one before, is over its threshold.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.windows.iter().any(|window| window.over || window.was_over)
    }

    /// Ends the windows that have passed.
    pub fn advance(&mut self, now: Time) {
        let window = self.limits.window.max(1);
        let since = u64::try_from(now.since(self.began).as_nanos()).unwrap_or(u64::MAX);
        let passed = since / window;
        if passed > 0 {
            for window in &mut self.windows {
                // With more than one window passed, the one before the current was empty.
                *window = Window { was_over: window.over && passed == 1, ..Window::default() };
            }
            self.began = self.began + Duration::from_nanos(passed * window);
        }
    }

    /// Returns the end of the current window.
    #[must_use]
    pub fn ends(&self) -> Time {
        self.began + Duration::from_nanos(self.limits.window)
    }

    /// Begins a new window, with nothing counted.
    pub fn restart(&mut self, now: Time) {
        (self.windows, self.began) = ([Window::default(); 2], now);
    }
}
