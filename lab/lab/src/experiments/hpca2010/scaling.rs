//! Experiments with ten ports: savings of each optimisation at ten gigabits (fig11), and cost of further
//! guests at the same throughput (fig14, fig15).

use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, Metric, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::point::{
    self, CPU, DOM0, DOM0_ATTRIBUTED, GUEST, TOTAL, XEN, XEN_ATTRIBUTED, count, metric,
};
use crate::experiments::settings;
use crate::machine::{ServerResults, ServerSetup};
use crate::named::Metrics;
use crate::value::ParameterValue;
use driver::moderation::ModerationPolicy;
use guest::{KernelConfig, ProgramWorkload};
use hypervisor::domain::DomainKind;
use hypervisor::exit::EoiPath;
use hypervisor::msix::MsixTablePolicy;

/// Number of ports of the modelled server.
pub(crate) const PORTS: u8 = 10;

pub(crate) const THROUGHPUT: Metric = metric("throughput_gbps", "Gb/s", "payload that programs have read");
pub(crate) const METRICS: &[Metric] = &[THROUGHPUT, DOM0, XEN, GUEST, DOM0_ATTRIBUTED, XEN_ATTRIBUTED, TOTAL];
pub(crate) const RIGHT: Option<FigureScale> =
    Some(FigureScale { title: "Throughput", unit: "Gb/s", series: &[("throughput_gbps", "throughput")] });

pub(crate) const FIG11: Experiment = Experiment {
    name: "fig11",
    title: "Each optimisation at ten gigabits",
    shows: "Ten guests on ten ports. Each optimisation includes the earlier ones; the bare machine runs the \
            same drivers and programs without a hypervisor. It and the 2.6.28 guests interrupt at the driver's \
            initial rate (driver_hz) until coalescing is adaptive, which the bare machine's driver can be too; \
            2.6.18 guests at the rate derived from fig07's stated cycles (interrupt_hz). The paper states \
            neither rate for this figure, and fig07 and the steps of this figure hold at no common rate within \
            30 %. So levels test the model, and steps do not.",
    axes: &[
        ExperimentAxis {
            name: "guest",
            what: "the guests' kernel",
            values: ExperimentAxisValues::List(&[
                ParameterValue::name("2.6.18"),
                ParameterValue::name("2.6.28"),
                ParameterValue::name("native"),
            ]),
            labels: &[],
        },
        ExperimentAxis {
            name: "opts",
            what: "optimisations, each including the earlier ones",
            values: ExperimentAxisValues::List(&[
                ParameterValue::name("none"),
                ParameterValue::name("msi"),
                ParameterValue::name("eoi"),
                ParameterValue::name("aic"),
            ]),
            labels: &["none", "+ MSI-X", "+ EOI", "+ AIC"],
        },
    ],
    points: AxisCombinations::Listed(&[
        &[ParameterValue::name("2.6.18"), ParameterValue::name("none")],
        &[ParameterValue::name("2.6.18"), ParameterValue::name("msi")],
        &[ParameterValue::name("2.6.28"), ParameterValue::name("none")],
        &[ParameterValue::name("2.6.28"), ParameterValue::name("eoi")],
        &[ParameterValue::name("2.6.28"), ParameterValue::name("aic")],
        &[ParameterValue::name("native"), ParameterValue::name("none")],
        &[ParameterValue::name("native"), ParameterValue::name("aic")],
    ]),
    metrics: METRICS,
    figures: &[FigureDefinition {
        title: "CPU by domain",
        kind: FigureKind::StackedBars,
        x: &["guest", "opts"],
        x_title: "Guest and optimisations",
        split: None,
        left: CPU,
        right: RIGHT,
    }],
    run: fig11,
};

fn fig11(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let (guest, opts) = (at.axes.text("guest")?, at.axes.text("opts")?);
    let moderation = match (guest, opts) {
        (_, "aic") => settings::adaptive(context)?,
        ("2.6.18", _) => settings::fixed(context)?,
        _ => settings::of_driver(context)?,
    };
    ten_guests(guest, opts, moderation, context)
}

/// Runs ten guests of a kernel on ten ports with optimisations and an interrupt policy, or the programs on a bare machine.
pub(super) fn ten_guests(
    guest: &str,
    opts: &str,
    moderation: ModerationPolicy,
    context: &PointRunInputs,
) -> Result<PointOutcome, PointRunError> {
    let mut setup = ServerSetup { ports: PORTS, guests: PORTS, ..point::setup(context, moderation)? };
    match guest {
        "2.6.18" => setup.spec = KernelConfig::linux_2_6_18(ProgramWorkload::Udp),
        "native" => setup.kind = DomainKind::Native,
        _ => {}
    }
    setup.msix = if opts == "none" { MsixTablePolicy::DeviceModel } else { MsixTablePolicy::Hypervisor };
    // A bare machine's ends of interrupt do not exit.
    setup.eoi = if guest != "native" && matches!(opts, "eoi" | "aic") {
        settings::fast_eoi(context, &setup.table)?
    } else {
        EoiPath::Emulated
    };
    let setup = settings::with_clients(setup, context)?;
    let (measured, mut outcome) = point::run(&setup, context)?;
    outcome.metrics = metrics(outcome.metrics, &measured);
    Ok(outcome)
}

pub(crate) const VMS: ExperimentAxis = ExperimentAxis {
    name: "vms",
    what: "virtual machines on ten ports",
    values: ExperimentAxisValues::Range { first: 10, last: 60, step: 10 },
    labels: &[],
};

pub(crate) const FIG14: Experiment = Experiment {
    name: "fig14",
    title: "From ten to sixty guests",
    shows: "The wires are full with ten guests. Further guests share them, and add switches and interrupts of their \
            own: each costs about as much as the one before.",
    axes: &[VMS],
    points: AxisCombinations::All,
    metrics: METRICS,
    figures: &[FigureDefinition {
        title: "CPU by domain, and throughput",
        kind: FigureKind::StackedBars,
        x: &["vms"],
        x_title: "Virtual machines",
        split: None,
        left: CPU,
        right: RIGHT,
    }],
    run: fig14,
};

pub(crate) const FIG15: Experiment = Experiment {
    name: "fig15",
    title: "From ten to sixty paravirtualized guests",
    shows: "As fig14, with event channels instead of a virtual APIC: no exits, but a hypercall to go idle and \
            more expensive system calls.",
    run: fig15,
    ..FIG14
};

fn fig14(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let setup = point::setup(context, settings::adaptive(context)?)?;
    scale(at, context, ServerSetup { eoi: settings::fast_eoi(context, &setup.table)?, ..setup })
}

fn fig15(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let spec = KernelConfig::xenlinux_2_6_18(ProgramWorkload::Udp);
    let setup = point::setup(context, settings::adaptive(context)?)?;
    scale(at, context, ServerSetup { kind: DomainKind::Pvm, spec, ..setup })
}

fn scale(
    at: &ExperimentPoint,
    context: &PointRunInputs,
    guests: ServerSetup,
) -> Result<PointOutcome, PointRunError> {
    let setup = ServerSetup { ports: PORTS, guests: count(at, "vms")?, ..guests };
    let setup = settings::with_clients(setup, context)?;
    let (measured, mut outcome) = point::run(&setup, context)?;
    outcome.metrics = metrics(outcome.metrics, &measured);
    Ok(outcome)
}

/// Adds throughput, and processor use by domain and in total, to a point's metrics.
pub(crate) fn metrics(metrics: Metrics, measured: &ServerResults) -> Metrics {
    let metrics = metrics.with(THROUGHPUT.name, measured.throughput_mbps() / 1_000.0);
    point::total(point::cpu(metrics, measured), measured)
}
