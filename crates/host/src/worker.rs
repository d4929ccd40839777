//! A thread for work that may take long or be held up by others: mapping and unmapping memory, closing descriptors.
//!
//! `munmap` of a large guest takes seconds, `mmap` waits for it, and the last `close` of a file frees all of its memory,
//! or waits for whatever stands behind the file. A thread that serves many clients hands such work to a [`Worker`] and
//! goes on. Jobs run one after the other, in the order in which they came, so whoever has something unmapped and then
//! mapped has it done in this order.
//!
//! Give every client a worker of its own: the memory of one is then never in the way of another's, and a client whose
//! descriptors cannot be closed holds up nobody else. An idle worker costs a sleeping thread.
//!
//! Left out: what the jobs are, and telling when one is done; a job can do that itself.

use crate::confine::{ConfineError, Prepared};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

type Job = Box<dyn FnOnce() + Send>;

/// The kernel cuts names of threads off here.
const NAME: usize = 15;

/// The thread, as whoever has work for it sees it. Clones give work to the same thread, which ends when the last of them
/// is gone and everything is done. Nobody waits for that.
#[derive(Clone, Debug)]
pub struct Worker {
    jobs: Sender<Job>,
    backlog: Arc<AtomicUsize>,
}

impl Worker {
    /// A new thread with this name, or as much of it as the kernel keeps.
    ///
    /// # Errors
    /// There can be no more threads.
    pub fn start(name: &str) -> io::Result<Self> {
        let (worker, body) = Self::new();
        thread::Builder::new().name(cut(name).to_owned()).spawn(body)?;
        Ok(worker)
    }

    /// A new thread as by [`Worker::start`], which gives up what it does not need before it does anything else.
    ///
    /// # Errors
    /// As [`Prepared::spawn`].
    pub fn start_confined(name: &str, prepared: &Prepared) -> Result<Self, ConfineError> {
        let (worker, body) = Self::new();
        prepared.spawn(cut(name), body)?;
        Ok(worker)
    }

    /// New threads as by [`Worker::start_confined`]. They give up what they do not need side by side: a guest may be
    /// waiting for all of them.
    ///
    /// # Errors
    /// As [`Prepared::spawn`].
    pub fn start_all_confined(names: &[String], prepared: &Prepared) -> Result<Vec<Self>, ConfineError> {
        let start = |name: &String| {
            let (worker, body) = Self::new();
            Ok((worker, prepared.start(cut(name), body)?))
        };
        let started = names.iter().map(start).collect::<Result<Vec<_>, _>>()?;
        started.into_iter().map(|(worker, thread)| thread.wait().map(|_| worker)).collect()
    }

    /// A worker, and what its thread does.
    fn new() -> (Self, impl FnOnce() + Send + 'static) {
        let (jobs, queue) = mpsc::channel();
        let backlog = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&backlog);
        (Self { jobs, backlog }, move || work(&queue, &left))
    }

    /// Has the thread do something. Never waits. The caller bounds how much it asks for; see [`Self::backlog`].
    pub fn run(&self, job: impl FnOnce() + Send + 'static) {
        self.backlog.fetch_add(1, Ordering::Relaxed);
        // The thread is there as long as `self` is.
        let _ = self.jobs.send(Box::new(job));
    }

    /// Has the thread drop something, which may unmap memory or close descriptors.
    pub fn discard(&self, what: impl Send + 'static) {
        self.run(move || drop(what));
    }

    /// A descriptor that the thread closes.
    #[must_use]
    pub fn keep(&self, fd: OwnedFd) -> LateFd {
        LateFd { fd: Some(fd), worker: self.clone() }
    }

    /// Jobs that are not done.
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.backlog.load(Ordering::Relaxed)
    }
}

/// As much of a name as the kernel keeps.
fn cut(name: &str) -> &str {
    name.char_indices().nth(NAME).map_or(name, |(end, _)| &name[..end])
}

fn work(queue: &Receiver<Job>, left: &AtomicUsize) {
    for job in queue {
        // A defect in one job must not take the others with it. The panic was told when it happened.
        let _ = catch_unwind(AssertUnwindSafe(job));
        left.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A descriptor that a client sent, and that a [`Worker`] closes when it is dropped: closing may take long, and what it
/// does is up to the client.
#[derive(Debug)]
pub struct LateFd {
    /// There, until it is taken out or closed.
    fd: Option<OwnedFd>,
    worker: Worker,
}

impl LateFd {
    /// The descriptor, for a job of the worker: whoever has it closes it.
    ///
    /// # Panics
    /// Never: only this takes the descriptor out, and it takes `self`.
    #[must_use]
    pub fn into_inner(mut self) -> OwnedFd {
        self.fd.take().expect("nobody else takes it")
    }
}

impl Drop for LateFd {
    fn drop(&mut self) {
        if let Some(fd) = self.fd.take() {
            self.worker.discard(fd);
        }
    }
}

impl AsFd for LateFd {
    /// # Panics
    /// Never, for the same reason as [`LateFd::into_inner`].
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("nobody takes it from a borrow").as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::{Capabilities, Confinement, Role, Seccomp};
    use std::io::Read;
    use std::time::Duration;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn jobs_are_done_in_order_by_a_thread_of_that_name() {
        let worker = Worker::start("pf0vf3 memory and more").unwrap();
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
    fn confined_workers_have_a_thread_each() {
        let prepared = Confinement { seccomp: Seccomp::On, capabilities: Capabilities::Unchanged };
        let prepared = prepared.prepare(Role::Helper).unwrap();
        let names = ["mem pf0".to_owned(), "mem 0 pf0".to_owned()];
        let workers = Worker::start_all_confined(&names, &prepared).unwrap();
        let (done, seen) = mpsc::channel();
        for worker in &workers {
            let done = done.clone();
            worker.run(move || done.send(thread::current().name().map(str::to_owned)).unwrap());
            assert!(names.contains(&seen.recv_timeout(PATIENCE).unwrap().unwrap()));
        }
        assert_eq!(workers.len(), names.len());
    }

    #[test]
    fn nobody_waits_for_a_job_that_is_held_up() {
        let worker = Worker::start("test").unwrap();
        let (free, held) = mpsc::channel::<()>();
        worker.run(move || assert!(held.recv().is_err()));
        let (mut reader, writer) = io::pipe().unwrap();
        drop(worker.keep(writer.into()));
        assert_eq!(worker.backlog(), 2);
        drop((worker, free));
        assert_eq!(reader.read(&mut [0]).unwrap(), 0, "the descriptor is closed in the end");
    }

    #[test]
    fn a_job_that_panics_is_the_only_one_that_fails() {
        let worker = Worker::start("test").unwrap();
        worker.run(|| panic!("a defect"));
        let (done, seen) = mpsc::channel();
        worker.run(move || done.send(()).unwrap());
        assert_eq!(seen.recv_timeout(PATIENCE), Ok(()));
    }

    #[test]
    fn a_descriptor_that_is_taken_out_stays_open() {
        let worker = Worker::start("test").unwrap();
        let (_reader, writer) = io::pipe().unwrap();
        let fd = worker.keep(writer.into()).into_inner();
        let (done, seen) = mpsc::channel();
        worker.run(move || done.send(()).unwrap());
        seen.recv_timeout(PATIENCE).unwrap();
        assert_eq!(rustix::io::write(&fd, b"x"), Ok(1));
    }
}
