//! Experiments on the cost of interrupt handling: MSI-X masking (fig06) and end-of-interrupt writes (fig07).

use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, Metric, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::point::{
    self, CPU, DOM0, DOM0_ATTRIBUTED, GUEST, XEN, XEN_ATTRIBUTED, count, metric,
};
use crate::experiments::settings;
use crate::value::ParameterValue;
use guest::{KernelConfig, ProgramWorkload};
use hypervisor::account::CycleCategory;
use hypervisor::exit::EoiPath;
use hypervisor::msix::MsixTablePolicy;

const VMS: ExperimentAxis = ExperimentAxis {
    name: "vms",
    what: "virtual machines on one port",
    values: ExperimentAxisValues::Range { first: 1, last: 7, step: 1 },
    labels: &[],
};

const OFF_AND_ON: ExperimentAxisValues =
    ExperimentAxisValues::List(&[ParameterValue::Bool(false), ParameterValue::Bool(true)]);
const THROUGHPUT: Metric = metric("throughput_mbps", "Mb/s", "payload that programs have read");

pub(crate) const FIG06: Experiment = Experiment {
    name: "fig06",
    title: "Masking and unmasking in the hypervisor",
    shows: "A 2.6.18 guest masks and unmasks its vector at each interrupt. In a device model, that costs the \
            service domain 17 % of a thread with one guest and 24 % with two. From five guests on, those that \
            share the wire have shorter bursts, and so more interrupts. In the hypervisor it costs the service \
            domain nothing.",
    axes: &[
        VMS,
        ExperimentAxis {
            name: "msi_accel",
            what: "mask bits are handled in the hypervisor",
            values: OFF_AND_ON,
            labels: &["device model", "hypervisor"],
        },
    ],
    points: AxisCombinations::All,
    metrics: &[THROUGHPUT, DOM0, XEN, GUEST, DOM0_ATTRIBUTED, XEN_ATTRIBUTED],
    figures: &[FigureDefinition {
        title: "CPU by domain, and throughput",
        kind: FigureKind::StackedBars,
        x: &["vms"],
        x_title: "Virtual machines",
        split: Some("msi_accel"),
        left: CPU,
        right: Some(FigureScale {
            title: "Throughput",
            unit: "Mb/s",
            series: &[("throughput_mbps", "throughput")],
        }),
    }],
    run: fig06,
};

fn fig06(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let mut setup = point::setup(context, settings::fixed(context)?)?;
    setup.spec = KernelConfig::linux_2_6_18(ProgramWorkload::Udp);
    setup.guests = count(at, "vms")?;
    setup.msix =
        if at.axes.bool("msi_accel")? { MsixTablePolicy::Hypervisor } else { MsixTablePolicy::DeviceModel };
    let (measured, mut outcome) = point::run(&setup, context)?;
    let metrics = outcome.metrics.with(THROUGHPUT.name, measured.throughput_mbps());
    outcome.metrics = point::cpu(metrics, &measured);
    Ok(outcome)
}

const EXITS: &[Metric] = &[
    metric("total_mcycles_per_s", "Mcycles/s", "the hypervisor's work for the guests"),
    metric("apic_access_mcycles", "Mcycles/s", "accesses to the APIC page"),
    metric("eoi_mcycles", "Mcycles/s", "accesses to the APIC page for end-of-interrupt writes"),
    metric("external_interrupt_mcycles", "Mcycles/s", "physical interrupts while a guest ran"),
    metric("other_mcycles", "Mcycles/s", "all other virtualization work of the hypervisor"),
    metric("eoi_share_pct", "%", "share of end-of-interrupt writes in the cycles of APIC-page accesses"),
    metric("total_mcycles_per_s_per_vm", "Mcycles/s", "all work of the hypervisor for each guest"),
    metric("apic_access_mcycles_per_vm", "Mcycles/s", "accesses to the APIC page for each guest"),
    metric("eoi_mcycles_per_vm", "Mcycles/s", "end-of-interrupt writes for each guest"),
    metric("external_interrupt_mcycles_per_vm", "Mcycles/s", "physical interrupts for each guest"),
    metric("other_mcycles_per_vm", "Mcycles/s", "all other virtualization work for each guest"),
];

pub(crate) const FIG07: Experiment = Experiment {
    name: "fig07",
    title: "End of interrupt by the exit qualification",
    shows: "Most of the virtualization overhead of a 2.6.28 guest is APIC-page accesses, about half of them \
            ends of interrupt. Trusting the exit qualification saves fetching and decoding the instruction.",
    axes: &[
        VMS,
        ExperimentAxis {
            name: "eoi_accel",
            what: "end-of-interrupt writes are handled by the exit qualification alone",
            values: OFF_AND_ON,
            labels: &["emulated", "fast"],
        },
    ],
    points: AxisCombinations::All,
    metrics: EXITS,
    figures: &[FigureDefinition {
        title: "Cycles by exit",
        kind: FigureKind::StackedBars,
        x: &["vms"],
        x_title: "Virtual machines",
        split: Some("eoi_accel"),
        left: FigureScale {
            title: "Cycles",
            unit: "Mcycles/s",
            series: &[
                ("apic_access_mcycles", "APIC access"),
                ("external_interrupt_mcycles", "external interrupt"),
                ("other_mcycles", "other"),
            ],
        },
        right: None,
    }],
    run: fig07,
};

fn fig07(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let mut setup = point::setup(context, settings::fixed(context)?)?;
    setup.guests = count(at, "vms")?;
    setup.eoi = if at.axes.bool("eoi_accel")? {
        settings::fast_eoi(context, &setup.table)?
    } else {
        EoiPath::Emulated
    };
    let (measured, mut outcome) = point::run(&setup, context)?;
    let total = measured.guests_overhead_mcycles_per_s();
    let eoi = measured.mcycles_per_s(CycleCategory::ApicEoi);
    let apic = eoi + measured.mcycles_per_s(CycleCategory::ApicOther);
    let external = measured.mcycles_per_s(CycleCategory::ExternalInterrupt);
    let share = if apic > 0.0 { eoi / apic * 100.0 } else { 0.0 };
    let parts = [total, apic, eoi, external, total - apic - external];
    let each = parts.map(|part| part / f64::from(setup.guests));
    let values = parts.into_iter().chain([share]).chain(each);
    outcome.metrics = EXITS.iter().zip(values).fold(outcome.metrics, |m, (metric, v)| m.with(metric.name, v));
    Ok(outcome)
}
