//! Measures the latency through SoftIOV's card under load. Frames are due at a steady pace, and the latency counts from
//! when a frame is due until the receiving guest has copied it, so that a delayed sender hides no latency.
//!
//! The latency is that of one direction. The peers' generator cannot stamp frames, so they have no row. There is no
//! wire, so no time on one.

use crate::contender::Contender;
use crate::contender::served::SoftiovContender;
use crate::contender::stations::VfTrafficCircle;
use crate::options::BenchmarkOptions;
use crate::report::rows::{ArrivalOrder, BenchmarkRow, LatencyPercentiles};
use crate::statistics::quantile;
use anyhow::Result;
use std::time::{Duration, Instant};

/// Loads of the latency measurements, as fractions of the card's rate at full load in one direction.
pub const LOADS: [f64; 3] = [0.1, 0.5, 0.9];
/// Time for which frames pass before the latency is measured.
const WARM_UP: Duration = Duration::from_millis(50);
/// Time without an arrival after which pending frames count as lost. The host of a busy machine may not run for a while.
const LOST: Duration = Duration::from_secs(5);
/// Maximum number of frames in a latency measurement.
const MOST: usize = 4_000_000;

/// Measures latency at a load, and returns the row, without numbers if no frame arrives in time. `capacity` is the
/// card's rate at full load in both directions, millions of frames a second.
///
/// # Errors
/// The host is gone.
pub fn row(
    served: &mut SoftiovContender,
    size: usize,
    load: f64,
    capacity: f64,
    options: &BenchmarkOptions,
) -> Result<BenchmarkRow> {
    let pace = capacity / 2.0 * load * 1e6;
    let length = Duration::from_millis(options.latency_ms);
    let measured = served.running(|circle| {
        measure(circle, pace, WARM_UP);
        measure(circle, pace, length)
    })?;
    let LatencyMeasurement { took: mut found, order } = measured;
    let delivered = found.len() as f64 / length.as_secs_f64() / 1e6;
    let mut at = |part| quantile(&mut found, part);
    let latency = LatencyPercentiles { load, p50_ns: at(0.5), p99_ns: at(0.99), p999_ns: at(0.999) };
    let mut row = BenchmarkRow::new("one way", served.name(), size, served.mode());
    row.set_variation(served.variation());
    row.set_rate(Some(delivered));
    row.latency = Some(latency);
    row.order = Some(order);
    Ok(row)
}

/// Latency of each frame in nanoseconds, and the order in which they arrived.
struct LatencyMeasurement {
    took: Vec<f64>,
    order: ArrivalOrder,
}

/// Sends frames at a steady pace, and measures them. `pace` is in frames a second.
fn measure(circle: &mut VfTrafficCircle, pace: f64, length: Duration) -> LatencyMeasurement {
    let mut found = Vec::with_capacity(MOST.min((pace * length.as_secs_f64()) as usize + 1));
    let begun = Instant::now();
    let due = |frame: u64| (frame as f64 / pace * 1e9) as u64;
    let (mut sent, mut arrivals) = (0, FrameArrivals::default());
    loop {
        let now = begun.elapsed();
        if now >= length {
            break;
        }
        let late = (now.as_nanos() as f64 * pace / 1e9) as u64;
        let count = late.saturating_sub(sent).min(circle.room());
        sent += circle.send_stamped((sent..sent + count).map(due));
        while let Some(stamp) = circle.next_stamp() {
            arrivals.add(stamp);
            if found.len() < MOST {
                found.push(begun.elapsed().as_nanos() as f64 - stamp as f64);
            }
        }
    }
    drain(circle, &mut arrivals);
    let FrameArrivals { received, reordered, .. } = arrivals;
    LatencyMeasurement { took: found, order: ArrivalOrder { lost: sent - received.min(sent), reordered } }
}

/// Numbers of arrived frames and of those that arrived after a frame that was sent later.
#[derive(Debug, Default)]
struct FrameArrivals {
    received: u64,
    reordered: u64,
    /// Latest send time of the arrived frames.
    last: u64,
}

impl FrameArrivals {
    /// Counts an arrived frame with its send time.
    fn add(&mut self, stamp: u64) {
        self.received += 1;
        self.reordered += u64::from(stamp < self.last);
        self.last = self.last.max(stamp);
    }
}

/// Receives pending frames, so that they do not disturb the next latency measurement. Frames that do not arrive are lost.
fn drain(circle: &mut VfTrafficCircle, arrivals: &mut FrameArrivals) {
    let mut last = Instant::now();
    while circle.has_stamped_frames() && last.elapsed() < LOST {
        while let Some(stamp) = circle.next_stamp() {
            arrivals.add(stamp);
            last = Instant::now();
        }
    }
    circle.give_up();
}
