//! Measures one thread: the processor's clock, and system calls that do not block.

use std::hint::black_box;
use std::io;

use rustix::event::{EventfdFlags, eventfd};
use rustix::process::getppid;

use super::repeat::{each, per_operation, timed};
use super::{DurationProbeError, DurationProbeResult};

/// Measures the processor's clock rate, which differs from the time-stamp counter's. A chain of a rotation and a
/// dependent addition takes two cycles on every processor of the last fifteen years.
pub(super) fn clock() -> Result<DurationProbeResult, DurationProbeError> {
    const CYCLES: f64 = 2.0;
    let odd = black_box(0x9e37_79b9_7f4a_7c15_u64);
    let chain = |count| {
        timed(|| {
            let sum = (0..count).fold(odd, |sum: u64, _| sum.rotate_left(23).wrapping_add(odd));
            black_box(sum);
            Ok(())
        })
    };
    let DurationProbeResult { median, least, most } = per_operation(chain)?;
    let hertz = |nanoseconds: f64| CYCLES * 1e9 / nanoseconds;
    Ok(DurationProbeResult { median: hertz(median), least: hertz(most), most: hertz(least) })
}

pub(super) fn system_call() -> Result<DurationProbeResult, DurationProbeError> {
    each(|| {
        black_box(getppid());
        Ok(())
    })
}

pub(super) fn eventfd_write() -> Result<DurationProbeResult, DurationProbeError> {
    let event = eventfd(0, EventfdFlags::CLOEXEC).map_err(io::Error::from)?;
    each(|| write(&event))
}

/// Measures reads of an eventfd that is a semaphore with a large count: every read takes one, and none blocks.
pub(super) fn eventfd_read() -> Result<DurationProbeResult, DurationProbeError> {
    let event =
        eventfd(u32::MAX, EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE).map_err(io::Error::from)?;
    each(|| read(&event))
}

pub(super) fn write(event: &impl std::os::fd::AsFd) -> Result<(), DurationProbeError> {
    rustix::io::retry_on_intr(|| rustix::io::write(event, &1_u64.to_ne_bytes())).map_err(io::Error::from)?;
    Ok(())
}

pub(super) fn read(event: &impl std::os::fd::AsFd) -> Result<(), DurationProbeError> {
    let mut count = [0; size_of::<u64>()];
    rustix::io::retry_on_intr(|| rustix::io::read(event, &mut count)).map_err(io::Error::from)?;
    Ok(())
}
