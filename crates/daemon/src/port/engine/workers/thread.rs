//! Thread of a worker: runs the shard that the port's own thread has put into its exchange, and sleeps until a kick, a
//! frame in a trunk, or a deadline.

use super::divisible::DivisibleCard;
use super::exchange::ShardExchange;
use super::trunk::SharedTrunkState;
use super::waiting::WaitingWorker;
use crate::clock::{HostClock, TimeSource};
use crate::config::file::DoorbellMode;
use crate::port::tokens;
use crate::port::waiting::PollingNapBackoff;
use host::poll::{PollInterest, Poller};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Worker, before its thread runs.
pub(super) struct Worker<C> {
    /// Number of the worker, at least 1. Worker 0 is the port's own thread.
    number: usize,
    exchange: Arc<ShardExchange<C>>,
    shared: Arc<SharedTrunkState>,
    poller: Poller,
    /// Doorbell mode of the port.
    wait: DoorbellMode,
}

impl<C: DivisibleCard> Worker<C> {
    /// Creates a worker, and returns it with a second poller that shares the worker's file descriptors.
    pub(super) fn new(
        number: usize,
        wait: DoorbellMode,
        exchange: Arc<ShardExchange<C>>,
        shared: Arc<SharedTrunkState>,
    ) -> io::Result<(Self, Poller)> {
        let poller = Poller::new()?;
        poller.add(shared.bells[number].waker(), tokens::WAKER, PollInterest::READ)?;
        let same = poller.same()?;
        Ok((Self { number, exchange, shared, poller, wait }, same))
    }

    /// Runs the worker until [`ShardExchange::end`].
    pub(super) fn run(mut self) {
        host::poll::wake_in_time();
        let (mut naps, mut kicks) = (PollingNapBackoff::default(), Vec::new());
        loop {
            let timeout = {
                let Some(mut state) = self.exchange.wait() else { return };
                let Some(shard) = &mut state.shard else { continue };
                kicks.drain(..).for_each(|(vf, ring)| shard.kick(vf, ring));
                let began = HostClock.now();
                let outcome = shard.round(began);
                let ended = HostClock.now();
                shard.busy += ended.since(began);
                if outcome.more || !shard.receiver.are_empty() {
                    Some(Duration::ZERO)
                } else {
                    outcome.deadline.map(|deadline| deadline.since(ended))
                }
            };
            let mut waiting = WaitingWorker {
                poller: &mut self.poller,
                bell: self.shared.bells[self.number].waker(),
                exchange: &self.exchange,
                wait: self.wait,
                kicks: &mut kicks,
            };
            if let Err(error) = naps.pass(&mut waiting, timeout) {
                tracing::error!(worker = self.number, %error, "cannot wait for kicks; the port fails");
                return self.exchange.fail();
            }
        }
    }
}
