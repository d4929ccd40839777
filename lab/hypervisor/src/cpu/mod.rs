//! The modelled processors: cores with sibling threads, virtual CPUs on threads, and scheduling. Frequency changes are
//! not modelled.
//!
//! # Run to completion
//!
//! A thread runs one step of one virtual CPU at a time. The caller executes the step at its beginning and
//! charges cycles; the thread is then busy for that long. A step's effects are therefore visible from its
//! beginning ([`VcpuStep::now`] gives the exact time within it), and steps should be short: a poll, an interrupt
//! handler, a system call.
//!
//! # Protocol
//!
//! The machine has no clock and no event queue. It asks its caller for visits: a [`ScheduledThreadVisit`] names a thread and
//! an instant, and the caller must call [`HostMachine::visit`] for that thread at that instant. A thread has at
//! most one outstanding visit.
//!
//! 1. [`HostMachine::wake`] makes a virtual CPU ready, and returns a visit unless one is outstanding.
//! 2. [`HostMachine::visit`] returns [`HardwareThreadAction::Run`] with a [`VcpuStep`]: execute it, then call
//!    [`HostMachine::finish`]. It returns [`HardwareThreadAction::Later`] with another visit if interrupts prolonged the
//!    step, or [`HardwareThreadAction::Idle`].
//! 3. [`HostMachine::finish`] ends the step, after which the virtual CPU continues or blocks, and returns a visit.
//! 4. [`HostMachine::steal`] may be called in between: the hypervisor takes an interrupt on a thread, whatever
//!    runs there.
//!
//! A virtual CPU woken while its step runs does not block at the end of the step, so no wake-up is lost.
//!
//! # Time and preemption
//!
//! A scheduler that measures time returns its next deadline ([`HostMachine::due`]), at which the caller calls
//! [`HostMachine::run_scheduler`]. The scheduler may preempt a step: the virtual CPU waits and runs the rest of
//! the step later. Its domain is charged for the whole step at the start, so the rest counts as ahead of the
//! clock. The step's effects also happened at its start: a program that needs the completion time reads it in
//! its next step.
//!
//! # Contention
//!
//! If a sibling thread is busy or has a ready virtual CPU when a step or stolen work begins, every cycle of
//! work takes `contention_permille` thousandths of a cycle. The state at the beginning counts for the whole
//! step. That is right on average if the threads' steps begin independently, and it keeps a step independent
//! of later ones. Each thread carries the remainder, so no cycle is lost.
//!
//! # Clock
//!
//! Threads count cycles of one clock from zero, and instants are converted at the interface, so accounting is
//! exact ([`sim::Frequency`]).

pub mod cache;
pub mod machine;
mod preemption;
mod processors;
pub mod scheduler;
pub mod step;
#[cfg(test)]
mod tests;
mod thread;
pub mod tlb;

pub use cache::{LastLevelCache, PacketBufferRing, SharedPageRing};
pub use machine::{HardwareThreadAction, HostMachine, ScheduledThreadVisit};
pub use processors::ProcessorConfig;
pub use scheduler::{
    CreditScheduler, CreditSchedulerClocks, RoundRobinScheduler, Scheduler, SchedulingParameters,
    SelectedScheduler, VcpuPriority, WakeCause,
};
pub use step::{VcpuStep, VcpuStepOutcome};
pub use tlb::{PagingMode, Tlb};

/// Index of a hardware thread; thread `s` of core `c` has the index `c * threads_per_core + s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HardwareThreadId(u16);

/// Index of a virtual CPU, by order of addition to the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VcpuId(u16);

impl HardwareThreadId {
    /// Creates the id of the hardware thread with this index, which the machine may not have.
    pub const fn new(index: u16) -> HardwareThreadId {
        HardwareThreadId(index)
    }

    /// Returns the index of the hardware thread.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl VcpuId {
    /// Returns the index of the virtual CPU.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
