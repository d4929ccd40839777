//! Experiments on each optimisation's effect over four ports: a guest transmits (smart-vnic-tx), a guest or
//! the driver domain receives (smart-vnic-rx), several guests transmit (smart-vnic-scaling).

use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, Metric, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::parts;
use crate::experiments::point::{count, metric, timed, times};
use crate::experiments::settings;
use crate::machine::single::{
    CardDriver, PacketChannelOptions, PayloadDirection, SingleCpuResults, SingleCpuSetup, SingleCpuSimulation,
};
use crate::value::ParameterValue;
use hypervisor::cost::MachineModel;

const MBPS: Metric = metric("throughput_mbps", "Mb/s", "payload over four ports");
const CYCLES: Metric = metric("cycles_per_packet", "cycles", "cycles of the processor for each segment");

const STEP: ExperimentAxis = ExperimentAxis {
    name: "step",
    what: "optimisation, including all earlier ones",
    values: ExperimentAxisValues::List(&[
        ParameterValue::name("base"),
        ParameterValue::name("vnic"),
        ParameterValue::name("channel"),
        ParameterValue::name("vm"),
    ]),
    labels: &["unoptimised", "+ smart vNIC", "+ channel", "+ virtual memory"],
};

const LEFT: FigureScale =
    FigureScale { title: "Throughput", unit: "Mb/s", series: &[("throughput_mbps", "throughput")] };
const RIGHT: Option<FigureScale> = Some(FigureScale {
    title: "Cycles",
    unit: "cycles",
    series: &[("cycles_per_packet", "cycles for a segment")],
});

/// Declares a bar chart of throughput and cycles by optimisation, with a bar for each value of the axis `split`.
const fn by_step(split: &'static str) -> FigureDefinition {
    FigureDefinition {
        title: "Throughput, and cycles for a segment",
        kind: FigureKind::GroupedBars,
        x: &["step"],
        x_title: "Optimisation",
        split: Some(split),
        left: LEFT,
        right: RIGHT,
    }
}

pub(super) const TRANSMIT: Experiment = Experiment {
    name: "smart-vnic-tx",
    title: "A smart virtual NIC: a guest transmits over four ports",
    shows: "Claimed: about four times the throughput with all steps; software segmentation still pays on a \
            card without offloads. vnic: the guest's device offers segmentation, scatter-gather and checksums, \
            and packets cross the channel unsegmented. channel: pages are sent without being mapped. vm: a \
            switch flushes no TLB entry of a kernel. Calibrated: base, by the cost of a packet in the back \
            end. Predicted: the rest. Not modelled: interrupts during a turn; cache savings of long packets; \
            losses; the client's machine.",
    axes: &[
        STEP,
        ExperimentAxis {
            name: "nic",
            what: "offloads of the card: segmentation, scatter-gather, checksums",
            values: ExperimentAxisValues::List(&[
                ParameterValue::name("smart"),
                ParameterValue::name("dumb"),
            ]),
            labels: &["smart card", "card without offloads"],
        },
    ],
    points: AxisCombinations::All,
    metrics: &[MBPS, CYCLES],
    figures: &[by_step("nic")],
    run: transmit,
};

pub(super) const RECEIVE: Experiment = Experiment {
    name: "smart-vnic-rx",
    title: "A smart virtual NIC: receiving over four ports",
    shows: "Claimed: receiving gains less than transmitting; copying beats page exchange, and superpages and \
            global pages help the driver domain too. channel: frames are copied to pages posted by the guest. \
            Calibrated: a native kernel's 2,508 Mb/s, by the cost of TCP, and the driver domain's 1.35 times \
            at vm, by TLB misses of a segment in a kernel without superpages. Predicted: the other rows. Not \
            modelled: the driver domain's own daemons; TLB misses of the driver domain's bridge.",
    axes: &[
        STEP,
        ExperimentAxis {
            name: "where",
            what: "location of the programs",
            values: ExperimentAxisValues::List(&[
                ParameterValue::name("guest"),
                ParameterValue::name("driver-domain"),
            ]),
            labels: &["in a guest", "in the driver domain"],
        },
    ],
    points: AxisCombinations::All,
    metrics: &[MBPS, CYCLES],
    figures: &[by_step("where")],
    run: receive,
};

pub(super) const SCALING: Experiment = Experiment {
    name: "smart-vnic-scaling",
    title: "A smart virtual NIC: up to eight guests transmit",
    shows: "Claimed: the gain remains with more guests. Each has a stream on each of four ports. Calibrated: \
            nothing. Predicted: all. Working sets of guests displace each other from the cache.",
    axes: &[
        ExperimentAxis {
            name: "vms",
            what: "virtual machines",
            values: ExperimentAxisValues::Range { first: 1, last: 8, step: 1 },
            labels: &[],
        },
        STEP,
    ],
    points: AxisCombinations::All,
    metrics: &[MBPS],
    figures: &[FigureDefinition {
        title: "Throughput by guests",
        kind: FigureKind::Lines,
        x: &["vms"],
        x_title: "Virtual machines",
        split: Some("step"),
        left: LEFT,
        right: None,
    }],
    run: scaling,
};

/// Returns the packet channel with the optimisation `step` and all optimisations before it.
fn channel(step: &str, card_offloads: bool) -> PacketChannelOptions {
    let up_to = |last: &[&str]| last.contains(&step);
    PacketChannelOptions {
        offloads: up_to(&["vnic", "channel", "vm"]),
        by_address: up_to(&["channel", "vm"]),
        large_pages: step == "vm",
        card_offloads,
    }
}

fn transmit(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let channel = channel(at.axes.text(STEP.name)?, at.axes.text("nic")? == "smart");
    let (found, outcome) = run(CardDriver::Xen, (PayloadDirection::Transmit, channel), 1, context)?;
    Ok(with_cycles(&found, outcome))
}

fn receive(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let drive = if at.axes.text("where")? == "guest" { CardDriver::Xen } else { CardDriver::Own };
    let channel = channel(at.axes.text(STEP.name)?, true);
    let (found, outcome) = run(drive, (PayloadDirection::Receive, channel), 1, context)?;
    Ok(with_cycles(&found, outcome))
}

fn scaling(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let guests = count(at, "vms")?;
    if !(1..=32).contains(&guests) {
        return Err(PointRunError::Refused(format!("vms is {guests}; it must be from 1 to 32")));
    }
    let channel = channel(at.axes.text(STEP.name)?, true);
    let (found, outcome) = run(CardDriver::Xen, (PayloadDirection::Transmit, channel), guests, context)?;
    Ok(PointOutcome { metrics: outcome.metrics.with(MBPS.name, found.throughput_mbps), ..outcome })
}

fn with_cycles(found: &SingleCpuResults, outcome: PointOutcome) -> PointOutcome {
    let metrics =
        outcome.metrics.with(MBPS.name, found.throughput_mbps).with(CYCLES.name, found.cycles_per_packet);
    PointOutcome { metrics, ..outcome }
}

fn run(
    drive: CardDriver,
    (direction, channel): (PayloadDirection, PacketChannelOptions),
    guests: u8,
    context: &PointRunInputs,
) -> Result<(SingleCpuResults, PointOutcome), PointRunError> {
    let table = settings::table(context, MachineModel::Prestonia)?;
    let setup = SingleCpuSetup {
        channel,
        seed: context.seed,
        ..SingleCpuSetup::menon(table, drive, direction, guests)
    };
    let plan = parts::on_machine(setup, context, MachineModel::Prestonia)?;
    let mut machine = SingleCpuSimulation::new(&plan);
    let (run_up, span) = times(context)?;
    let found = machine.measure(run_up, span).map_err(|error| PointRunError::Invariant(error.to_string()))?;
    Ok((found, timed(&machine, run_up + span)))
}
