//! Measures a served host whose guests are silent: its processor time, and the latency of the first frame after a
//! silence. Also measures the processor time of the host's short sleeps (naps) alone, the minimum for a host that polls
//! doorbells in memory. The generator polls while its frame is pending, so the machine as a whole is not idle then.

use crate::contender::served::SoftiovContender;
use crate::contender::stations::VfTrafficCircle;
use crate::contender::{Contender, ContenderKind};
use crate::machine::cycles;
use crate::machine::processors::ProcessorAssignment;
use crate::options::BenchmarkOptions;
use crate::report::rows::{BenchmarkRow, LatencyPercentiles};
use crate::statistics::quantile;
use anyhow::{Result, anyhow};
use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};
use std::iter;
use std::num::NonZeroU64;
use std::thread;
use std::time::{Duration, Instant};

/// Silence of the guests before a measured frame, longer than any nap of the port.
const SILENCE: Duration = Duration::from_millis(20);
/// Time without any frame, over which processor time is measured.
const IDLE: Duration = Duration::from_secs(1);
/// Longest sleep of a port's idle thread between two polls of the doorbells.
const NAP: Duration = Duration::from_micros(160);
/// Timeout after which a frame that has not arrived counts as lost.
const LOST: Duration = Duration::from_millis(100);

/// Measures a served host with two silent guests: processor time, and latency of the first frame after a silence.
/// Returns the row.
///
/// # Errors
/// The host is gone.
pub fn row(served: &mut SoftiovContender, size: usize, options: &BenchmarkOptions) -> Result<BenchmarkRow> {
    let process = served.process_id();
    let (share, mut found) = served.running(|circle| {
        thread::sleep(SILENCE);
        let (begun, before) = (Instant::now(), cycles::time(process));
        thread::sleep(IDLE);
        let share = (cycles::time(process) - before).as_secs_f64() / begun.elapsed().as_secs_f64();
        (share, first_frames(circle, options.silences))
    })?;
    let mut at = |part| quantile(&mut found, part);
    let latency = LatencyPercentiles { load: 0.0, p50_ns: at(0.5), p99_ns: at(0.99), p999_ns: at(0.999) };
    let mut row = BenchmarkRow::new("first frame after a silence", served.name(), size, served.mode());
    row.latency = Some(latency);
    row.idle_share = Some(share);
    Ok(row)
}

/// Measures the processor time of a thread that naps like a port with silent guests, without polling in between.
/// Returns the row.
///
/// # Errors
/// The kernel does not report this thread's processor time.
pub fn naps(processors: ProcessorAssignment) -> Result<BenchmarkRow> {
    let napping = thread::spawn(move || {
        ProcessorAssignment::held(processors.forwarder, || {
            // The same timer slack as a port's thread. With the default, a nap takes 50 us longer.
            let _ = set_current_timer_slack(NonZeroU64::new(1));
            let (begun, before) = (Instant::now(), clock_gettime(ClockId::ThreadCPUTime));
            while begun.elapsed() < IDLE {
                thread::sleep(NAP);
            }
            let took = Duration::try_from(clock_gettime(ClockId::ThreadCPUTime) - before);
            took.map(|took| took.as_secs_f64() / begun.elapsed().as_secs_f64())
        })
    });
    let mut row =
        BenchmarkRow::new("naps of 160 us, and nothing else", "this machine", 0, ContenderKind::Raw);
    row.idle_share = Some(napping.join().map_err(|_| anyhow!("the thread that measures naps panicked"))???);
    Ok(row)
}

/// Sends `count` frames, each after a silence of the guests, and returns their latencies in nanoseconds.
fn first_frames(circle: &mut VfTrafficCircle, count: usize) -> Vec<f64> {
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
