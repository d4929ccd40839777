//! The APIC timer: a counter driven by the divided bus clock (SDM volume 3, 10.5.4). Its vector and mask are
//! in the LVT.

use sim::{VirtualDuration, VirtualInstant};

/// Timer mode: bits 18:17 of the LVT entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApicTimerMode {
    /// Timer mode: counts once from the initial count to zero.
    #[default]
    OneShot,
    /// Timer mode: restarts from the initial count whenever the count reaches zero.
    Periodic,
    /// Timer mode: expires once, at a given time.
    TscDeadline,
}

/// Timer of a local APIC.
#[derive(Debug, Clone)]
pub struct ApicTimer {
    /// Period of the APIC's bus clock in picoseconds.
    bus_tick: u64,
    divide: u32,
    mode: ApicTimerMode,
    initial: u32,
    zero_at: Option<VirtualInstant>,
}

impl ApicTimer {
    /// Creates a stopped APIC timer. `bus_tick` is the period of the bus clock, at least 1 ps. The timer counts once
    /// every two periods.
    #[must_use]
    pub fn new(bus_tick: VirtualDuration) -> Self {
        Self {
            bus_tick: bus_tick.picos().max(1),
            divide: 0,
            mode: ApicTimerMode::OneShot,
            initial: 0,
            zero_at: None,
        }
    }

    /// Restores the APIC timer's reset state; the bus clock stays.
    pub fn reset(&mut self) {
        *self = Self::new(VirtualDuration::from_picos(self.bus_tick));
    }

    /// Returns the mode of the APIC timer.
    #[must_use]
    pub fn mode(&self) -> ApicTimerMode {
        self.mode
    }

    /// Sets the mode of the APIC timer. A change to or from TSC-deadline mode disarms the timer (10.5.4.1).
    pub fn set_mode(&mut self, mode: ApicTimerMode) {
        if (mode == ApicTimerMode::TscDeadline) != (self.mode == ApicTimerMode::TscDeadline) {
            self.zero_at = None;
            self.initial = 0;
        }
        self.mode = mode;
    }

    /// Returns the timer's initial-count register.
    #[must_use]
    pub fn initial(&self) -> u32 {
        self.initial
    }

    /// Writes the initial count, which restarts the timer; zero stops it. Ignored in TSC-deadline mode.
    pub fn start(&mut self, now: VirtualInstant, initial: u32) {
        if self.mode != ApicTimerMode::TscDeadline {
            self.initial = initial;
            self.zero_at = (initial != 0).then(|| now + self.length(initial));
        }
    }

    /// Arms the APIC timer for a time, or disarms it. Ignored outside TSC-deadline mode.
    pub fn arm(&mut self, deadline: Option<VirtualInstant>) {
        if self.mode == ApicTimerMode::TscDeadline {
            self.zero_at = deadline;
        }
    }

    /// Returns the timer's divide-configuration register: bits 0, 1 and 3.
    #[must_use]
    pub fn divide(&self) -> u32 {
        self.divide
    }

    /// Writes the APIC timer's divide configuration. The remaining count continues at the new rate.
    pub fn set_divide(&mut self, now: VirtualInstant, divide: u32) {
        let left = self.current(now);
        self.divide = divide & 0b1011;
        if self.mode != ApicTimerMode::TscDeadline && self.zero_at.is_some() {
            self.zero_at = Some(now + self.length(left));
        }
    }

    /// Returns the timer's current-count register; zero when stopped and in TSC-deadline mode.
    #[must_use]
    pub fn current(&self, now: VirtualInstant) -> u32 {
        let left = match self.zero_at {
            Some(zero_at) if self.mode != ApicTimerMode::TscDeadline => zero_at.since(now).picos(),
            _ => 0,
        };
        left.div_ceil(self.tick()).min(u64::from(self.initial)) as u32
    }

    /// Returns the time at which the timer's count next reaches zero.
    #[must_use]
    pub fn zero_at(&self) -> Option<VirtualInstant> {
        self.zero_at
    }

    /// Advances the APIC timer to `now`. Returns the number of times that the timer's count reached zero, including at
    /// `now`.
    pub fn advance(&mut self, now: VirtualInstant) -> u64 {
        let Some(zero_at) = self.zero_at.filter(|&at| at <= now) else { return 0 };
        if self.mode != ApicTimerMode::Periodic {
            self.zero_at = None;
            return 1;
        }
        let period = self.length(self.initial).picos().max(1);
        let times = now.since(zero_at).picos() / period + 1;
        self.zero_at =
            Some(zero_at + VirtualDuration::from_picos(period.saturating_mul(times))).filter(|&at| at > now);
        times
    }

    fn length(&self, count: u32) -> VirtualDuration {
        VirtualDuration::from_picos(self.tick().saturating_mul(u64::from(count)))
    }

    /// Returns the picoseconds per count of the APIC timer. Bits 3, 1, 0 select a divisor from 2 (000) to 128 (110);
    /// 111 is 1.
    fn tick(&self) -> u64 {
        let code = self.divide & 3 | self.divide >> 1 & 4;
        self.bus_tick.saturating_mul(1 << ((code + 1) & 7))
    }
}
