//! Interrupt controllers of guests, including the timer: a local APIC, or event channels.
//!
//! A hardware-virtualized guest with a front end gets its events through the interrupt of a platform device:
//! a vector of its APIC, which its kernel ends like any other and whose handler takes pending events.
//!
//! Exits and hypercalls are charged by the caller.

use super::code::{ApicStoreInstruction, END, GuestApicCode, START_TIMER};
use super::invariant::InvariantViolation;
use super::vectors::{DEVICE_VECTOR, TIMER_VECTOR};
use guest::{InterruptSource, TickMode};
use hypervisor::decode::apic_access::EoiPolicy;
use hypervisor::domain::{DomainId, DomainKind};
use hypervisor::evtchn::{EventChannelBinding, EventChannels};
use hypervisor::lapic::registers::{LVT_TIMER, MSR_BASE, SVR, TDCR, TMICT};
use hypervisor::lapic::{ApicWriteEffect, EoiEffect, Lapic};
use hypervisor::memory::HostMemory;
use sim::{VirtualDuration, VirtualInstant};

/// Number of the timer's virtual interrupt (VIRQ) of an event-channel domain.
const VIRQ_TIMER: u8 = 0;

/// Clock period of the APIC timer before division: a bus of 100 MHz (Xen's virtual one; a real Nehalem has
/// 133).
const BUS_TICK: VirtualDuration = VirtualDuration::from_nanos(10);
/// Value of the APIC timer's divide-configuration register: divide by 16, as in Linux.
const DIVIDE_BY_16: u32 = 3;
/// Time of one count of the APIC timer.
const COUNT: VirtualDuration = BUS_TICK.times(16);
/// Value of the spurious-interrupt register that enables the APIC.
const ENABLE: u32 = 0x1ff;
/// Bit of the timer's LVT entry: the timer is periodic.
const PERIODIC: u32 = 1 << 17;

/// Local APIC of a guest, virtual or physical, with the guest code that writes to its registers.
#[derive(Debug)]
pub(crate) struct Apic {
    pub(crate) lapic: Lapic,
    code: GuestApicCode,
    /// Domain whose event channels interrupt the guest through its platform device, if it has that device.
    platform: Option<DomainId>,
}

/// Periodic and one-shot timer that the hypervisor keeps for a paravirtualized guest.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ParavirtualTimer {
    due: Option<VirtualInstant>,
    period: Option<VirtualDuration>,
}

/// Interrupt controller of a guest: local APIC or event channels.
#[derive(Debug)]
pub(crate) enum InterruptController {
    /// Local APIC of the guest, virtual or physical.
    Apic(Box<Apic>),
    /// Event channels of the guest: a port for the timer and for each interrupt of the device.
    Events {
        domain: DomainId,
        /// Event-channel ports of the timer, then of the device's vectors.
        ports: Vec<u16>,
        timer: ParavirtualTimer,
    },
}

/// Path of a guest's write to its APIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApicWritePath {
    /// The APIC write does not exit: a bare machine, or APIC virtualization.
    Direct,
    /// The APIC write exits as a write to a model-specific register.
    Msr,
    /// The write exits as an APIC access, which this policy handles.
    Exit(EoiPolicy),
}

impl InterruptController {
    /// Creates the interrupt controller of a guest with a VF, in the state that the guest's kernel sets up.
    pub(crate) fn direct(
        kind: DomainKind,
        domain: DomainId,
        (code, tick): (GuestApicCode, TickMode),
        channels: &mut EventChannels,
    ) -> Self {
        if kind != DomainKind::Pvm {
            return Self::apic(code, tick, None);
        }
        channels.add_domain(domain, 1);
        let timer = EventChannelBinding::Virq(VIRQ_TIMER);
        let device = (0..i82576::ids::VF_VECTORS as u16).map(EventChannelBinding::Pirq);
        let wanted = [timer].into_iter().chain(device);
        let ports = wanted.filter_map(|binding| channels.bind(domain, binding, 0).ok()).collect();
        Self::Events { domain, ports, timer: ParavirtualTimer::default() }
    }

    /// Creates the interrupt controller of a guest with a front end and its event channel.
    pub(crate) fn split(
        kind: DomainKind,
        (domain, event): (DomainId, u16),
        (code, tick): (GuestApicCode, TickMode),
        channels: &mut EventChannels,
    ) -> Self {
        if kind != DomainKind::Pvm {
            return Self::apic(code, tick, Some(domain));
        }
        let timer = channels.bind(domain, EventChannelBinding::Virq(VIRQ_TIMER), 0);
        Self::Events {
            domain,
            ports: timer.into_iter().chain([event]).collect(),
            timer: ParavirtualTimer::default(),
        }
    }

    fn apic(code: GuestApicCode, tick: TickMode, platform: Option<DomainId>) -> Self {
        let mut lapic = Lapic::new(0, BUS_TICK);
        let mode = if matches!(tick, TickMode::Periodic(_)) { PERIODIC } else { 0 };
        for (register, value) in
            [(SVR, ENABLE), (TDCR, DIVIDE_BY_16), (LVT_TIMER, u32::from(TIMER_VECTOR) | mode)]
        {
            lapic.write(VirtualInstant::ZERO, register, value);
        }
        Self::Apic(Box::new(Apic { lapic, code, platform }))
    }

    /// Starts the guest's periodic timer tick, whose first period begins at `phase`.
    pub(crate) fn start_periodic(&mut self, phase: VirtualInstant, period: VirtualDuration) {
        match self {
            Self::Apic(apic) => {
                apic.lapic.write(phase, TMICT, counts(period));
            }
            Self::Events { timer, .. } => {
                *timer = ParavirtualTimer { due: Some(phase + period), period: Some(period) };
            }
        }
    }

    /// Makes the device's interrupt with this vector pending in the controller.
    pub(crate) fn request(&mut self, vector: u8, channels: &mut EventChannels) {
        match self {
            Self::Apic(apic) => {
                apic.lapic.accept(vector);
            }
            Self::Events { .. } => self.raise(1 + usize::from(vector.wrapping_sub(DEVICE_VECTOR)), channels),
        }
    }

    /// Records that the back end sent an event to the guest. Event channels need nothing more; an APIC gets
    /// the platform device's interrupt.
    pub(crate) fn event(&mut self) {
        if let Self::Apic(apic) = self {
            apic.lapic.accept(DEVICE_VECTOR);
        }
    }

    fn raise(&mut self, index: usize, channels: &mut EventChannels) {
        if let Self::Events { domain, ports, .. } = self
            && let Some(port) = ports.get(index)
        {
            // The port exists: it was bound when the guest was created.
            let _ = channels.raise(*domain, *port);
        }
    }

    /// Returns the time at which the guest's timer expires.
    pub(crate) fn deadline(&self) -> Option<VirtualInstant> {
        match self {
            Self::Apic(apic) => apic.lapic.deadline(),
            Self::Events { timer, .. } => timer.due,
        }
    }

    /// Advances the guest's timer to `now`. If the timer has expired, makes the timer's interrupt pending.
    pub(crate) fn run_timer(&mut self, now: VirtualInstant, channels: &mut EventChannels) {
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
        at: Option<VirtualInstant>,
        path: ApicWritePath,
        memory: &mut HostMemory,
        now: VirtualInstant,
    ) -> Result<(), InvariantViolation> {
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
    pub(crate) fn deliverable(&mut self, channels: &mut EventChannels) -> bool {
        match self {
            Self::Apic(apic) => apic.lapic.deliverable().is_some(),
            Self::Events { domain, .. } => channels.domain(*domain).is_ok_and(|own| own.upcall_due(0)),
        }
    }

    /// Takes the next interrupt for the guest's kernel. Returns the interrupt's source, and `true` if taking
    /// it began an event upcall.
    pub(crate) fn take(&mut self, channels: &mut EventChannels) -> Option<(InterruptSource, bool)> {
        match self {
            Self::Apic(apic) => {
                let interrupt = interrupt(apic.lapic.inject()?);
                if let (InterruptSource::Device(_), Some(domain)) = (interrupt, apic.platform) {
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
                let device = |index: usize| InterruptSource::Device(index as u16 - 1);
                Some((if index == 0 { InterruptSource::Timer } else { device(index) }, entered))
            }
        }
    }

    /// Ends the interrupt that the kernel took last, which must be the in-service interrupt of highest
    /// priority.
    pub(crate) fn end(
        &mut self,
        path: ApicWritePath,
        memory: &mut HostMemory,
        now: VirtualInstant,
    ) -> Result<(), InvariantViolation> {
        let Self::Apic(apic) = self else { return Ok(()) };
        let (highest, count) = (apic.lapic.in_service().highest(), apic.lapic.in_service().count());
        let ApicWriteEffect::Eoi(EoiEffect { ended, next, .. }) = apic.write(END, 0, path, memory, now)?
        else {
            return Err(InvariantViolation::EndOfInterrupt);
        };
        let one = ended.is_some() && ended == highest && apic.lapic.in_service().count() + 1 == count;
        if one && next == apic.lapic.deliverable() { Ok(()) } else { Err(InvariantViolation::EndOfInterrupt) }
    }
}

impl Apic {
    fn write(
        &mut self,
        store: ApicStoreInstruction,
        value: u32,
        path: ApicWritePath,
        memory: &mut HostMemory,
        now: VirtualInstant,
    ) -> Result<ApicWriteEffect, InvariantViolation> {
        let Self { lapic, code, .. } = self;
        match path {
            ApicWritePath::Direct => Ok(lapic.write(now, store.register, value)),
            ApicWritePath::Msr => {
                let msr = MSR_BASE + u32::from(store.register) / 16;
                lapic
                    .write_msr(now, msr, value.into())
                    .map_err(|_| InvariantViolation::Instruction(store.register))
            }
            ApicWritePath::Exit(policy) => code.exit(store, value, policy, (lapic, memory), now),
        }
    }
}

/// Converts a duration to a number of APIC timer counts, rounded up.
fn counts(span: VirtualDuration) -> u32 {
    u32::try_from(span.picos().div_ceil(COUNT.picos())).unwrap_or(u32::MAX)
}

fn interrupt(vector: u8) -> InterruptSource {
    match vector {
        TIMER_VECTOR => InterruptSource::Timer,
        vector => InterruptSource::Device(u16::from(vector.wrapping_sub(DEVICE_VECTOR))),
    }
}
