//! The virtual local APIC of one vCPU: requested, in-service and deliverable interrupts (SDM volume 3, chapter 10 in
//! older editions, 11 in newer; section numbers are those of the older).
//!
//! - [`vectors`]: the 256-bit registers;
//! - [`timer`]: the APIC timer;
//! - [`registers`]: the register page and the x2APIC MSRs;
//! - [`ipi`]: interprocessor interrupts.
//!
//! Operations charge nothing and return their effect. NMI, SMI, INIT, the local interrupt pins and
//! EOI-broadcast suppression are not supported.

pub mod ipi;
pub mod registers;
#[cfg(test)]
mod tests;
pub mod timer;
pub mod vectors;

pub use ipi::{Ipi, IpiDestination};
pub use registers::{ApicWriteEffect, GeneralProtectionFault};
pub use timer::{ApicTimer, ApicTimerMode};
pub use vectors::InterruptVectorSet;

use registers::LocalVectorTable;
use sim::{VirtualDuration, VirtualInstant};

/// Spurious-interrupt register bit: APIC enabled by software.
const SVR_ENABLE: u32 = 1 << 8;
/// Error status bit: illegal vector sent.
const ERROR_SENT: u32 = 1 << 5;
/// Error status bit: illegal vector received.
const ERROR_RECEIVED: u32 = 1 << 6;
/// Error status bit: access to a nonexistent register.
const ERROR_REGISTER: u32 = 1 << 7;

/// Outcome of an interrupt request at an APIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterruptRequestOutcome {
    /// The vector is now requested in the interrupt-request register.
    Requested,
    /// The vector was requested already; both requests are delivered as one interrupt.
    Coalesced,
    /// The interrupt was dropped, with an error recorded: the vector is illegal (0 to 15, 10.5.2).
    Illegal,
    /// The interrupt was dropped: software has disabled the APIC.
    Disabled,
}

/// Effect of an end of interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EoiEffect {
    /// Vector removed from service by the end of interrupt, if any.
    pub ended: Option<u8>,
    /// The ended interrupt was level-triggered, so the I/O APIC must be notified.
    pub level: bool,
    /// Vector of the interrupt that may be injected after the end of interrupt.
    pub next: Option<u8>,
}

/// Virtual local APIC of a vCPU.
#[derive(Debug, Clone)]
pub struct Lapic {
    id: u32,
    irr: InterruptVectorSet,
    isr: InterruptVectorSet,
    tmr: InterruptVectorSet,
    tpr: u8,
    spurious: u32,
    logical: u32,
    format: u32,
    command: u64,
    errors: u32,
    errors_shown: u32,
    lvt: LocalVectorTable,
    timer: ApicTimer,
}

impl Lapic {
    /// Creates a local APIC in the reset state. `bus_tick` is the clock period of its timer.
    #[must_use]
    pub fn new(id: u32, bus_tick: VirtualDuration) -> Self {
        Self {
            id,
            irr: InterruptVectorSet::default(),
            isr: InterruptVectorSet::default(),
            tmr: InterruptVectorSet::default(),
            tpr: 0,
            spurious: 0xff,
            logical: 0,
            format: u32::MAX,
            command: 0,
            errors: 0,
            errors_shown: 0,
            lvt: LocalVectorTable::default(),
            timer: ApicTimer::new(bus_tick),
        }
    }

    /// Restores the local APIC's reset state (10.4.7.1): disabled, no request, timer stopped.
    pub fn reset(&mut self) {
        let timer = &mut self.timer;
        timer.reset();
        *self = Self { timer: timer.clone(), ..Self::new(self.id, VirtualDuration::ZERO) };
    }

    /// Returns the local APIC's id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns `true` if software has enabled the APIC.
    #[must_use]
    pub fn enabled(&self) -> bool {
        self.spurious & SVR_ENABLE != 0
    }

    /// Returns the vectors of the interrupt-request register.
    #[must_use]
    pub fn requested(&self) -> &InterruptVectorSet {
        &self.irr
    }

    /// Returns the vectors of the in-service register.
    #[must_use]
    pub fn in_service(&self) -> &InterruptVectorSet {
        &self.isr
    }

    /// Accepts an edge-triggered fixed interrupt at the local APIC, such as an MSI (10.8.4).
    pub fn accept(&mut self, vector: u8) -> InterruptRequestOutcome {
        self.request(vector, false)
    }

    /// Accepts a level-triggered fixed interrupt at the local APIC.
    pub fn accept_level(&mut self, vector: u8) -> InterruptRequestOutcome {
        self.request(vector, true)
    }

    /// Returns the interrupt vector that may be injected now: requested, with a class above the processor priority
    /// (10.8.3).
    #[must_use]
    pub fn deliverable(&self) -> Option<u8> {
        let vector = self.irr.highest().filter(|_| self.enabled())?;
        (class(vector) > class(self.ppr())).then_some(vector)
    }

    /// Injects the deliverable interrupt: moves its vector from the request register into service.
    pub fn inject(&mut self) -> Option<u8> {
        let vector = self.deliverable()?;
        self.irr.remove(vector);
        self.isr.insert(vector);
        Some(vector)
    }

    /// Acknowledges an interrupt for the CPU. Returns the vector put in service, or the spurious vector if the offered
    /// one is no longer deliverable (10.9); the spurious vector does not enter service and needs no EOI.
    pub fn acknowledge(&mut self) -> u8 {
        self.inject().unwrap_or(self.spurious as u8)
    }

    /// Ends the in-service interrupt of highest priority at the local APIC (10.8.5).
    pub fn eoi(&mut self) -> EoiEffect {
        let ended = self.isr.highest();
        if let Some(vector) = ended {
            self.isr.remove(vector);
        }
        EoiEffect { ended, level: ended.is_some_and(|v| self.tmr.contains(v)), next: self.deliverable() }
    }

    /// Returns the APIC's task priority.
    #[must_use]
    pub fn tpr(&self) -> u8 {
        self.tpr
    }

    /// Sets the task priority, like a write to TPR or CR8. Call [`Lapic::deliverable`] afterwards.
    pub fn set_tpr(&mut self, tpr: u8) {
        self.tpr = tpr;
    }

    /// Returns the processor priority: the higher of the task priority and the priority class in service (10.8.3.1).
    #[must_use]
    pub fn ppr(&self) -> u8 {
        let service = self.isr.highest().unwrap_or(0) & 0xf0;
        if class(self.tpr) >= class(service) { self.tpr } else { service }
    }

    /// Advances the APIC timer to `now`. Returns the outcome of the timer's interrupt request, if the timer expired.
    /// Several missed periods are one interrupt.
    pub fn run_timer(&mut self, now: VirtualInstant) -> Option<InterruptRequestOutcome> {
        let times = self.timer.advance(now);
        (times > 0 && !self.lvt.timer_masked()).then(|| self.accept(self.lvt.timer_vector()))
    }

    /// Returns the time of the next timer interrupt, at which [`Lapic::run_timer`] is due. Returns `None` while the
    /// timer is stopped or masked.
    #[must_use]
    pub fn deadline(&self) -> Option<VirtualInstant> {
        self.timer.zero_at().filter(|_| !self.lvt.timer_masked())
    }

    /// Sets the TSC deadline of the timer as an instant, or disarms the timer. Ignored in other timer modes.
    pub fn arm_deadline(&mut self, deadline: Option<VirtualInstant>) {
        self.timer.arm(deadline);
    }

    fn request(&mut self, vector: u8, level: bool) -> InterruptRequestOutcome {
        if !self.enabled() {
            return InterruptRequestOutcome::Disabled;
        }
        if vector < 16 {
            self.error(ERROR_RECEIVED);
            return InterruptRequestOutcome::Illegal;
        }
        if level {
            self.tmr.insert(vector);
        } else {
            self.tmr.remove(vector);
        }
        if self.irr.insert(vector) {
            InterruptRequestOutcome::Requested
        } else {
            InterruptRequestOutcome::Coalesced
        }
    }

    /// Records an error in the APIC's error status register. The LVT's error interrupt is requested if enabled with a
    /// legal vector (10.5.3).
    fn error(&mut self, error: u32) {
        self.errors |= error;
        if let Some(vector) = self.lvt.error_vector().filter(|&vector| vector >= 16 && self.enabled()) {
            self.tmr.remove(vector);
            self.irr.insert(vector);
        }
    }
}

/// Returns the priority class of an interrupt vector or priority: its upper four bits.
fn class(priority: u8) -> u8 {
    priority >> 4
}
