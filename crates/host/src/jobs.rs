//! Queues of jobs that may block. A [`worker`](crate::worker)'s thread runs its queue; in a simulation no thread does, and the
//! simulation runs the jobs of all workers itself.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Job of a worker, which may block.
pub(crate) type WorkerJob = Box<dyn FnOnce() + Send>;

/// Pending jobs of one worker.
#[derive(Debug)]
pub(crate) struct WorkerQueue {
    jobs: Receiver<WorkerJob>,
    left: Arc<AtomicUsize>,
}

impl WorkerQueue {
    /// Creates the queue of a worker's jobs, and its sending end.
    pub(crate) fn new() -> (Sender<WorkerJob>, Self) {
        let (sender, jobs) = mpsc::channel();
        (sender, Self { jobs, left: Arc::default() })
    }

    /// Returns the number of unfinished jobs, which the worker's handles count up.
    pub(crate) fn left(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.left)
    }

    /// Runs jobs until every handle of the worker is dropped.
    pub(crate) fn run_all(&self) {
        // A panic in one job must not stop later ones. The panic was reported when it happened.
        self.jobs.iter().for_each(|job| _ = run_job(job, &self.left));
    }
}

/// Runs a job. Returns the panic by which it has ended, if any.
fn run_job(job: WorkerJob, left: &AtomicUsize) -> thread::Result<()> {
    let ended = catch_unwind(AssertUnwindSafe(job));
    left.fetch_sub(1, Ordering::Relaxed);
    ended
}

/// Workers without threads, for a simulation: it runs their jobs one at a time, in an order of its choice.
#[derive(Clone, Debug, Default)]
pub struct ThreadlessWorkers(Arc<Mutex<Vec<NamedQueue>>>);

/// Queue of a worker without a thread.
#[derive(Debug)]
struct NamedQueue {
    /// Name that the worker's thread would have.
    name: String,
    queue: WorkerQueue,
}

impl ThreadlessWorkers {
    pub(crate) fn add(&self, name: &str, queue: WorkerQueue) {
        self.queues().push(NamedQueue { name: name.to_owned(), queue });
    }

    /// Returns the place of the worker whose thread would have this name.
    #[must_use]
    pub fn place_of(&self, name: &str) -> Option<usize> {
        self.queues().iter().position(|worker| worker.name == name)
    }

    /// Returns the number of unfinished jobs of the worker at a place.
    #[must_use]
    pub fn backlog_of(&self, place: usize) -> usize {
        self.queues().get(place).map_or(0, |worker| worker.queue.left.load(Ordering::Relaxed))
    }

    /// Returns the places of the workers that have a job, in the order in which the workers were started.
    #[must_use]
    pub fn busy(&self) -> Vec<usize> {
        let busy = |(place, worker): (usize, &NamedQueue)| {
            (worker.queue.left.load(Ordering::Relaxed) > 0).then_some(place)
        };
        self.queues().iter().enumerate().filter_map(busy).collect()
    }

    /// Returns the largest number of unfinished jobs of one worker.
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.queues().iter().map(|worker| worker.queue.left.load(Ordering::Relaxed)).max().unwrap_or(0)
    }

    /// Runs the next job of the worker at a place of [`Self::busy`].
    ///
    /// # Errors
    /// Returns the panic by which the job has ended.
    pub fn run_next(&self, place: usize) -> thread::Result<()> {
        let taken = self
            .queues()
            .get(place)
            .and_then(|worker| Some((worker.queue.jobs.try_recv().ok()?, Arc::clone(&worker.queue.left))));
        // Without the lock, since the job may give jobs to other workers.
        taken.map_or(Ok(()), |(job, left)| run_job(job, &left))
    }

    /// Ends all workers. Their jobs are dropped, as when their process is killed.
    pub fn kill(&self) {
        let queues = std::mem::take(&mut *self.queues());
        drop(queues);
    }

    fn queues(&self) -> MutexGuard<'_, Vec<NamedQueue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
