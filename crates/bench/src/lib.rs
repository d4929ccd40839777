//! The served card beside what users would pick instead: who forwards how many frames a second between two functions,
//! with one processor for the forwarder and another that generates and takes the frames.
//!
//! A shared machine changes its speed within seconds, so a figure of another run is no measure. Contenders take turns
//! in slices of a fraction of a second; before each slice a raw reference is measured (copying, a cache line from one
//! processor to the other); slices of a round are compared only if their references agree; what is reported is the
//! median of these ratios.
//!
//! | module | what it is |
//! |---|---|
//! | [`contender`] | who forwards: the served card, its peers, and the limit of all of them |
//! | [`raw`] | what the machine itself can do |
//! | [`rounds`] | slices in turn |
//! | [`statistics`] | medians, and which slices may be compared |
//! | [`latency`] | one way through the served card, under load |
//! | [`flame`] | where the host's cycles go |
//! | [`report`] | rows, as a table, JSON and charts |
//! | [`machine`] | processors, processes held on them, huge pages, hardware counters |
//!
//! Left out: the peers' latency. testpmd cannot stamp the frames that it generates.
#![forbid(unsafe_code)]

pub mod contender;
pub mod flame;
pub mod latency;
pub mod machine;
pub mod options;
pub mod raw;
pub mod report;
pub mod rounds;
pub mod statistics;

use anyhow::Result;
use contender::Contender;
use contender::served::Served;
use machine::processors::Processors;
use options::Options;
use report::{Report, Row};
use std::fs;

/// Measures everything that was asked for, and writes the report into the folder that was named.
///
/// # Errors
/// A contender cannot be had or moves no frame; the text says which.
pub fn run(options: &Options) -> Result<Report> {
    let processors = Processors::of_process()?;
    let mut report = Report::new(machine::describe());
    report.rows.extend(raw::limits(processors)?);
    let dpdk = options.dpdk()?;
    let huge = machine::huge_pages::reserve(dpdk.is_some());
    report.machine.huge_pages = huge.is_there();
    for &size in &options.sizes {
        let mut contenders = contender::all(options, dpdk.as_ref(), &huge, processors, size)?;
        let rounds = rounds::run(&mut contenders, options, processors)?;
        let rows = statistics::rows("VF to VF", &contenders, &rounds, size);
        drop(contenders);
        for row in &rows {
            eprintln!("{row}");
        }
        let capacity = rows.iter().find(|row| row.mode == options.mode).and_then(|row| row.mpps);
        report.rows.extend(rows);
        if let Some(capacity) = capacity.filter(|_| options.latency_ms > 0) {
            report.rows.extend(latencies(options, processors, size, capacity)?);
        }
    }
    if let (true, Some(&size)) = (options.growth, options.sizes.first()) {
        report.rows.extend(growth(options, processors, size)?);
    }
    if let (true, Some(&size)) = (options.flame, options.sizes.first()) {
        flame::record(options, processors, size)?;
    }
    fs::create_dir_all(&options.out)?;
    report.write(&options.out)?;
    Ok(report)
}

/// The same with more VFs that exchange frames, of seven.
fn growth(options: &Options, processors: Processors, size: usize) -> Result<Vec<Row>> {
    let mut contenders: Vec<Box<dyn Contender>> = Vec::new();
    for pairs in 1..=3 {
        contenders.push(Box::new(Served::with_pairs(options, processors, size, pairs)?));
    }
    let rounds = rounds::run(&mut contenders, options, processors)?;
    Ok(statistics::rows("VFs in use", &contenders, &rounds, size))
}

fn latencies(options: &Options, processors: Processors, size: usize, capacity: f64) -> Result<Vec<Row>> {
    let mut served = Served::start(options, processors, size)?;
    latency::LOADS.iter().map(|&load| latency::row(&mut served, size, load, capacity, options)).collect()
}
