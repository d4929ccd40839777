//! Interrupt controllers of guests, including the timer: a local APIC, or event channels.
//!
//! A hardware-virtualized guest with a front end gets its events through the interrupt of a platform device:
//! a vector of its APIC, which its kernel ends like any other and whose handler takes pending events.
//!
//! Exits and hypercalls are charged by the caller.

use super::code::{Code, END, START_TIMER, Store};
use super::invariant::Broken;
use super::vectors::{DEVICE_VECTOR, TIMER_VECTOR};
use guest::{Interrupt, Tick};
use hypervisor::decode::apic_access::EoiPolicy;
use hypervisor::domain::{DomainId, DomainKind};
use hypervisor::evtchn::{Binding, Channels};
use hypervisor::lapic::registers::{LVT_TIMER, MSR_BASE, SVR, TDCR, TMICT};
use hypervisor::lapic::{Eoi, Lapic, WriteEffect};
use hypervisor::memory::HostMemory;
use sim::{Instant, Span};

/// Number of the timer's virtual interrupt.
const VIRQ_TIMER: u8 = 0;

/// Clock of the APIC timer: a bus of 100 MHz (Xen's virtual one; a real Nehalem has 133), divided by 16 as in
/// Linux.
const BUS_TICK: Span = Span::from_nanos(10);
const DIVIDE_BY_16: u32 = 3;
const COUNT: Span = BUS_TICK.times(16);
/// Value of the spurious-interrupt register that enables the APIC, and the periodic bit of the timer's LVT
/// entry.
const ENABLE: u32 = 0x1ff;
const PERIODIC: u32 = 1 << 17;

/// Local APIC, virtual or not, with the guest code that writes to it.
#[derive(Debug)]
pub(crate) struct Apic {
    pub(crate) lapic: Lapic,
    code: Code,
    /// Domain of the event channels behind the platform device, if there is one.
    platform: Option<DomainId>,
}

/// Timer of a paravirtualized guest, kept by the hypervisor.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SoftTimer {
    due: Option<Instant>,
    period: Option<Span>,
}

/// Interrupt controller of a guest: local APIC or event channels.
#[derive(Debug)]
pub(crate) enum Controller {
    /// Local APIC of the guest, virtual or not.
    Apic(Box<Apic>),
    /// Event channels of the guest: a port for the timer and for each interrupt of the device.
    Events {
        domain: DomainId,
        /// Event-channel ports of the timer, then of the device's vectors.
        ports: Vec<u16>,
        timer: SoftTimer,
    },
}

/// Path of a write to the APIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApicWritePath {
    /// The write does not exit: a bare machine, or APIC virtualization.
    Direct,
    /// The write is one to a model-specific register.
    Msr,
    /// The write exits as an APIC access, which this policy handles.
    Exit(EoiPolicy),
}

impl Controller {
    /// Creates the controller of a guest with a VF, as its kernel has set it up.
    pub(crate) fn direct(
        kind: DomainKind,
        domain: DomainId,
        (code, tick): (Code, Tick),
        channels: &mut Channels,
    ) -> Self {
        if kind != DomainKind::Pvm {
            return Self::apic(code, tick, None);
        }
        channels.add_domain(domain, 1);
        let timer = Binding::Virq(VIRQ_TIMER);
        let device = (0..i82576::ids::VF_VECTORS as u16).map(Binding::Pirq);
        let wanted = [timer].into_iter().chain(device);
        let ports = wanted.filter_map(|binding| channels.bind(domain, binding, 0).ok()).collect();
        Self::Events { domain, ports, timer: SoftTimer::default() }
    }

    /// Creates the controller of a guest with a front end and its event channel.
    pub(crate) fn split(
        kind: DomainKind,
        (domain, event): (DomainId, u16),
        (code, tick): (Code, Tick),
        channels: &mut Channels,
    ) -> Self {
        if kind != DomainKind::Pvm {
            return Self::apic(code, tick, Some(domain));
        }
        let timer = channels.bind(domain, Binding::Virq(VIRQ_TIMER), 0);
        Self::Events {
            domain,
            ports: timer.into_iter().chain([event]).collect(),
            timer: SoftTimer::default(),
        }
    }

    fn apic(code: Code, tick: Tick, platform: Option<DomainId>) -> Self {
        let mut lapic = Lapic::new(0, BUS_TICK);
        let mode = if matches!(tick, Tick::Periodic(_)) { PERIODIC } else { 0 };
        for (register, value) in
            [(SVR, ENABLE), (TDCR, DIVIDE_BY_16), (LVT_TIMER, u32::from(TIMER_VECTOR) | mode)]
        {
            lapic.write(Instant::ZERO, register, value);
        }
        Self::Apic(Box::new(Apic { lapic, code, platform }))
    }

    /// Starts the periodic tick, whose first period begins at `phase`.
    pub(crate) fn start_periodic(&mut self, phase: Instant, period: Span) {
        match self {
            Self::Apic(apic) => {
                apic.lapic.write(phase, TMICT, counts(period));
            }
            Self::Events { timer, .. } => {
                *timer = SoftTimer { due: Some(phase + period), period: Some(period) };
            }
        }
    }

    /// Requests the device's interrupt of a vector.
    pub(crate) fn request(&mut self, vector: u8, channels: &mut Channels) {
        match self {
            Self::Apic(apic) => {
                apic.lapic.accept(vector);
            }
            Self::Events { .. } => self.raise(1 + usize::from(vector.wrapping_sub(DEVICE_VECTOR)), channels),
        }
    }

    /// Records that the back end sent an event. Event channels need nothing more; an APIC gets the platform
    /// device's interrupt.
    pub(crate) fn event(&mut self) {
        if let Self::Apic(apic) = self {
            apic.lapic.accept(DEVICE_VECTOR);
        }
    }

    fn raise(&mut self, index: usize, channels: &mut Channels) {
        if let Self::Events { domain, ports, .. } = self
            && let Some(port) = ports.get(index)
        {
            // The port exists: it was bound when the guest was created.
            let _ = channels.raise(*domain, *port);
        }
    }

    /// Returns the time at which the guest's timer expires.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Apic(apic) => apic.lapic.deadline(),
            Self::Events { timer, .. } => timer.due,
        }
    }

    /// Advances the guest's timer to `now`.
    pub(crate) fn run_timer(&mut self, now: Instant, channels: &mut Channels) {
        match self {
            Self::Apic(apic) => {
                apic.lapic.run_timer(now);
            }
            Self::Events { timer, .. } if timer.due.is_some_and(|due| due <= now) => {
                timer.due = timer.period.map(|period| now + period);
                self.raise(0, channels);
            }
            Self::Events { .. } => {}
        }
    }

    /// Sets the guest's timer for `at`, or stops it: by hypercall, or by a write of the APIC's initial count.
    pub(crate) fn set_timer(
        &mut self,
        at: Option<Instant>,
        path: ApicWritePath,
        memory: &mut HostMemory,
        now: Instant,
    ) -> Result<(), Broken> {
        match self {
            Self::Apic(apic) => {
                // At least 1: a count of zero would stop the timer.
                let count = at.map_or(0, |at| counts(at.since(now)).max(1));
                apic.write(START_TIMER, count, path, memory, now).map(|_| ())
            }
            Self::Events { timer, .. } => {
                timer.due = at;
                Ok(())
            }
        }
    }

    /// Returns `true` if an interrupt is pending that the kernel could take.
    pub(crate) fn deliverable(&mut self, channels: &mut Channels) -> bool {
        match self {
            Self::Apic(apic) => apic.lapic.deliverable().is_some(),
            Self::Events { domain, .. } => channels.domain(*domain).is_ok_and(|own| own.upcall_due(0)),
        }
    }

    /// Takes the next interrupt for the guest's kernel. Returns whether taking it began an upcall.
    pub(crate) fn take(&mut self, channels: &mut Channels) -> Option<(Interrupt, bool)> {
        match self {
            Self::Apic(apic) => {
                let interrupt = interrupt(apic.lapic.inject()?);
                if let (Interrupt::Device(_), Some(domain)) = (interrupt, apic.platform) {
                    // The platform device's handler takes the pending event of its only channel.
                    let own = channels.domain(domain).ok()?;
                    own.enter_upcall(0);
                    while own.next(0).is_some() {}
                    own.leave_upcall(0);
                }
                Some((interrupt, false))
            }
            Self::Events { domain, ports, .. } => {
                let own = channels.domain(*domain).ok()?;
                let entered = own.enter_upcall(0);
                let Some(port) = own.next(0) else {
                    own.leave_upcall(0);
                    return None;
                };
                let index = ports.iter().position(|known| *known == port)?;
                let device = |index: usize| Interrupt::Device(index as u16 - 1);
                Some((if index == 0 { Interrupt::Timer } else { device(index) }, entered))
            }
        }
    }

    /// Ends the interrupt the kernel took last, which must be the one of highest priority in service.
    pub(crate) fn end(
        &mut self,
        path: ApicWritePath,
        memory: &mut HostMemory,
        now: Instant,
    ) -> Result<(), Broken> {
        let Self::Apic(apic) = self else { return Ok(()) };
        let (highest, count) = (apic.lapic.in_service().highest(), apic.lapic.in_service().count());
        let WriteEffect::Eoi(Eoi { ended, next, .. }) = apic.write(END, 0, path, memory, now)? else {
            return Err(Broken::EndOfInterrupt);
        };
        let one = ended.is_some() && ended == highest && apic.lapic.in_service().count() + 1 == count;
        if one && next == apic.lapic.deliverable() { Ok(()) } else { Err(Broken::EndOfInterrupt) }
    }
}

impl Apic {
    fn write(
        &mut self,
        store: Store,
        value: u32,
        path: ApicWritePath,
        memory: &mut HostMemory,
        now: Instant,
    ) -> Result<WriteEffect, Broken> {
        let Self { lapic, code, .. } = self;
        match path {
            ApicWritePath::Direct => Ok(lapic.write(now, store.register, value)),
            ApicWritePath::Msr => {
                let msr = MSR_BASE + u32::from(store.register) / 16;
                lapic.write_msr(now, msr, value.into()).map_err(|_| Broken::Instruction(store.register))
            }
            ApicWritePath::Exit(policy) => code.exit(store, value, policy, (lapic, memory), now),
        }
    }
}

/// Returns the number of timer counts until `span` is over.
fn counts(span: Span) -> u32 {
    u32::try_from(span.picos().div_ceil(COUNT.picos())).unwrap_or(u32::MAX)
}

fn interrupt(vector: u8) -> Interrupt {
    match vector {
        TIMER_VECTOR => Interrupt::Timer,
        vector => Interrupt::Device(u16::from(vector.wrapping_sub(DEVICE_VECTOR))),
    }
}
