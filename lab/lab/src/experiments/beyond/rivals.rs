//! Experiment beyond the paper: the paper's adaptive interrupt policy compared with current Linux drivers' policies and
//! with hybrids, for datagrams, a stream and a responder. Busy polling is not included, as it occupies a processor.

use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, Metric, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::hpca2010::coalescing;
use crate::experiments::point::{self, CPU, DOM0, DOM0_ATTRIBUTED, GUEST, XEN, XEN_ATTRIBUTED, metric};
use crate::experiments::{parts, settings};
use crate::machine::{ClientTraffic, ServerResults, ServerSetup, ServerSimulation};
use crate::value::ParameterValue;
use driver::moderation::{HybridModeration, ModerationPolicy};
use guest::{KernelConfig, ProgramWorkload};
use sim::{VirtualDuration, VirtualInstant};

const POLICY: ExperimentAxis = ExperimentAxis {
    name: "policy",
    what: "interrupts a second; adaptive coalescing; NAPI alone (napi); Linux' net_dim (dim); at once below 20,000 packets \
           a second and at 2 kHz above (hybrid)",
    values: ExperimentAxisValues::List(&[
        ParameterValue::name("20k"),
        ParameterValue::name("2k"),
        ParameterValue::name("aic"),
        ParameterValue::name("napi"),
        ParameterValue::name("dim"),
        ParameterValue::name("hybrid"),
    ]),
    labels: &["20 kHz", "2 kHz", "adaptive", "NAPI alone", "net_dim", "hybrid"],
};

const LOAD: ExperimentAxis = ExperimentAxis {
    name: "load",
    what: "traffic that a client sends",
    values: ExperimentAxisValues::List(&[
        ParameterValue::name("datagrams"),
        ParameterValue::name("stream"),
        ParameterValue::name("requests"),
    ]),
    labels: &["datagrams", "a stream", "requests"],
};

const INTERRUPTS: Metric = metric("interrupts_per_s", "1/s", "receive interrupts");

pub(crate) const RIVALS: Experiment = Experiment {
    name: "coalescing-rivals",
    title: "Adaptive coalescing and its rivals",
    shows: "NAPI alone interrupts whenever the kernel has caught up, so it answers soonest and costs most. \
            net_dim prefers fewer interrupts at equal rates, and its longest interval is 256 us. The paper's \
            policy interrupts least, which costs a responder latency. A hybrid answers as soon as NAPI until a \
            fast responder reaches its threshold.",
    axes: &[LOAD, POLICY],
    points: AxisCombinations::All,
    metrics: &[
        metric("throughput_mbps", "Mb/s", "payload that the program has read"),
        metric("loss_pct", "%", "frames that no program has read"),
        INTERRUPTS,
        metric("round_trip_us", "us", "from a request's first bit on the wire to its response's last, mean"),
        DOM0,
        XEN,
        GUEST,
        DOM0_ATTRIBUTED,
        XEN_ATTRIBUTED,
    ],
    figures: &[FigureDefinition {
        title: "CPU by domain, and interrupts",
        kind: FigureKind::StackedBars,
        x: &["policy"],
        x_title: "Interrupt policy",
        split: Some("load"),
        left: CPU,
        right: Some(FigureScale {
            title: "Interrupts",
            unit: "1/s",
            series: &[("interrupts_per_s", "interrupts")],
        }),
    }],
    run: rival,
};

/// Datagram rates before and after the rate changes, in thousandths of the line rate: 10,000 and 81,267 frames a
/// second.
const RATES: (u16, u16) = (123, 1_000);

pub(crate) const STEP_OF_RATE: Experiment = Experiment {
    name: "coalescing-step",
    title: "The seconds after a step of the rate",
    shows: "A policy that samples once a second reacts late to a step: until then the socket overflows between \
            two interrupts. Policies that measure 64 interrupts or 10 ms lose almost nothing.",
    axes: &[POLICY],
    points: AxisCombinations::All,
    metrics: &[
        metric(
            "loss_first_s_pct",
            "%",
            "frames that no program has read, in the first second after the step",
        ),
        metric(
            "loss_second_s_pct",
            "%",
            "frames that no program has read, in the second second after the step",
        ),
        metric(
            "loss_third_s_pct",
            "%",
            "frames that no program has read, in the third second after the step",
        ),
        INTERRUPTS,
    ],
    figures: &[FigureDefinition {
        title: "Frames lost after the step",
        kind: FigureKind::GroupedBars,
        x: &["policy"],
        x_title: "Interrupt policy",
        split: None,
        left: FigureScale {
            title: "Lost",
            unit: "%",
            series: &[
                ("loss_first_s_pct", "first second"),
                ("loss_second_s_pct", "second second"),
                ("loss_third_s_pct", "third second"),
            ],
        },
        right: None,
    }],
    run: step,
};

fn policy(at: &ExperimentPoint, context: &PointRunInputs) -> Result<ModerationPolicy, PointRunError> {
    Ok(match at.axes.text("policy")? {
        "napi" => ModerationPolicy::Fixed(0),
        "dim" => ModerationPolicy::Dynamic,
        "hybrid" => ModerationPolicy::Hybrid(HybridModeration::default()),
        name => coalescing::policy(name, context)?,
    })
}

fn setup(
    at: &ExperimentPoint,
    context: &PointRunInputs,
    load: ProgramWorkload,
) -> Result<ServerSetup, PointRunError> {
    let setup = point::setup(context, policy(at, context)?)?;
    let eoi = settings::fast_eoi(context, &setup.table)?;
    Ok(ServerSetup { spec: KernelConfig::linux_2_6_28(load), eoi, ..setup })
}

fn rival(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let mut setup = match at.axes.text("load")? {
        "stream" => setup(at, context, ProgramWorkload::Tcp)?,
        "requests" => setup(at, context, ProgramWorkload::RequestResponse)?,
        _ => setup(at, context, ProgramWorkload::Udp)?,
    };
    match setup.spec.load {
        ProgramWorkload::Tcp => {
            let window = settings::window(context)?;
            (setup.traffic, setup.spec.stream_segments) = (ClientTraffic::Tcp { window }, window.into());
        }
        ProgramWorkload::RequestResponse => setup.traffic = ClientTraffic::RequestResponse,
        _ => {}
    }
    let (measured, mut outcome) = point::run(&setup, context)?;
    let metrics = point::received(outcome.metrics, &measured);
    outcome.metrics = point::cpu(metrics.with("round_trip_us", measured.round_trip_us()), &measured);
    Ok(outcome)
}

fn step(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let mut setup = setup(at, context, ProgramWorkload::Udp)?;
    // 2.5 s by default, in the middle between two samples of the adaptive policy.
    let second = settings::span(context)?.times(5);
    let step = VirtualDuration::from_picos(second.picos() * 5 / 2);
    let (before, after) = RATES;
    setup.traffic = ClientTraffic::Step { before, after, at: VirtualInstant::ZERO + step };
    parts::limit_kernel(context, &mut setup.spec)?;
    let mut world =
        ServerSimulation::new(&setup).map_err(|error| PointRunError::Refused(error.to_string()))?;
    let mut seconds = Vec::new();
    for warm_up in [step, VirtualDuration::ZERO, VirtualDuration::ZERO] {
        let measured = world.measure(warm_up, second);
        seconds.push(measured.map_err(|error| PointRunError::Invariant(error.to_string()))?);
    }
    let lost = |n: usize| seconds.get(n).map_or(0.0, ServerResults::loss_pct);
    let interrupts: f64 = seconds.iter().map(ServerResults::interrupts_per_s).sum();
    let mut outcome = point::timed(&world, step + second.times(3));
    outcome.metrics = outcome
        .metrics
        .with("loss_first_s_pct", lost(0))
        .with("loss_second_s_pct", lost(1))
        .with("loss_third_s_pct", lost(2))
        .with(INTERRUPTS.name, interrupts / seconds.len() as f64);
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use crate::experiments::tests::run_point;

    fn metric(experiment: &str, set: &[&str], name: &str) -> f64 {
        *run_point(experiment, set).unwrap().metrics.get(name).unwrap()
    }

    #[test]
    fn interrupt_policy_sampling_each_second_reacts_late_to_load() {
        let lost = |policy, second| metric("coalescing-step", &[policy, "measure_ms=200"], second);
        assert!(lost("policy=aic", "loss_first_s_pct") > 10.0);
        assert_eq!(lost("policy=aic", "loss_third_s_pct"), 0.0);
        for policy in ["policy=dim", "policy=hybrid"] {
            assert!(lost(policy, "loss_first_s_pct") < 0.1, "{policy}");
        }
    }

    #[test]
    fn fewer_interrupts_save_cpu_and_add_latency() {
        let of = |policy, name| metric("coalescing-rivals", &["load=requests", policy], name);
        assert!(of("policy=napi", "cpu_xen_pct") > 5.0 * of("policy=aic", "cpu_xen_pct"));
        assert!(of("policy=napi", "round_trip_us") < of("policy=aic", "round_trip_us") / 20.0);
    }
}
