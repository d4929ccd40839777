//! Cycles of a received packet on today's paths between guest and network: counts of operations at the table's prices.

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
    shows: "Prediction: cycles of a received packet of a stream, by today's paths. Operations for 1,000 packets are \
            counted on live hosts, derived or estimated (data/today.toml); prices are the cost table's. Nothing is \
            simulated, so queues do not grow and threads wait for nothing. Least and most have all estimates, of \
            counts and prices, at the low and at the high end of their ranges.",
    axes: &[
        PATH,
        ExperimentAxis {
            name: "interrupts",
            what: "delivery to the guest: posted by the processor, remapped to the host, or with an emulated APIC too",
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
        metric("guest_cycles", "cycles", "the guest's kernel, for a packet"),
        metric("hypervisor_cycles", "cycles", "exits and injections, for a packet"),
        metric("host_cycles", "cycles", "threads of the host, for a packet"),
        metric("cycles", "cycles", "all three, for a packet"),
        metric("cycles_least", "cycles", "all three with all estimates at their least"),
        metric("cycles_most", "cycles", "all three with all estimates at their most"),
        metric("gbps_per_core", "Gb/s", "payload for a processor's cycles"),
    ],
    figures: &[FigureDefinition {
        title: "Cycles of a packet",
        kind: FigureKind::StackedBars,
        x: &["path"],
        x_title: "Path",
        split: Some("interrupts"),
        left: FigureScale {
            title: "Cycles of a packet",
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
    /// The host takes an interrupt, and injects the guest's; the APIC is virtual.
    Remapped,
    /// The host takes an interrupt, injects the guest's, and emulates the guest's end of interrupt.
    Emulated,
}

/// Cycles of a packet by the party that spends them.
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
    host = host.plus(each(path.host_packets.as_ref()).times(price(table, HostPacket)));
    host = host.plus(each(path.system_calls.as_ref()).times(price(table, TxSyscall)));
    host = host.plus(each(path.bridged.as_ref()).times(price(table, Bridge)));
    // VFIO's handler signals an irqfd for a card's message that is not posted.
    if path.signal == InterruptOrigin::Software || delivery != InterruptDelivery::Posted {
        host = host.plus(interrupts.times(price(table, IrqfdSignal)));
    }
    let delivered = match delivery {
        InterruptDelivery::Posted => sum(&[PostedInterrupt]),
        InterruptDelivery::Remapped => sum(&[ExitExternalInterrupt, Injection]),
        InterruptDelivery::Emulated => sum(&[ExitExternalInterrupt, Injection, EoiEmulated]),
    };
    PacketCycles { guest, hypervisor: hypervisor.plus(interrupts.times(delivered)), host }
}
