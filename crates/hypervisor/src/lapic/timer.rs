//! The APIC timer: a count that falls with the divided bus clock (SDM volume 3, 10.5.4). Left out: its LVT
//! entry's vector and mask; drift of the bus clock.

use sim::{Instant, Span};

/// How the timer counts: bits 18:17 of its LVT entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Once from the initial count to zero.
    #[default]
    OneShot,
    /// Again from the initial count whenever zero is reached.
    Periodic,
    /// Once, at a given time.
    TscDeadline,
}

/// The timer.
#[derive(Debug, Clone)]
pub struct Timer {
    /// Picoseconds.
    bus_tick: u64,
    divide: u32,
    mode: Mode,
    initial: u32,
    zero_at: Option<Instant>,
}

impl Timer {
    /// A stopped timer on a bus clock of this tick (at least a picosecond), divided by 2.
    #[must_use]
    pub fn new(bus_tick: Span) -> Self {
        Self { bus_tick: bus_tick.picos().max(1), divide: 0, mode: Mode::OneShot, initial: 0, zero_at: None }
    }

    /// Back to the state after reset; the bus clock stays.
    pub fn reset(&mut self) {
        *self = Self::new(Span::from_picos(self.bus_tick));
    }

    /// The counting mode.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Changes the mode. To or from the TSC-deadline mode disarms the timer (10.5.4.1).
    pub fn set_mode(&mut self, mode: Mode) {
        if (mode == Mode::TscDeadline) != (self.mode == Mode::TscDeadline) {
            self.zero_at = None;
            self.initial = 0;
        }
        self.mode = mode;
    }

    /// The initial-count register.
    #[must_use]
    pub fn initial(&self) -> u32 {
        self.initial
    }

    /// Writes the initial count, which starts the timer anew; zero stops it. Ignored in TSC-deadline mode.
    pub fn start(&mut self, now: Instant, initial: u32) {
        if self.mode != Mode::TscDeadline {
            self.initial = initial;
            self.zero_at = (initial != 0).then(|| now + self.length(initial));
        }
    }

    /// Arms the timer for a time, or disarms it. Ignored outside TSC-deadline mode.
    pub fn arm(&mut self, deadline: Option<Instant>) {
        if self.mode == Mode::TscDeadline {
            self.zero_at = deadline;
        }
    }

    /// The divide-configuration register: bits 0, 1 and 3.
    #[must_use]
    pub fn divide(&self) -> u32 {
        self.divide
    }

    /// Writes the divide configuration. What is left of the count goes on at the new rate.
    pub fn set_divide(&mut self, now: Instant, divide: u32) {
        let left = self.current(now);
        self.divide = divide & 0b1011;
        if self.mode != Mode::TscDeadline && self.zero_at.is_some() {
            self.zero_at = Some(now + self.length(left));
        }
    }

    /// The current-count register; zero when stopped and in TSC-deadline mode.
    #[must_use]
    pub fn current(&self, now: Instant) -> u32 {
        let left = match self.zero_at {
            Some(zero_at) if self.mode != Mode::TscDeadline => zero_at.since(now).picos(),
            _ => 0,
        };
        left.div_ceil(self.tick()).min(u64::from(self.initial)) as u32
    }

    /// When the count is zero next.
    #[must_use]
    pub fn zero_at(&self) -> Option<Instant> {
        self.zero_at
    }

    /// Lets time pass: how often zero was reached up to and including `now`.
    pub fn pass(&mut self, now: Instant) -> u64 {
        let Some(zero_at) = self.zero_at.filter(|&at| at <= now) else { return 0 };
        if self.mode != Mode::Periodic {
            self.zero_at = None;
            return 1;
        }
        let period = self.length(self.initial).picos().max(1);
        let times = now.since(zero_at).picos() / period + 1;
        self.zero_at = Some(zero_at + Span::from_picos(period.saturating_mul(times))).filter(|&at| at > now);
        times
    }

    fn length(&self, count: u32) -> Span {
        Span::from_picos(self.tick().saturating_mul(u64::from(count)))
    }

    /// Picoseconds a count: bits 3, 1, 0 are 000 for a divisor of 2 and so on to 110 for 128; 111 is 1.
    fn tick(&self) -> u64 {
        let code = self.divide & 3 | self.divide >> 1 & 4;
        self.bus_tick.saturating_mul(1 << ((code + 1) & 7))
    }
}
