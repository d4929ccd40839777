//! Effect of each optimisation on four ports: a guest transmits (smart-vnic-tx), a guest or the driver domain
//! receives (smart-vnic-rx), several guests transmit (smart-vnic-scaling).

use crate::experiment::{
    Axis, Context, Experiment, Figure, Kind, Metric, Outcome, Point, Points, RunError, Scale, Values,
};
use crate::experiments::point::{count, metric, timed, times};
use crate::experiments::settings;
use crate::machine::single::{Channel, Direction, Drive, Found, Plan, Single};
use crate::value::Value;
use hypervisor::cost::CostTable;

const MBPS: Metric = metric("throughput_mbps", "Mb/s", "payload over four ports");
const CYCLES: Metric = metric("cycles_per_packet", "cycles", "of the processor, for each segment");

const STEP: Axis = Axis {
    name: "step",
    what: "what is optimised, each with those before",
    values: Values::List(&[
        Value::name("base"),
        Value::name("vnic"),
        Value::name("channel"),
        Value::name("vm"),
    ]),
    labels: &["as it was", "+ smart vNIC", "+ channel", "+ virtual memory"],
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
        x_title: "What is optimised",
        split: Some(split),
        left: LEFT,
        right: RIGHT,
    }
}

pub(super) const TRANSMIT: Experiment = Experiment {
    name: "smart-vnic-tx",
    title: "A smart virtual NIC: a guest transmits over four ports",
    shows: "Claimed: about four times the throughput with all steps; cutting in software still pays on a card that \
            cannot. vnic: segmentation, gathering and checksums are offered to the guest, packets cross the channel \
            uncut. channel: pages are sent without being mapped. vm: a switch flushes no entry of a kernel in the TLB. \
            Calibrated: base, by the price of a packet in the back end. Predicted: the rest. Not modelled: interrupts in \
            the midst of a turn; what a long packet saves in the cache; losses; the client's machine.",
    axes: &[
        STEP,
        Axis {
            name: "nic",
            what: "whether the card segments, gathers and takes checksums",
            values: Values::List(&[Value::name("smart"), Value::name("dumb")]),
            labels: &["smart card", "dumb card"],
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
    shows: "Claimed: receiving gains less than transmitting; copying beats exchanging pages, and superpages and \
            global pages help the driver domain too. channel: frames are copied to pages that the guest has posted. \
            Calibrated: a native kernel's 2,508 Mb/s, by the price of TCP. Predicted: all rows. Not modelled: a \
            driver domain's own daemons; misses of the TLB between switches.",
    axes: &[
        STEP,
        Axis {
            name: "where",
            what: "where the programs are",
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
    shows: "Claimed: the gain stays with more guests. Each has a stream on each of four ports. Calibrated: nothing here. \
            Predicted: all, and what further guests cost too small: their working sets do not push each other out of \
            the cache here.",
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
    let (found, outcome) = run(Drive::Xen, (Direction::Transmit, channel), 1, context)?;
    Ok(with_cycles(&found, outcome))
}

fn receive(at: &Point, context: &Context) -> Result<Outcome, RunError> {
    let drive = if at.axes.text("where")? == "guest" { Drive::Xen } else { Drive::Own };
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
    let (found, outcome) = run(Drive::Xen, (Direction::Transmit, channel), guests, context)?;
    Ok(Outcome { metrics: outcome.metrics.with(MBPS.name, found.throughput_mbps), ..outcome })
}

fn with_cycles(found: &Found, outcome: Outcome) -> Outcome {
    let metrics =
        outcome.metrics.with(MBPS.name, found.throughput_mbps).with(CYCLES.name, found.cycles_per_packet);
    Outcome { metrics, ..outcome }
}

fn run(
    drive: Drive,
    (direction, channel): (Direction, Channel),
    guests: u8,
    context: &Context,
) -> Result<(Found, Outcome), RunError> {
    let table = settings::table_or(context, CostTable::prestonia)?;
    let plan = Plan { channel, seed: context.seed, ..Plan::menon(table, drive, direction, guests) };
    let mut machine = Single::new(&plan);
    let (run_up, span) = times(context)?;
    let found = machine.measure(run_up, span).map_err(|error| RunError::Invariant(error.to_string()))?;
    Ok((found, timed(machine.hash(), machine.events(), run_up + span)))
}
