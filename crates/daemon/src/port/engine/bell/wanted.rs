//! Flag of the bell, and the order of the steps around it.
//!
//! The proofs include this file with the atomics of a model checker, which runs it in every order and under weak
//! memory.

use super::atomic::{AtomicBool, Ordering, fence};

/// Operations of the thread that receives from a ring, used before that thread sleeps. The sender may act between any
/// two of them.
pub(in super::super) trait RingWakeReceiver {
    /// Sets the flag that asks the sender for a wake-up. A memory fence makes the flag visible before any later
    /// operation.
    fn want(&self, wanted: bool);

    /// Returns true if no ring holds a frame for the receiver.
    fn is_empty(&self) -> bool;
}

/// Operations of the thread that sends on a ring, used to wake the receiver.
pub(in super::super) trait RingWakeSender {
    /// Clears the flag by which the receiver asks for a wake-up, and returns its former value. Call it after the
    /// frames were sent.
    fn take_wanted(&self) -> bool;

    /// Wakes the receiver.
    fn ring(&self);
}

/// Prepares the receiver of a ring for sleep. Returns `false` if frames are pending. Later frames ring the bell.
pub(in super::super) fn may_sleep(side: &impl RingWakeReceiver) -> bool {
    side.want(true);
    if side.is_empty() {
        return true;
    }
    side.want(false);
    false
}

/// Wakes the receiver of a ring if it sleeps, after frames were sent.
pub(in super::super) fn announce(side: &impl RingWakeSender) {
    if side.take_wanted() {
        side.ring();
    }
}

/// Flag by which the receiver of a ring asks for a wake-up.
#[derive(Debug)]
pub(super) struct WakeWanted(AtomicBool);

impl WakeWanted {
    pub(super) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    pub(super) fn want(&self, wanted: bool) {
        self.0.store(wanted, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    pub(super) fn take(&self) -> bool {
        fence(Ordering::SeqCst);
        // Loaded first: while no thread sleeps, both sides only read the cache line, which stays shared.
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::Relaxed)
    }
}
