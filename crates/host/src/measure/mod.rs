//! What small things take on this machine: calls, wake-ups, switches, copies, exits of a virtual machine.
//!
//! Every number is the median of several repetitions, each long enough for its clock. Two threads are held on the
//! processors that the number is about. What cannot be measured here says why.
//!
//! Left out: what the numbers are good for, and any expectation of them.

mod calls;
mod copies;
mod features;
#[cfg(target_arch = "x86_64")]
mod kvm;
mod repeat;
#[cfg(test)]
mod tests;
mod threads;

pub use features::{Feature, features};

use std::io;

/// What one number says.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// Its name.
    pub name: &'static str,
    /// What it is counted in.
    pub unit: &'static str,
    /// What it is, in a few words.
    pub what: &'static str,
    /// Measures it.
    pub run: fn() -> Result<Sample, Unmeasured>,
}

/// What repetitions of a measurement found, in the probe's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Half of them found more.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

/// Why there is no number.
#[derive(Debug, thiserror::Error)]
pub enum Unmeasured {
    /// It takes two processors.
    #[error("this process may use one processor only")]
    OneProcessor,
    /// Nobody has written it for this kind of processor.
    #[error("it is made for x86-64")]
    Architecture,
    /// A system call did not work.
    #[error(transparent)]
    System(#[from] io::Error),
    /// KVM did not do its part.
    #[error("KVM does not work here: {what}: {error}")]
    Kvm {
        /// What it was to do.
        what: &'static str,
        /// What it said.
        error: io::Error,
    },
    /// A virtual machine stopped for another reason than the one that is measured.
    #[error("KVM does not work here: the virtual machine stopped with {0}")]
    Exit(String),
    /// A virtual machine did not stop at all.
    #[error("KVM does not work here: the virtual machine does not come back from it")]
    Stuck,
}

const fn probe(
    name: &'static str,
    unit: &'static str,
    what: &'static str,
    run: fn() -> Result<Sample, Unmeasured>,
) -> Probe {
    Probe { name, unit, what, run }
}

/// All of them; a virtual machine's exits on x86-64 only.
pub const PROBES: &[Probe] = &[
    probe("clock", "Hz", "the clock, from a chain of dependent instructions", calls::clock),
    probe("system_call", "ns", "a system call that does nothing", calls::system_call),
    probe("eventfd_write", "ns", "an eventfd write that nobody waits for", calls::eventfd_write),
    probe("eventfd_read", "ns", "an eventfd read that does not wait", calls::eventfd_read),
    probe("wake_call", "ns", "an eventfd write that wakes a thread elsewhere: the call", threads::wake_call),
    probe("wake", "ns", "an eventfd write until a thread elsewhere is awake", threads::wake),
    probe("switch", "ns", "an eventfd write, and its reader runs on the same processor", threads::switch),
    probe("cache_line", "ns", "a cache line from one processor to another", threads::cache_line),
    probe("copy_warm", "ns/1000 B", "copying frames that are in the cache", copies::warm),
    probe("copy_shared", "ns/1000 B", "copying frames from the last-level cache", copies::shared),
    probe("copy_cold", "ns/1000 B", "copying frames from memory", copies::cold),
    #[cfg(target_arch = "x86_64")]
    probe("exit_cpuid", "ns", "KVM: cpuid, there and back", kvm::cpuid),
    #[cfg(target_arch = "x86_64")]
    probe("exit_hypercall", "ns", "KVM: a hypercall, there and back", kvm::hypercall),
    #[cfg(target_arch = "x86_64")]
    probe(
        "exit_mmio_kernel",
        "ns",
        "KVM: a write to a device in the kernel, there and back",
        kvm::mmio_kernel,
    ),
    #[cfg(target_arch = "x86_64")]
    probe("exit_mmio_user", "ns", "KVM: a write to a device in user space, there and back", kvm::mmio_user),
    #[cfg(target_arch = "x86_64")]
    probe("exit_pio_user", "ns", "KVM: `out` to user space, there and back", kvm::pio_user),
];
