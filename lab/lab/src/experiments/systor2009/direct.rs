//! Experiments on an assigned device compared with a shared one: network (direct-net) and disk (direct-disk).

use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::parts;
use crate::experiments::point::{TOTAL, metric, timed, times};
use crate::experiments::settings;
use crate::machine::assigned::DeviceAccessMode;
use crate::machine::assigned::net::{self, NetworkSimulation};
use crate::machine::assigned::storage::{self, DiskSimulation};
use crate::value::ParameterValue;
use hypervisor::cost::MachineModel;

const PV: ParameterValue = ParameterValue::name("pv");
const DIRECT: ParameterValue = ParameterValue::name("direct");

pub(super) const NET: Experiment = Experiment {
    name: "direct-net",
    title: "A 10 Gb/s card assigned to the guest",
    shows: "Claimed: a split driver saturates its processor long before the wire is full; a card queue for the \
            guest (VMDq) gives about three times as much; an assigned card fills the wire, 3.6 times as much. \
            A stream to one guest; service domain and guest have a processor each. Calibrated: pv's throughput \
            (cost of a frame in the back end). Predicted: the rest. Not modelled: segments merged by card or \
            kernel, losses, the kernels' own ticks.",
    axes: &[ExperimentAxis {
        name: "path",
        what: "path from the guest to the wire",
        values: ExperimentAxisValues::List(&[PV, ParameterValue::name("vmdq"), DIRECT]),
        labels: &["split driver", "VMDq", "own card"],
    }],
    points: AxisCombinations::All,
    metrics: &[metric("throughput_gbps", "Gb/s", "payload that the guest's program has read"), TOTAL],
    figures: &[FigureDefinition {
        title: "Throughput, and CPU",
        kind: FigureKind::GroupedBars,
        x: &["path"],
        x_title: "Path to the wire",
        split: None,
        left: FigureScale { title: "Throughput", unit: "Gb/s", series: &[("throughput_gbps", "throughput")] },
        right: Some(FigureScale { title: "CPU", unit: "% of a thread", series: &[("cpu_total_pct", "CPU")] }),
    }],
    run: net,
};

pub(super) const DISK: Experiment = Experiment {
    name: "direct-disk",
    title: "A disk assigned to the guest",
    shows: "Claimed: with an assigned disk a guest reads as fast as without a hypervisor. A program reads \
            block after block uncached; a block is split into commands of 128 KB, or into requests of eleven \
            pages to the back end. Calibrated: nothing. Predicted: all. The disk is an input: 100 MB/s from \
            its surface, 300 MB/s over its cable, 40 us per command, and a read-ahead buffer. Not modelled: \
            writes, a cache in the service domain.",
    axes: &[
        ExperimentAxis {
            name: "path",
            what: "path from the guest to the disk",
            values: ExperimentAxisValues::List(&[PV, DIRECT]),
            labels: &["split driver", "own disk"],
        },
        ExperimentAxis {
            name: "block_kb",
            what: "block size of the program's reads, KB",
            values: ExperimentAxisValues::List(&[
                ParameterValue::Int(4),
                ParameterValue::Int(8),
                ParameterValue::Int(16),
                ParameterValue::Int(64),
                ParameterValue::Int(256),
                ParameterValue::Int(1_024),
            ]),
            labels: &[],
        },
    ],
    points: AxisCombinations::All,
    metrics: &[metric("throughput_mbps", "Mb/s", "data read by the guest's program")],
    figures: &[FigureDefinition {
        title: "Throughput by block",
        kind: FigureKind::GroupedBars,
        x: &["block_kb"],
        x_title: "Block, KB",
        split: Some("path"),
        left: FigureScale { title: "Throughput", unit: "Mb/s", series: &[("throughput_mbps", "throughput")] },
        right: None,
    }],
    run: disk,
};

fn path(at: &ExperimentPoint) -> Result<DeviceAccessMode, PointRunError> {
    Ok(match at.axes.text("path")? {
        "pv" => DeviceAccessMode::Pv,
        "vmdq" => DeviceAccessMode::Vmdq,
        _ => DeviceAccessMode::Direct,
    })
}

fn net(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let table = settings::table(context, MachineModel::Server2009)?;
    let card = parts::assigned_card(context, MachineModel::Server2009)?;
    let plan = net::NicMachineSetup { table, path: path(at)?, card, seed: context.seed };
    let mut machine = NetworkSimulation::new(&plan);
    let (run_up, span) = times(context)?;
    let found = machine.measure(run_up, span).map_err(|error| PointRunError::Invariant(error.to_string()))?;
    let outcome = timed(&machine, run_up + span);
    let metrics =
        outcome.metrics.with("throughput_gbps", found.throughput_gbps).with(TOTAL.name, found.cpu_total_pct);
    Ok(PointOutcome { metrics, ..outcome })
}

fn disk(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let block_kb = at.axes.int("block_kb")?;
    let block = u32::try_from(block_kb)
        .ok()
        .filter(|kb| (4..=1_024).contains(kb) && kb % 4 == 0)
        .ok_or_else(|| {
            PointRunError::Refused(format!(
                "block_kb is {block_kb}; it must be a multiple of 4 from 4 to 1024"
            ))
        })?;
    let table = settings::table(context, MachineModel::Server2009)?;
    let disk = parts::disk(context, MachineModel::Server2009)?;
    let plan = storage::DiskSetup { table, path: path(at)?, disk, block: block * 1_024, seed: context.seed };
    let mut machine = DiskSimulation::new(&plan);
    let (run_up, span) = times(context)?;
    let found = machine.measure(run_up, span).map_err(|error| PointRunError::Invariant(error.to_string()))?;
    let outcome = timed(&machine, run_up + span);
    Ok(PointOutcome { metrics: outcome.metrics.with("throughput_mbps", found.throughput_mbps), ..outcome })
}
