//! A guest that plays audio beside a busy service domain on the same processor. The device consumes one
//! period of samples after the other and interrupts for each; the guest's player produces new ones. A missing
//! period is an underrun. There are no other guests, and switches cost nothing.
//!
//! The device is assigned, so its registers cause no exit. But the samples come from an emulated disk. The guest has one
//! virtual CPU, which stands still at each access to the disk's registers until the device model in the service domain
//! has answered. It then continues like any virtual CPU of its weight: only its device's interrupt gives a guest of the
//! real-time class precedence. A guest without credits so waits for the service domain's busy program.

use crate::machine::books::ConservationChecks;
use crate::machine::engine::{Actor, ModelDefect, Simulation};
use hypervisor::account::{CycleCategory, CycleSink};
use hypervisor::cost::CostTable;
use hypervisor::cpu::{
    CreditScheduler, CreditSchedulerClocks, HardwareThreadId, HostMachine, ProcessorConfig,
    SchedulingParameters, SelectedScheduler, VcpuId, VcpuStep, VcpuStepOutcome, WakeCause,
};
use hypervisor::domain::DomainKind;
use sim::{Frequency, RandomStream, VirtualDuration, VirtualInstant};

/// Parameters of a simulated guest that plays audio.
#[derive(Debug, Clone, Copy)]
pub struct AudioSetup {
    /// The guest is in the scheduler's real-time class.
    pub real_time: bool,
    /// Period of the scheduler's tick, in milliseconds.
    pub tick_ms: u16,
    /// Scheduling weights of guest and service domain.
    pub weights: (u16, u16),
    /// Time that the audio player in the guest works per period.
    pub work: VirtualDuration,
    /// Number of sample periods that the buffer holds.
    pub periods: u32,
    /// Accesses to the emulated disk for each of its requests; 0 for a guest that reads no disk.
    pub accesses: u32,
    /// Seed of the random phases of device, player and scheduler.
    pub seed: u64,
    /// Virtual time that the audio simulation lasts.
    pub span: VirtualDuration,
}

/// Work of the audio guest per period, fitted to 2.47 underruns a second with the credit scheduler, ticks of 10 ms and
/// weights 1:16 (Dong et al., SYSTOR 2009).
pub const WORK: VirtualDuration = VirtualDuration::from_micros(154);
/// Accounting period of the scheduler, in milliseconds.
const ACCOUNTING_MS: u64 = 30;
/// Time that the audio device plays one period of 512 samples at 48 kHz, as requested by low-latency players.
const PERIOD: VirtualDuration = VirtualDuration::from_nanos(10_666_667);
/// Number of sample periods that a buffer holds by default: low-latency players have two.
pub const PERIODS: u32 = 2;
/// Periods that a request to the emulated disk brings: Linux reads 128 KB ahead, and 512 samples of two channels and 16
/// bits have 2 KB.
const PERIODS_PER_REQUEST: u64 = 64;
/// Register accesses of a request to the emulated disk. The driver writes eight task-file registers, four bus-master
/// registers and the address of the descriptor table. The interrupt handler reads both status registers and ends the
/// transfer (ATA/ATAPI-6, SFF-8038i).
pub const ACCESSES: u32 = 16;
/// Time from an access until the device model has answered it, with the service domain running: 25,600 cycles of the device
/// model at 2.8 GHz (an earlier fit of `device_model`, with which the audio constants were fitted), and two events. The
/// service domain's kernel prefers the device model, which mostly sleeps, to a busy program.
const ANSWER: VirtualDuration = VirtualDuration::from_micros(12);
/// Largest deviation of the device's crystal from the processor's, in millionths.
const DRIFT: u64 = 200;

/// Clock frequency of the audio machine, in Hz: a cycle is 10 ps. No operation has a cost in cycles here; only time
/// counts.
const CLOCK: u64 = 100_000_000_000;
/// Cycles of one step of the service domain, which is always busy in the audio simulation.
const BUSY: u64 = CLOCK / 100;

/// Event of the modelled machine that plays audio.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AudioEvent {
    /// Event: the audio device has consumed a period of samples and interrupts.
    Period,
    /// Event: the device model has answered an access of the guest.
    Answered,
}

type AudioCore = crate::machine::engine::SimulationCore<AudioEvent>;

/// Audio device with its sample buffer, and the guest's player that fills the buffer.
#[derive(Debug)]
pub(crate) struct AudioMachine {
    guest: VcpuId,
    /// Time in which the audio device plays the samples of one period.
    period: VirtualDuration,
    /// Mean work of the player per period.
    mean: VirtualDuration,
    chance: RandomStream,
    /// Work of the audio player for the device's next period.
    work: VirtualDuration,
    makes: bool,
    /// Number of sample periods that the buffer holds.
    periods: u32,
    /// Number of periods of samples in the buffer.
    filled: u32,
    /// Number of periods of samples that the player has made.
    made: u64,
    /// Accesses for each request to the emulated disk.
    accesses: u32,
    /// Accesses of the current request that are still to be made.
    accesses_left: u32,
    /// The guest stands still until the device model has answered.
    is_still: bool,
    underruns: u64,
}

impl Actor for AudioMachine {
    type Event = AudioEvent;

    fn handle(&mut self, event: AudioEvent, now: VirtualInstant, core: &mut AudioCore) {
        match event {
            AudioEvent::Period => {
                core.schedule(now + self.period, AudioEvent::Period);
                match self.filled.checked_sub(1) {
                    Some(rest) => self.filled = rest,
                    None => self.underruns += 1,
                }
                // An interrupt does not make a virtual CPU ready that stands still.
                if !self.is_still {
                    core.wake(self.guest, now);
                }
            }
            AudioEvent::Answered => {
                self.is_still = false;
                core.wake_by(self.guest, WakeCause::AccessDone, now);
            }
        }
    }

    /// Executes a step of the guest or the service domain. The player's work for a period is complete when the player's
    /// next step begins; the player sleeps while the sample buffer is full. While the guest stands still, only the
    /// service domain is ready, so it runs the device model at once.
    fn execute(&mut self, mut step: VcpuStep, core: &mut AudioCore) {
        if step.vcpu() != self.guest {
            step.charge(CycleCategory::Kernel, BUSY);
            return core.finish(step, VcpuStepOutcome::Continue);
        }
        if core::mem::take(&mut self.makes) {
            self.finish_period();
        }
        if let Some(left) = self.accesses_left.checked_sub(1) {
            (self.accesses_left, self.is_still) = (left, true);
            core.schedule(step.now() + ANSWER, AudioEvent::Answered);
            return core.finish(step, VcpuStepOutcome::Block);
        }
        let then = if self.filled < self.periods {
            self.makes = true;
            step.charge(CycleCategory::User, cycles(self.work));
            VcpuStepOutcome::Continue
        } else {
            VcpuStepOutcome::Block
        };
        core.finish(step, then);
    }

    fn check_books(&self, books: &mut ConservationChecks) {
        books.never("periods beyond the buffer", u64::from(self.filled.saturating_sub(self.periods)));
    }
}

impl AudioMachine {
    /// Adds the period that the player has made to the buffer, and draws the work of the next one. Every request to the
    /// disk brings several periods.
    fn finish_period(&mut self) {
        self.filled += 1;
        self.made += 1;
        if self.made.is_multiple_of(PERIODS_PER_REQUEST) {
            self.accesses_left = self.accesses;
        }
        let mean = self.mean.picos();
        self.work = VirtualDuration::from_picos(self.chance.within(mean / 2..mean / 2 * 3 + 1));
    }
}

fn cycles(span: VirtualDuration) -> u64 {
    Frequency::from_hertz(CLOCK).cycle_at(VirtualInstant::ZERO + span)
}

/// Simulates the audio machine. Returns the number of underruns.
///
/// # Errors
/// [`ModelDefect`] of the model.
pub fn run(plan: &AudioSetup) -> Result<u64, ModelDefect> {
    let mut engine = build(plan);
    engine.observe((VirtualDuration::ZERO, plan.span), |_| ())?;
    Ok(engine.system.underruns)
}

/// Creates the audio machine, with random phases and crystal drift.
fn build(plan: &AudioSetup) -> Simulation<AudioMachine> {
    let mut phases = RandomStream::named(plan.seed, "phases");
    let drift = phases.below(2 * DRIFT + 1);
    let period = VirtualDuration::from_picos(PERIOD.picos() / 1_000_000 * (1_000_000 - DRIFT + drift));
    let mut phase = |period: VirtualDuration| VirtualDuration::from_picos(phases.below(period.picos()));
    let clocks = CreditSchedulerClocks {
        millisecond: cycles(VirtualDuration::from_millis(1)),
        tick_ms: plan.tick_ms,
        first_tick: cycles(phase(VirtualDuration::from_millis(plan.tick_ms.max(1).into()))),
        first_accounting: cycles(phase(VirtualDuration::from_millis(ACCOUNTING_MS))),
    };
    let first = phase(PERIOD);
    let table = CostTable::nehalem();
    let config = ProcessorConfig {
        clock: Frequency::from_hertz(CLOCK),
        switch: 0,
        refill: 0,
        ..ProcessorConfig::from_table(&table, 1, 1)
    };
    let processors =
        HostMachine::with_scheduler(config, SelectedScheduler::Credit(CreditScheduler::new(clocks)));
    let mut core = AudioCore::new(table, processors);
    let mut add = |kind, name: &str, weight, real_time| {
        let domain = core.processors.add_domain(kind, name.to_owned());
        let share = SchedulingParameters { weight, real_time, ..SchedulingParameters::default() };
        core.processors.add_vcpu_with(domain, HardwareThreadId::new(0), share)
    };
    let guest = add(DomainKind::Hvm, "guest", plan.weights.0, plan.real_time);
    let service = add(DomainKind::Dom0, "dom0", plan.weights.1, false);
    core.schedule(VirtualInstant::ZERO + first, AudioEvent::Period);
    core.wake(service, VirtualInstant::ZERO);
    let chance = RandomStream::named(plan.seed, "work");
    let system = AudioMachine {
        guest,
        period,
        mean: plan.work,
        chance,
        work: plan.work,
        makes: false,
        periods: plan.periods,
        filled: plan.periods,
        made: 0,
        accesses: plan.accesses,
        accesses_left: 0,
        is_still: false,
        underruns: 0,
    };
    Simulation { core, system }
}

#[cfg(test)]
mod tests {
    use super::{ACCESSES, AudioEvent, AudioSetup, PERIODS, WORK, build, run};
    use crate::machine::books::ConservationChecks;
    use crate::machine::engine::Actor;
    use sim::{VirtualDuration, VirtualInstant};

    const SETUP: AudioSetup = AudioSetup {
        real_time: false,
        tick_ms: 10,
        weights: (1, 16),
        work: WORK,
        periods: PERIODS,
        accesses: ACCESSES,
        seed: 1,
        span: VirtualDuration::from_secs(60),
    };

    #[test]
    fn overfull_audio_buffer_fails_the_conservation_check() {
        let violates = |filled| {
            let mut engine = build(&SETUP);
            engine.system.filled = filled;
            let mut books = ConservationChecks::default();
            engine.system.check_books(&mut books);
            books.close().is_err()
        };
        assert_eq!([0, PERIODS, PERIODS + 1].map(violates), [false, false, true]);
    }

    /// Checks an access of the guest: the guest stands still until the answer, and the device's interrupt does not change that.
    #[test]
    fn interrupt_does_not_wake_a_guest_that_waits_for_an_answer() {
        let mut engine = build(&AudioSetup { real_time: true, ..SETUP });
        (engine.system.accesses_left, engine.system.filled) = (1, 0);
        let guest = engine.system.guest;
        let mut now = VirtualInstant::ZERO;
        while engine.system.accesses_left > 0 {
            now += VirtualDuration::from_micros(1);
            engine.run(now);
        }
        assert!(engine.system.is_still && engine.core.processors.is_blocked(guest));
        engine.system.handle(AudioEvent::Period, now, &mut engine.core);
        assert!(engine.core.processors.is_blocked(guest));
        engine.system.handle(AudioEvent::Answered, now, &mut engine.core);
        assert!(!engine.system.is_still && !engine.core.processors.is_blocked(guest));
    }

    /// Returns the underruns a second, over 32 runs.
    fn rate(setup: AudioSetup) -> f64 {
        let seeds = 32;
        let seconds = setup.span.as_secs_f64() * seeds as f64;
        (0..seeds).map(|seed| run(&AudioSetup { seed, ..setup }).unwrap()).sum::<u64>() as f64 / seconds
    }

    #[test]
    fn audio_underruns_match_the_calibrated_rate() {
        let rate = rate(SETUP);
        assert!((rate / 2.47 - 1.0).abs() < 0.15, "{rate}");
    }

    /// Checks that a real-time guest whose virtual CPU never stands still has no underrun, whatever its weight.
    #[test]
    fn real_time_audio_without_emulated_accesses_never_underruns() {
        for tick_ms in [10, 1] {
            for weights in [(1, 16), (1, 1)] {
                let setup = AudioSetup { real_time: true, accesses: 0, tick_ms, weights, ..SETUP };
                assert!(rate(setup) < 1e-9);
            }
        }
    }

    #[test]
    fn emulated_accesses_cost_a_real_time_guest_its_precedence() {
        let credit = rate(SETUP);
        let real_time = rate(AudioSetup { real_time: true, ..SETUP });
        assert!(0.0 < real_time && real_time < credit, "{real_time} {credit}");
    }

    #[test]
    fn more_scheduler_weight_or_periods_give_fewer_audio_underruns() {
        let base = rate(SETUP);
        assert!(rate(AudioSetup { weights: (1, 1), ..SETUP }) < base);
        assert!(rate(AudioSetup { periods: 2 * PERIODS, ..SETUP }) < base);
    }
}
