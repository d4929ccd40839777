//! A guest that plays audio beside a busy service domain on the same processor. The device consumes one
//! period of samples after the other and interrupts for each; the guest's player produces new ones. A missing
//! period is an underrun. There are no device registers, no other guests and no costs.

use crate::machine::books::ConservationChecks;
use crate::machine::engine::{Actor, ModelDefect, Simulation};
use hypervisor::account::{CycleCategory, CycleSink};
use hypervisor::cost::CostTable;
use hypervisor::cpu::{
    CreditScheduler, CreditSchedulerClocks, HardwareThreadId, HostMachine, ProcessorConfig,
    SchedulingParameters, SelectedScheduler, VcpuId, VcpuStep, VcpuStepOutcome,
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
    /// Seed of the random phases of device, player and scheduler.
    pub seed: u64,
    /// Virtual time that the audio simulation lasts.
    pub span: VirtualDuration,
}

/// Work of the audio guest per period, fitted to 2.47 underruns a second with the credit scheduler, ticks of 10 ms and
/// weights 1:16 (Dong et al., SYSTOR 2009).
pub const WORK: VirtualDuration = VirtualDuration::from_micros(176);
/// Accounting period of the scheduler, in milliseconds.
const ACCOUNTING_MS: u64 = 30;
/// Time that the audio device plays one period of 512 samples at 48 kHz, as requested by low-latency players.
const PERIOD: VirtualDuration = VirtualDuration::from_nanos(10_666_667);
/// Number of sample periods that the buffer holds.
const PERIODS: u32 = 2;
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
    /// Number of periods of samples in the buffer.
    filled: u32,
    underruns: u64,
}

impl Actor for AudioMachine {
    type Event = AudioEvent;

    fn handle(&mut self, AudioEvent::Period: AudioEvent, now: VirtualInstant, core: &mut AudioCore) {
        core.schedule(now + self.period, AudioEvent::Period);
        match self.filled.checked_sub(1) {
            Some(rest) => self.filled = rest,
            None => self.underruns += 1,
        }
        core.wake(self.guest, now);
    }

    /// Executes a step of the guest or the service domain. The player's work for a period is complete when the player's
    /// next step begins; the player sleeps while the sample buffer is full.
    fn execute(&mut self, mut step: VcpuStep, core: &mut AudioCore) {
        if step.vcpu() != self.guest {
            step.charge(CycleCategory::Kernel, BUSY);
            return core.finish(step, VcpuStepOutcome::Continue);
        }
        if core::mem::take(&mut self.makes) {
            self.filled += 1;
            let mean = self.mean.picos();
            self.work = VirtualDuration::from_picos(self.chance.within(mean / 2..mean / 2 * 3 + 1));
        }
        let then = if self.filled < PERIODS {
            self.makes = true;
            step.charge(CycleCategory::User, cycles(self.work));
            VcpuStepOutcome::Continue
        } else {
            VcpuStepOutcome::Block
        };
        core.finish(step, then);
    }

    fn check_books(&self, books: &mut ConservationChecks) {
        books.never("periods beyond the buffer", u64::from(self.filled.saturating_sub(PERIODS)));
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
        filled: PERIODS,
        underruns: 0,
    };
    Simulation { core, system }
}

#[cfg(test)]
mod tests {
    use super::{AudioSetup, PERIODS, WORK, build, run};
    use crate::machine::books::ConservationChecks;
    use crate::machine::engine::Actor;
    use sim::VirtualDuration;

    #[test]
    fn overfull_audio_buffer_fails_the_conservation_check() {
        let violates = |filled| {
            let mut engine = build(&AudioSetup {
                real_time: false,
                tick_ms: 10,
                weights: (1, 16),
                work: WORK,
                seed: 1,
                span: VirtualDuration::from_secs(1),
            });
            engine.system.filled = filled;
            let mut books = ConservationChecks::default();
            engine.system.check_books(&mut books);
            books.close().is_err()
        };
        assert_eq!([0, PERIODS, PERIODS + 1].map(violates), [false, false, true]);
    }

    fn rate(real_time: bool, tick_ms: u16, weights: (u16, u16)) -> f64 {
        let (seconds, seeds) = (60, 32);
        let span = VirtualDuration::from_secs(seconds);
        let plan = |seed| AudioSetup { real_time, tick_ms, weights, work: WORK, seed, span };
        (0..seeds).map(|seed| run(&plan(seed)).unwrap()).sum::<u64>() as f64 / (seconds * seeds) as f64
    }

    #[test]
    fn audio_underruns_match_the_calibrated_rate() {
        let rate = rate(false, 10, (1, 16));
        assert!((rate / 2.47 - 1.0).abs() < 0.15, "{rate}");
    }

    #[test]
    fn real_time_audio_player_never_underruns() {
        for tick_ms in [10, 1] {
            for weights in [(1, 16), (1, 1)] {
                assert!(rate(true, tick_ms, weights) < 1e-9);
            }
        }
    }

    #[test]
    fn more_scheduler_weight_gives_fewer_audio_underruns() {
        assert!(rate(false, 10, (1, 1)) < rate(false, 10, (1, 16)));
    }
}
