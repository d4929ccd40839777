//! Benchmark of SoftIOV's card against alternatives: the number of frames a second that each forwards between two
//! functions. One processor runs the forwarder, another generates and receives the frames.
//!
//! A shared machine changes its speed within seconds, so results of different runs cannot be compared. Contenders take
//! turns in slices of a fraction of a second. Before each slice a raw reference is measured (copying, a cache line from
//! one processor to the other), and slices of a round are compared only if their references agree. The report has the
//! median of these ratios.
//!
//! | module | purpose |
//! |---|---|
//! | [`compare`] | families of the card, by ports and message sizes |
//! | [`contender`] | forwarders: SoftIOV's card, its peers, and the limit of all of them |
//! | [`raw`] | speed of the machine itself |
//! | [`rounds`] | slices in turn |
//! | [`statistics`] | medians, and which slices may be compared |
//! | [`latency`] | one way through SoftIOV's card, under load |
//! | [`idle`] | a host with silent guests |
//! | [`moderation`] | policies of interrupt moderation under loads |
//! | [`flame`] | profile of the host's cycles |
//! | [`variation`] | settings of a card that differ from the defaults |
//! | [`report`] | rows, as a table, JSON and charts |
//! | `model` | the lab's model, asked of the measured program |
//! | [`machine`] | processors, processes restricted to them, huge pages, hardware counters |
//!
//! Latency of the peers is not measured, because testpmd cannot stamp the frames that it generates.
#![forbid(unsafe_code)]

pub mod compare;
pub mod contender;
pub mod flame;
pub mod idle;
pub mod latency;
pub mod machine;
mod model;
pub mod moderation;
pub mod options;
pub mod raw;
pub mod report;
pub mod rounds;
pub mod statistics;
pub mod variation;

use anyhow::{Result, ensure};
use contender::served::SoftiovContender;
use contender::work::Workload;
use contender::{Contender, ContenderKind};
use machine::processors::ProcessorAssignment;
use options::BenchmarkOptions;
use report::rows::{BenchmarkReport, BenchmarkRow};
use std::fs;

/// Runs the benchmarks that the options select, and writes the report into their folder.
///
/// # Errors
/// A contender is not available or moves no frame; the text says which.
pub fn run(options: &BenchmarkOptions) -> Result<BenchmarkReport> {
    let processors = ProcessorAssignment::of_process()?;
    let mut report = BenchmarkReport::new(machine::describe());
    let (cards, skipped) = contender::available_cards(options, processors)?;
    ensure!(!cards.is_empty(), "no card is left to measure: {}", skipped.join("; "));
    report.skip(skipped);
    let options = &BenchmarkOptions { cards, ..options.clone() };
    if options.compare {
        report.claims = compare::CLAIMS.to_vec();
        compare::measure(options, processors, &mut report)?;
    } else {
        measure(options, processors, &mut report)?;
    }
    fs::create_dir_all(&options.out)?;
    report.write(&options.out)?;
    Ok(report)
}

/// Measures all benchmarks but the comparison of the card's families, and adds their rows to the report.
fn measure(
    options: &BenchmarkOptions,
    processors: ProcessorAssignment,
    report: &mut BenchmarkReport,
) -> Result<()> {
    report.rows.extend(raw::limits(processors)?);
    let dpdk = options.dpdk()?;
    let huge = machine::huge_pages::reserve(dpdk.is_some());
    report.machine.huge_pages = huge.is_there();
    let last = options.sizes.last().copied().filter(|_| options.works);
    let frames = options.sizes.iter().copied().map(Workload::Frames);
    for work in
        frames.chain(last.into_iter().flat_map(|size| [Workload::LargeRings(size), Workload::Segmented]))
    {
        let (mut contenders, skipped) = contender::all(options, dpdk.as_ref(), &huge, processors, work)?;
        report.skip(skipped);
        let rounds = rounds::run(&mut contenders, options, processors)?;
        let rows = statistics::rows(&work.to_string(), &contenders, &rounds, work.size());
        drop(contenders);
        for row in &rows {
            eprintln!("{row}");
        }
        // The rows of the first card come first, and their rates are the capacities for latency under load.
        let found = |mode| Some((mode, rows.iter().find(|row| row.mode == mode)?.mpps?));
        let capacities: Vec<(ContenderKind, f64)> =
            options.card_modes().iter().filter_map(|&mode| found(mode)).collect();
        report.rows.extend(rows);
        let Workload::Frames(size) = work else { continue };
        for (mode, capacity) in capacities.into_iter().filter(|_| options.latency_ms > 0) {
            report.rows.extend(latencies(options, mode, processors, size, capacity)?);
        }
    }
    if let (true, Some(&size)) = (options.silences > 0, options.sizes.first()) {
        report.rows.push(idle::naps(processors)?);
        for &mode in options.card_modes() {
            let mut served =
                SoftiovContender::start(options, options.card(), mode, processors, Workload::Frames(size))?;
            report.rows.push(idle::row(&mut served, size, options)?);
        }
    }
    if let (true, Some(&size), Some(&mode)) =
        (options.moderation_ms > 0, options.sizes.last(), options.modes.first())
    {
        report.rows.extend(moderation::rows(options, mode, processors, size)?);
    }
    if let (true, Some(&size)) = (options.growth, options.sizes.first()) {
        report.rows.extend(growth(options, processors, size)?);
    }
    if let (true, Some(&size), Some(&mode)) =
        (options.flame, options.sizes.first(), options.card_modes().last())
    {
        flame::record(options, mode, processors, size)?;
    }
    Ok(())
}

/// Measures the forwarding rate of SoftIOV's card with two, four and seven VFs that exchange frames.
fn growth(
    options: &BenchmarkOptions,
    processors: ProcessorAssignment,
    size: usize,
) -> Result<Vec<BenchmarkRow>> {
    let mut contenders: Vec<Box<dyn Contender>> = Vec::new();
    for &mode in options.card_modes() {
        for guests in [2, 4, 7] {
            let work = Workload::Frames(size);
            let card = options.card();
            let served = SoftiovContender::with_guests(options, card, mode, processors, work, guests)?;
            contenders.push(Box::new(served.named_by_guests(guests)));
        }
    }
    let rounds = rounds::run(&mut contenders, options, processors)?;
    Ok(statistics::rows("VFs in use", &contenders, &rounds, size))
}

/// Measures the latency of SoftIOV's card at several fractions of its capacity, and returns a report row for each.
fn latencies(
    options: &BenchmarkOptions,
    mode: ContenderKind,
    processors: ProcessorAssignment,
    size: usize,
    capacity: f64,
) -> Result<Vec<BenchmarkRow>> {
    let mut served =
        SoftiovContender::start(options, options.card(), mode, processors, Workload::Frames(size))?;
    latency::LOADS.iter().map(|&load| latency::row(&mut served, size, load, capacity, options)).collect()
}
