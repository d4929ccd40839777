//! Measures two threads on one processor or two: wake-ups, switches, and a contended cache line. Both belong to one
//! process, so a switch between them is cheaper than between processes.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{hint, io, panic, thread};

use rustix::event::{EventfdFlags, eventfd};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::calls::{read, write};
use super::repeat::{per_operation, timed};
use super::{DurationProbeError, DurationProbeResult};

/// Measures the wake-up latency of a thread as half of a round trip: from a write until the other thread has read it.
pub(super) fn wake() -> Result<DurationProbeResult, DurationProbeError> {
    let processors = two_processors()?;
    per_operation(|count| Ok(ping_pong(processors, count)?.round_trips / 2))
}

pub(super) fn wake_call() -> Result<DurationProbeResult, DurationProbeError> {
    let processors = two_processors()?;
    per_operation(|count| Ok(ping_pong(processors, count)?.writes))
}

pub(super) fn switch() -> Result<DurationProbeResult, DurationProbeError> {
    let processor = processors()?[0];
    per_operation(|count| Ok(ping_pong([processor; 2], count)?.round_trips / 2))
}

/// Measures a cache line's transfer: from a store until the other processor has seen the stored value.
pub(super) fn cache_line() -> Result<DurationProbeResult, DurationProbeError> {
    let processors = two_processors()?;
    let bounce = |count| {
        let turn = AtomicU32::new(0);
        let play = |parity: u32| {
            (0..count).for_each(|round| {
                while turn.load(Ordering::Acquire) != 2 * round + parity {
                    hint::spin_loop();
                }
                turn.store(2 * round + parity + 1, Ordering::Release);
            });
            Ok(())
        };
        side_by_side(processors, || timed(|| play(0)), || play(1))
    };
    Ok(per_operation(bounce)?.times(0.5))
}

/// Durations of a ping-pong of messages between two threads, in nanoseconds.
struct ThreadPingPongTimes {
    round_trips: u64,
    /// Time that the first thread of a ping-pong spent in writing its messages, in nanoseconds.
    writes: u64,
}

fn ping_pong(processors: [usize; 2], count: u32) -> Result<ThreadPingPongTimes, DurationProbeError> {
    let event = || -> io::Result<OwnedFd> { Ok(eventfd(0, EventfdFlags::CLOEXEC)?) };
    let (ping, pong) = (event()?, event()?);
    let mut writes = 0;
    let first = || {
        timed(|| {
            (0..count).try_for_each(|_| {
                writes += timed(|| write(&ping))?;
                read(&pong)
            })
        })
    };
    let second = || (0..count).try_for_each(|_| read(&ping).and_then(|()| write(&pong)));
    let round_trips = side_by_side(processors, first, second)?;
    Ok(ThreadPingPongTimes { round_trips, writes })
}

/// Runs two closures at the same time, each on a thread pinned to a processor. Returns the result of the first closure.
fn side_by_side<T: Send>(
    processors: [usize; 2],
    first: impl FnOnce() -> Result<T, DurationProbeError> + Send,
    second: impl FnOnce() -> Result<(), DurationProbeError> + Send,
) -> Result<T, DurationProbeError> {
    thread::scope(|scope| {
        // A thread that cannot be pinned runs all the same, since the other one waits for it.
        let first = scope.spawn(move || {
            let held = hold(processors[0]);
            first().and_then(|found| held.map(|()| found))
        });
        let second = scope.spawn(move || {
            let held = hold(processors[1]);
            second().and(held)
        });
        let second = second.join().unwrap_or_else(|panic| panic::resume_unwind(panic));
        let first = first.join().unwrap_or_else(|panic| panic::resume_unwind(panic))?;
        second.map(|()| first)
    })
}

fn hold(processor: usize) -> Result<(), DurationProbeError> {
    let mut set = CpuSet::new();
    set.set(processor);
    Ok(sched_setaffinity(None, &set).map_err(io::Error::from)?)
}

/// Returns the processors that this process may use, at least one.
fn processors() -> Result<Vec<usize>, DurationProbeError> {
    let set = sched_getaffinity(None).map_err(io::Error::from)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor)).collect())
}

/// Returns the first and the last processor, which are the least likely to be threads of one core.
fn two_processors() -> Result<[usize; 2], DurationProbeError> {
    match processors()?.as_slice() {
        [first, .., last] => Ok([*first, *last]),
        _ => Err(DurationProbeError::OneProcessor),
    }
}
