//! How often a receiver is interrupted, and what that costs it: four policies under four loads, live. The receiver's
//! driver hears nothing but interrupts, has a ring of 64 buffers, and gives them back when it has emptied the ring; so
//! frames that come between two interrupts and do not fit are dropped, as in the research that the adaptive policy
//! is from (Dong et al., HPCA 2010).
//!
//! Left out: Adaptive Virtual Functions, whose driver here has one policy; what an interrupt costs a guest's processor, which the lab models; this receiver looks at its eventfd
//! all the time.

use crate::contender::Mode;
use crate::contender::card::Card;
use crate::contender::host::Host;
use crate::contender::stations::{Station, address};
use crate::contender::work::Work;
use crate::machine::processors::Processors;
use crate::options::Options;
use crate::report::{Interrupts, Latency, Row};
use crate::statistics::quantile;
use anyhow::{Context, Result};
use driver::any_vf::AnyVfConfig;
use driver::moderation::{Adaptive, Policy};
use driver::vf::{Config, Event, RECEIVE_VECTOR};
use std::iter;
use std::time::{Duration, Instant};
use vfio_client::VfBus;

/// What the names of these rows begin with.
pub const BENCH: &str = "interrupts, ";

/// The policies: names and what the driver is told.
const POLICIES: [(&str, Policy); 4] = [
    ("20 kHz", Policy::Fixed(50)),
    ("2 kHz", Policy::Fixed(500)),
    ("1 kHz", Policy::Fixed(1_000)),
    ("adaptive", Policy::Adaptive(ADAPTIVE)),
];
/// r = 1.2, 64 buffers, at least 1 kHz: the paper's values.
const ADAPTIVE: Adaptive =
    Adaptive { redundancy: driver::moderation::Redundancy(12), buffers: BUFFERS as u32, lowest_hz: 1_000 };
/// Of the receiver's ring.
const BUFFERS: u16 = 64;
/// 1,500 bytes at 1 Gb/s.
const BULK: f64 = 81_267.0;
/// Before the rate's step up to [`BULK`].
const TRICKLE: f64 = 10_000.0;
/// Longer than the adaptive policy takes to see a rate.
const SETTLE: Duration = Duration::from_millis(2_200);
/// What follows the step, until the adaptive policy has seen it for sure.
const AFTER_STEP: Duration = Duration::from_millis(1_000);
/// When an answer counts as lost.
const LOST: Duration = Duration::from_millis(100);

/// What a receiver met with during a load.
#[derive(Debug, Default)]
struct Met {
    sent: u64,
    interrupts: u64,
    /// Nanoseconds each.
    took: Vec<f64>,
}

/// A row for each policy and load.
///
/// # Errors
/// The host is gone, or a VF does not start.
pub fn rows(options: &Options, mode: Mode, processors: Processors, size: usize) -> Result<Vec<Row>> {
    let host = Host::start(options, Card::I82576, mode, processors, 2)?;
    let mut rows = Vec::new();
    for (name, policy) in POLICIES {
        let mut link = Link::attach(&host, policy, size)?;
        let length = Duration::from_millis(options.moderation_ms);
        let loads = host.running(|| link.loads(length))?;
        rows.extend(loads.into_iter().map(|(load, met, length)| row(load, name, met, length, mode, size)));
    }
    Ok(rows)
}

fn row(load: &str, policy: &str, mut met: Met, length: Duration, mode: Mode, size: usize) -> Row {
    let mut row = Row::new(&format!("{BENCH}{load}"), policy, size, mode);
    let received = met.took.len();
    row.set_rate(Some(received as f64 / length.as_secs_f64() / 1e6));
    let lost = met.sent.saturating_sub(received as u64) as f64 / (met.sent.max(1)) as f64;
    let hertz = met.interrupts as f64 / length.as_secs_f64();
    row.interrupts = Some(Interrupts { hertz, lost });
    let mut at = |part| quantile(&mut met.took, part);
    row.latency = Some(Latency { load: 1.0, p50_ns: at(0.5), p99_ns: at(0.99), p999_ns: at(0.999) });
    row
}

/// Two VFs whose drivers hear interrupts; the first sends, the second receives, and answers when it is asked to.
struct Link {
    stations: [Station; 2],
    size: usize,
    buffer: Vec<u8>,
    clock: Instant,
}

impl Link {
    fn attach(host: &Host, policy: Policy, size: usize) -> Result<Self> {
        host.running(|| {
            let i82576 = Config { rx_descriptors: BUFFERS, moderation: policy, ..Config::default() };
            let wanted = AnyVfConfig { i82576, ..AnyVfConfig::default() };
            let station = |vf: usize| {
                let frame = Work::Frames(size).frame(address(vf), address(1 - vf));
                Station::attach(&host.socket(vf), frame, &wanted).with_context(|| host.log())
            };
            let stations = [station(0)?, station(1)?];
            Ok(Self { stations, size, buffer: vec![0; 2048], clock: Instant::now() })
        })?
    }

    /// Every load in turn: its name, what was met with, and how long it took.
    fn loads(&mut self, length: Duration) -> Vec<(&'static str, Met, Duration)> {
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

    /// Frames at a steady pace; those under way at the end are waited for.
    fn stream(&mut self, pace: f64, length: Duration) -> Met {
        let begun = self.clock.elapsed();
        let due = |frame: u64| (begun.as_nanos() as f64 + frame as f64 / pace * 1e9) as u64;
        let mut met = Met::default();
        while self.clock.elapsed() < begun + length + LOST {
            let past = (self.clock.elapsed() - begun).min(length);
            let wanted = (past.as_secs_f64() * pace) as u64;
            met.sent += self.stations[0].send_stamped((met.sent..wanted).map(due));
            self.take(1, &mut met);
        }
        met
    }

    /// One frame, one answer, and so on.
    fn ask(&mut self, length: Duration) -> Met {
        let begun = self.clock.elapsed();
        let mut met = Met::default();
        while self.clock.elapsed() < begun + length {
            let stamp = self.clock.elapsed();
            met.sent += self.stations[0].send_stamped(iter::once(stamp.as_nanos() as u64));
            let answered = met.took.len();
            let mut heard = Met::default();
            while met.took.len() == answered && self.clock.elapsed() < stamp + LOST {
                let before = heard.took.len();
                self.take(1, &mut heard);
                let requests = (heard.took.len() - before) as u64;
                if requests > 0 {
                    self.stations[1].send_stamped(iter::once(stamp.as_nanos() as u64));
                }
                self.take(0, &mut met);
            }
            met.interrupts += heard.interrupts;
        }
        met
    }

    /// What a station does when its receive vector has signalled: takes every frame, gives the buffers back, unmasks.
    fn take(&mut self, station: usize, met: &mut Met) {
        let Self { stations, size, buffer, clock } = self;
        let sender = address(1 - station);
        let station = &mut stations[station];
        let vector = usize::from(RECEIVE_VECTOR);
        let signals = station.hal.eventfd(vector).map_or(0, |eventfd| eventfd.drain());
        if signals == 0 || station.vf.handle_interrupt(&mut station.hal, RECEIVE_VECTOR) != Event::Received {
            return;
        }
        met.interrupts += signals;
        while let Some(stamp) = station.next_stamp(buffer, sender, *size) {
            met.took.push(clock.elapsed().as_nanos() as f64 - stamp as f64);
        }
        station.vf.receive_done(&mut station.hal);
    }
}
