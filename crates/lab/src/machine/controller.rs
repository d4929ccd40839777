//! How interrupts reach a guest's kernel, its timer's among them: a local APIC, or event channels.
//!
//! A guest on hardware virtualization that has a front end hears of its events through the interrupt of a platform
//! device: a vector of its APIC, which its kernel ends as any other, and whose handler looks for pending events.
//!
//! Left out: what an exit or a hypercall costs.

use super::code::{Code, END, START_TIMER, Store};
use super::invariant::Broken;
use super::vectors::{DEVICE_VECTOR, TIMER_VECTOR};
use guest::{Interrupt, Tick};
use hypervisor::decode::apic_access::Policy;
use hypervisor::domain::{DomainId, DomainKind};
use hypervisor::evtchn::{Binding, Channels};
use hypervisor::lapic::registers::{LVT_TIMER, MSR_BASE, SVR, TDCR, TMICT};
use hypervisor::lapic::{Eoi, Lapic, Write};
use hypervisor::memory::HostMemory;
use sim::{Instant, Span};

/// The timer's number among the hypervisor's virtual interrupts.
const VIRQ_TIMER: u8 = 0;

/// The APIC's timer counts a bus of 100 MHz (Xen's virtual one; a Nehalem's own has 133), divided by 16 as Linux
/// has it.
const BUS_TICK: Span = Span::from_nanos(10);
const DIVIDE_BY_16: u32 = 3;
const COUNT: Span = BUS_TICK.times(16);
/// The enabling value of the spurious-interrupt register, and the timer's mode bit for repeating.
const ENABLE: u32 = 0x1ff;
const PERIODIC: u32 = 1 << 17;

/// A local APIC, virtual or not, and the code of its guest's that writes to it.
#[derive(Debug)]
pub(crate) struct Apic {
    pub(crate) lapic: Lapic,
    code: Code,
    /// Whose event channels the platform device's interrupt is about, if there is such a device.
    platform: Option<DomainId>,
}

/// The timer of a paravirtualized guest, as the hypervisor keeps it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SoftTimer {
    due: Option<Instant>,
    period: Option<Span>,
}

/// How interrupts reach a guest.
#[derive(Debug)]
pub(crate) enum Controller {
    /// A local APIC, virtual or not.
    Apic(Box<Apic>),
    /// Event channels: a port for each interrupt of the device, and the timer's.
    Events {
        domain: DomainId,
        /// Of the timer, then of the device's vectors.
        ports: Vec<u16>,
        timer: SoftTimer,
    },
}

/// The way of a write to the APIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The processor's own doing: a bare machine, or APIC virtualization.
    Direct,
    /// A model-specific register.
    Msr,
    /// An exit for an access to its page, handled by this policy.
    Exit(Policy),
}

impl Controller {
    /// A guest's with a VF, after its kernel has set it up.
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

    /// A guest's with a front end whose event channel is there.
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

    /// The device's interrupt of that vector is requested.
    pub(crate) fn request(&mut self, vector: u8, channels: &mut Channels) {
        match self {
            Self::Apic(apic) => {
                apic.lapic.accept(vector);
            }
            Self::Events { .. } => self.raise(1 + usize::from(vector.wrapping_sub(DEVICE_VECTOR)), channels),
        }
    }

    /// The back end has sent the guest an event. That is all, unless its processor must be told of it by the
    /// interrupt of a platform device.
    pub(crate) fn event(&mut self) {
        if let Self::Apic(apic) = self {
            apic.lapic.accept(DEVICE_VECTOR);
        }
    }

    fn raise(&mut self, index: usize, channels: &mut Channels) {
        if let Self::Events { domain, ports, .. } = self
            && let Some(port) = ports.get(index)
        {
            // The port was bound when the guest was made.
            let _ = channels.raise(*domain, *port);
        }
    }

    /// When the timer has something to say.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Apic(apic) => apic.lapic.deadline(),
            Self::Events { timer, .. } => timer.due,
        }
    }

    /// Lets the timer come up to `now`.
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

    /// The guest sets its timer for `at`, or stops it: a hypercall, or a write of the APIC's initial count.
    pub(crate) fn set_timer(
        &mut self,
        at: Option<Instant>,
        way: Way,
        memory: &mut HostMemory,
        now: Instant,
    ) -> Result<(), Broken> {
        match self {
            Self::Apic(apic) => {
                // A count of zero would stop it.
                let count = at.map_or(0, |at| counts(at.since(now)).max(1));
                apic.write(START_TIMER, count, way, memory, now).map(|_| ())
            }
            Self::Events { timer, .. } => {
                timer.due = at;
                Ok(())
            }
        }
    }

    /// An interrupt waits that the kernel could take.
    pub(crate) fn deliverable(&mut self, channels: &mut Channels) -> bool {
        match self {
            Self::Apic(apic) => apic.lapic.deliverable().is_some(),
            Self::Events { domain, .. } => channels.domain(*domain).is_ok_and(|own| own.upcall_due(0)),
        }
    }

    /// The next interrupt for the guest's kernel, and whether taking it began an upcall.
    pub(crate) fn take(&mut self, channels: &mut Channels) -> Option<(Interrupt, bool)> {
        match self {
            Self::Apic(apic) => {
                let interrupt = interrupt(apic.lapic.inject()?);
                if let (Interrupt::Device(_), Some(domain)) = (interrupt, apic.platform) {
                    // The platform device's handler takes what is pending: its only channel.
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

    /// The kernel ends the interrupt it took last, which must be the one of highest priority in service.
    pub(crate) fn end(&mut self, way: Way, memory: &mut HostMemory, now: Instant) -> Result<(), Broken> {
        let Self::Apic(apic) = self else { return Ok(()) };
        let (highest, count) = (apic.lapic.in_service().highest(), apic.lapic.in_service().count());
        let Write::Eoi(Eoi { ended, next, .. }) = apic.write(END, 0, way, memory, now)? else {
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
        way: Way,
        memory: &mut HostMemory,
        now: Instant,
    ) -> Result<Write, Broken> {
        let Self { lapic, code, .. } = self;
        match way {
            Way::Direct => Ok(lapic.write(now, store.register, value)),
            Way::Msr => {
                let msr = MSR_BASE + u32::from(store.register) / 16;
                lapic.write_msr(now, msr, value.into()).map_err(|_| Broken::Instruction(store.register))
            }
            Way::Exit(policy) => code.exit(store, value, policy, (lapic, memory), now),
        }
    }
}

/// So many counts of the timer that `span` is over.
fn counts(span: Span) -> u32 {
    u32::try_from(span.picos().div_ceil(COUNT.picos())).unwrap_or(u32::MAX)
}

fn interrupt(vector: u8) -> Interrupt {
    match vector {
        TIMER_VECTOR => Interrupt::Timer,
        vector => Interrupt::Device(u16::from(vector.wrapping_sub(DEVICE_VECTOR))),
    }
}
