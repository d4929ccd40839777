//! Experiments on the split driver instead of VFs, by number of guests and back-end threads (fig16, fig17).

use super::scaling::{METRICS, PORTS, RIGHT, VMS, metrics};
use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::point::{self, CPU, count};
use crate::experiments::settings;
use crate::machine::{NetworkAccessMode, ServerSetup};
use crate::value::ParameterValue;
use guest::{KernelConfig, ProgramWorkload};
use hypervisor::domain::DomainKind;

/// Axis of the back end's threads: one in the stock driver, or one on each virtual CPU of the service domain.
const THREADS: ExperimentAxis = ExperimentAxis {
    name: "backend_threads",
    what: "threads of the back end, one to a virtual CPU of the service domain",
    values: ExperimentAxisValues::List(&[ParameterValue::Int(1), ParameterValue::Int(8)]),
    labels: &["one thread", "eight threads"],
};

pub(crate) const FIG16: Experiment = Experiment {
    name: "fig16",
    title: "The split driver from ten to sixty guests",
    shows: "A single back-end thread is saturated before the wires are; eight carry more, at the service \
            domain's cost. Guests are hardware-virtualized and get events as interrupts of a platform device.",
    axes: &[VMS, THREADS],
    points: AxisCombinations::All,
    metrics: METRICS,
    figures: &[FigureDefinition {
        title: "CPU by domain, and throughput",
        kind: FigureKind::StackedBars,
        x: &["vms"],
        x_title: "Virtual machines",
        split: Some("backend_threads"),
        left: CPU,
        right: RIGHT,
    }],
    run: fig16,
};

pub(crate) const FIG17: Experiment = Experiment {
    name: "fig17",
    title: "The split driver from ten to sixty paravirtualized guests",
    shows: "As fig16, with paravirtualized guests, which get events through event channels.",
    run: fig17,
    ..FIG16
};

fn fig16(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let setup = point::setup(context, settings::fixed(context)?)?;
    scale(at, context, ServerSetup { eoi: settings::fast_eoi(context, &setup.table)?, ..setup })
}

fn fig17(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let spec = KernelConfig::xenlinux_2_6_18(ProgramWorkload::Udp);
    scale(
        at,
        context,
        ServerSetup { kind: DomainKind::Pvm, spec, ..point::setup(context, settings::fixed(context)?)? },
    )
}

fn scale(
    at: &ExperimentPoint,
    context: &PointRunInputs,
    guests: ServerSetup,
) -> Result<PointOutcome, PointRunError> {
    let workers = count(at, THREADS.name)?;
    let setup = ServerSetup {
        ports: PORTS,
        guests: count(at, VMS.name)?,
        network: NetworkAccessMode::Split { workers },
        ..guests
    };
    let setup = settings::with_clients(setup, context)?;
    let (measured, mut outcome) = point::run(&setup, context)?;
    outcome.metrics = metrics(outcome.metrics, &measured);
    Ok(outcome)
}
