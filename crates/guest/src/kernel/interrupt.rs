//! Hard interrupts and the timer. A 2.6.18 kernel masks the vector first and unmasks it last, and stands still
//! while somebody else does that for it.

use super::{Kernel, Tick};
use crate::device::Device;
use crate::platform::{Access, Interrupt, Platform};
use hypervisor::account::Category;
use hypervisor::cost::Cost;
use hypervisor::cpu::Then;
use sim::Instant;

/// Where a hard interrupt stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The vector is being masked; its handler is next.
    Masked(u16),
    /// The vector is being unmasked, or need not be; nothing is left.
    Over,
}

/// What a tickless kernel does to its tick.
#[derive(Debug, Clone, Copy)]
enum Change {
    Start,
    Stop,
}

impl<D> Kernel<D> {
    /// Takes one hard interrupt, or goes on with one. `None` if there is none.
    pub(super) fn interrupt<P: Platform>(&mut self, platform: &mut P) -> Option<Then>
    where
        D: Device<P>,
    {
        let phase = match self.phase.take() {
            Some(phase) => phase,
            None => match platform.take_interrupt()? {
                Interrupt::Timer => {
                    self.timer_interrupt(platform);
                    Phase::Over
                }
                Interrupt::Device(vector) => {
                    platform.charge(Category::Kernel, platform.cost(Cost::InterruptEntry));
                    if self.spec.masks && platform.mask(vector, true) == Access::Waits {
                        self.phase = Some(Phase::Masked(vector));
                        return Some(Then::Block);
                    }
                    Phase::Masked(vector)
                }
            },
        };
        if let Phase::Masked(vector) = phase {
            self.handle(platform, vector);
            platform.end_of_interrupt();
            if self.spec.masks && platform.mask(vector, false) == Access::Waits {
                self.phase = Some(Phase::Over);
                return Some(Then::Block);
            }
        }
        self.idle = false;
        Some(Then::Continue)
    }

    /// The driver's handler: it schedules a poll, or deals with the event at once.
    fn handle<P: Platform>(&mut self, platform: &mut P, vector: u16)
    where
        D: Device<P>,
    {
        platform.charge(Category::Driver, platform.cost(Cost::InterruptHandler));
        let heard = self.device.interrupt(platform, vector);
        if heard.received {
            self.counters.receive_interrupts += 1;
            self.poll = true;
        }
        if heard.transmitted {
            self.push_again(platform);
            self.room_again(platform);
        }
    }

    fn timer_interrupt<P: Platform>(&mut self, platform: &mut P) {
        self.counters.timer_interrupts += 1;
        platform
            .charge(Category::Kernel, platform.cost(Cost::InterruptEntry) + platform.cost(Cost::GuestTick));
        platform.end_of_interrupt();
        self.timer = None;
        match self.spec.tick {
            // The timer repeats by itself.
            Tick::Periodic(_) => {}
            Tick::Tickless(_) if self.idle => {}
            Tick::Tickless(_) => self.start_tick(platform),
        }
    }

    /// The program was woken from idle: a tickless kernel starts its tick again.
    pub(super) fn start_tick<P: Platform>(&mut self, platform: &mut P) {
        let Tick::Tickless(period) = self.spec.tick else { return };
        let period = period.picos().max(1);
        let next = Instant::ZERO + sim::Span::from_picos((platform.instant().picos() / period + 1) * period);
        self.program(platform, Change::Start, Some(next));
    }

    /// Nothing runs: a tickless kernel stops its tick.
    pub(super) fn stop_tick<P: Platform>(&mut self, platform: &mut P) {
        if let Tick::Tickless(_) = self.spec.tick {
            self.program(platform, Change::Stop, None);
        }
    }

    /// Not every change of mind reaches the timer: a tick that is due at once is left alone, and a stopped one may
    /// be started for what it was set for before. How many do is a constant of the table.
    fn program<P: Platform>(&mut self, platform: &mut P, change: Change, at: Option<Instant>) {
        if self.timer == at {
            return;
        }
        // Starts and stops are counted apart: they alternate, and one count for both would fall into step.
        let debt = &mut self.timer_debts[change as usize];
        *debt += platform.cost(Cost::TimerWrites);
        if *debt >= 1_000 {
            *debt -= 1_000;
            self.timer = at;
            platform.set_timer(at);
        }
    }
}
