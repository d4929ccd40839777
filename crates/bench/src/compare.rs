//! Compares the card's families live: guests on some ports send messages to one another, as in the inter-VM figures of
//! Dong et al. (HPCA 2010), which compare SR-IOV with a paravirtual split driver. Beside the live rates the report has
//! the lab's model of these figures, and beside those of several workers its model of multi-core netback (Zhang et al.).
//!
//! A message is a TCP send whose payload the card cuts into segments. Both families copy each byte once, on the same
//! plane and by the same policy, so that what differs is the guest's interface.

use crate::contender::card::CardVariant;
use crate::contender::served::{self, SoftiovContender};
use crate::contender::work::Workload;
use crate::contender::{self, ContenderKind};
use crate::latency;
use crate::machine::processors::ProcessorAssignment;
use crate::model::{LabModel, ModelPoint};
use crate::options::BenchmarkOptions;
use crate::report::comparison::{self, MODEL, MODELLED, name};
use crate::report::rows::{BenchmarkReport, BenchmarkRow};
use crate::report::workers;
use crate::variation::WorkerSettings;
use crate::{rounds, statistics};
use anyhow::{Result, ensure};

/// Number of bytes of the frames whose latency and order are measured.
const FRAME: usize = 1_500;
/// Axis of the lab's model of the paper's message figures.
const MESSAGE_BYTES: &str = "message_bytes";
/// Number of bytes of the frames on the wires of the lab's model of a back end with several workers.
const WIRE_FRAME: usize = 1_514;
/// Load at which latency and order are measured, as a fraction of the rate of messages.
const LOAD: f64 = 0.5;

/// Statements about what the comparison shows on a machine without hardware virtualisation.
pub const CLAIMS: [&str; 3] = [
    "Shown: ratios of rates and of the host's cycles and instructions per frame between families on one plane; notifications per \
     frame; latency, loss and order.",
    "Not shown: processor time of guests, exits, or the rate of a virtual machine. No guest kernel runs, and all families \
     copy: the paper's adapter did not. The model's rows are virtual time on the paper's machine.",
    "Workers: the rate with N workers divided by that with one is a gain only if each worker has a processor beside that of the \
     guests. The model and the paper have four virtual CPUs, and wires that end the gain.",
];

/// Measures all families by number of ports and by message size, and then latency and order. Adds the rows and the names of
/// refused cards to the report.
///
/// # Errors
/// A host does not start, or moves no frame; hosts refuse all cards; or the lab's model cannot be run.
pub fn measure(
    options: &BenchmarkOptions,
    processors: ProcessorAssignment,
    report: &mut BenchmarkReport,
) -> Result<()> {
    let model = LabModel::of(options)?;
    report.stated_rates = comparison::stated(model.listing())?;
    report.stated_workers = workers::stated(model.listing())?;
    report.rows.extend(modelled(options, &model)?);
    report.rows.extend(modelled_workers(options, &model, &report.stated_workers)?);
    for &ports in &options.ports {
        for &message in &options.messages {
            let (rows, skipped) = messages(options, processors, ports.into(), message.into())?;
            report.skip(skipped);
            rows.iter().for_each(|row| eprintln!("{row}"));
            report.rows.extend(rows);
        }
    }
    let measured = report.rows.iter().any(|row| row.ports.is_some());
    ensure!(measured, "no card is left to compare: {}", report.skipped.join("; "));
    if options.latency_ms == 0 {
        return Ok(());
    }
    for options in &options.varied() {
        for &card in &options.cards {
            for &mode in card.modes(&options.modes) {
                let row = one_way(options, processors, (card, mode), &report.rows)?;
                row.iter().for_each(|row| eprintln!("{row}"));
                report.rows.extend(row);
            }
        }
    }
    Ok(())
}

/// Measures messages of one size between guests on `ports` ports, of all families by turns. Returns the rows, and the reasons
/// why hosts refuse cards.
fn messages(
    options: &BenchmarkOptions,
    processors: ProcessorAssignment,
    ports: usize,
    message: usize,
) -> Result<(Vec<BenchmarkRow>, Vec<String>)> {
    let work = Workload::Messages(message);
    let (mut contenders, skipped) = contender::cards(options, processors, work, ports)?;
    let rounds = rounds::run(&mut contenders, options, processors)?;
    let mut rows = statistics::rows(&name(ports), &contenders, &rounds, message);
    let split = served::name(options, CardVariant::Virtio, ContenderKind::Kicked);
    for row in &mut rows {
        row.ports = Some(ports);
        // Of many cards and variations, only two ratios matter: to the split driver, and to the card without the variation.
        let (own, mode) = (row.peer_without_variation().to_owned(), row.mode);
        row.ratios.retain(|ratio| ratio.to == split || (ratio.to == own && ratio.mode == mode));
        // The frames of a message have all its payload together.
        let payload = message as f64 / work.arrivals() as f64;
        row.gbps = row.mpps.map(|mpps| mpps * payload * 8.0 / 1e3);
    }
    Ok((rows, skipped))
}

/// Measures latency and order of single frames of a card, at a load below the rate of its messages in `rows`. Returns `None`
/// without such a rate: the host refuses the card.
fn one_way(
    options: &BenchmarkOptions,
    processors: ProcessorAssignment,
    (card, mode): (CardVariant, ContenderKind),
    rows: &[BenchmarkRow],
) -> Result<Option<BenchmarkRow>> {
    let own = served::name(options, card, mode);
    let is_own = |row: &&BenchmarkRow| row.peer == own && row.mode == mode;
    let Some(capacity) = rows.iter().filter(is_own).find_map(|row| row.mpps) else { return Ok(None) };
    let mut served = SoftiovContender::start(options, card, mode, processors, Workload::Frames(FRAME))?;
    latency::row(&mut served, FRAME, LOAD, capacity, options).map(Some)
}

/// Runs the lab's model of the paper's figures for those message sizes of the options that the figures have. Returns the
/// throughput as rows.
fn modelled(options: &BenchmarkOptions, model: &LabModel) -> Result<Vec<BenchmarkRow>> {
    let mut rows = Vec::new();
    for (experiment, name) in ["fig12", "fig13"].into_iter().zip(MODELLED) {
        let points = model.listing().points(experiment)?;
        for size in points.iter().filter_map(|point| point.get(MESSAGE_BYTES)?.as_u64()) {
            if !options.messages.iter().any(|&wanted| u64::from(wanted) == size) {
                continue;
            }
            let mut row = BenchmarkRow::new(MODEL, name, size as usize, ContenderKind::Raw);
            row.gbps = model.throughput(experiment, &[(MESSAGE_BYTES, size.to_string())])?;
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Runs the lab's model of a back end with several workers, for those workers and dispatchers of the options that the model
/// has, and for those of which the paper states the rate. Returns the throughput as rows; none if the options have no
/// workers.
fn modelled_workers(
    options: &BenchmarkOptions,
    model: &LabModel,
    stated: &[(WorkerSettings, f64)],
) -> Result<Vec<BenchmarkRow>> {
    let varied = options.varied();
    let mut wanted: Vec<WorkerSettings> =
        varied.iter().filter_map(|options| WorkerSettings::parse(&options.variation.to_string())).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    wanted.extend(stated.iter().map(|(workers, _)| workers.clone()));
    let mut rows = Vec::new();
    for (tasklets, dispatcher) in
        model.listing().points(workers::EXPERIMENT)?.iter().filter_map(four_guest_point)
    {
        let workers = workers::of_point(tasklets, dispatcher);
        if !wanted.contains(&workers) {
            continue;
        }
        let point = [
            ("tasklets", tasklets.to_string()),
            ("dispatcher", dispatcher.to_owned()),
            ("guests", workers::GUESTS.to_string()),
        ];
        let variation = if workers.count > 1 { workers.to_string() } else { String::new() };
        let separator = if variation.is_empty() { "" } else { ", " };
        let name = format!("{}{separator}{variation}", workers::MODELLED);
        let mut row = BenchmarkRow::new(workers::MODEL, &name, WIRE_FRAME, ContenderKind::Raw);
        row.set_variation(&variation);
        row.gbps = model.throughput(workers::EXPERIMENT, &point)?;
        rows.push(row);
    }
    Ok(rows)
}

/// Returns the tasklets and the dispatcher of a modelled point with a guest for each of the paper's wires.
fn four_guest_point(point: &ModelPoint) -> Option<(u8, &str)> {
    let tasklets = u8::try_from(point.get("tasklets")?.as_u64()?).ok()?;
    (point.get("guests")?.as_u64()? == workers::GUESTS).then_some(())?;
    Some((tasklets, point.get("dispatcher")?.as_str()?))
}
