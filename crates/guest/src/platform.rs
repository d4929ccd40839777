//! What a kernel needs of the machine it runs on: interrupts, a timer, and somewhere to charge its work to. What
//! its device's driver needs beyond that is the device's affair ([`crate::device`]).
//!
//! Left out: what each of these costs. Whoever implements it charges that: nothing on bare metal, an exit on
//! hardware virtualization, a hypercall under paravirtualization.

use hypervisor::account::Category;
use hypervisor::cost::Cost;
use sim::Instant;

/// An interrupt as the kernel's entry code finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// The local timer.
    Timer,
    /// A vector of the network device; of a VF, transmit, receive or mailbox.
    Device(u16),
}

/// Whether an access to an emulated device is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It is.
    Done,
    /// Somebody else is at it; the kernel stands still until it is woken.
    Waits,
}

/// The machine below a kernel.
pub trait Platform {
    /// Charges work of the kernel, its driver or its program.
    fn charge(&mut self, category: Category, cycles: u64);

    /// A constant of the machine's cost table.
    fn cost(&self, cost: Cost) -> u64;

    /// The moment now, on the machine's clock.
    fn instant(&self) -> Instant;

    /// Takes the next interrupt, if one is to be taken.
    fn take_interrupt(&mut self) -> Option<Interrupt>;

    /// Ends the interrupt that was taken last.
    fn end_of_interrupt(&mut self);

    /// Masks or unmasks a vector in the device's MSI-X table, if it has one.
    fn mask(&mut self, vector: u16, masked: bool) -> Access;

    /// Programs the local timer; `None` stops it.
    fn set_timer(&mut self, at: Option<Instant>);

    /// The program's copy of a received packet's payload, out of the driver's buffers in turn.
    fn copy_to_program(&mut self, bytes: u64);

    /// A program enters its kernel and leaves it, beyond what a bare machine charges for that.
    fn system_call(&mut self);

    /// Nothing is left to do until the next interrupt.
    fn halt(&mut self);
}
