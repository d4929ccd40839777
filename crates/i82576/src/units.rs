//! Indices and time as types, so that a queue cannot be taken for a pool. Left out: unit arithmetic nobody needs.

use crate::ids;
use core::fmt;
use core::ops::{Add, Sub};
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// A number that names none of what a port has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a port has no {what} {number}")]
pub struct NoSuch {
    what: &'static str,
    number: u8,
}

/// The index types as the numbers that they are, with a check on the way back.
macro_rules! as_number {
    ($type:ty, $what:literal) => {
        impl From<$type> for u8 {
            fn from(index: $type) -> u8 {
                index.get()
            }
        }

        impl TryFrom<u8> for $type {
            type Error = NoSuch;

            fn try_from(number: u8) -> Result<Self, NoSuch> {
                Self::new(number).ok_or(NoSuch { what: $what, number })
            }
        }
    };
}

as_number!(VfIndex, "virtual function");
as_number!(Queue, "queue");
as_number!(Vector, "vector");

/// A virtual function of the port, 0..=7. Pool `n` of the switch belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub struct VfIndex(u8);

impl VfIndex {
    /// `n` as a VF, if the port has that many.
    #[must_use]
    pub const fn new(n: u8) -> Option<Self> {
        if (n as usize) < ids::MAX_VFS { Some(Self(n)) } else { None }
    }

    /// Every VF of a port, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..ids::MAX_VFS as u8).map(Self)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The VF's bit in per-VF and per-pool masks.
    #[must_use]
    pub const fn bit(self) -> u32 {
        1 << self.0
    }

    /// The VF's first or second queue pair (`which` 0 or 1): queue n, and queue n + 8.
    #[must_use]
    pub const fn queue(self, which: u8) -> Queue {
        Queue(self.0 + 8 * (which & 1))
    }

    /// The port's internal vector behind this VF's vector 0: 22 - 3n.
    #[must_use]
    pub const fn first_vector(self) -> u8 {
        22 - 3 * self.0
    }
}

impl fmt::Display for VfIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vf{}", self.0)
    }
}

/// A receive or transmit queue of the port, 0..=15.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub struct Queue(u8);

impl Queue {
    /// `n` as a queue, if the port has that many.
    #[must_use]
    pub const fn new(n: u8) -> Option<Self> {
        if (n as usize) < ids::QUEUES { Some(Self(n)) } else { None }
    }

    /// Every queue of a port, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..ids::QUEUES as u8).map(Self)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The pool that owns the queue while the card is virtualised: queue q belongs to pool q mod 8.
    #[must_use]
    pub const fn pool(self) -> u8 {
        self.0 & 7
    }

    /// 0 for a pool's first queue, 1 for its second.
    #[must_use]
    pub const fn in_pool(self) -> u8 {
        self.0 >> 3
    }
}

/// An internal interrupt vector of the port, 0..=24: a bit of EICR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub struct Vector(u8);

impl Vector {
    /// `n` as a vector, if the port has that many.
    #[must_use]
    pub const fn new(n: u8) -> Option<Self> {
        if (n as usize) < ids::VECTORS { Some(Self(n)) } else { None }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The vector's bit in EICR and its companions.
    #[must_use]
    pub const fn bit(self) -> u32 {
        1 << self.0
    }
}

/// A moment, in nanoseconds since whatever the caller calls the beginning. Time only ever comes in as an
/// argument: nothing below the host has a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Time(u64);

impl Time {
    /// The beginning.
    pub const ZERO: Time = Time(0);

    /// `ns` nanoseconds after the beginning.
    #[must_use]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// `us` microseconds after the beginning.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us.saturating_mul(1_000))
    }

    /// Nanoseconds since the beginning.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Microseconds since the beginning, rounded down.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// How long after `earlier` this is; zero if it is not.
    #[must_use]
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, rhs: Duration) -> Time {
        Time(self.0.saturating_add(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub for Time {
    type Output = Duration;
    fn sub(self, rhs: Time) -> Duration {
        self.since(rhs)
    }
}
