//! Cycles of a received segment on today's paths between guest and network: counts of operations at the table's prices.

use super::counts::{InterruptOrigin, PathCounts, each, paths};
use super::range::{EstimatedRange, price};
use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::point::{metric, untimed};
use crate::experiments::settings;
use crate::named::Metrics;
use crate::value::ParameterValue;
use guest::packet::TCP_PAYLOAD;
use hypervisor::cost::CostConstant::{self, *};
use hypervisor::cost::{CostTable, MachineModel};

pub(super) const PATH: ExperimentAxis = ExperimentAxis {
    name: "path",
    what: "path between guest and network",
    values: ExperimentAxisValues::List(&[
        ParameterValue::name("virtio-qemu"),
        ParameterValue::name("vhost-net"),
        ParameterValue::name("vhost-user"),
        ParameterValue::name("82576-asleep"),
        ParameterValue::name("82576-mapped"),
        ParameterValue::name("avf-asleep"),
        ParameterValue::name("avf-mapped"),
        ParameterValue::name("vdpa"),
        ParameterValue::name("vf-vfio"),
        ParameterValue::name("siov"),
    ]),
    labels: &[],
};

pub(super) const TODAY: Experiment = Experiment {
    name: "today",
    title: "Today's paths to a guest",
    shows: "Prediction: cycles of a received segment of a TCP stream, by today's paths. Operations for 1,000 segments are \
            measured, derived or estimated: each with its source in the report's parameters and in the third file of --csv. \
            The measured guests ran without KVM (TCG) at 1 to 3 Gb/s; prices are those of a processor with KVM. Nothing is \
            simulated, so queues do not grow and threads wait for nothing. All software paths pay the same price for a \
            segment, so their order is an assumption. Not counted: halts of the guest and their wake-ups, the host's own \
            receive from a network card, acknowledgements in the host. Least and most have all counts and prices at the \
            low and at the high end of their ranges, except prices that were given or measured.",
    axes: &[
        PATH,
        ExperimentAxis {
            name: "interrupts",
            what: "delivery to the guest: posted; remapped to the host, where a card is the sender; or with an emulated APIC",
            values: ExperimentAxisValues::List(&[
                ParameterValue::name("posted"),
                ParameterValue::name("remapped"),
                ParameterValue::name("emulated"),
            ]),
            labels: &[],
        },
    ],
    points: AxisCombinations::All,
    metrics: &[
        metric("guest_cycles", "cycles", "the guest's kernel, for a segment"),
        metric("hypervisor_cycles", "cycles", "exits and injections, for a segment"),
        metric("host_cycles", "cycles", "threads of the host, for a segment"),
        metric("cycles", "cycles", "all three, for a segment"),
        metric("cycles_least", "cycles", "all three with all counts and prices at their least"),
        metric("cycles_most", "cycles", "all three with all counts and prices at their most"),
        metric("gbps_per_core", "Gb/s", "payload for a processor's cycles"),
    ],
    figures: &[FigureDefinition {
        title: "Cycles of a segment",
        kind: FigureKind::StackedBars,
        x: &["path"],
        x_title: "Path",
        split: Some("interrupts"),
        left: FigureScale {
            title: "Cycles of a segment",
            unit: "cycles",
            series: &[
                ("guest_cycles", "guest"),
                ("hypervisor_cycles", "hypervisor"),
                ("host_cycles", "host"),
            ],
        },
        right: None,
    }],
    run: today,
};

/// Delivery of interrupts to a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InterruptDelivery {
    /// The processor delivers a posted interrupt to the running guest.
    Posted,
    /// The host takes a card's interrupt, and injects the guest's; the APIC is virtual. KVM posts the interrupt of an
    /// irqfd itself, since no remapping is involved.
    Remapped,
    /// The host takes an interrupt, injects the guest's, and emulates the guest's end of interrupt.
    Emulated,
}

/// Cycles of a segment by the party that spends them.
#[derive(Debug, Clone, Copy)]
struct PacketCycles {
    guest: EstimatedRange,
    hypervisor: EstimatedRange,
    host: EstimatedRange,
}

fn today(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let table = settings::table(context, MachineModel::Modern)?;
    let delivery = match at.axes.text("interrupts")? {
        "posted" => InterruptDelivery::Posted,
        "remapped" => InterruptDelivery::Remapped,
        _ => InterruptDelivery::Emulated,
    };
    let name = at.axes.text("path")?;
    let paths = paths().map_err(PointRunError::Refused)?;
    let path = paths.iter().find(|path| path.name == name);
    let path = path.ok_or_else(|| PointRunError::Refused(format!("data/today.toml has no path {name}")))?;
    let PacketCycles { guest, hypervisor, host } = cycles(path, delivery, &table);
    let all = guest.plus(hypervisor).plus(host);
    let bits = TCP_PAYLOAD as f64 * 8.0;
    Ok(untimed(
        Metrics::default()
            .with("guest_cycles", guest.value)
            .with("hypervisor_cycles", hypervisor.value)
            .with("host_cycles", host.value)
            .with("cycles", all.value)
            .with("cycles_least", all.least)
            .with("cycles_most", all.most)
            .with("gbps_per_core", bits * table[ClockHertz] as f64 / all.value / 1e9),
    ))
}

fn cycles(path: &PathCounts, delivery: InterruptDelivery, table: &CostTable) -> PacketCycles {
    let sum = |costs: &[CostConstant]| {
        costs.iter().fold(EstimatedRange::ZERO, |sum, cost| sum.plus(price(table, *cost)))
    };
    let interrupts = each(path.interrupts.as_ref());
    let copy = price(table, RxCopy).scaled(TCP_PAYLOAD as f64 / 1e3);
    // A stream's receiver acknowledges each second segment.
    let mut guest = sum(&[RxDriver, RxSkb, RxTcp]).plus(copy).plus(price(table, RxAck).scaled(0.5));
    let taken = sum(&[InterruptEntry, InterruptHandler, Softirq, NapiEntry, RxWake]);
    guest = guest.plus(interrupts.times(taken));
    guest = guest.plus(each(path.device_doorbells.as_ref()).times(price(table, MmioWrite)));
    let exits_user = each(path.exits_user.as_ref());
    let mut hypervisor = each(path.exits_kernel.as_ref()).times(price(table, IoeventfdExit));
    hypervisor = hypervisor.plus(exits_user.times(price(table, ExitOtherMmio)));
    let mut host = exits_user.times(price(table, DeviceModel));
    host = host.plus(each(path.wakes.as_ref()).times(sum(&[EventBlocked, ContextSwitch])));
    host = host.plus(each(path.host_packets.as_ref()).times(price(table, HostPacket).plus(copy)));
    host = host.plus(each(path.system_calls.as_ref()).times(price(table, TxSyscall)));
    host = host.plus(each(path.bridged.as_ref()).times(price(table, Bridge)));
    let is_software = path.signal == InterruptOrigin::Software;
    // VFIO's handler signals an irqfd for a card's message that is not posted.
    if is_software || delivery != InterruptDelivery::Posted {
        host = host.plus(interrupts.times(price(table, IrqfdSignal)));
    }
    let delivered = match delivery {
        InterruptDelivery::Posted => sum(&[PostedInterrupt]),
        InterruptDelivery::Remapped if is_software => sum(&[PostedInterrupt]),
        InterruptDelivery::Remapped => sum(&[ExitExternalInterrupt, Injection]),
        InterruptDelivery::Emulated => sum(&[ExitExternalInterrupt, Injection, EoiEmulated]),
    };
    PacketCycles { guest, hypervisor: hypervisor.plus(interrupts.times(delivered)), host }
}
