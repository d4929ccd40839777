//! Hard interrupts and the timer of a guest's kernel. A 2.6.18 kernel masks the vector first and unmasks it last, and
//! blocks while the device model does that.

use super::{Kernel, Tick};
use crate::device::Device;
use crate::platform::{Access, Interrupt, Platform};
use hypervisor::account::Category;
use hypervisor::cost::Cost;
use hypervisor::cpu::AfterStep;
use sim::Instant;

/// Progress of the kernel's hard interrupt handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The mask access of the vector is in progress; the handler runs next.
    Masked(u16),
    /// The handler has run; at most the unmask access is in progress.
    Done,
}

/// Change of a tickless kernel's tick.
#[derive(Debug, Clone, Copy)]
enum TickChange {
    Start,
    Stop,
}

impl<D> Kernel<D> {
    /// Takes one hard interrupt, or resumes a blocked one. Returns `None` if none is pending.
    pub(super) fn interrupt<P: Platform>(&mut self, platform: &mut P) -> Option<AfterStep>
    where
        D: Device<P>,
    {
        let phase = match self.phase.take() {
            Some(phase) => phase,
            None => match platform.take_interrupt()? {
                Interrupt::Timer => {
                    self.timer_interrupt(platform);
                    Phase::Done
                }
                Interrupt::Device(vector) => {
                    platform.charge(Category::Kernel, platform.cost(Cost::InterruptEntry));
                    if self.spec.masks && platform.mask(vector, true) == Access::Blocked {
                        self.phase = Some(Phase::Masked(vector));
                        return Some(AfterStep::Block);
                    }
                    Phase::Masked(vector)
                }
            },
        };
        if let Phase::Masked(vector) = phase {
            self.handle(platform, vector);
            platform.end_of_interrupt();
            if self.spec.masks && platform.mask(vector, false) == Access::Blocked {
                self.phase = Some(Phase::Done);
                return Some(AfterStep::Block);
            }
        }
        self.idle = false;
        Some(AfterStep::Continue)
    }

    /// Runs the driver's handler, which schedules a poll or handles the event at once.
    fn handle<P: Platform>(&mut self, platform: &mut P, vector: u16)
    where
        D: Device<P>,
    {
        platform.charge(Category::Driver, platform.cost(Cost::InterruptHandler));
        let events = self.device.interrupt(platform, vector);
        if events.received {
            self.counters.receive_interrupts += 1;
            self.poll = true;
        }
        if events.transmitted {
            self.resume_sending(platform);
            self.wake_sender(platform);
        }
    }

    fn timer_interrupt<P: Platform>(&mut self, platform: &mut P) {
        self.counters.timer_interrupts += 1;
        platform
            .charge(Category::Kernel, platform.cost(Cost::InterruptEntry) + platform.cost(Cost::GuestTick));
        platform.end_of_interrupt();
        self.timer = None;
        match self.spec.tick {
            // A periodic timer needs no reprogramming.
            Tick::Periodic(_) => {}
            Tick::Tickless(_) if self.idle => {}
            Tick::Tickless(_) => self.start_tick(platform),
        }
    }

    /// Restarts a tickless kernel's tick, because the program was woken from idle.
    pub(super) fn start_tick<P: Platform>(&mut self, platform: &mut P) {
        let Tick::Tickless(period) = self.spec.tick else { return };
        let period = period.picos().max(1);
        let next = Instant::ZERO + sim::Span::from_picos((platform.instant().picos() / period + 1) * period);
        self.program(platform, TickChange::Start, Some(next));
    }

    /// Stops a tickless kernel's tick, because nothing is runnable.
    pub(super) fn stop_tick<P: Platform>(&mut self, platform: &mut P) {
        if let Tick::Tickless(_) = self.spec.tick {
            self.program(platform, TickChange::Stop, None);
        }
    }

    /// Reprograms the timer for a share of the changes, a constant of the cost table. The kernel leaves a
    /// tick alone that is due at once, and may restart a stopped one for the time it was already set to.
    fn program<P: Platform>(&mut self, platform: &mut P, change: TickChange, at: Option<Instant>) {
        if self.timer == at {
            return;
        }
        // Starts and stops have separate debts: they alternate, and a shared debt would always fall due on
        // the same one.
        let debt = &mut self.timer_debts[change as usize];
        *debt += platform.cost(Cost::TimerWrites);
        if *debt >= 1_000 {
            *debt -= 1_000;
            self.timer = at;
            platform.set_timer(at);
        }
    }
}
