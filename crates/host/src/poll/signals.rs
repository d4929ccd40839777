//! Makes the signals SIGTERM, SIGINT, SIGHUP and SIGUSR2 readable from a file descriptor.
//!
//! While they are readable, SIGXFSZ is ignored: a write beyond the process's file-size limit then fails with EFBIG like one to a
//! full disk, and does not end the process.
//!
//! A handler records the signal and writes to an eventfd. signalfd would need the signals blocked in every thread,
//! and started programs would inherit them blocked.

#![expect(unsafe_code, reason = "installing signal handlers")]

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::eventfd::EventFd;

/// Signal that controls the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessSignal {
    /// SIGTERM: end cleanly.
    Terminate,
    /// SIGINT: end cleanly, requested from the keyboard.
    Interrupt,
    /// SIGHUP: the terminal has closed, or an administrator requests a reload.
    HangUp,
    /// SIGUSR2: hand over to a new process, and end.
    HandOver,
}

impl ProcessSignal {
    const ALL: [Self; 4] = [Self::Terminate, Self::Interrupt, Self::HangUp, Self::HandOver];

    fn number(self) -> libc::c_int {
        match self {
            Self::Terminate => libc::SIGTERM,
            Self::Interrupt => libc::SIGINT,
            Self::HangUp => libc::SIGHUP,
            Self::HandOver => libc::SIGUSR2,
        }
    }
}

/// Set of the signals that arrived since the last call of [`SignalHandlers::take`], each once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalSet(u32);

impl SignalSet {
    /// Returns true if the set has the process signal `signal`.
    #[must_use]
    pub fn contains(self, signal: ProcessSignal) -> bool {
        self.0 & bit(signal.number()) != 0
    }

    /// Returns true if a signal of the set asks the process to end.
    #[must_use]
    pub fn asks_to_end(self) -> bool {
        self.contains(ProcessSignal::Terminate) || self.contains(ProcessSignal::Interrupt)
    }
}

/// True while signal handlers are installed, at most one set per process: the handlers can write to statics only.
static TAKEN: AtomicBool = AtomicBool::new(false);
static PENDING: AtomicU32 = AtomicU32::new(0);
/// Eventfd that the handlers write to. It is never closed: a handler of another thread may still run when the handlers are
/// removed, and would write to whatever has the number next.
static EVENT: OnceLock<EventFd> = OnceLock::new();

/// Installed handlers of the signals that control the process, with SIGXFSZ ignored. Dropping the value restores the previous
/// handlers.
pub struct SignalHandlers {
    event: &'static EventFd,
    /// Previous handlers, each with the number of its signal.
    previous: Vec<(libc::c_int, libc::sigaction)>,
}

impl std::fmt::Debug for SignalHandlers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signals").field("event", &self.event).finish_non_exhaustive()
    }
}

impl SignalHandlers {
    /// Installs the handlers of the signals that control the process, and ignores SIGXFSZ.
    ///
    /// # Errors
    /// `ResourceBusy` if they are installed already; the process is out of descriptors.
    pub fn install() -> io::Result<Self> {
        let event = match EVENT.get() {
            Some(event) => event,
            None => {
                let new = EventFd::new()?;
                EVENT.get_or_init(|| new)
            }
        };
        if TAKEN.swap(true, Ordering::AcqRel) {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        event.drain();
        PENDING.store(0, Ordering::Release);
        let mut signals = Self { event, previous: Vec::new() };
        let control = ProcessSignal::ALL.map(|signal| (signal.number(), on_signal as *const () as usize));
        for (signal, handler) in control.into_iter().chain([(libc::SIGXFSZ, libc::SIG_IGN)]) {
            signals.previous.push((signal, handle(signal, handler)?));
        }
        Ok(signals)
    }

    /// Returns the signals that arrived since the last call, and clears them.
    #[must_use]
    pub fn take(&self) -> SignalSet {
        self.event.drain();
        SignalSet(PENDING.swap(0, Ordering::AcqRel))
    }

    /// Returns the signals that arrived since the last call of [`take`](Self::take), and leaves them to its next call.
    #[must_use]
    pub fn pending(&self) -> SignalSet {
        SignalSet(PENDING.load(Ordering::Acquire))
    }

    /// Adds a signal to those that arrived since the last call of [`take`](Self::take), for a caller that took it too early.
    pub fn put_back(&self, signal: ProcessSignal) {
        on_signal(signal.number());
    }
}

impl AsFd for SignalHandlers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl Drop for SignalHandlers {
    fn drop(&mut self) {
        for (signal, previous) in &self.previous {
            // SAFETY: restores what `sigaction` itself returned.
            unsafe { libc::sigaction(*signal, previous, ptr::null_mut()) };
        }
        TAKEN.store(false, Ordering::Release);
    }
}

/// Installs `handler` for a signal and returns the previous handler.
fn handle(signal: libc::c_int, handler: usize) -> io::Result<libc::sigaction> {
    // SAFETY: all-zero is a valid `sigaction`: default handler, no flags, empty mask.
    let (mut action, mut previous): (libc::sigaction, libc::sigaction) = unsafe { mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: a handler is SIG_IGN or `on_signal`, which takes one argument, as a handler without SA_SIGINFO must, and is
    // async-signal-safe.
    let result = unsafe { libc::sigaction(signal, &raw const action, &raw mut previous) };
    if result == 0 { Ok(previous) } else { Err(io::Error::last_os_error()) }
}

fn bit(signal: libc::c_int) -> u32 {
    1 << signal
}

extern "C" fn on_signal(signal: libc::c_int) {
    PENDING.fetch_or(bit(signal), Ordering::AcqRel);
    let one = 1u64.to_ne_bytes();
    // A read of an atomic, since the eventfd is there before a handler is.
    let event = EVENT.get().map_or(-1, |event| event.as_fd().as_raw_fd());
    // SAFETY: `write` is async-signal-safe; the descriptor is our eventfd, or -1 and refused; errno is restored.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(event, one.as_ptr().cast(), one.len());
        *libc::__errno_location() = errno;
    }
}
