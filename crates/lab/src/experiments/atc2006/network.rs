//! Effect of each optimisation on four ports: a guest transmits (smart-vnic-tx), a guest or the driver domain
//! receives (smart-vnic-rx), several guests transmit (smart-vnic-scaling).

use crate::experiment::{
    Axis, Context, Experiment, Figure, Kind, Metric, Outcome, Point, Points, RunError, Scale, Values,
};
use crate::experiments::point::{count, metric, timed, times};
use crate::experiments::settings;
use crate::machine::single::{CardDriver, Channel, Direction, Plan, Results, Single};
use crate::value::Value;
use hypervisor::cost::CostTable;

const MBPS: Metric = metric("throughput_mbps", "Mb/s", "payload over four ports");
const CYCLES: Metric = metric("cycles_per_packet", "cycles", "cycles of the processor for each segment");

const STEP: Axis = Axis {
    name: "step",
    what: "optimisation, including all earlier ones",
    values: Values::List(&[
        Value::name("base"),
        Value::name("vnic"),
        Value::name("channel"),
        Value::name("vm"),
    ]),
    labels: &["unoptimised", "+ smart vNIC", "+ channel", "+ virtual memory"],
};

const LEFT: Scale = Scale { title: "Throughput", unit: "Mb/s", series: &[("throughput_mbps", "throughput")] };
const RIGHT: Option<Scale> =
    Some(Scale { title: "Cycles", unit: "cycles", series: &[("cycles_per_packet", "cycles for a segment")] });

/// Creates bars for each step, one for each value of the axis `split`.
const fn by_step(split: &'static str) -> Figure {
    Figure {
        title: "Throughput, and cycles for a segment",
        kind: Kind::GroupedBars,
        x: &["step"],
        x_title: "Optimisation",
        split: Some(split),
        left: LEFT,
        right: RIGHT,
    }
}

pub(super) const TRANSMIT: Experiment = Experiment {
    name: "smart-vnic-tx",
    title: "A smart virtual NIC: a guest transmits over four ports",
    shows: "Claimed: about four times the throughput with all steps; software segmentation still pays on a \
            card without offloads. vnic: the guest's device offers segmentation, scatter-gather and checksums, \
            and packets cross the channel unsegmented. channel: pages are sent without being mapped. vm: a \
            switch flushes no TLB entry of a kernel. Calibrated: base, by the cost of a packet in the back \
            end. Predicted: the rest. Not modelled: interrupts during a turn; cache savings of long packets; \
            losses; the client's machine.",
    axes: &[
        STEP,
        Axis {
            name: "nic",
            what: "offloads of the card: segmentation, scatter-gather, checksums",
            values: Values::List(&[Value::name("smart"), Value::name("dumb")]),
            labels: &["smart card", "card without offloads"],
        },
    ],
    points: Points::All,
    metrics: &[MBPS, CYCLES],
    figures: &[by_step("nic")],
    run: transmit,
};

pub(super) const RECEIVE: Experiment = Experiment {
    name: "smart-vnic-rx",
    title: "A smart virtual NIC: receiving over four ports",
    shows: "Claimed: receiving gains less than transmitting; copying beats page exchange, and superpages and \
            global pages help the driver domain too. channel: frames are copied to pages posted by the guest. \
            Calibrated: a native kernel's 2,508 Mb/s, by the cost of TCP. Predicted: all rows. Not modelled: \
            the driver domain's own daemons; TLB misses between switches.",
    axes: &[
        STEP,
        Axis {
            name: "where",
            what: "location of the programs",
            values: Values::List(&[Value::name("guest"), Value::name("driver-domain")]),
            labels: &["in a guest", "in the driver domain"],
        },
    ],
    points: Points::All,
    metrics: &[MBPS, CYCLES],
    figures: &[by_step("where")],
    run: receive,
};

pub(super) const SCALING: Experiment = Experiment {
    name: "smart-vnic-scaling",
    title: "A smart virtual NIC: up to eight guests transmit",
    shows: "Claimed: the gain remains with more guests. Each has a stream on each of four ports. Calibrated: \
            nothing. Predicted: all; the cost of further guests is too small, as their working sets do not \
            evict each other from the cache here.",
    axes: &[
        Axis {
            name: "vms",
            what: "virtual machines",
            values: Values::Range { first: 1, last: 8, step: 1 },
            labels: &[],
        },
        STEP,
    ],
    points: Points::All,
    metrics: &[MBPS],
    figures: &[Figure {
        title: "Throughput by guests",
        kind: Kind::Lines,
        x: &["vms"],
        x_title: "Virtual machines",
        split: Some("step"),
        left: LEFT,
        right: None,
    }],
    run: scaling,
};

/// Returns the channel of a step, which includes all earlier steps.
fn channel(step: &str, card_offloads: bool) -> Channel {
    let up_to = |last: &[&str]| last.contains(&step);
    Channel {
        offloads: up_to(&["vnic", "channel", "vm"]),
        by_address: up_to(&["channel", "vm"]),
        large_pages: step == "vm",
        card_offloads,
    }
}

fn transmit(at: &Point, context: &Context) -> Result<Outcome, RunError> {
    let channel = channel(at.axes.text(STEP.name)?, at.axes.text("nic")? == "smart");
    let (found, outcome) = run(CardDriver::Xen, (Direction::Transmit, channel), 1, context)?;
    Ok(with_cycles(&found, outcome))
}

fn receive(at: &Point, context: &Context) -> Result<Outcome, RunError> {
    let drive = if at.axes.text("where")? == "guest" { CardDriver::Xen } else { CardDriver::Own };
    let channel = channel(at.axes.text(STEP.name)?, true);
    let (found, outcome) = run(drive, (Direction::Receive, channel), 1, context)?;
    Ok(with_cycles(&found, outcome))
}

fn scaling(at: &Point, context: &Context) -> Result<Outcome, RunError> {
    let guests = count(at, "vms")?;
    if !(1..=32).contains(&guests) {
        return Err(RunError::Refused(format!("vms is {guests}; it must be from 1 to 32")));
    }
    let channel = channel(at.axes.text(STEP.name)?, true);
    let (found, outcome) = run(CardDriver::Xen, (Direction::Transmit, channel), guests, context)?;
    Ok(Outcome { metrics: outcome.metrics.with(MBPS.name, found.throughput_mbps), ..outcome })
}

fn with_cycles(found: &Results, outcome: Outcome) -> Outcome {
    let metrics =
        outcome.metrics.with(MBPS.name, found.throughput_mbps).with(CYCLES.name, found.cycles_per_packet);
    Outcome { metrics, ..outcome }
}

fn run(
    drive: CardDriver,
    (direction, channel): (Direction, Channel),
    guests: u8,
    context: &Context,
) -> Result<(Results, Outcome), RunError> {
    let table = settings::table_or(context, CostTable::prestonia)?;
    let plan = Plan { channel, seed: context.seed, ..Plan::menon(table, drive, direction, guests) };
    let mut machine = Single::new(&plan);
    let (run_up, span) = times(context)?;
    let found = machine.measure(run_up, span).map_err(|error| RunError::Invariant(error.to_string()))?;
    Ok((found, timed(machine.hash(), machine.events(), run_up + span)))
}
