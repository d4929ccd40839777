//! Waiting of a worker between two rounds of its shard, in the same way as the port's own thread waits.

use super::divisible::DivisibleCard;
use super::exchange::ShardExchange;
use super::shard::CardShard;
use crate::clock::{HostClock, TimeSource};
use crate::config::file::DoorbellMode;
use crate::port::tokens::WakeSource;
use crate::port::waiting::{PortWaitEnvironment, SleepEnd};
use host::poll::{Poller, ThreadWaker};
use i82576::Time;
use std::io;
use std::time::Duration;

/// Worker that waits for kicks, for packets in rings and doorbells in pages that its shard polls, and for frames in a trunk.
pub(super) struct WaitingWorker<'a, C> {
    pub(super) poller: &'a mut Poller,
    /// Waker of the worker, for frames in a trunk.
    pub(super) bell: &'a ThreadWaker,
    pub(super) exchange: &'a ShardExchange<C>,
    /// Doorbell mode of the port.
    pub(super) wait: DoorbellMode,
    /// Kicks for the next round: VF and ring.
    pub(super) kicks: &'a mut Vec<(u8, u32)>,
}

impl<C: DivisibleCard> PortWaitEnvironment for WaitingWorker<'_, C> {
    fn now(&self) -> Time {
        HostClock.now()
    }

    /// Sleeps until an event or for `time`, and collects the kicks of guests.
    fn sleep(&mut self, time: Option<Duration>) -> io::Result<SleepEnd> {
        let mut end = SleepEnd::TimeOver;
        for event in self.poller.wait(time)? {
            match WakeSource::of(event.token) {
                WakeSource::Kick { place, ring } => {
                    self.kicks.extend(u8::try_from(place).ok().map(|vf| (vf, ring)));
                    end = SleepEnd::Notification;
                }
                _ => {
                    self.bell.drain();
                    end = if end == SleepEnd::TimeOver { SleepEnd::OtherEvent } else { end };
                }
            }
        }
        Ok(end)
    }

    fn doorbell_mode(&self) -> DoorbellMode {
        self.wait
    }

    /// Without its shard the worker has nothing to poll: the port's own thread wakes it when the shard is back.
    fn must_poll_pages(&self) -> bool {
        self.exchange.visit(|shard| shard.card.polls_pages()).unwrap_or(false)
    }

    fn must_receive(&self) -> bool {
        false
    }

    fn polls_rings(&self) -> bool {
        self.exchange.visit(|shard| shard.card.polls_rings()).unwrap_or(false)
    }

    fn arm_rings(&mut self) -> bool {
        self.exchange.visit(CardShard::arm).unwrap_or(false)
    }

    /// Ends at once if the port's own thread takes the shard.
    fn poll_memory(&mut self, time: Duration) -> bool {
        let began = self.now();
        loop {
            if self.exchange.visit(CardShard::look).unwrap_or(true) {
                return true;
            }
            if time.is_zero() || self.now().since(began) >= time {
                return false;
            }
            std::hint::spin_loop();
        }
    }

    fn may_note(&self) -> bool {
        false
    }

    fn note(&mut self) {}

    fn log_changes(&mut self) {}
}
