//! Beyond the paper: cost of broadcast frames. The card copies a group frame into a buffer of each guest of
//! the port, so each guest processes the whole wire's traffic. The card's and bus's own costs are not
//! modelled.

use crate::experiment::{
    Axis, Context, Experiment, Figure, Kind, Outcome, Point, Points, RunError, Scale, Values,
};
use crate::experiments::point::{self, CPU, DOM0, GUEST, XEN, metric};
use crate::experiments::settings;
use crate::machine::Traffic;
use crate::value::Value;

pub(crate) const REPLICATION: Experiment = Experiment {
    name: "replication",
    title: "Frames for every guest of a port",
    shows: "A wire full of frames for single guests costs the same whichever guest receives them. Each guest \
            gets a copy of a frame for all, so the guests' work grows with their number while the wire carries \
            no more.",
    axes: &[
        Axis {
            name: "frames",
            what: "destination of the clients' frames",
            values: Values::List(&[Value::name("unicast"), Value::name("broadcast")]),
            labels: &["one guest each", "all guests"],
        },
        Axis {
            name: "vms",
            what: "guests on the port",
            values: Values::List(&[Value::Int(1), Value::Int(2), Value::Int(4), Value::Int(7)]),
            labels: &[],
        },
    ],
    points: Points::All,
    metrics: &[
        metric("throughput_mbps", "Mb/s", "payload read by programs of all guests"),
        metric("loss_pct", "%", "copies not read by any program"),
        metric("interrupts_per_s", "1/s", "receive interrupts of all guests"),
        DOM0,
        XEN,
        GUEST,
    ],
    figures: &[Figure {
        title: "CPU by domain, and payload read by programs",
        kind: Kind::StackedBars,
        x: &["vms"],
        x_title: "Guests",
        split: Some("frames"),
        left: CPU,
        right: Some(Scale { title: "Read", unit: "Mb/s", series: &[("throughput_mbps", "throughput")] }),
    }],
    run: replicate,
};

fn replicate(at: &Point, context: &Context) -> Result<Outcome, RunError> {
    let mut setup = point::setup(context, settings::fixed(context)?)?;
    setup.guests = point::count(at, "vms")?;
    setup.eoi = settings::fast_eoi(context, &setup.table)?;
    let to_all = at.axes.text("frames")? == "broadcast";
    setup.traffic = if to_all { Traffic::Broadcast } else { Traffic::Udp };
    let (measured, mut outcome) = point::run(&setup, context)?;
    outcome.metrics = point::cpu(point::received(outcome.metrics, &measured), &measured);
    Ok(outcome)
}
