//! The machine interface that a modelled kernel needs: interrupts, a timer, and accounts to charge work to. A
//! device's driver may need more ([`crate::device`]).
//!
//! The implementer charges the cost of each call: nothing on bare metal, an exit under hardware
//! virtualization, a hypercall under paravirtualization.

use hypervisor::account::CycleCategory;
use hypervisor::cost::CostConstant;
use sim::VirtualInstant;

/// Source of an interrupt, as seen by the kernel's entry code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterruptSource {
    /// Source of an interrupt: the kernel's local timer.
    Timer,
    /// Source of an interrupt: the network device, with its vector; of a VF: transmit, receive or mailbox.
    Device(u16),
}

/// Outcome of an access to an emulated device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceAccessOutcome {
    /// The kernel's access to the emulated device is complete.
    Done,
    /// The device access is not complete; the kernel stays blocked until another actor completes the access
    /// and wakes it.
    Blocked,
}

/// Operations of the machine that runs a modelled guest kernel.
pub trait KernelPlatform {
    /// Charges work of the kernel, its driver or its program, in cycles.
    fn charge(&mut self, category: CycleCategory, cycles: u64);

    /// Returns the value of a constant in the machine's cost table.
    fn cost(&self, cost: CostConstant) -> u64;

    /// Returns the current time of the machine's clock.
    fn instant(&self) -> VirtualInstant;

    /// Takes the next pending interrupt, or returns `None`.
    fn take_interrupt(&mut self) -> Option<InterruptSource>;

    /// Signals the end of the interrupt that the kernel took last.
    fn end_of_interrupt(&mut self);

    /// Masks or unmasks an interrupt vector in the device's MSI-X table, if there is a table.
    fn mask(&mut self, vector: u16, masked: bool) -> DeviceAccessOutcome;

    /// Programs the kernel's local timer; `None` stops the timer.
    fn set_timer(&mut self, at: Option<VirtualInstant>);

    /// Charges the copy of a received payload from the driver's buffers to the program.
    fn copy_to_program(&mut self, bytes: u64);

    /// Charges the TLB misses of a packet with this many bytes, received or to be sent, beyond those of a bare machine.
    /// Acknowledgements use few pages, again and again, and are not charged.
    fn packet(&mut self, bytes: u64);

    /// Charges a program's system call: entering and leaving the kernel, beyond the cost on bare metal.
    fn system_call(&mut self);

    /// Halts the kernel's virtual CPU until the next interrupt.
    fn halt(&mut self);
}
