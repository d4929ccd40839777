//! Measures durations on this machine: calls, wake-ups, switches, copies, exits of a virtual machine.
//!
//! Each figure is the median of several repetitions, each long enough for its clock. Measurements with two threads
//! pin them to processors. A measurement that is not possible here returns the reason.
//!
//! The module judges no figure.

mod calls;
mod copies;
mod features;
#[cfg(target_arch = "x86_64")]
mod kvm;
mod repeat;
#[cfg(test)]
mod tests;
mod threads;

pub use features::{VirtualizationFeature, features};

use std::io;

/// Measurement of a duration, with its name and unit.
#[derive(Clone, Copy, Debug)]
pub struct DurationProbe {
    /// Name of the measurement in results.
    pub name: &'static str,
    /// Unit of the measured figure.
    pub unit: &'static str,
    /// Description of the measured operation in a few words.
    pub what: &'static str,
    /// Function that takes the measurement.
    pub run: fn() -> Result<DurationProbeResult, DurationProbeError>,
}

/// Result of repeated measurements of a duration, in the unit of its [`DurationProbe`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DurationProbeResult {
    /// Median of the repeated measurements.
    pub median: f64,
    /// Smallest value of the repeated measurements.
    pub least: f64,
    /// Largest value of the repeated measurements.
    pub most: f64,
}

/// Reason why a measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum DurationProbeError {
    /// The measurement needs two processors, and the process has one.
    #[error("only one processor is available to this process, but the measurement needs two")]
    OneProcessor,
    /// The measurement is not written for this processor architecture.
    #[error("the measurement needs an x86-64 processor")]
    Architecture,
    /// A system call of the measurement failed.
    #[error(transparent)]
    System(#[from] io::Error),
    /// A KVM call of the measurement failed.
    #[error("KVM does not work on this machine: {what} failed: {error}")]
    Kvm {
        /// Failed action on the measured virtual machine.
        what: &'static str,
        /// Kernel's error for the KVM call.
        error: io::Error,
    },
    /// The virtual machine exited for a reason other than the measured one.
    #[error("KVM does not work on this machine: the measured virtual machine stopped with {0}")]
    Exit(String),
    /// The measured virtual machine did not exit within the timeout.
    #[error("KVM does not work on this machine: the measured virtual machine does not exit")]
    Stuck,
}

const fn probe(
    name: &'static str,
    unit: &'static str,
    what: &'static str,
    run: fn() -> Result<DurationProbeResult, DurationProbeError>,
) -> DurationProbe {
    DurationProbe { name, unit, what, run }
}

/// All measurements of durations on this machine. VM exits are measured on x86-64 only.
pub const PROBES: &[DurationProbe] = &[
    probe("clock", "Hz", "the clock, from a chain of dependent instructions", calls::clock),
    probe("system_call", "ns", "a system call that does nothing", calls::system_call),
    probe("eventfd_write", "ns", "an eventfd write without a waiting reader", calls::eventfd_write),
    probe("eventfd_read", "ns", "an eventfd read that does not wait", calls::eventfd_read),
    probe(
        "wake_call",
        "ns",
        "the call of an eventfd write that wakes a thread on another processor",
        threads::wake_call,
    ),
    probe("wake", "ns", "an eventfd write until a thread on another processor is awake", threads::wake),
    probe("switch", "ns", "an eventfd write until its reader runs on the same processor", threads::switch),
    probe("cache_line", "ns", "transfer of a cache line from one processor to another", threads::cache_line),
    probe("copy_warm", "ns/1000 B", "copying frames that are in the cache", copies::warm),
    probe("copy_shared", "ns/1000 B", "copying frames from the last-level cache", copies::shared),
    probe("copy_cold", "ns/1000 B", "copying frames from memory", copies::cold),
    #[cfg(target_arch = "x86_64")]
    probe("exit_cpuid", "ns", "KVM: exit and entry for cpuid", kvm::cpuid),
    #[cfg(target_arch = "x86_64")]
    probe("exit_hypercall", "ns", "KVM: exit and entry for a hypercall", kvm::hypercall),
    #[cfg(target_arch = "x86_64")]
    probe(
        "exit_mmio_kernel",
        "ns",
        "KVM: exit and entry for a write to a device in the kernel",
        kvm::mmio_kernel,
    ),
    #[cfg(target_arch = "x86_64")]
    probe(
        "exit_mmio_user",
        "ns",
        "KVM: exit and entry for a write to a device in user space",
        kvm::mmio_user,
    ),
    #[cfg(target_arch = "x86_64")]
    probe(
        "exit_ioeventfd",
        "ns",
        "KVM: exit and entry for a write that KVM passes to an eventfd",
        kvm::ioeventfd,
    ),
    #[cfg(target_arch = "x86_64")]
    probe("exit_pio_user", "ns", "KVM: exit and entry for `out` to user space", kvm::pio_user),
];
