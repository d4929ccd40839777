//! Experiments on interrupt coalescing: fixed rates compared with the adaptive policy, for datagrams (fig08)
//! and a stream (fig09).

use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, Metric, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::point::{self, CPU, DOM0, DOM0_ATTRIBUTED, GUEST, XEN, XEN_ATTRIBUTED, metric};
use crate::experiments::settings;
use crate::machine::ClientTraffic;
use crate::value::ParameterValue;
use driver::moderation::{ModerationPolicy, interval_us};
use guest::{KernelConfig, ProgramWorkload};

pub(crate) const POLICY: ExperimentAxis = ExperimentAxis {
    name: "policy",
    what: "interrupts a second, or adaptive coalescing",
    values: ExperimentAxisValues::List(&[
        ParameterValue::name("20k"),
        ParameterValue::name("2k"),
        ParameterValue::name("aic"),
        ParameterValue::name("1k"),
    ]),
    labels: &["20 kHz", "2 kHz", "adaptive", "1 kHz"],
};

const METRICS: &[Metric] = &[
    metric("throughput_mbps", "Mb/s", "payload read by the program"),
    metric("loss_pct", "%", "frames not read by any program"),
    metric("interrupts_per_s", "1/s", "receive interrupts"),
    DOM0,
    XEN,
    GUEST,
    DOM0_ATTRIBUTED,
    XEN_ATTRIBUTED,
];

const FIGURES: &[FigureDefinition] = &[FigureDefinition {
    title: "CPU by domain, and throughput",
    kind: FigureKind::StackedBars,
    x: &["policy"],
    x_title: "Interrupt policy",
    split: None,
    left: CPU,
    right: Some(FigureScale {
        title: "Throughput",
        unit: "Mb/s",
        series: &[("throughput_mbps", "throughput")],
    }),
}];

pub(crate) const FIG08: Experiment = Experiment {
    name: "fig08",
    title: "Coalescing of a datagram receiver's interrupts",
    shows: "Fewer interrupts cost less, until a socket's buffer overflows between two of them. The adaptive \
            policy interrupts just often enough. Missed: the service domain costs as much as in fig06 after \
            its optimisation, 3.0 % of a thread. The paper states this quantity twice: 3 % with fig06, to \
            which the model is fitted, and about half with this figure.",
    axes: &[POLICY],
    points: AxisCombinations::All,
    metrics: METRICS,
    figures: FIGURES,
    run: |at, context| coalesce(at, context, ProgramWorkload::Udp),
};

pub(crate) const FIG09: Experiment = Experiment {
    name: "fig09",
    title: "Coalescing of a stream receiver's interrupts",
    shows: "A stream waits for its acknowledgements, so rare interrupts slow it down.",
    axes: &[POLICY],
    points: AxisCombinations::All,
    metrics: METRICS,
    figures: FIGURES,
    run: |at, context| coalesce(at, context, ProgramWorkload::Tcp),
};

/// Returns the interrupt coalescing policy called `name`.
pub(crate) fn policy(name: &str, context: &PointRunInputs) -> Result<ModerationPolicy, PointRunError> {
    Ok(match name {
        "20k" => ModerationPolicy::Fixed(interval_us(20_000)),
        "2k" => ModerationPolicy::Fixed(interval_us(2_000)),
        "1k" => ModerationPolicy::Fixed(interval_us(1_000)),
        "aic" => settings::adaptive(context)?,
        name => return Err(PointRunError::Refused(format!("unknown interrupt policy {name}"))),
    })
}

fn coalesce(
    at: &ExperimentPoint,
    context: &PointRunInputs,
    load: ProgramWorkload,
) -> Result<PointOutcome, PointRunError> {
    let mut setup = point::setup(context, policy(at.axes.text("policy")?, context)?)?;
    setup.spec = KernelConfig::linux_2_6_28(load);
    // The paper's optimisations are cumulative, and this is the last one.
    setup.eoi = settings::fast_eoi(context, &setup.table)?;
    if load == ProgramWorkload::Tcp {
        let window = settings::window(context)?;
        (setup.traffic, setup.spec.stream_segments) = (ClientTraffic::Tcp { window }, window.into());
    }
    let (measured, mut outcome) = point::run(&setup, context)?;
    outcome.metrics = point::cpu(point::received(outcome.metrics, &measured), &measured);
    Ok(outcome)
}
