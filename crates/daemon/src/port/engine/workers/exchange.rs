//! Exchange of a worker's shard between the worker and the port's own thread.
//!
//! The proofs include this file with the locks and atomics of a model checker, which runs it in every order.

use super::shard::CardShard;
use super::sync::{AtomicBool, Condvar, CpuList, Mutex, MutexGuard, Ordering, yield_now};

/// Place where the port's own thread and a worker exchange the worker's shard.
#[derive(Debug)]
pub(super) struct ShardExchange<C> {
    pub(super) state: Mutex<ShardExchangeState<C>>,
    put: Condvar,
    /// True while the port's own thread waits for the shard.
    pub(super) wanted: AtomicBool,
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
// A relative path, because the proofs include this file in another tree.
pub(in super::super::super) struct WorkerFailure;

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
            yield_now();
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
