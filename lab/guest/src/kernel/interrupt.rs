//! Hard interrupts and the timer of a guest's kernel. A 2.6.18 kernel masks an interrupt's MSI-X vector first and
//! unmasks the vector last. The kernel blocks while the device model carries out these accesses.

use super::{KernelModel, TickMode};
use crate::device::NetworkDevice;
use crate::platform::{DeviceAccessOutcome, InterruptSource, KernelPlatform};
use hypervisor::account::CycleCategory;
use hypervisor::cost::CostConstant;
use hypervisor::cpu::VcpuStepOutcome;
use sim::VirtualInstant;

/// Progress of the kernel's hard interrupt handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InterruptPhase {
    /// The access that masks the interrupt vector is in progress; the interrupt handler runs next.
    Masked(u16),
    /// The interrupt handler has run; at most the access that unmasks the vector is in progress.
    Done,
}

/// Request to start or stop a tickless kernel's periodic timer interrupt.
#[derive(Debug, Clone, Copy)]
enum TimerTickChange {
    Start,
    Stop,
}

impl<D> KernelModel<D> {
    /// Handles the next hard interrupt, or resumes the handling of a blocked one. Returns `None` if no interrupt is
    /// pending.
    pub(super) fn interrupt<P: KernelPlatform>(&mut self, platform: &mut P) -> Option<VcpuStepOutcome>
    where
        D: NetworkDevice<P>,
    {
        let phase = match self.phase.take() {
            Some(phase) => phase,
            None => match platform.take_interrupt()? {
                InterruptSource::Timer => {
                    self.timer_interrupt(platform);
                    InterruptPhase::Done
                }
                InterruptSource::Device(vector) => {
                    platform.charge(CycleCategory::Kernel, platform.cost(CostConstant::InterruptEntry));
                    if self.spec.masks && platform.mask(vector, true) == DeviceAccessOutcome::Blocked {
                        self.phase = Some(InterruptPhase::Masked(vector));
                        return Some(VcpuStepOutcome::Block);
                    }
                    InterruptPhase::Masked(vector)
                }
            },
        };
        if let InterruptPhase::Masked(vector) = phase {
            self.handle(platform, vector);
            platform.end_of_interrupt();
            if self.spec.masks && platform.mask(vector, false) == DeviceAccessOutcome::Blocked {
                self.phase = Some(InterruptPhase::Done);
                return Some(VcpuStepOutcome::Block);
            }
        }
        self.idle = false;
        Some(VcpuStepOutcome::Continue)
    }

    /// Runs the network driver's interrupt handler: schedules a poll if frames were received, and sends pending frames
    /// if earlier ones were transmitted.
    fn handle<P: KernelPlatform>(&mut self, platform: &mut P, vector: u16)
    where
        D: NetworkDevice<P>,
    {
        platform.charge(CycleCategory::Driver, platform.cost(CostConstant::InterruptHandler));
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

    fn timer_interrupt<P: KernelPlatform>(&mut self, platform: &mut P) {
        self.counters.timer_interrupts += 1;
        platform.charge(
            CycleCategory::Kernel,
            platform.cost(CostConstant::InterruptEntry) + platform.cost(CostConstant::GuestTick),
        );
        platform.end_of_interrupt();
        self.timer = None;
        match self.spec.tick {
            // A periodic timer needs no reprogramming.
            TickMode::Periodic(_) => {}
            TickMode::Tickless(_) if self.idle => {}
            TickMode::Tickless(_) => self.start_tick(platform),
        }
    }

    /// Restarts a tickless kernel's timer interrupts, because the program was woken from idle.
    pub(super) fn start_tick<P: KernelPlatform>(&mut self, platform: &mut P) {
        let TickMode::Tickless(period) = self.spec.tick else { return };
        let period = period.picos().max(1);
        let next = VirtualInstant::ZERO
            + sim::VirtualDuration::from_picos((platform.instant().picos() / period + 1) * period);
        self.program(platform, TimerTickChange::Start, Some(next));
    }

    /// Stops a tickless kernel's timer interrupts, because nothing is runnable.
    pub(super) fn stop_tick<P: KernelPlatform>(&mut self, platform: &mut P) {
        if let TickMode::Tickless(_) = self.spec.tick {
            self.program(platform, TimerTickChange::Stop, None);
        }
    }

    /// Reprograms the timer when a kernel's tick starts or stops, for the share of these changes that the cost table
    /// gives. The kernel leaves a tick alone that is due at once, and may restart a stopped tick for the time it was
    /// already set to.
    fn program<P: KernelPlatform>(
        &mut self,
        platform: &mut P,
        change: TimerTickChange,
        at: Option<VirtualInstant>,
    ) {
        if self.timer == at {
            return;
        }
        // Starts and stops have separate debts: they alternate, and a shared debt would always fall due on
        // the same one.
        let debt = &mut self.timer_debts[change as usize];
        *debt += platform.cost(CostConstant::TimerWrites);
        if *debt >= 1_000 {
            *debt -= 1_000;
            self.timer = at;
            platform.set_timer(at);
        }
    }
}
