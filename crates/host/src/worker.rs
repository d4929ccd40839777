//! Thread for jobs that may block: mapping and unmapping memory, closing file descriptors.
//!
//! `munmap` of a large guest takes seconds, `mmap` waits for it, and the last `close` of a file frees all of its
//! memory, or waits for its file server. A thread that serves many clients sends such work to a [`BlockingWorker`] and
//! continues. Jobs run one after the other in order, so an unmap that is followed by a map is done in that order.
//!
//! Each client should have its own worker thread: then the memory of one never delays another's, and a client whose
//! descriptors cannot be closed delays only itself. An idle worker costs a sleeping thread.
//!
//! Workers do not report a finished job; a job can do that itself.

use crate::confine::{PreparedSandbox, SandboxError};
use crate::jobs::{WorkerJob, WorkerQueue};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::thread;

pub use crate::jobs::ThreadlessWorkers;

/// Maximum length of a thread's name in bytes; the kernel drops further bytes.
const NAME: usize = 15;

/// Handle of a thread that does jobs which may block. Clones send jobs to the same thread, which ends after the last
/// handle is dropped and every job is done. Dropping does not wait.
#[derive(Clone, Debug)]
pub struct BlockingWorker {
    jobs: Sender<WorkerJob>,
    backlog: Arc<AtomicUsize>,
}

impl BlockingWorker {
    /// Starts a worker thread with this name, shortened to the kernel's limit.
    ///
    /// # Errors
    /// The kernel refuses another thread.
    pub fn start(name: &str) -> io::Result<Self> {
        let (worker, body) = Self::new();
        thread::Builder::new().name(cut(name).to_owned()).spawn(body)?;
        Ok(worker)
    }

    /// Starts a worker thread as [`BlockingWorker::start`] does; the thread gives up the rights in `prepared` first.
    ///
    /// # Errors
    /// Returns the errors of [`PreparedSandbox::spawn`].
    pub fn start_confined(name: &str, prepared: &PreparedSandbox) -> Result<Self, SandboxError> {
        if let Some(workers) = prepared.threadless() {
            return Ok(Self::without_thread(name, workers));
        }
        let (worker, body) = Self::new();
        prepared.spawn(cut(name), body)?;
        Ok(worker)
    }

    /// Starts several worker threads as [`BlockingWorker::start_confined`] does. The threads restrict themselves in
    /// parallel: a guest may be waiting for all of them.
    ///
    /// # Errors
    /// Returns the errors of [`PreparedSandbox::spawn`].
    pub fn start_all_confined(
        names: &[String],
        prepared: &PreparedSandbox,
    ) -> Result<Vec<Self>, SandboxError> {
        if let Some(workers) = prepared.threadless() {
            return Ok(names.iter().map(|name| Self::without_thread(name, workers)).collect());
        }
        let start = |name: &String| {
            let (worker, body) = Self::new();
            Ok((worker, prepared.start(cut(name), body)?))
        };
        let started = names.iter().map(start).collect::<Result<Vec<_>, _>>()?;
        started.into_iter().map(|(worker, thread)| thread.wait().map(|_| worker)).collect()
    }

    /// Returns a worker without a thread if `prepared` is a simulation's. For a thread that waits for more than its jobs.
    #[must_use]
    pub fn of_simulation(name: &str, prepared: &PreparedSandbox) -> Option<Self> {
        prepared.threadless().map(|workers| Self::without_thread(name, workers))
    }

    /// Creates the handle of a worker thread, and the function that the worker's thread runs.
    fn new() -> (Self, impl FnOnce() + Send + 'static) {
        let (worker, queue) = Self::with_queue();
        (worker, move || queue.run_all())
    }

    fn with_queue() -> (Self, WorkerQueue) {
        let (jobs, queue) = WorkerQueue::new();
        let backlog = queue.left();
        (Self { jobs, backlog }, queue)
    }

    /// Adds a worker to `workers`, which run its jobs.
    fn without_thread(name: &str, workers: &ThreadlessWorkers) -> Self {
        let (worker, queue) = Self::with_queue();
        workers.add(name, queue);
        worker
    }

    /// Sends a job to the worker's thread, which may block. The call itself never blocks. The caller bounds the number
    /// of pending jobs; see [`Self::backlog`].
    pub fn run(&self, job: impl FnOnce() + Send + 'static) {
        self.backlog.fetch_add(1, Ordering::Relaxed);
        // The thread runs as long as `self` exists.
        let _ = self.jobs.send(Box::new(job));
    }

    /// Makes the worker's thread drop a value, which may unmap memory or close file descriptors.
    pub fn discard(&self, what: impl Send + 'static) {
        self.run(move || drop(what));
    }

    /// Wraps a client's file descriptor, so that the worker's thread closes it.
    #[must_use]
    pub fn keep(&self, fd: OwnedFd) -> DeferredCloseFd {
        DeferredCloseFd { fd: Some(fd), worker: self.clone() }
    }

    /// Returns the number of jobs that the worker's thread has not finished.
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.backlog.load(Ordering::Relaxed)
    }
}

/// Shortens a thread's name to the maximum length that the kernel stores.
fn cut(name: &str) -> &str {
    name.char_indices().nth(NAME).map_or(name, |(end, _)| &name[..end])
}

/// Client's file descriptor that a [`BlockingWorker`] closes on drop: closing may block, depending on the client's
/// file.
#[derive(Debug)]
pub struct DeferredCloseFd {
    /// File descriptor that the worker's thread closes; `None` after it was taken or closed.
    fd: Option<OwnedFd>,
    worker: BlockingWorker,
}

impl DeferredCloseFd {
    /// Returns the wrapped file descriptor for a job of the worker thread, which closes it.
    ///
    /// # Panics
    /// Never: only this function takes the descriptor, and it consumes `self`.
    #[must_use]
    pub fn into_inner(mut self) -> OwnedFd {
        self.fd.take().expect("the worker's descriptor is taken only once, by into_inner or drop")
    }
}

impl Drop for DeferredCloseFd {
    fn drop(&mut self) {
        if let Some(fd) = self.fd.take() {
            self.worker.discard(fd);
        }
    }
}

impl AsFd for DeferredCloseFd {
    /// Returns the file descriptor that the worker's thread will close.
    ///
    /// # Panics
    /// Never, for the same reason as [`DeferredCloseFd::into_inner`].
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("the worker's descriptor is taken only once, by into_inner or drop").as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::{SeccompMode, ThreadCapabilities, ThreadRole, ThreadSandbox};
    use std::io::Read;
    use std::sync::mpsc;
    use std::time::Duration;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn worker_runs_jobs_in_order_on_a_named_thread() {
        let worker = BlockingWorker::start("pf0vf3 memory and more").unwrap();
        let (done, seen) = mpsc::channel();
        for number in 0..100 {
            let done = done.clone();
            worker.run(move || done.send((number, thread::current().name().map(str::to_owned))).unwrap());
        }
        drop(done);
        let seen: Vec<_> = seen.iter().collect();
        let expected = (0..100).map(|number| (number, Some("pf0vf3 memory a".to_owned())));
        assert_eq!(seen, expected.collect::<Vec<_>>());
    }

    #[test]
    fn each_confined_worker_has_its_own_thread() {
        let prepared =
            ThreadSandbox { seccomp: SeccompMode::On, capabilities: ThreadCapabilities::Unchanged };
        let prepared = prepared.prepare(ThreadRole::Helper).unwrap();
        let names = ["mem pf0".to_owned(), "mem 0 pf0".to_owned()];
        let workers = BlockingWorker::start_all_confined(&names, &prepared).unwrap();
        let (done, seen) = mpsc::channel();
        for worker in &workers {
            let done = done.clone();
            worker.run(move || done.send(thread::current().name().map(str::to_owned)).unwrap());
            assert!(names.contains(&seen.recv_timeout(PATIENCE).unwrap().unwrap()));
        }
        assert_eq!(workers.len(), names.len());
    }

    #[test]
    fn blocked_job_of_a_worker_does_not_block_its_sender() {
        let worker = BlockingWorker::start("test").unwrap();
        let (free, held) = mpsc::channel::<()>();
        worker.run(move || assert!(held.recv().is_err()));
        let (mut reader, writer) = io::pipe().unwrap();
        drop(worker.keep(writer.into()));
        assert_eq!(worker.backlog(), 2);
        drop((worker, free));
        assert_eq!(reader.read(&mut [0]).unwrap(), 0, "the descriptor is closed in the end");
    }

    #[test]
    fn panic_in_a_worker_job_does_not_stop_later_jobs() {
        let worker = BlockingWorker::start("test").unwrap();
        worker.run(|| panic!("a defect"));
        let (done, seen) = mpsc::channel();
        worker.run(move || done.send(()).unwrap());
        assert_eq!(seen.recv_timeout(PATIENCE), Ok(()));
    }

    #[test]
    fn threadless_workers_run_jobs_on_the_callers_thread() {
        let prepared =
            ThreadSandbox { seccomp: SeccompMode::Off, capabilities: ThreadCapabilities::Unchanged };
        let workers = ThreadlessWorkers::default();
        let prepared = prepared.prepare(ThreadRole::Helper).unwrap().without_threads(&workers);
        let two = BlockingWorker::start_all_confined(&["a".to_owned(), "b".to_owned()], &prepared).unwrap();
        let (done, seen) = mpsc::channel();
        for (number, worker) in [(1, &two[1]), (2, &two[1]), (3, &two[0])] {
            let done = done.clone();
            worker.run(move || done.send(number).unwrap());
        }
        assert_eq!(workers.busy(), [0, 1]);
        assert_eq!((workers.place_of("b"), workers.backlog_of(1)), (Some(1), 2));
        for place in [1, 0] {
            workers.run_next(place).expect("no job panics");
        }
        assert_eq!((workers.busy(), two[1].backlog()), (vec![1], 1));
        workers.kill();
        drop(done);
        assert_eq!(seen.iter().collect::<Vec<_>>(), [1, 3], "the job of a killed worker never runs");
    }

    #[test]
    fn descriptor_taken_back_from_a_worker_stays_open() {
        let worker = BlockingWorker::start("test").unwrap();
        let (_reader, writer) = io::pipe().unwrap();
        let fd = worker.keep(writer.into()).into_inner();
        let (done, seen) = mpsc::channel();
        worker.run(move || done.send(()).unwrap());
        seen.recv_timeout(PATIENCE).unwrap();
        assert_eq!(rustix::io::write(&fd, b"x"), Ok(1));
    }
}
