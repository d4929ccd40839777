//! Signals eventfds that hostile clients share, without blocking.
//!
//! A plain write to an eventfd blocks while its counter is full, unless `O_NONBLOCK` is set; but that flag belongs
//! to the open file, and the client can clear it between a check and the write. The kernel itself signals eventfds
//! without blocking (`eventfd_signal`), and Linux AIO offers this to processes: a request names an eventfd to
//! signal when it completes (io_submit(2), `IOCB_FLAG_RESFD`). So an interrupt is a read of no bytes of an empty
//! file, which completes at once and signals the client's eventfd. That is one system call, and another one per
//! [`BATCH`] to reap the completions.
//!
//! Where AIO is not available (a seccomp filter, `fs.aio-max-nr`), it is a write after a check of the flag, which
//! leaves that race open; [`EventFdNotifier::is_safe`] then returns false.

#![expect(unsafe_code, reason = "Linux AIO has no safe wrapper")]

#[cfg(any(test, feature = "test-support"))]
mod spare;

use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use rustix::fs::{MemfdFlags, memfd_create};

use super::EventFd;

/// Maximum number of AIO completions that are collected at once: half of the context's capacity.
const BATCH: u32 = 64;
/// AIO command of a read (`IOCB_CMD_PREAD`, linux/aio_abi.h).
const PREAD: u16 = 0;
/// AIO flag that a completion signals an eventfd (`IOCB_FLAG_RESFD`, linux/aio_abi.h).
const RESFD: u32 = 1;

/// Asynchronous I/O request, `struct iocb` of linux/aio_abi.h on a little-endian machine.
#[derive(Debug, Default)]
#[repr(C)]
struct AioRequest {
    data: u64,
    key: u32,
    rw_flags: u32,
    opcode: u16,
    priority: i16,
    file: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    result_fd: u32,
}

/// Completion of an asynchronous I/O request, `struct io_event` of linux/aio_abi.h.
#[derive(Debug, Default, Clone, Copy)]
#[repr(C)]
struct AioCompletion {
    data: u64,
    object: u64,
    result: i64,
    result2: i64,
}

/// Notifier that signals eventfds of clients from one thread, without blocking.
#[derive(Debug)]
pub struct EventFdNotifier(Option<AioContext>);

#[derive(Debug)]
struct AioContext {
    context: libc::c_ulong,
    /// Empty file that the asynchronous requests read.
    empty: OwnedFd,
    /// Number of asynchronous requests since completions were last collected.
    pending: u32,
}

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
            Some(aio) => aio.signal(event),
            None => event.signal(),
        }
    }
}

impl Default for EventFdNotifier {
    fn default() -> Self {
        Self::new()
    }
}

impl AioContext {
    fn new() -> Option<Self> {
        let empty = memfd_create("softiov-empty", MemfdFlags::CLOEXEC).ok()?;
        let mut context: libc::c_ulong = 0;
        // SAFETY: io_setup(2) writes the context's id through the pointer, which is valid for that, and nothing else.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, 2 * BATCH, &raw mut context) };
        (made == 0).then_some(Self { context, empty, pending: 0 })
    }

    fn signal(&mut self, event: &EventFd) {
        let mut request = AioRequest {
            opcode: PREAD,
            file: self.empty.as_raw_fd().unsigned_abs(),
            flags: RESFD,
            result_fd: event.0.as_raw_fd().unsigned_abs(),
            ..AioRequest::default()
        };
        let full = self.pending == BATCH;
        // The context holds twice as many completions as a batch. If it is full even so, the interrupt falls back
        // to a write.
        if full {
            self.reap();
        }
        if !self.submit(&mut request) && !full {
            self.reap();
            self.submit(&mut request);
        }
        self.pending += 1;
    }

    /// Submits an asynchronous I/O request. Returns true if the kernel accepted it.
    fn submit(&self, request: &mut AioRequest) -> bool {
        let mut list = [ptr::from_mut(request)];
        // SAFETY: the list has one pointer to a request, which io_submit(2) reads before it returns; the request is for
        // no bytes, so that no buffer is touched then or later.
        let taken = unsafe { libc::syscall(libc::SYS_io_submit, self.context, 1, list.as_mut_ptr()) };
        taken == 1
    }

    /// Collects the completions of finished asynchronous requests.
    fn reap(&mut self) {
        let mut events = [AioCompletion::default(); BATCH as usize];
        let no_time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let (room, none) = (events.len(), ptr::from_ref(&no_time));
        // SAFETY: io_getevents(2) writes at most `room` events to the array, which holds that many, and reads the time.
        unsafe { libc::syscall(libc::SYS_io_getevents, self.context, 0, room, events.as_mut_ptr(), none) };
        self.pending = 0;
    }
}

impl Drop for AioContext {
    fn drop(&mut self) {
        // SAFETY: the context is ours and is not used again; no request of it has a buffer.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
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
}
