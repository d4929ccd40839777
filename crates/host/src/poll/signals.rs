//! SIGTERM, SIGINT, SIGHUP and SIGUSR2 as something to wait for.
//!
//! A handler notes the signal and writes to an eventfd. Not signalfd: that needs the signals blocked in every
//! thread, and programs we start would inherit them blocked. Left out: every other signal.

#![expect(unsafe_code, reason = "installing signal handlers")]

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use crate::eventfd::EventFd;

/// A signal that asks something of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM: end cleanly.
    Terminate,
    /// SIGINT: end cleanly, asked from the keyboard.
    Interrupt,
    /// SIGHUP: the terminal is gone, or what the process makes of it.
    HangUp,
    /// SIGUSR2: set everything aside for a successor, and end.
    HandOver,
}

impl Signal {
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

/// Signals that arrived since the last look; how often is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalSet(u32);

impl SignalSet {
    /// Whether `signal` arrived.
    #[must_use]
    pub fn contains(self, signal: Signal) -> bool {
        self.0 & bit(signal.number()) != 0
    }

    /// Whether the process is asked to end.
    #[must_use]
    pub fn asks_to_end(self) -> bool {
        self.contains(Signal::Terminate) || self.contains(Signal::Interrupt)
    }
}

/// One per process: the handlers have nothing but statics to write to.
static TAKEN: AtomicBool = AtomicBool::new(false);
static PENDING: AtomicU32 = AtomicU32::new(0);
static EVENT: AtomicI32 = AtomicI32::new(-1);

/// Catches the signals as long as it lives; afterwards they do what they did before.
pub struct Signals {
    event: EventFd,
    previous: Vec<(Signal, libc::sigaction)>,
}

impl std::fmt::Debug for Signals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signals").field("event", &self.event).finish_non_exhaustive()
    }
}

impl Signals {
    /// Installs the handlers.
    ///
    /// # Errors
    /// `ResourceBusy` if they are installed already; out of descriptors.
    pub fn install() -> io::Result<Self> {
        let event = EventFd::new()?;
        if TAKEN.swap(true, Ordering::AcqRel) {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        PENDING.store(0, Ordering::Release);
        EVENT.store(event.as_fd().as_raw_fd(), Ordering::Release);
        let mut signals = Self { event, previous: Vec::with_capacity(Signal::ALL.len()) };
        for signal in Signal::ALL {
            let previous = handle(signal, on_signal as *const () as usize)?;
            signals.previous.push((signal, previous));
        }
        Ok(signals)
    }

    /// Takes what arrived, leaving nothing; readable again with the next signal.
    #[must_use]
    pub fn take(&self) -> SignalSet {
        self.event.drain();
        SignalSet(PENDING.swap(0, Ordering::AcqRel))
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (signal, previous) in &self.previous {
            // SAFETY: puts back what `sigaction` itself returned.
            unsafe { libc::sigaction(signal.number(), previous, ptr::null_mut()) };
        }
        EVENT.store(-1, Ordering::Release);
        TAKEN.store(false, Ordering::Release);
    }
}

/// Installs `handler` and returns what was installed before.
fn handle(signal: Signal, handler: usize) -> io::Result<libc::sigaction> {
    // SAFETY: all-zero is a valid `sigaction`: default handler, no flags, empty mask.
    let (mut action, mut previous): (libc::sigaction, libc::sigaction) = unsafe { mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: `on_signal` takes one argument, as a handler without SA_SIGINFO must, and is async-signal-safe.
    let result = unsafe { libc::sigaction(signal.number(), &raw const action, &raw mut previous) };
    if result == 0 { Ok(previous) } else { Err(io::Error::last_os_error()) }
}

fn bit(signal: libc::c_int) -> u32 {
    1 << signal
}

extern "C" fn on_signal(signal: libc::c_int) {
    PENDING.fetch_or(bit(signal), Ordering::AcqRel);
    let one = 1u64.to_ne_bytes();
    // SAFETY: `write` is async-signal-safe; the descriptor is our eventfd, or -1 and refused; errno is put
    // back.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(EVENT.load(Ordering::Acquire), one.as_ptr().cast(), one.len());
        *libc::__errno_location() = errno;
    }
}
