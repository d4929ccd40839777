//! Signals eventfds that hostile clients share, without blocking.
//!
//! A plain write to an eventfd blocks while its counter is full, unless `O_NONBLOCK` is set; but that flag belongs
//! to the open file, and the client can clear it between a check and the write. The kernel itself signals eventfds
//! without blocking (`eventfd_signal`), and Linux AIO offers this to processes: a request names an eventfd to
//! signal when it completes (io_submit(2), `IOCB_FLAG_RESFD`). So an interrupt is a read of no bytes of an empty
//! file, which completes at once and signals the client's eventfd. That is one system call, and another one per
//! 64 interrupts to reap the completions.
//!
//! Where AIO is not available (a seccomp filter, `fs.aio-max-nr`), it is a write after a check of the flag, which
//! leaves that race open; [`EventFdNotifier::is_safe`] then returns false.

use std::os::fd::AsFd;

use super::EventFd;
use super::aio::AioContext;
#[cfg(any(test, feature = "test-support"))]
use super::spare;

/// Notifier that signals eventfds of clients from one thread, without blocking.
#[derive(Debug)]
pub struct EventFdNotifier(Option<AioContext>);

impl EventFdNotifier {
    /// Creates a notifier that cannot block, if the kernel provides AIO.
    #[must_use]
    pub fn new() -> Self {
        #[cfg(any(test, feature = "test-support"))]
        if let Some(spare) = spare::take() {
            return Self(Some(spare));
        }
        Self(AioContext::new())
    }

    /// Has this thread keep the context of its last dropped notifier for its next one.
    #[cfg(any(test, feature = "test-support"))]
    pub fn keep_context_on_this_thread() {
        spare::keep();
        drop(Self::new());
    }

    /// Returns true if no client can make [`EventFdNotifier::signal`] block.
    #[must_use]
    pub fn is_safe(&self) -> bool {
        self.0.is_some()
    }

    /// Adds one to a client's eventfd. A full counter already wakes its reader. An error is ignored: a client that
    /// breaks its own eventfd loses only its own interrupts.
    #[inline]
    pub fn signal(&mut self, event: &EventFd) {
        match &mut self.0 {
            Some(aio) => aio.signal(event.as_fd()),
            None => event.signal(),
        }
    }
}

/// Keeps the kernel's context for the thread's next notifier, if the thread keeps one.
#[cfg(any(test, feature = "test-support"))]
impl Drop for EventFdNotifier {
    fn drop(&mut self) {
        if let Some(context) = self.0.take() {
            spare::give(context);
        }
    }
}

impl Default for EventFdNotifier {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use rustix::event::{EventfdFlags, eventfd};
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

    use super::super::aio::BATCH;
    use super::*;

    const FULL: u64 = u64::MAX - 1;
    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn interrupt_adds_one_to_the_eventfd() {
        let mut notifier = EventFdNotifier::new();
        let event = EventFd::new().unwrap();
        (0..3 * BATCH).for_each(|_| notifier.signal(&event));
        assert_eq!(event.drain(), u64::from(3 * BATCH));
    }

    #[test]
    fn interrupt_wakes_a_reader_of_the_eventfd() {
        let event = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let reader = event.try_clone().unwrap();
        let waits = thread::spawn(move || {
            let mut count = [0; 8];
            rustix::io::read(&reader, &mut count).map(|_| u64::from_ne_bytes(count))
        });
        EventFdNotifier::new().signal(&EventFd(event));
        assert_eq!(waits.join().unwrap().unwrap(), 1);
    }

    /// Needs Linux AIO, because without AIO the notifier checks a client's eventfd before it writes, and the write can
    /// block.
    #[test]
    fn interrupt_to_a_full_blocking_eventfd_does_not_block() {
        let mut notifier = EventFdNotifier::new();
        if !notifier.is_safe() {
            crate::test_support::skipped("interrupts that cannot block", "Linux AIO is not available here");
            return;
        }
        let event = EventFd(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        rustix::io::write(&event, &FULL.to_ne_bytes()).unwrap();
        let (done, waits) = mpsc::channel();
        thread::spawn(move || {
            (0..1_000).for_each(|_| notifier.signal(&event));
            done.send(())
        });
        assert!(waits.recv_timeout(PATIENCE).is_ok(), "the interrupt waited for the client");
    }

    #[test]
    fn client_that_fills_its_eventfd_does_not_block_interrupts() {
        let mut notifier = EventFdNotifier::new();
        if !notifier.is_safe() {
            crate::test_support::skipped("interrupts that cannot block", "Linux AIO is not available here");
            return;
        }
        let theirs = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        let ours = EventFd::adopt(theirs.try_clone().unwrap()).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let client = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let flags = fcntl_getfl(&theirs).unwrap();
                let _ = fcntl_setfl(&theirs, flags | OFlags::NONBLOCK);
                let _ = rustix::io::write(&theirs, &FULL.to_ne_bytes());
                let _ = fcntl_setfl(&theirs, flags - OFlags::NONBLOCK);
            }
        });
        let (done, waits) = mpsc::channel();
        thread::spawn(move || {
            (0..100_000).for_each(|_| notifier.signal(&ours));
            done.send(())
        });
        let waited = waits.recv_timeout(PATIENCE);
        stop.store(true, Ordering::Relaxed);
        client.join().unwrap();
        assert!(waited.is_ok(), "the interrupt waited for the client");
    }

    #[test]
    fn thread_uses_the_context_of_its_last_notifier_again() {
        let context = |notifier: &EventFdNotifier| notifier.0.as_ref().map(|aio| aio.context);
        EventFdNotifier::keep_context_on_this_thread();
        let mut first = EventFdNotifier::new();
        let (used, event) = (context(&first), EventFd::new().unwrap());
        (0..BATCH / 2).for_each(|_| first.signal(&event));
        drop(first);
        let mut next = EventFdNotifier::new();
        assert_eq!(context(&next), used);
        (0..BATCH).for_each(|_| next.signal(&event));
        assert_eq!(event.drain(), u64::from(BATCH / 2 + BATCH));
    }
}
