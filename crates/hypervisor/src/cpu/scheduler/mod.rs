//! Who runs next on a thread: the seam, and the schedulers there are. Times are cycles of the machine's clock. Left out:
//! caps, and domains of several virtual CPUs that must run together.
//!
//! | module | who goes first |
//! |---|---|
//! | [`RoundRobin`] | whoever has waited longest; nobody is interrupted in a step |
//! | [`Credit`] | whoever has credits left; who wakes with credits, or has a real-time class, takes the thread at once |

mod credit;
mod round_robin;
#[cfg(test)]
mod tests;

pub use credit::{Clocks, Credit, Priority};
pub use round_robin::RoundRobin;

use core::fmt::Debug;

use super::{ThreadId, VcpuId};

/// What a virtual CPU is entitled to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Its part of contended time, in relation to others'.
    pub weight: u16,
    /// It goes before all others when its device wakes it.
    pub real_time: bool,
    /// Threads that it may run on, a bit each, beside the one it begins on.
    pub affinity: u64,
}

impl Default for Share {
    /// Xen's weight, pinned.
    fn default() -> Share {
        Share { weight: 256, real_time: false, affinity: 0 }
    }
}

/// Decides who runs next on each thread. A virtual CPU that runs is in nobody's queue.
pub trait Scheduler: Debug {
    /// The machine has one more thread.
    fn add_thread(&mut self);

    /// There is one more virtual CPU, which begins on that thread.
    fn add_vcpu(&mut self, thread: ThreadId, vcpu: VcpuId, share: Share);

    /// The thread on which a virtual CPU that wakes is to wait, if not `home`.
    fn place(&self, home: ThreadId, vcpu: VcpuId, is_idle: impl Fn(ThreadId) -> bool) -> ThreadId {
        let _ = (vcpu, is_idle);
        home
    }

    /// `vcpu` was blocked and is ready now.
    fn woken(&mut self, thread: ThreadId, vcpu: VcpuId);

    /// `vcpu` ran for `cycles` and is ready to go on. It was interrupted if `cut`, and has to wait its turn.
    fn continues(&mut self, thread: ThreadId, vcpu: VcpuId, cycles: u64, cut: bool);

    /// `vcpu` ran for `cycles` and blocked.
    fn blocked(&mut self, thread: ThreadId, vcpu: VcpuId, cycles: u64);

    /// Takes the one to run from `now` on, if any is ready; it may have waited on another thread.
    fn pick(&mut self, thread: ThreadId, now: u64) -> Option<VcpuId>;

    /// Whether any is ready.
    fn has_ready(&self, thread: ThreadId) -> bool;

    /// Whether who runs on a thread has to leave it in the middle of a step.
    fn cuts(&self, thread: ThreadId, running: VcpuId) -> bool {
        let _ = (thread, running);
        false
    }

    /// Whether an idle thread could take one from another.
    fn could_steal(&self, thread: ThreadId) -> bool {
        let _ = thread;
        false
    }

    /// When the scheduler is to be told of the time next, if it measures time.
    fn due(&self) -> Option<u64> {
        None
    }

    /// It is `now`, and `running` says who runs on a thread.
    fn time(&mut self, now: u64, running: impl Fn(ThreadId) -> Option<VcpuId>) {
        let _ = (now, running);
    }
}

/// The schedulers there are.
#[derive(Debug)]
pub enum Policy {
    /// [`RoundRobin`].
    RoundRobin(RoundRobin),
    /// [`Credit`].
    Credit(Credit),
}

/// Has whichever it is do it.
macro_rules! either {
    ($policy:expr, $found:ident => $does:expr) => {
        match $policy {
            Policy::RoundRobin($found) => $does,
            Policy::Credit($found) => $does,
        }
    };
}

impl Scheduler for Policy {
    fn add_thread(&mut self) {
        either!(self, found => found.add_thread());
    }

    fn add_vcpu(&mut self, thread: ThreadId, vcpu: VcpuId, share: Share) {
        either!(self, found => found.add_vcpu(thread, vcpu, share));
    }

    fn place(&self, home: ThreadId, vcpu: VcpuId, is_idle: impl Fn(ThreadId) -> bool) -> ThreadId {
        either!(self, found => found.place(home, vcpu, is_idle))
    }

    fn woken(&mut self, thread: ThreadId, vcpu: VcpuId) {
        either!(self, found => found.woken(thread, vcpu));
    }

    fn continues(&mut self, thread: ThreadId, vcpu: VcpuId, cycles: u64, cut: bool) {
        either!(self, found => found.continues(thread, vcpu, cycles, cut));
    }

    fn blocked(&mut self, thread: ThreadId, vcpu: VcpuId, cycles: u64) {
        either!(self, found => found.blocked(thread, vcpu, cycles));
    }

    fn pick(&mut self, thread: ThreadId, now: u64) -> Option<VcpuId> {
        either!(self, found => found.pick(thread, now))
    }

    fn has_ready(&self, thread: ThreadId) -> bool {
        either!(self, found => found.has_ready(thread))
    }

    fn cuts(&self, thread: ThreadId, running: VcpuId) -> bool {
        either!(self, found => found.cuts(thread, running))
    }

    fn could_steal(&self, thread: ThreadId) -> bool {
        either!(self, found => found.could_steal(thread))
    }

    fn due(&self) -> Option<u64> {
        either!(self, found => found.due())
    }

    fn time(&mut self, now: u64, running: impl Fn(ThreadId) -> Option<VcpuId>) {
        either!(self, found => found.time(now, running));
    }
}
