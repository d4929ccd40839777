//! How fast frames leave their queues: a pool's transmit rate (RTTDQSEL, RTTBCNRM, RTTBCNRC), and the bandwidth
//! that all pools share when they send to each other inside the card. A frame is paid for in time when it leaves,
//! and the next one waits until it is paid; it waits in its ring, and nothing is dropped.
//!
//! A rate counts a frame's bytes with tag and frame check sequence, as the octet counters do. The two queues of a
//! pool share it, so that a guest cannot double its rate with its second queue; hence RTTDQSEL selects a pool, and
//! its highest bit makes no difference.
//!
//! Left out: the status and drift registers of the rate scheduler, which no driver uses.

use crate::file::RegisterFile;
use core::num::NonZeroU64;
use i82576::bits::rttbcnrc;
use i82576::ids::{FCS, MAX_VFS};
use i82576::register as r;
use i82576::{Queue, Time};
use serde::{Deserialize, Serialize};

/// Binary places of prices, which are in nanoseconds: a byte takes 8 ns times a rate factor with 14 binary places,
/// so bytes times factor is a price, to the bit.
const FRACTION_BITS: u32 = 11;

/// What is paid for in time.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Account {
    /// Everything so far is paid for at this moment, in nanoseconds, and this fraction after it.
    due: u64,
    fraction: u64,
}

impl Account {
    /// Nothing is paid for earlier than `lateness` nanoseconds before `now`.
    fn catch_up(&mut self, now: Time, lateness: u64) {
        let earliest = now.as_nanos().saturating_sub(lateness);
        if self.due < earliest {
            (self.due, self.fraction) = (earliest, 0);
        }
    }

    /// Something leaves for a price, which is paid for from the end of what is paid already.
    fn pay(&mut self, price: u64) {
        let sum = self.fraction + price;
        self.due = self.due.saturating_add(sum >> FRACTION_BITS);
        self.fraction = sum & ((1 << FRACTION_BITS) - 1);
    }
}

/// A pool's account.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Pool {
    /// RTTBCNRC.
    control: u32,
    rate: Account,
    /// Nanoseconds that the card was late when the last frame left. A guest that comes back later finds as much, and
    /// no more: its own idleness saves nothing up.
    owed: u64,
    /// When its last frame has crossed the card.
    crossed: u64,
}

impl Pool {
    /// Link rate over the pool's, with 14 binary places; `None` without a limit.
    fn factor(&self) -> Option<u64> {
        let factor = u64::from(self.control & rttbcnrc::FACTOR);
        (self.control & rttbcnrc::RS_ENA != 0).then_some(factor)
    }
}

/// What leaving costs, and who still pays.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pacing {
    pools: [Pool; MAX_VFS],
    /// Queues, a bit each, in which frames were left by the last poll: what is late now is the card's lateness.
    waiting: u16,
    /// Bits a second between pools.
    #[serde(with = "bandwidth")]
    loopback: Option<NonZeroU64>,
    crossing: Account,
}

impl Pacing {
    /// No pool has a limit. `loopback` is what pools together may send to each other, bits a second.
    #[must_use]
    pub fn new(loopback: Option<NonZeroU64>) -> Self {
        Self { pools: [Pool::default(); MAX_VFS], waiting: 0, loopback, crossing: Account::default() }
    }

    /// Whether no account is behind by a nanosecond that it should have carried over.
    pub(crate) fn is_sound(&self) -> bool {
        let accounts = self.pools.iter().map(|pool| &pool.rate).chain([&self.crossing]);
        accounts.into_iter().all(|account| account.fraction < 1 << FRACTION_BITS)
    }

    /// No pool has a limit any more.
    pub fn reset(&mut self) {
        self.pools = [Pool::default(); MAX_VFS];
        self.waiting = 0;
    }

    /// Whether anything can be made to wait: within the card, or of the pool.
    #[must_use]
    pub fn may_delay(&self, pool: u8) -> bool {
        self.loopback.is_some() || self.pool(pool).factor().is_some()
    }

    /// A register was written. The registers behind RTTDQSEL show the pool that is selected.
    pub fn written(&mut self, file: &mut RegisterFile, offset: u32) {
        let pool = &mut self.pools[selected(file)];
        match offset {
            r::RTTDQSEL => file.set(r::RTTBCNRC, pool.control),
            r::RTTBCNRC => {
                if pool.factor().is_none() {
                    // The time without a limit is no time in which the card was late.
                    pool.owed = 0;
                    self.waiting &= !queues(selected(file));
                }
                pool.control = file.get(r::RTTBCNRC);
            }
            _ => {}
        }
    }

    /// When the pool's next frame may leave.
    #[must_use]
    pub fn due(&self, pool: u8) -> Time {
        let pool = self.pool(pool);
        let rate = if pool.factor().is_some() { pool.rate.due } else { 0 };
        Time::from_nanos(rate.max(pool.crossed))
    }

    /// A queue is looked at, at `now`: what the card has failed to send in time it may make up for, so many KB at the
    /// pool's rate.
    pub fn visit(&mut self, file: &RegisterFile, queue: Queue, now: Time) {
        let pool = &mut self.pools[usize::from(queue.pool() & 7)];
        let Some(factor) = pool.factor() else { return };
        let waits = self.waiting & queues(queue.pool().into()) != 0;
        let window = (u64::from(file.get(r::RTTBCNRM)) * 1024 * factor) >> FRACTION_BITS;
        pool.rate.catch_up(now, if waits { window } else { pool.owed });
    }

    /// A queue was looked at, at `now`, and frames were left in it, or none.
    pub fn visited(&mut self, queue: Queue, left: bool, now: Time) {
        let pool = &mut self.pools[usize::from(queue.pool() & 7)];
        pool.owed = pool.factor().map_or(0, |_| now.as_nanos().saturating_sub(pool.rate.due));
        self.set_waiting(queue, left);
    }

    /// A queue may not send: it waits for something else than the card.
    pub fn rest(&mut self, queue: Queue) {
        self.set_waiting(queue, false);
    }

    fn set_waiting(&mut self, queue: Queue, waits: bool) {
        let bit = 1 << queue.get();
        self.waiting = if waits { self.waiting | bit } else { self.waiting & !bit };
    }

    /// A frame of `length` bytes, frame check sequence excluded, has left the pool.
    pub fn left(&mut self, pool: u8, length: usize) {
        let pool = &mut self.pools[usize::from(pool & 7)];
        if let Some(factor) = pool.factor() {
            pool.rate.pay((length + FCS) as u64 * factor);
        }
    }

    /// `copies` of a frame of the pool have gone to other pools.
    pub fn crossed(&mut self, pool: u8, length: usize, copies: u32, now: Time) {
        let Some(bandwidth) = self.loopback else { return };
        let bits = (length + FCS) as u64 * 8 * u64::from(copies);
        self.crossing.catch_up(now, 0);
        self.crossing.pay(bits * (1_000_000_000 << FRACTION_BITS) / bandwidth);
        self.pools[usize::from(pool & 7)].crossed = self.crossing.due;
    }

    fn pool(&self, pool: u8) -> &Pool {
        &self.pools[usize::from(pool & 7)]
    }
}

/// A bandwidth as it is saved: 0 is none.
mod bandwidth {
    use core::num::NonZeroU64;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(loopback: &Option<NonZeroU64>, to: S) -> Result<S::Ok, S::Error> {
        loopback.map_or(0, NonZeroU64::get).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<NonZeroU64>, D::Error> {
        Ok(NonZeroU64::new(u64::deserialize(from)?))
    }
}

/// The queues of a pool, a bit each.
fn queues(pool: usize) -> u16 {
    0x101 << (pool % MAX_VFS)
}

/// The pool that RTTDQSEL selects.
fn selected(file: &RegisterFile) -> usize {
    file.get(r::RTTDQSEL) as usize % MAX_VFS
}
