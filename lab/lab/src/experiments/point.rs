//! Code shared by all experiments: creates modelled machines from experiment points, and metrics from results.

use crate::experiment::{ExperimentPoint, FigureScale, Metric, PointOutcome, PointRunError, PointRunInputs};
use crate::experiments::topology::topology;
use crate::experiments::{parts, settings};
use crate::machine::{
    Actor, ClientTraffic, NetbackOptions, NetworkAccessMode, ServerResults, ServerSetup, ServerSimulation,
    Simulation, TrafficLimits, VcpuScheduling,
};
use crate::named::Metrics;
use driver::moderation::ModerationPolicy;
use guest::{KernelConfig, ProgramWorkload};
use hypervisor::cost::MachineModel;
use hypervisor::domain::DomainKind;
use hypervisor::exit::EoiPath;
use hypervisor::msix::MsixTablePolicy;
use sim::VirtualDuration;

/// Creates the declaration of an experiment's metric.
pub(crate) const fn metric(name: &'static str, unit: &'static str, what: &'static str) -> Metric {
    Metric { name, unit, what }
}

pub(crate) const DOM0: Metric = metric(
    "cpu_dom0_pct",
    "%",
    "CPU use of the service domain, in percent of a \
    thread",
);
pub(crate) const DOM0_ATTRIBUTED: Metric = metric(
    "cpu_dom0_attributed_pct",
    "%",
    "CPU use of the service domain and of its hypercalls, in percent of a thread",
);
pub(crate) const XEN: Metric =
    metric("cpu_xen_pct", "%", "CPU use of the hypervisor, in percent of a thread");
pub(crate) const XEN_ATTRIBUTED: Metric = metric(
    "cpu_xen_attributed_pct",
    "%",
    "CPU use of the hypervisor without the service domain's hypercalls, in percent of a thread",
);
pub(crate) const GUEST: Metric =
    metric("cpu_guest_pct", "%", "CPU use of the guests, in percent of a thread");
pub(crate) const TOTAL: Metric =
    metric("cpu_total_pct", "%", "CPU use of service domain, hypervisor and guests, in percent of a thread");

/// Figure scale with the processor use of each domain. The service domain's has its hypercalls, as in the papers.
pub(crate) const CPU: FigureScale = FigureScale {
    series: &[
        ("cpu_guest_pct", "guests"),
        ("cpu_xen_attributed_pct", "hypervisor"),
        ("cpu_dom0_attributed_pct", "dom0"),
    ],
    ..OWN_CPU
};

/// Figure scale with the processor use of each domain's own code.
pub(crate) const OWN_CPU: FigureScale = FigureScale {
    title: "CPU",
    unit: "% of a thread",
    series: &[("cpu_guest_pct", "guests"), ("cpu_xen_pct", "hypervisor"), ("cpu_dom0_pct", "dom0")],
};

/// Maximum warm-up of a machine with a fixed interrupt policy.
const RUN_UP: VirtualDuration = VirtualDuration::from_millis(20);
/// Maximum warm-up of datagrams with the adaptive policy: it samples once a second, and their rate is stable after the
/// first sample. A stream reaches its rate after several.
const FIRST_SAMPLE: VirtualDuration = VirtualDuration::from_millis(1_050);
/// Maximum warm-up of a machine whose policy samples more often than once a second.
const SETTLE: VirtualDuration = VirtualDuration::from_millis(500);

/// Creates the paper's server with one guest of the newer kernel reading datagrams, without accelerations or traffic
/// between functions.
pub(crate) fn setup(
    context: &PointRunInputs,
    moderation: ModerationPolicy,
) -> Result<ServerSetup, PointRunError> {
    setup_on(context, MachineModel::Nehalem, moderation)
}

/// Creates a server as [`setup`] does, of another paper's machine.
pub(crate) fn setup_on(
    context: &PointRunInputs,
    own: MachineModel,
    moderation: ModerationPolicy,
) -> Result<ServerSetup, PointRunError> {
    Ok(ServerSetup {
        table: settings::table(context, own)?,
        topology: topology(context, own)?,
        ports: 1,
        guests: 1,
        network: NetworkAccessMode::Direct,
        netback: NetbackOptions::SPREAD,
        kind: DomainKind::Hvm,
        spec: KernelConfig::linux_2_6_28(ProgramWorkload::Udp),
        traffic: ClientTraffic::Udp,
        first: None,
        inside: None,
        loopback: None,
        limits: TrafficLimits::default(),
        moderation,
        msix: MsixTablePolicy::Hypervisor,
        eoi: EoiPath::Emulated,
        scheduling: VcpuScheduling::RoundRobin,
        seed: context.seed,
    })
}

/// Runs the modelled server. Returns its measurements, and the outcome to add metrics to. The scheduler setting
/// applies if guests share a thread.
pub(crate) fn run(
    setup: &ServerSetup,
    context: &PointRunInputs,
) -> Result<(ServerResults, PointOutcome), PointRunError> {
    let mut setup = setup.clone();
    if setup.shares_threads() {
        setup.scheduling = settings::scheduling(context)?;
    }
    parts::limit_kernel(context, &mut setup.spec)?;
    let mut world =
        ServerSimulation::new(&setup).map_err(|error| PointRunError::Refused(error.to_string()))?;
    let span = settings::span(context)?;
    let longest = settings::warm_up(context)?;
    let warm_up = match setup.moderation {
        ModerationPolicy::Adaptive(_) if setup.spec.load == ProgramWorkload::Tcp => longest,
        ModerationPolicy::Adaptive(_) => longest.min(FIRST_SAMPLE),
        ModerationPolicy::Dynamic | ModerationPolicy::Hybrid(_) => longest.min(SETTLE),
        ModerationPolicy::Fixed(_) => longest.min(RUN_UP),
    };
    let measured =
        world.measure(warm_up, span).map_err(|error| PointRunError::Invariant(error.to_string()))?;
    Ok((measured, timed(&world, warm_up + span)))
}

/// Returns the warm-up and the measured time of a machine with a fixed interrupt policy.
pub(crate) fn times(context: &PointRunInputs) -> Result<(VirtualDuration, VirtualDuration), PointRunError> {
    Ok((settings::warm_up(context)?.min(RUN_UP), settings::span(context)?))
}

/// Creates a point's outcome without metrics, for a machine that ran for `time`.
pub(crate) fn timed<A: Actor>(machine: &Simulation<A>, time: VirtualDuration) -> PointOutcome {
    PointOutcome {
        metrics: Metrics::default(),
        trace: machine.hash(),
        simulated_ps: time.picos(),
        events: machine.events(),
        cycles: machine.breakdown().cloned(),
    }
}

/// Creates the outcome of a point that checks rules and simulates no virtual time.
pub(crate) fn untimed(metrics: Metrics) -> PointOutcome {
    PointOutcome { metrics, trace: 0, simulated_ps: 0, events: 0, cycles: None }
}

/// Adds throughput, loss and interrupt rate to a point's metrics.
pub(crate) fn received(metrics: Metrics, measured: &ServerResults) -> Metrics {
    metrics
        .with("throughput_mbps", measured.throughput_mbps())
        .with("loss_pct", measured.loss_pct())
        .with("interrupts_per_s", measured.interrupts_per_s())
}

/// Adds the processor use of service domain, hypervisor and guests to a point's metrics: by the code that ran, and for
/// the first two also as the hypervisor accounts for it.
pub(crate) fn cpu(metrics: Metrics, measured: &ServerResults) -> Metrics {
    metrics
        .with(DOM0.name, measured.cpu_dom0_pct())
        .with(XEN.name, measured.cpu_xen_pct())
        .with(GUEST.name, measured.cpu_guest_pct())
        .with(DOM0_ATTRIBUTED.name, measured.cpu_dom0_attributed_pct())
        .with(XEN_ATTRIBUTED.name, measured.cpu_xen_attributed_pct())
}

/// Adds the processor use of all domains together to a point's metrics.
pub(crate) fn total(metrics: Metrics, measured: &ServerResults) -> Metrics {
    metrics.with(TOTAL.name, measured.cpu_total_pct())
}

/// Returns an experiment point's value on the axis called `axis`, a count of at most 255.
pub(crate) fn count(at: &ExperimentPoint, axis: &str) -> Result<u8, PointRunError> {
    let value = at.axes.int(axis)?;
    u8::try_from(value)
        .map_err(|_| PointRunError::Refused(format!("{axis} is {value}; it must be from 1 to {}", u8::MAX)))
}
