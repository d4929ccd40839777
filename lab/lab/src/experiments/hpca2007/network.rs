//! Experiments on CDNA: throughput and processor use of one guest on two ports (cdna-throughput), and
//! throughput of many (cdna-scaling).

use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, Metric, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::parts;
use crate::experiments::point::{count, metric, timed, times};
use crate::experiments::settings;
use crate::machine::single::{
    CardDriver, PayloadDirection, SingleCpuResults, SingleCpuSetup, SingleCpuSimulation,
};
use crate::value::ParameterValue;
use hypervisor::cost::MachineModel;

const MBPS: Metric = metric("throughput_mbps", "Mb/s", "payload over both ports");
const XEN: ParameterValue = ParameterValue::name("xen");
const CDNA: ParameterValue = ParameterValue::name("cdna");

const DIRECTION: ExperimentAxis = ExperimentAxis {
    name: "direction",
    what: "direction of the payload",
    values: ExperimentAxisValues::List(&[ParameterValue::name("tx"), ParameterValue::name("rx")]),
    labels: &["transmit", "receive"],
};

const RIGHT: FigureScale =
    FigureScale { title: "Throughput", unit: "Mb/s", series: &[("throughput_mbps", "throughput")] };

pub(super) const THROUGHPUT: Experiment = Experiment {
    name: "cdna-throughput",
    title: "A context of the card for each guest: one guest on two ports",
    shows: "Claimed: a driver domain and its page exchange saturate the processor before two gigabit wires are \
            full; with its own context a guest fills them and leaves half of the processor idle, and \
            protection costs a few percent. Calibrated: xen's transmit throughput, and the hypervisor's share \
            in cdna's transmit. Predicted: the rest. Not modelled: losses, the client's machine, the driver \
            domain's own daemons.",
    axes: &[
        ExperimentAxis {
            name: "system",
            what: "driver of the card",
            values: ExperimentAxisValues::List(&[XEN, CDNA, ParameterValue::name("cdna-unprotected")]),
            labels: &["driver domain", "contexts", "contexts, unprotected"],
        },
        DIRECTION,
    ],
    points: AxisCombinations::All,
    metrics: &[
        MBPS,
        metric("cpu_hypervisor_pct", "%", "CPU use of the hypervisor, in percent of the processor"),
        metric("cpu_driver_domain_pct", "%", "CPU use of the driver domain, in percent of the processor"),
        metric("cpu_guest_pct", "%", "CPU use of the guest, in percent of the processor"),
        metric("cpu_idle_pct", "%", "idle time of the processor, in percent"),
    ],
    figures: &[FigureDefinition {
        title: "Processor use, and throughput",
        kind: FigureKind::StackedBars,
        x: &["system"],
        x_title: "Driver of the card",
        split: Some("direction"),
        left: FigureScale {
            title: "CPU",
            unit: "%",
            series: &[
                ("cpu_guest_pct", "guests"),
                ("cpu_hypervisor_pct", "hypervisor"),
                ("cpu_driver_domain_pct", "dom0"),
                ("cpu_idle_pct", "idle"),
            ],
        },
        right: Some(RIGHT),
    }],
    run: throughput,
};

pub(super) const SCALING: Experiment = Experiment {
    name: "cdna-scaling",
    title: "A context of the card for each guest: up to 24 guests on two ports",
    shows: "Claimed: with a driver domain throughput falls to about half with the number of guests; with \
            contexts the wires stay full until the processor is saturated, which takes many guests. \
            Working sets of guests displace each other from the cache, and a driver domain sends one packet of \
            each guest in turn. Calibrated: nothing here. Predicted: all. Not modelled: guests' own ticks; \
            losses, represented by windows that fit the driver domain's rings.",
    axes: &[
        ExperimentAxis {
            name: "vms",
            what: "virtual machines",
            values: ExperimentAxisValues::List(&[
                ParameterValue::Int(1),
                ParameterValue::Int(2),
                ParameterValue::Int(4),
                ParameterValue::Int(8),
                ParameterValue::Int(12),
                ParameterValue::Int(16),
                ParameterValue::Int(20),
                ParameterValue::Int(24),
            ]),
            labels: &[],
        },
        ExperimentAxis {
            name: "system",
            what: "driver of the card",
            values: ExperimentAxisValues::List(&[XEN, CDNA]),
            labels: &["driver domain", "contexts"],
        },
        DIRECTION,
    ],
    points: AxisCombinations::All,
    metrics: &[MBPS],
    figures: &[FigureDefinition {
        title: "Throughput by guests",
        kind: FigureKind::GroupedBars,
        x: &["direction", "vms"],
        x_title: "Virtual machines",
        split: Some("system"),
        left: RIGHT,
        right: None,
    }],
    run: scaling,
};

fn throughput(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let (found, outcome) = run(at, 1, context)?;
    let metrics = outcome
        .metrics
        .with("throughput_mbps", found.throughput_mbps)
        .with("cpu_hypervisor_pct", found.hypervisor_pct)
        .with("cpu_driver_domain_pct", found.driver_pct)
        .with("cpu_guest_pct", found.guest_pct)
        .with("cpu_idle_pct", found.idle_pct);
    Ok(PointOutcome { metrics, ..outcome })
}

fn scaling(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let guests = count(at, "vms")?;
    if !(1..=128).contains(&guests) {
        return Err(PointRunError::Refused(format!("vms is {guests}: the card has contexts for 1 to 128")));
    }
    let (found, outcome) = run(at, guests, context)?;
    Ok(PointOutcome { metrics: outcome.metrics.with(MBPS.name, found.throughput_mbps), ..outcome })
}

fn run(
    at: &ExperimentPoint,
    guests: u8,
    context: &PointRunInputs,
) -> Result<(SingleCpuResults, PointOutcome), PointRunError> {
    let drive = match at.axes.text("system")? {
        "xen" => CardDriver::Xen,
        "cdna" => CardDriver::Cdna,
        _ => CardDriver::Unprotected,
    };
    let direction = if at.axes.text("direction")? == "tx" {
        PayloadDirection::Transmit
    } else {
        PayloadDirection::Receive
    };
    let table = settings::table(context, MachineModel::Opteron)?;
    let setup =
        SingleCpuSetup { seed: context.seed, ..SingleCpuSetup::willmann(table, drive, direction, guests) };
    let plan = parts::on_machine(setup, context, MachineModel::Opteron)?;
    let mut machine = SingleCpuSimulation::new(&plan);
    let (run_up, span) = times(context)?;
    let found = machine.measure(run_up, span).map_err(|error| PointRunError::Invariant(error.to_string()))?;
    Ok((found, timed(&machine, run_up + span)))
}
