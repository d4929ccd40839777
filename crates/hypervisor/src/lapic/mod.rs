//! The virtual local APIC of one vCPU: what is requested, what is in service, what may be injected (SDM
//! volume 3, chapter 10 in older editions, 11 in newer ones; sections are named as in the older).
//!
//! - [`vectors`]: the 256-bit registers;
//! - [`timer`]: the APIC timer;
//! - [`registers`]: the register page and the x2APIC MSRs;
//! - [`ipi`]: interrupts from one CPU to others.
//!
//! Nothing is charged here: an operation says what happened. Left out: NMI, SMI, INIT, the local interrupt
//! pins, suppression of EOI broadcasts.

pub mod ipi;
pub mod registers;
#[cfg(test)]
mod tests;
pub mod timer;
pub mod vectors;

pub use ipi::{Destination, Ipi};
pub use registers::{Gp, Write};
pub use timer::{Mode, Timer};
pub use vectors::Vectors;

use registers::Lvt;
use sim::{Instant, Span};

/// Spurious-interrupt register: the APIC is enabled by software.
const SVR_ENABLE: u32 = 1 << 8;
/// Error: an illegal vector was sent.
const ERROR_SENT: u32 = 1 << 5;
/// Error: an illegal vector was received.
const ERROR_RECEIVED: u32 = 1 << 6;
/// Error: a register was accessed that there is not.
const ERROR_REGISTER: u32 = 1 << 7;

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accept {
    /// It waits in the IRR.
    Requested,
    /// It was requested already: two became one.
    Coalesced,
    /// Vectors 0 to 15 are illegal (10.5.2): dropped, and noted as an error.
    Illegal,
    /// The APIC is disabled by software: dropped.
    Disabled,
}

/// What an end of interrupt did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Eoi {
    /// The vector that was taken out of service, if any was in service.
    pub ended: Option<u8>,
    /// It came level-triggered: the I/O APIC must hear of its end.
    pub level: bool,
    /// What may be injected now.
    pub next: Option<u8>,
}

/// A local APIC.
#[derive(Debug, Clone)]
pub struct Lapic {
    id: u32,
    irr: Vectors,
    isr: Vectors,
    tmr: Vectors,
    tpr: u8,
    spurious: u32,
    logical: u32,
    format: u32,
    command: u64,
    errors: u32,
    errors_shown: u32,
    lvt: Lvt,
    timer: Timer,
}

impl Lapic {
    /// An APIC after reset. `bus_tick`: a tick of the clock that drives its timer.
    #[must_use]
    pub fn new(id: u32, bus_tick: Span) -> Self {
        Self {
            id,
            irr: Vectors::default(),
            isr: Vectors::default(),
            tmr: Vectors::default(),
            tpr: 0,
            spurious: 0xff,
            logical: 0,
            format: u32::MAX,
            command: 0,
            errors: 0,
            errors_shown: 0,
            lvt: Lvt::default(),
            timer: Timer::new(bus_tick),
        }
    }

    /// Back to the state after reset (10.4.7.1): disabled, nothing requested, the timer stopped.
    pub fn reset(&mut self) {
        let timer = &mut self.timer;
        timer.reset();
        *self = Self { timer: timer.clone(), ..Self::new(self.id, Span::ZERO) };
    }

    /// The APIC id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Whether software has enabled the APIC.
    #[must_use]
    pub fn enabled(&self) -> bool {
        self.spurious & SVR_ENABLE != 0
    }

    /// The interrupt-request register.
    #[must_use]
    pub fn requested(&self) -> &Vectors {
        &self.irr
    }

    /// The in-service register.
    #[must_use]
    pub fn in_service(&self) -> &Vectors {
        &self.isr
    }

    /// Accepts an edge-triggered fixed interrupt, as a message-signalled one is (10.8.4).
    pub fn accept(&mut self, vector: u8) -> Accept {
        self.request(vector, false)
    }

    /// Accepts a level-triggered fixed interrupt.
    pub fn accept_level(&mut self, vector: u8) -> Accept {
        self.request(vector, true)
    }

    /// The vector that may be injected now: requested, and its class above the processor's priority (10.8.3).
    #[must_use]
    pub fn deliverable(&self) -> Option<u8> {
        let vector = self.irr.highest().filter(|_| self.enabled())?;
        (class(vector) > class(self.ppr())).then_some(vector)
    }

    /// Injects what is deliverable: it moves from the IRR into service.
    pub fn inject(&mut self) -> Option<u8> {
        let vector = self.deliverable()?;
        self.irr.remove(vector);
        self.isr.insert(vector);
        Some(vector)
    }

    /// Answers the CPU's acknowledge: the vector that goes into service, or the spurious vector if the one
    /// that was offered may not be delivered any more (10.9). That one goes not into service and wants no EOI.
    pub fn acknowledge(&mut self) -> u8 {
        self.inject().unwrap_or(self.spurious as u8)
    }

    /// Ends the interrupt of highest priority in service (10.8.5).
    pub fn eoi(&mut self) -> Eoi {
        let ended = self.isr.highest();
        if let Some(vector) = ended {
            self.isr.remove(vector);
        }
        Eoi { ended, level: ended.is_some_and(|v| self.tmr.contains(v)), next: self.deliverable() }
    }

    /// The task priority.
    #[must_use]
    pub fn tpr(&self) -> u8 {
        self.tpr
    }

    /// Sets the task priority, as a write of the register and of CR8 does. Ask [`Lapic::deliverable`] after.
    pub fn set_tpr(&mut self, tpr: u8) {
        self.tpr = tpr;
    }

    /// The processor priority: the class of what is in service, or the task priority if not below (10.8.3.1).
    #[must_use]
    pub fn ppr(&self) -> u8 {
        let service = self.isr.highest().unwrap_or(0) & 0xf0;
        if class(self.tpr) >= class(service) { self.tpr } else { service }
    }

    /// Lets time pass up to `now`: None if the timer has nothing to say, else what became of its interrupt.
    /// Periods that passed unseen are one interrupt.
    pub fn run_timer(&mut self, now: Instant) -> Option<Accept> {
        let times = self.timer.pass(now);
        (times > 0 && !self.lvt.timer_masked()).then(|| self.accept(self.lvt.timer_vector()))
    }

    /// When [`Lapic::run_timer`] has something to do: None while the timer is stopped or masked.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.timer.zero_at().filter(|_| !self.lvt.timer_masked())
    }

    /// Writes the TSC deadline, already as a time; None disarms. Ignored in the other modes.
    pub fn arm_deadline(&mut self, deadline: Option<Instant>) {
        self.timer.arm(deadline);
    }

    fn request(&mut self, vector: u8, level: bool) -> Accept {
        if !self.enabled() {
            return Accept::Disabled;
        }
        if vector < 16 {
            self.error(ERROR_RECEIVED);
            return Accept::Illegal;
        }
        if level {
            self.tmr.insert(vector);
        } else {
            self.tmr.remove(vector);
        }
        if self.irr.insert(vector) { Accept::Requested } else { Accept::Coalesced }
    }

    /// Notes an error; its own interrupt follows if the LVT asks for one with a legal vector (10.5.3).
    fn error(&mut self, error: u32) {
        self.errors |= error;
        if let Some(vector) = self.lvt.error_vector().filter(|&vector| vector >= 16 && self.enabled()) {
            self.tmr.remove(vector);
            self.irr.insert(vector);
        }
    }
}

/// The class of a priority or a vector: its upper four bits.
fn class(priority: u8) -> u8 {
    priority >> 4
}
