//! A host whose guests are silent: what it takes of a processor, and how long the first frame after a silence is under
//! way; and what naps alone take of one, which is the least that a host can do that looks at doorbells in memory. Left out: a silence of the whole machine; this one's generator polls while its frame is under way.

use crate::contender::served::Served;
use crate::contender::stations::Circle;
use crate::contender::{Contender, Mode};
use crate::machine::cycles;
use crate::machine::processors::Processors;
use crate::options::Options;
use crate::report::{Latency, Row};
use crate::statistics::quantile;
use anyhow::{Result, anyhow};
use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};
use std::iter;
use std::num::NonZeroU64;
use std::thread;
use std::time::{Duration, Instant};

/// How long guests are silent before a frame: longer than any nap of the port.
const SILENCE: Duration = Duration::from_millis(20);
/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(1);
/// The port's longest nap.
const NAP: Duration = Duration::from_micros(160);
/// When a frame counts as lost.
const LOST: Duration = Duration::from_millis(100);

/// The row of a host with two guests.
///
/// # Errors
/// The host is gone.
pub fn row(served: &mut Served, size: usize, options: &Options) -> Result<Row> {
    let process = served.process_id();
    let (share, mut found) = served.running(|circle| {
        thread::sleep(SILENCE);
        let (begun, before) = (Instant::now(), cycles::time(process));
        thread::sleep(IDLE);
        let share = (cycles::time(process) - before).as_secs_f64() / begun.elapsed().as_secs_f64();
        (share, first_frames(circle, options.silences))
    })?;
    let mut at = |part| quantile(&mut found, part);
    let latency = Latency { load: 0.0, p50_ns: at(0.5), p99_ns: at(0.99), p999_ns: at(0.999) };
    let mut row = Row::new("first frame after a silence", served.name(), size, served.mode());
    row.latency = Some(latency);
    row.idle_share = Some(share);
    Ok(row)
}

/// The row of a thread that naps as a port does whose guests are silent, and looks at nothing in between.
///
/// # Errors
/// The kernel tells no time of this thread.
pub fn naps(processors: Processors) -> Result<Row> {
    let napping = thread::spawn(move || {
        Processors::held(processors.forwarder, || {
            // As the port's: else a nap takes 50 us longer.
            let _ = set_current_timer_slack(NonZeroU64::new(1));
            let (begun, before) = (Instant::now(), clock_gettime(ClockId::ThreadCPUTime));
            while begun.elapsed() < IDLE {
                thread::sleep(NAP);
            }
            let took = Duration::try_from(clock_gettime(ClockId::ThreadCPUTime) - before);
            took.map(|took| took.as_secs_f64() / begun.elapsed().as_secs_f64())
        })
    });
    let mut row = Row::new("naps of 160 us, and nothing else", "this machine", 0, Mode::Raw);
    row.idle_share = Some(napping.join().map_err(|_| anyhow!("a thread has panicked"))???);
    Ok(row)
}

/// Nanoseconds that each frame took.
fn first_frames(circle: &mut Circle, count: usize) -> Vec<f64> {
    let clock = Instant::now();
    let mut found = Vec::with_capacity(count);
    for _ in 0..count {
        thread::sleep(SILENCE);
        let sent = clock.elapsed();
        circle.send_stamped(iter::once(sent.as_nanos() as u64));
        while clock.elapsed() - sent < LOST {
            if circle.next_stamp() == Some(sent.as_nanos() as u64) {
                found.push((clock.elapsed() - sent).as_nanos() as f64);
                break;
            }
        }
        circle.give_up();
    }
    found
}
