//! Context of Linux AIO, whose requests signal eventfds without blocking.

#![expect(unsafe_code, reason = "Linux AIO has no safe wrapper")]

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;

use rustix::fs::{MemfdFlags, memfd_create};

/// Maximum number of AIO completions that are collected at once: half of the context's capacity.
pub(super) const BATCH: u32 = 64;
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

/// Context of Linux AIO in the kernel, and what its requests need.
#[derive(Debug)]
pub(super) struct AioContext {
    /// Number by which the kernel knows the context.
    pub(super) context: libc::c_ulong,
    /// Empty file that the asynchronous requests read.
    empty: OwnedFd,
    /// Number of asynchronous requests since completions were last collected.
    pending: u32,
}

impl AioContext {
    /// Creates a context. Returns `None` if the kernel refuses one.
    pub(super) fn new() -> Option<Self> {
        let empty = memfd_create("softiov-empty", MemfdFlags::CLOEXEC).ok()?;
        let mut context: libc::c_ulong = 0;
        // SAFETY: io_setup(2) writes the context's id through the pointer, which is valid for that, and nothing else.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, 2 * BATCH, &raw mut context) };
        (made == 0).then_some(Self { context, empty, pending: 0 })
    }

    /// Adds one to an eventfd. Never blocks.
    #[inline]
    pub(super) fn signal(&mut self, event: BorrowedFd<'_>) {
        let mut request = AioRequest {
            opcode: PREAD,
            file: self.empty.as_raw_fd().unsigned_abs(),
            flags: RESFD,
            result_fd: event.as_raw_fd().unsigned_abs(),
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
    pub(super) fn reap(&mut self) {
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
