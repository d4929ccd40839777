//! Experiments on traffic inside the server, faster than a card's wire. Through the card: from the service
//! domain to a guest by interrupt rate (fig10), and from guest to guest by message size (fig12). Through the
//! split driver's bridge: from guest to guest (fig13).

use super::coalescing::{self, POLICY};
use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, Metric, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::point::{
    self, CPU, DOM0, DOM0_ATTRIBUTED, GUEST, TOTAL, XEN, XEN_ATTRIBUTED, metric,
};
use crate::experiments::settings;
use crate::machine::{ClientTraffic, InterDomainSender, InterDomainTraffic, NetworkAccessMode, ServerSetup};
use driver::moderation::ModerationPolicy;
use guest::ProgramWorkload;
use guest::packet::UDP_PAYLOAD;

pub(crate) const FIG10: Experiment = Experiment {
    name: "fig10",
    title: "Coalescing against a sender faster than the wire",
    shows: "The service domain sends datagrams through the card to a guest. The rate sent does not depend on \
            the guest's interrupts, but the rate received does: buffers large enough for the wire's rate \
            overflow between two of them.",
    axes: &[POLICY],
    points: AxisCombinations::All,
    metrics: &[
        metric("tx_mbps", "Mb/s", "payload that the sender has written"),
        metric("rx_mbps", "Mb/s", "payload that the receiver has read"),
        metric("loss_pct", "%", "datagrams that were written and not read"),
        metric("interrupts_per_s", "1/s", "receive interrupts"),
        DOM0,
        XEN,
        GUEST,
        DOM0_ATTRIBUTED,
        XEN_ATTRIBUTED,
    ],
    figures: &[FigureDefinition {
        title: "CPU by domain, and payload sent and received",
        kind: FigureKind::StackedBars,
        x: &["policy"],
        x_title: "Interrupt policy",
        split: None,
        left: CPU,
        right: Some(FigureScale {
            title: "Throughput",
            unit: "Mb/s",
            series: &[("tx_mbps", "sent"), ("rx_mbps", "received")],
        }),
    }],
    run: fig10,
};

const MESSAGE_BYTES: ExperimentAxis = ExperimentAxis {
    name: "message_bytes",
    what: "bytes of each system call of the sender",
    values: ExperimentAxisValues::Range { first: 1_500, last: 4_000, step: 500 },
    labels: &[],
};

/// Bytes of the longest IP packet that a card sends.
const MAX_MTU: u16 = 9_000;
const THROUGHPUT: Metric = metric("throughput_gbps", "Gb/s", "payload that the receiver has read");
const PER_CPU: Metric = metric("gbps_per_cpu", "Gb/s", "throughput for each 100 % of a thread in use");

pub(crate) const FIG12: Experiment = Experiment {
    name: "fig12",
    title: "From guest to guest through the card",
    shows: "Two guests on one port, one sending to the other: the card's own bandwidth is the limit, and longer \
            messages save system calls.",
    axes: &[MESSAGE_BYTES],
    points: AxisCombinations::All,
    metrics: &[THROUGHPUT, TOTAL, PER_CPU],
    figures: &[FigureDefinition {
        title: "Throughput, and CPU",
        kind: FigureKind::Lines,
        x: &["message_bytes"],
        x_title: "Message size, bytes",
        split: None,
        left: FigureScale {
            title: "Throughput",
            unit: "Gb/s",
            series: &[("throughput_gbps", "throughput"), ("gbps_per_cpu", "for 100 % of a thread")],
        },
        right: Some(FigureScale { title: "CPU", unit: "% of a thread", series: &[("cpu_total_pct", "CPU")] }),
    }],
    run: fig12,
};

pub(crate) const FIG13: Experiment = Experiment {
    name: "fig13",
    title: "From guest to guest through the split driver",
    shows: "The guests of fig12 with front ends instead of VFs: front end, back end, bridge, back end, front \
            end. Every byte is copied by a processor, and the back end has one thread: longer messages carry \
            more at the same processor use, and from 2,000 bytes more than the card.",
    run: fig13,
    ..FIG12
};

/// Creates a server with traffic between its domains and a silent wire.
fn setup(
    context: &PointRunInputs,
    moderation: ModerationPolicy,
    inside: InterDomainTraffic,
) -> Result<ServerSetup, PointRunError> {
    let setup = point::setup(context, moderation)?;
    let eoi = settings::fast_eoi(context, &setup.table)?;
    Ok(ServerSetup { traffic: ClientTraffic::Silent, inside: Some(inside), eoi, ..setup })
}

fn fig10(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let policy = coalescing::policy(at.axes.text("policy")?, context)?;
    let inside = InterDomainTraffic {
        from: InterDomainSender::ServiceDomain,
        load: ProgramWorkload::Udp,
        message_bytes: UDP_PAYLOAD as u32,
        mtu: settings::mtu(context)?,
        transmit_interval_us: settings::interval(context)?,
    };
    let setup = ServerSetup { loopback: settings::loopback(context)?, ..setup(context, policy, inside)? };
    let (measured, mut outcome) = point::run(&setup, context)?;
    let metrics = outcome
        .metrics
        .with("tx_mbps", measured.written_mbps())
        .with("rx_mbps", measured.throughput_mbps())
        .with("loss_pct", measured.loss_pct())
        .with("interrupts_per_s", measured.interrupts_per_s());
    outcome.metrics = point::cpu(metrics, &measured);
    Ok(outcome)
}

fn fig12(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let transmit_interval_us = settings::interval(context)?;
    let inside = InterDomainTraffic { transmit_interval_us, ..between_guests(at, context)? };
    let setup = setup(context, settings::adaptive(context)?, inside)?;
    let loopback = settings::loopback(context)?;
    receive(ServerSetup { loopback, ..setup }, context)
}

/// Runs two guests that exchange traffic over the split driver; no card is involved.
fn fig13(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let setup = setup(context, ModerationPolicy::Fixed(0), between_guests(at, context)?)?;
    receive(ServerSetup { network: NetworkAccessMode::Split { workers: 1 }, ..setup }, context)
}

fn between_guests(
    at: &ExperimentPoint,
    context: &PointRunInputs,
) -> Result<InterDomainTraffic, PointRunError> {
    let bytes = at.axes.int("message_bytes")?;
    let message_bytes =
        u16::try_from(bytes).ok().filter(|bytes| (1..=60_000).contains(bytes)).ok_or_else(|| {
            PointRunError::Refused(format!("message_bytes is {bytes}; it must be from 1 to 60000"))
        })?;
    let load = settings::internal_workload(context)?;
    // Segments of a stream do not depend on the MTU setting.
    let mtu = if load == ProgramWorkload::Udp { settings::mtu(context)? } else { MAX_MTU };
    let message_bytes = message_bytes.into();
    Ok(InterDomainTraffic {
        from: InterDomainSender::Guest,
        load,
        message_bytes,
        mtu,
        transmit_interval_us: 0,
    })
}

/// Runs two guests; the last sends to the first. Returns throughput and processor use.
fn receive(mut setup: ServerSetup, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    setup.guests = 2;
    if let Some(inside) = setup.inside {
        setup.spec.load = inside.load;
        if inside.load == ProgramWorkload::Tcp {
            setup.spec.stream_segments = settings::window(context)?.into();
        }
    }
    let (measured, mut outcome) = point::run(&setup, context)?;
    let throughput = measured.throughput_mbps() / 1_000.0;
    let metrics = point::total(outcome.metrics.with(THROUGHPUT.name, throughput), &measured);
    outcome.metrics = metrics.with(PER_CPU.name, throughput / (measured.cpu_total_pct() / 100.0));
    Ok(outcome)
}
