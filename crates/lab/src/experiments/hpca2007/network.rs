//! Throughput and processor use of one guest on two ports (cdna-throughput), and throughput of many
//! (cdna-scaling).

use crate::experiment::{
    Axis, Context, Experiment, Figure, Kind, Metric, Outcome, Point, Points, RunError, Scale, Values,
};
use crate::experiments::point::{count, metric, timed, times};
use crate::experiments::settings;
use crate::machine::single::{CardDriver, Direction, Plan, Results, Single};
use crate::value::Value;
use hypervisor::cost::CostTable;

const MBPS: Metric = metric("throughput_mbps", "Mb/s", "payload over both ports");
const XEN: Value = Value::name("xen");
const CDNA: Value = Value::name("cdna");

const DIRECTION: Axis = Axis {
    name: "direction",
    what: "direction of the payload",
    values: Values::List(&[Value::name("tx"), Value::name("rx")]),
    labels: &["transmit", "receive"],
};

const RIGHT: Scale =
    Scale { title: "Throughput", unit: "Mb/s", series: &[("throughput_mbps", "throughput")] };

pub(super) const THROUGHPUT: Experiment = Experiment {
    name: "cdna-throughput",
    title: "A context of the card for each guest: one guest on two ports",
    shows: "Claimed: a driver domain and its page exchange saturate the processor before two gigabit wires are \
            full; with its own context a guest fills them and leaves half of the processor idle, and \
            protection costs a few percent. Calibrated: xen's transmit throughput, and the hypervisor's share \
            in cdna's transmit. Predicted: the rest. Not modelled: losses, the client's machine, the driver \
            domain's own daemons.",
    axes: &[
        Axis {
            name: "system",
            what: "driver of the card",
            values: Values::List(&[XEN, CDNA, Value::name("cdna-unprotected")]),
            labels: &["driver domain", "contexts", "contexts, unprotected"],
        },
        DIRECTION,
    ],
    points: Points::All,
    metrics: &[
        MBPS,
        metric("cpu_hypervisor_pct", "%", "CPU use of the hypervisor, in percent of the processor"),
        metric("cpu_driver_domain_pct", "%", "CPU use of the driver domain, in percent of the processor"),
        metric("cpu_guest_pct", "%", "CPU use of the guest, in percent of the processor"),
        metric("cpu_idle_pct", "%", "idle time of the processor, in percent"),
    ],
    figures: &[Figure {
        title: "Processor use, and throughput",
        kind: Kind::StackedBars,
        x: &["system"],
        x_title: "Driver of the card",
        split: Some("direction"),
        left: Scale {
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
            Calibrated: nothing here. Predicted: all; the fall is much too small, as guests' working sets do \
            not evict each other from the cache here. Also not modelled: guests' own ticks; losses, \
            represented by windows that fit the driver domain's ring.",
    axes: &[
        Axis {
            name: "vms",
            what: "virtual machines",
            values: Values::List(&[
                Value::Int(1),
                Value::Int(2),
                Value::Int(4),
                Value::Int(8),
                Value::Int(12),
                Value::Int(16),
                Value::Int(20),
                Value::Int(24),
            ]),
            labels: &[],
        },
        Axis {
            name: "system",
            what: "driver of the card",
            values: Values::List(&[XEN, CDNA]),
            labels: &["driver domain", "contexts"],
        },
        DIRECTION,
    ],
    points: Points::All,
    metrics: &[MBPS],
    figures: &[Figure {
        title: "Throughput by guests",
        kind: Kind::GroupedBars,
        x: &["direction", "vms"],
        x_title: "Virtual machines",
        split: Some("system"),
        left: RIGHT,
        right: None,
    }],
    run: scaling,
};

fn throughput(at: &Point, context: &Context) -> Result<Outcome, RunError> {
    let (found, outcome) = run(at, 1, context)?;
    let metrics = outcome
        .metrics
        .with("throughput_mbps", found.throughput_mbps)
        .with("cpu_hypervisor_pct", found.hypervisor_pct)
        .with("cpu_driver_domain_pct", found.driver_pct)
        .with("cpu_guest_pct", found.guest_pct)
        .with("cpu_idle_pct", found.idle_pct);
    Ok(Outcome { metrics, ..outcome })
}

fn scaling(at: &Point, context: &Context) -> Result<Outcome, RunError> {
    let guests = count(at, "vms")?;
    if !(1..=128).contains(&guests) {
        return Err(RunError::Refused(format!("vms is {guests}: the card has contexts for 1 to 128")));
    }
    let (found, outcome) = run(at, guests, context)?;
    Ok(Outcome { metrics: outcome.metrics.with(MBPS.name, found.throughput_mbps), ..outcome })
}

fn run(at: &Point, guests: u8, context: &Context) -> Result<(Results, Outcome), RunError> {
    let drive = match at.axes.text("system")? {
        "xen" => CardDriver::Xen,
        "cdna" => CardDriver::Cdna,
        _ => CardDriver::Unprotected,
    };
    let direction = if at.axes.text("direction")? == "tx" { Direction::Transmit } else { Direction::Receive };
    let table = settings::table_or(context, CostTable::opteron)?;
    let plan = Plan { seed: context.seed, ..Plan::willmann(table, drive, direction, guests) };
    let mut machine = Single::new(&plan);
    let (run_up, span) = times(context)?;
    let found = machine.measure(run_up, span).map_err(|error| RunError::Invariant(error.to_string()))?;
    Ok((found, timed(machine.hash(), machine.events(), run_up + span)))
}
