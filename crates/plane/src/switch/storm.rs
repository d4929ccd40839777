//! Storm control: broadcast and multicast traffic is counted in windows of time, and what goes beyond a threshold
//! is kept from the ports. The uplink is not spared: what a port sends outside is paced. A threshold of zero is none.
//!
//! Windows follow each other without a gap; one that nobody looked at is caught up with at the next look.

use core::time::Duration;
use serde::{Deserialize, Serialize};
use units::{FCS, MacAddress, Time};

/// What traffic is counted in.
const BLOCK: usize = 64;

/// What is counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Frames to everybody and, if [`Limits::counts_unknown`], unicast that no filter knows.
    Broadcast,
    /// Frames to groups.
    Multicast,
}

/// What is done about a kind of traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "StormLimit")]
pub struct Limit {
    /// Blocks of 64 bytes that a window may have; 0 is no limit.
    pub threshold: u32,
    /// A window that is over the threshold loses its rest.
    pub drops: bool,
    /// A window after one over the threshold loses all.
    pub drops_next: bool,
}

/// What storm control is told to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "StormLimits")]
pub struct Limits {
    /// Broadcast, multicast.
    pub kinds: [Limit; 2],
    /// Nanoseconds of a window, never 0.
    pub window: u64,
    /// Unicast that no filter knows counts as broadcast.
    pub counts_unknown: bool,
}

/// What was seen of a kind of traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "StormWindow")]
pub struct Window {
    /// Blocks in this window.
    pub count: u32,
    /// This window is over the threshold.
    pub over: bool,
    /// The window before was.
    pub was_over: bool,
}

/// The windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "Windows")]
pub struct Storm {
    /// What to do.
    pub limits: Limits,
    /// Broadcast, multicast.
    pub windows: [Window; 2],
    /// When the window began.
    pub began: Time,
}

impl Storm {
    /// Counts a frame of `length` bytes that the switch would give to ports; answers whether they may have it. A filter
    /// knows its destination, or not.
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

    /// Whether a window is, or the one before was, over a threshold.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.windows.iter().any(|window| window.over || window.was_over)
    }

    /// Lets the windows that have passed pass.
    pub fn advance(&mut self, now: Time) {
        let window = self.limits.window.max(1);
        let since = u64::try_from(now.since(self.began).as_nanos()).unwrap_or(u64::MAX);
        let passed = since / window;
        if passed > 0 {
            for window in &mut self.windows {
                *window = Window { was_over: window.over && passed == 1, ..Window::default() };
            }
            self.began = self.began + Duration::from_nanos(passed * window);
        }
    }

    /// When the current window ends.
    #[must_use]
    pub fn ends(&self) -> Time {
        self.began + Duration::from_nanos(self.limits.window)
    }

    /// Begins a new window, with nothing counted.
    pub fn restart(&mut self, now: Time) {
        (self.windows, self.began) = ([Window::default(); 2], now);
    }
}
