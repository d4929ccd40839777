//! One way through the served card under load. Frames are due at a steady pace, and the time that counts is from when
//! a frame was due until the receiving guest has copied it out, so that a sender who is held up hides nothing.
//!
//! Left out: the peers, whose generator cannot stamp frames; and time on a wire, which there is not.

use crate::contender::Contender;
use crate::contender::served::Served;
use crate::contender::stations::Circle;
use crate::options::Options;
use crate::report::{Latency, Row};
use crate::statistics::quantile;
use anyhow::Result;
use std::time::{Duration, Instant};

/// Parts of what the card has forwarded one way at full load.
pub const LOADS: [f64; 3] = [0.1, 0.5, 0.9];
/// Before anything counts.
const WARM_UP: Duration = Duration::from_millis(50);
/// Frames that are remembered at most.
const MOST: usize = 4_000_000;

/// Latency at a load; no numbers if no frame arrives in time. `capacity`: millions of frames a second that the card
/// forwarded, both directions added.
///
/// # Errors
/// The host is gone.
pub fn row(served: &mut Served, size: usize, load: f64, capacity: f64, options: &Options) -> Result<Row> {
    let pace = capacity / 2.0 * load * 1e6;
    let length = Duration::from_millis(options.latency_ms);
    let mut found = served.running(|circle| {
        measure(circle, pace, WARM_UP);
        measure(circle, pace, length)
    })?;
    let delivered = found.len() as f64 / length.as_secs_f64() / 1e6;
    let mut at = |part| quantile(&mut found, part);
    let latency = Latency { load, p50_ns: at(0.5), p99_ns: at(0.99), p999_ns: at(0.999) };
    let mut row = Row::new("one way", served.name(), size, served.mode());
    row.set_rate(Some(delivered));
    row.latency = Some(latency);
    Ok(row)
}

/// Nanoseconds that each frame took. `pace`: frames a second.
fn measure(circle: &mut Circle, pace: f64, length: Duration) -> Vec<f64> {
    let mut found = Vec::with_capacity(MOST.min((pace * length.as_secs_f64()) as usize + 1));
    let begun = Instant::now();
    let due = |frame: u64| (frame as f64 / pace * 1e9) as u64;
    let mut sent = 0;
    loop {
        let now = begun.elapsed();
        if now >= length {
            break;
        }
        let late = (now.as_nanos() as f64 * pace / 1e9) as u64;
        let count = late.saturating_sub(sent).min(circle.room());
        sent += circle.send_stamped((sent..sent + count).map(due));
        while let Some(stamp) = circle.next_stamp() {
            if found.len() < MOST {
                found.push(begun.elapsed().as_nanos() as f64 - stamp as f64);
            }
        }
    }
    drain(circle);
    found
}

/// Takes what is still under way, so that the next measurement does not find it.
fn drain(circle: &mut Circle) {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(20) {
        while circle.next_stamp().is_some() {}
    }
    circle.give_up();
}
