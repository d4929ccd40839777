//! Exchange of a worker's shard between the worker and the port's own thread.

use super::shard::CardShard;
use host::cpus::CpuList;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

/// Place where the port's own thread and a worker exchange the worker's shard.
#[derive(Debug)]
pub(super) struct ShardExchange<C> {
    state: Mutex<ShardExchangeState<C>>,
    put: Condvar,
    /// True while the port's own thread waits for the shard.
    wanted: AtomicBool,
}

#[derive(Debug)]
pub(super) struct ShardExchangeState<C> {
    pub(super) shard: Option<Box<CardShard<C>>>,
    /// Processors that the worker has to run on, if they have changed. An empty set means any.
    cpus: Option<CpuList>,
    ended: bool,
    failed: bool,
}

/// Error: a worker has failed, and its shard is lost.
#[derive(Debug, thiserror::Error)]
#[error("a worker of the port has failed")]
pub(in crate::port) struct WorkerFailure;

impl<C> ShardExchange<C> {
    /// Creates an exchange without a shard.
    pub(super) fn new() -> Self {
        let state = ShardExchangeState { shard: None, cpus: None, ended: false, failed: false };
        Self { state: Mutex::new(state), put: Condvar::new(), wanted: AtomicBool::new(false) }
    }

    /// Puts a shard in, for the worker to run.
    pub(super) fn put(&self, shard: Box<CardShard<C>>) -> Result<(), WorkerFailure> {
        self.state.lock().map_err(|_| WorkerFailure)?.shard = Some(shard);
        self.put.notify_one();
        Ok(())
    }

    /// Asks the worker to end its round and to wait. [`Self::take`] has to follow.
    pub(super) fn want(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// Takes the wanted shard out, once the worker has ended its round.
    pub(super) fn take(&self) -> Result<Option<Box<CardShard<C>>>, WorkerFailure> {
        let locked = self.state.lock();
        self.wanted.store(false, Ordering::Relaxed);
        let mut state = locked.ok().filter(|state| !state.failed).ok_or(WorkerFailure)?;
        Ok(state.shard.take())
    }

    /// Changes the processors that the worker runs on.
    pub(super) fn set_cpus(&self, cpus: CpuList) -> Result<(), WorkerFailure> {
        self.state.lock().map_err(|_| WorkerFailure)?.cpus = Some(cpus);
        self.put.notify_one();
        Ok(())
    }

    /// Ends the worker.
    pub(super) fn end(&self) {
        if let Ok(mut state) = self.state.lock() {
            state.ended = true;
        }
        self.put.notify_one();
    }

    /// Records that the worker has failed.
    pub(super) fn fail(&self) {
        if let Ok(mut state) = self.state.lock() {
            state.failed = true;
        }
    }

    /// Returns the result of `visit` for the shard in the exchange, or `None` if the port's own thread has the shard or waits for
    /// it.
    pub(super) fn visit<R>(&self, visit: impl FnOnce(&mut CardShard<C>) -> R) -> Option<R> {
        if self.wanted.load(Ordering::Relaxed) {
            return None;
        }
        let mut state = self.state.lock().ok()?;
        state.shard.as_deref_mut().map(visit)
    }

    /// Waits until the exchange has a shard, and returns it locked. Returns `None` at the end of the worker.
    pub(super) fn wait(&self) -> Option<MutexGuard<'_, ShardExchangeState<C>>> {
        // The mutex is not fair: without the pause a busy worker would take it again before the port's own thread.
        while self.wanted.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        let mut state = self.state.lock().ok()?;
        loop {
            if state.ended {
                return None;
            }
            if let Some(cpus) = state.cpus.take() {
                // The worker runs on any processor if the kernel refuses. The port's own thread reports that.
                let _ = cpus.pin();
            }
            if state.shard.is_some() {
                return Some(state);
            }
            state = self.put.wait(state).ok()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{OtherWorker, take_shards};
    use super::*;
    use host::poll::Poller;
    use std::sync::{Arc, mpsc};
    use std::time::{Duration, Instant};
    use virtio_nic::Nic;

    fn worker() -> OtherWorker<Nic> {
        let (exchange, poller) = (Arc::new(ShardExchange::new()), Arc::new(Poller::new().unwrap()));
        OtherWorker { exchange, shard: None, poller, thread: None }
    }

    #[test]
    fn workers_end_their_rounds_at_the_same_time() {
        let mut workers = [worker(), worker()];
        let [first, second] = [0, 1].map(|worker: usize| workers[worker].exchange.clone());
        let (begin, begun) = mpsc::channel();
        let round = std::thread::spawn(move || {
            let _round = first.state.lock().unwrap();
            begin.send(()).unwrap();
            let began = Instant::now();
            while !second.wanted.load(Ordering::Relaxed) && began.elapsed() < Duration::from_secs(10) {
                std::thread::yield_now();
            }
            second.wanted.load(Ordering::Relaxed)
        });
        begun.recv().unwrap();
        take_shards(&mut workers).unwrap();
        assert!(round.join().unwrap(), "the second worker was asked only after the first one's round");
        assert!(workers.iter().all(|worker| !worker.exchange.wanted.load(Ordering::Relaxed)));
    }

    #[test]
    fn failure_of_a_worker_leaves_no_other_worker_waiting() {
        let mut workers = [worker(), worker()];
        workers[0].exchange.fail();
        take_shards(&mut workers).unwrap_err();
        assert!(!workers[1].exchange.wanted.load(Ordering::Relaxed));
    }
}
