//! Measures the speed of the machine itself: the references beside each slice, and the limits of the report. The probes
//! are those of `softiov lab host` ([`host::measure`]).

use crate::contender::ContenderKind;
use crate::machine::processors::ProcessorAssignment;
use crate::report::rows::BenchmarkRow;
use anyhow::{Context, Result, anyhow};
use host::measure::{DurationProbeResult, PROBES};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Instant;

/// Bytes of a frame in the probes that copy frames.
const FRAME: usize = 1514;
/// Length in bytes of the message for a register read: header and body of a vfio-user message.
const MESSAGE: usize = 32;
const ROUND_TRIPS: u32 = 2000;

/// Speed of the machine, measured just before a slice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MachineSpeed {
    /// Time to copy 1,000 bytes in the cache, on the forwarder's processor.
    pub copy_ns: f64,
    /// Time to move a cache line from one processor to the other, nanoseconds.
    pub line_ns: f64,
}

impl MachineSpeed {
    /// Measures the machine's reference speed for a slice. Takes some tens of milliseconds.
    ///
    /// # Errors
    /// A probe fails on this machine.
    pub fn measure(processors: ProcessorAssignment) -> Result<Self> {
        let copy = ProcessorAssignment::held(processors.forwarder, || probe("copy_warm"))??;
        Ok(Self { copy_ns: copy.median, line_ns: probe("cache_line")?.median })
    }
}

/// Runs one of the machine's speed probes, selected by its name.
fn probe(name: &str) -> Result<DurationProbeResult> {
    let probe =
        PROBES.iter().find(|probe| probe.name == name).with_context(|| format!("unknown probe `{name}`"))?;
    (probe.run)().with_context(|| format!("cannot measure {}", probe.what))
}

/// Measures the limits of the machine (copies, cache lines, socket messages), and returns a row for each.
///
/// # Errors
/// A probe fails on this machine.
pub fn limits(processors: ProcessorAssignment) -> Result<Vec<BenchmarkRow>> {
    let mut rows = Vec::new();
    for (bench, name) in [("memcpy in cache", "copy_warm"), ("memcpy from last-level cache", "copy_shared")] {
        let sample = ProcessorAssignment::held(processors.forwarder, || probe(name))??;
        let nanoseconds = sample.median * FRAME as f64 / 1000.0;
        rows.push(row(bench, FRAME, nanoseconds).with_rate(1e3 / nanoseconds));
    }
    rows.push(row("cache line, one way", 64, probe("cache_line")?.median));
    rows.push(row("eventfd wake-up, other processor", 8, probe("wake")?.median));
    rows.push(row("system call", 0, probe("system_call")?.median));
    rows.push(row("socket round trip", MESSAGE, socket_round_trip(processors)?));
    Ok(rows)
}

fn row(bench: &str, size: usize, nanoseconds: f64) -> BenchmarkRow {
    let mut row = BenchmarkRow::new(bench, "this machine", size, ContenderKind::Raw);
    row.nanoseconds = Some(nanoseconds);
    row
}

/// Returns the median round trip between two threads on two processors, which sleep while they wait, nanoseconds.
fn socket_round_trip(processors: ProcessorAssignment) -> Result<f64> {
    let (mut here, mut there) = UnixStream::pair()?;
    let echo = thread::spawn(move || {
        ProcessorAssignment::held(processors.forwarder, || {
            let mut message = [0; MESSAGE];
            while there.read_exact(&mut message).is_ok() && there.write_all(&message).is_ok() {}
        })
    });
    let found = ProcessorAssignment::held(processors.generator, || -> Result<f64> {
        let mut message = [0; MESSAGE];
        let mut took = Vec::with_capacity(ROUND_TRIPS as usize);
        for _ in 0..ROUND_TRIPS {
            let begun = Instant::now();
            here.write_all(&message)?;
            here.read_exact(&mut message)?;
            took.push(begun.elapsed().as_nanos() as f64);
        }
        crate::statistics::median(&mut took).context("no socket round trip was measured")
    })??;
    drop(here);
    echo.join().map_err(|_| anyhow!("the thread that echoes messages panicked"))??;
    Ok(found)
}
