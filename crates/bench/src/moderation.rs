//! Measures interrupt rates of a receiver and their effects: four policies under four loads, live. The receiver's
//! driver acts only on interrupts, has a ring of 64 buffers, and returns them when it has emptied the ring. Frames that
//! arrive between two interrupts and do not fit are dropped, as in the research behind the adaptive policy (Dong et
//! al., HPCA 2010).
//!
//! Adaptive Virtual Functions are not measured, because their driver has one policy. The lab models the cost of an
//! interrupt for a guest's processor; this receiver polls its eventfd.

use crate::contender::ContenderKind;
use crate::contender::card::CardVariant;
use crate::contender::guests::GuestRings;
use crate::contender::guests::vf::PolledVf;
use crate::contender::host::HostProcess;
use crate::contender::stations::address;
use crate::contender::work::Workload;
use crate::machine::processors::ProcessorAssignment;
use crate::options::BenchmarkOptions;
use crate::report::rows::{BenchmarkRow, LatencyPercentiles, ReceiverInterrupts};
use crate::statistics::quantile;
use anyhow::{Context, Result};
use driver::any_vf::AnyVfConfig;
use driver::moderation::{AdaptiveModeration, ModerationPolicy};
use driver::vf::{RECEIVE_VECTOR, VfDriverConfig, VfInterruptCause};
use std::iter;
use std::time::{Duration, Instant};
use vfio_client::VfDriverHal;

/// Prefix of the names of the report's rows on interrupt moderation.
pub const BENCH: &str = "interrupts, ";

/// Measured policies of interrupt moderation, each with its name in the report.
const POLICIES: [(&str, ModerationPolicy); 4] = [
    ("20 kHz", ModerationPolicy::Fixed(50)),
    ("2 kHz", ModerationPolicy::Fixed(500)),
    ("1 kHz", ModerationPolicy::Fixed(1_000)),
    ("adaptive", ModerationPolicy::Adaptive(ADAPTIVE)),
];
/// Adaptive policy with the paper's values: r = 1.2, 64 buffers, at least 1 kHz.
const ADAPTIVE: AdaptiveModeration = AdaptiveModeration {
    redundancy: driver::moderation::BufferRedundancy(12),
    buffers: BUFFERS as u32,
    lowest_hz: 1_000,
};
/// Number of buffers of the receiver's ring in the moderation benchmark.
const BUFFERS: u16 = 64;
/// Number of frames of 1,500 bytes in a second at 1 Gb/s.
const BULK: f64 = 81_267.0;
/// Number of frames in a second before the load rises to [`BULK`].
const TRICKLE: f64 = 10_000.0;
/// Duration of a load before its measurement, longer than the adaptive policy needs to notice a rate.
const SETTLE: Duration = Duration::from_millis(2_200);
/// Duration of the measurement after the load has risen, in which the adaptive policy notices the new rate.
const AFTER_STEP: Duration = Duration::from_millis(1_000);
/// Timeout after which an answer to a request, or a pending frame, counts as lost.
const LOST: Duration = Duration::from_millis(100);

/// Frames sent, latencies and interrupts of a receiver during a load.
#[derive(Debug, Default)]
struct ReceiverMeasurement {
    sent: u64,
    interrupts: u64,
    /// Latency of each received frame in nanoseconds.
    took: Vec<f64>,
}

/// Measures every policy of interrupt moderation under every load, and returns the report's rows.
///
/// # Errors
/// The host is gone, or a VF does not start.
pub fn rows(
    options: &BenchmarkOptions,
    mode: ContenderKind,
    processors: ProcessorAssignment,
    size: usize,
) -> Result<Vec<BenchmarkRow>> {
    let host = HostProcess::start(options, CardVariant::I82576, mode, processors, 2)?;
    let mut rows = Vec::new();
    for (name, policy) in POLICIES {
        let mut link = InterruptDrivenVfPair::attach(&host, policy, size)?;
        let length = Duration::from_millis(options.moderation_ms);
        let loads = host.running(|| link.loads(length))?;
        rows.extend(loads.into_iter().map(|(load, met, length)| row(load, name, met, length, mode, size)));
    }
    Ok(rows)
}

fn row(
    load: &str,
    policy: &str,
    mut met: ReceiverMeasurement,
    length: Duration,
    mode: ContenderKind,
    size: usize,
) -> BenchmarkRow {
    let mut row = BenchmarkRow::new(&format!("{BENCH}{load}"), policy, size, mode);
    let received = met.took.len();
    row.set_rate(Some(received as f64 / length.as_secs_f64() / 1e6));
    let lost = met.sent.saturating_sub(received as u64) as f64 / (met.sent.max(1)) as f64;
    let hertz = met.interrupts as f64 / length.as_secs_f64();
    row.interrupts = Some(ReceiverInterrupts { hertz, lost });
    let mut at = |part| quantile(&mut met.took, part);
    row.latency =
        Some(LatencyPercentiles { load: 1.0, p50_ns: at(0.5), p99_ns: at(0.99), p999_ns: at(0.999) });
    row
}

/// Two VFs whose drivers act on interrupts. The first VF sends; the second receives, and answers if the load consists
/// of requests.
struct InterruptDrivenVfPair {
    stations: [PolledVf; 2],
    /// Frame that each VF sends.
    frames: [Vec<u8>; 2],
    size: usize,
    buffer: Vec<u8>,
    clock: Instant,
}

impl InterruptDrivenVfPair {
    fn attach(host: &HostProcess, policy: ModerationPolicy, size: usize) -> Result<Self> {
        host.running(|| {
            let i82576 =
                VfDriverConfig { rx_descriptors: BUFFERS, moderation: policy, ..VfDriverConfig::default() };
            let wanted = AnyVfConfig { i82576, ..AnyVfConfig::default() };
            let station = |vf: usize| PolledVf::attach(&host.socket(vf), &wanted).with_context(|| host.log());
            let stations = [station(0)?, station(1)?];
            let frames = [0, 1].map(|vf| Workload::Frames(size).frame(address(vf), address(1 - vf)));
            Ok(Self { stations, frames, size, buffer: vec![0; 2048], clock: Instant::now() })
        })?
    }

    /// Sends every load to the receiver in turn. Returns the name, the receiver's counts and the duration of each load.
    fn loads(&mut self, length: Duration) -> Vec<(&'static str, ReceiverMeasurement, Duration)> {
        self.stream(TRICKLE, SETTLE);
        let step = self.stream(BULK, AFTER_STEP);
        self.stream(BULK, SETTLE);
        let bulk = self.stream(BULK, length);
        self.stream(TRICKLE, SETTLE);
        let trickle = self.stream(TRICKLE, length);
        let asked = self.ask(length);
        vec![
            ("10,000 frames/s", trickle, length),
            ("81,267 frames/s", bulk, length),
            ("first second of a step up", step, AFTER_STEP),
            ("request and response", asked, length),
        ]
    }

    /// Sends frames to the receiver at a steady pace for `length`, and counts the arriving frames, including those
    /// after the last send.
    fn stream(&mut self, pace: f64, length: Duration) -> ReceiverMeasurement {
        let begun = self.clock.elapsed();
        let due = |frame: u64| (begun.as_nanos() as f64 + frame as f64 / pace * 1e9) as u64;
        let mut met = ReceiverMeasurement::default();
        while self.clock.elapsed() < begun + length + LOST {
            let past = (self.clock.elapsed() - begun).min(length);
            let wanted = (past.as_secs_f64() * pace) as u64;
            met.sent += self.send(0, (met.sent..wanted).map(due));
            self.take(1, &mut met);
        }
        met
    }

    /// Sends a frame of a VF for each send time in `stamps`. Returns the number of sent frames.
    fn send(&mut self, vf: usize, mut stamps: impl Iterator<Item = u64>) -> u64 {
        self.stations[vf].send_stamped(&mut self.frames[vf], &mut stamps)
    }

    /// Sends one-frame requests for `length`, each after the answer to the previous request, and counts the answers.
    fn ask(&mut self, length: Duration) -> ReceiverMeasurement {
        let begun = self.clock.elapsed();
        let mut met = ReceiverMeasurement::default();
        while self.clock.elapsed() < begun + length {
            let stamp = self.clock.elapsed();
            met.sent += self.send(0, iter::once(stamp.as_nanos() as u64));
            let answered = met.took.len();
            let mut heard = ReceiverMeasurement::default();
            while met.took.len() == answered && self.clock.elapsed() < stamp + LOST {
                let before = heard.took.len();
                self.take(1, &mut heard);
                let requests = (heard.took.len() - before) as u64;
                if requests > 0 {
                    self.send(1, iter::once(stamp.as_nanos() as u64));
                }
                self.take(0, &mut met);
            }
            met.interrupts += heard.interrupts;
        }
        met
    }

    /// Handles a signal of a VF's receive vector as a driver does: takes every frame, returns the buffers, and unmasks
    /// the vector.
    fn take(&mut self, station: usize, met: &mut ReceiverMeasurement) {
        let Self { stations, size, buffer, clock, .. } = self;
        let sender = address(1 - station);
        let station = &mut stations[station];
        let vector = usize::from(RECEIVE_VECTOR);
        let signals = station.hal.eventfd(vector).map_or(0, |eventfd| eventfd.drain());
        if signals == 0
            || station.vf.handle_interrupt(&mut station.hal, RECEIVE_VECTOR) != VfInterruptCause::Received
        {
            return;
        }
        met.interrupts += signals;
        while let Some(stamp) = station.next_stamp(buffer, sender, *size) {
            met.took.push(clock.elapsed().as_nanos() as f64 - stamp as f64);
        }
        station.vf.receive_done(&mut station.hal);
    }
}
