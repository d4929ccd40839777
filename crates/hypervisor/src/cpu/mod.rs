//! The processors: cores of sibling threads, virtual CPUs on threads, and who runs for how long. Left out: what runs, and
//! frequency changes.
//!
//! # Run to completion
//!
//! A thread runs one step of one virtual CPU at a time. The world that owns the machine executes the step at
//! its beginning and charges cycles while it does; the thread is then busy for that long. So a step's effects
//! are seen from its beginning on ([`Step::now`] says how far into it one is, for whoever must be exact), and
//! steps should be short: a poll, an interrupt handler, a system call.
//!
//! # The conversation
//!
//! The machine has no clock and no events. It asks its world to come by: a [`Visit`] is a thread and an instant,
//! and the world must call [`Machine::visit`] for that thread at that instant. A thread never has more than one
//! visit outstanding.
//!
//! 1. [`Machine::wake`] makes a virtual CPU ready; it answers with a visit unless one is outstanding.
//! 2. [`Machine::visit`] answers [`Next::Run`] with a [`Step`]: execute it, then call [`Machine::finish`]; or
//!    [`Next::Later`] with another visit: interrupts made the step longer; or [`Next::Idle`].
//! 3. [`Machine::finish`] says whether the virtual CPU goes on or blocks, and answers with a visit.
//! 4. [`Machine::steal`] is what happens in between: the hypervisor takes an interrupt on a thread, whatever
//!    runs there.
//!
//! A virtual CPU that is woken while its step runs does not block at the end of it: no wake-up is lost.
//!
//! # Time and preemption
//!
//! A scheduler that measures time says when it wants to be told of it ([`Machine::due`]), and the world calls
//! [`Machine::time`] then. It may have a step cut: the virtual CPU waits its turn and does the rest of the step later. Its
//! domain has paid for all of it, so the rest counts as ahead of the clock until it is done. What the step did, it did at
//! its beginning; a program that must know when its work is over looks at the beginning of its next step.
//!
//! # Contention
//!
//! If, when a step (or stolen work) begins, a sibling thread is busy or has something ready, every cycle of
//! work takes `contention_permille` thousandths of a cycle. The state at the beginning counts for all of it:
//! when steps of the two threads begin independently of each other that is right on average, and it makes no
//! step depend on later ones. Remainders are carried by the thread, so nothing is lost.
//!
//! # Time
//!
//! Threads count in cycles of one clock since the beginning, and instants are converted at the seam, so
//! accounting is exact; see [`sim::Frequency`].

pub mod cache;
pub mod machine;
mod preemption;
pub mod scheduler;
pub mod step;
#[cfg(test)]
mod tests;
mod thread;

pub use cache::{BufferRing, LastLevelCache};
pub use machine::{Config, Machine, Next, Visit};
pub use scheduler::{Clocks, Credit, Policy, Priority, RoundRobin, Scheduler, Share};
pub use step::{Step, Then};

/// A hardware thread: thread `s` of core `c` has the number `c * threads_per_core + s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(u16);

/// A virtual CPU, in the order they were added to the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VcpuId(u16);

impl ThreadId {
    /// Thread number `index`; the machine may have fewer.
    pub const fn new(index: u16) -> ThreadId {
        ThreadId(index)
    }

    /// Its number.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl VcpuId {
    /// Its number.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
