//! Experiment beyond the paper: cost of broadcast frames. The card copies a group frame into a buffer of each
//! guest of the port, so each guest processes the whole wire's traffic. The card's and bus's own costs are
//! not modelled.

use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::point::{self, CPU, DOM0, DOM0_ATTRIBUTED, GUEST, XEN, XEN_ATTRIBUTED, metric};
use crate::experiments::settings;
use crate::machine::ClientTraffic;
use crate::value::ParameterValue;

pub(crate) const REPLICATION: Experiment = Experiment {
    name: "replication",
    title: "Frames for every guest of a port",
    shows: "A wire full of frames for single guests costs the same whichever guest receives them. Each guest \
            gets a copy of a frame for all, so the guests' work grows with their number while the wire carries \
            no more.",
    axes: &[
        ExperimentAxis {
            name: "frames",
            what: "destination of the clients' frames",
            values: ExperimentAxisValues::List(&[
                ParameterValue::name("unicast"),
                ParameterValue::name("broadcast"),
            ]),
            labels: &["one guest each", "all guests"],
        },
        ExperimentAxis {
            name: "vms",
            what: "guests on the port",
            values: ExperimentAxisValues::List(&[
                ParameterValue::Int(1),
                ParameterValue::Int(2),
                ParameterValue::Int(4),
                ParameterValue::Int(7),
            ]),
            labels: &[],
        },
    ],
    points: AxisCombinations::All,
    metrics: &[
        metric("throughput_mbps", "Mb/s", "payload read by programs of all guests"),
        metric("loss_pct", "%", "copies not read by any program"),
        metric("interrupts_per_s", "1/s", "receive interrupts of all guests"),
        DOM0,
        XEN,
        GUEST,
        DOM0_ATTRIBUTED,
        XEN_ATTRIBUTED,
    ],
    figures: &[FigureDefinition {
        title: "CPU by domain, and payload read by programs",
        kind: FigureKind::StackedBars,
        x: &["vms"],
        x_title: "Guests",
        split: Some("frames"),
        left: CPU,
        right: Some(FigureScale {
            title: "Read",
            unit: "Mb/s",
            series: &[("throughput_mbps", "throughput")],
        }),
    }],
    run: replicate,
};

fn replicate(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let mut setup = point::setup(context, settings::fixed(context)?)?;
    setup.guests = point::count(at, "vms")?;
    setup.eoi = settings::fast_eoi(context, &setup.table)?;
    let to_all = at.axes.text("frames")? == "broadcast";
    setup.traffic = if to_all { ClientTraffic::Broadcast } else { ClientTraffic::Udp };
    let (measured, mut outcome) = point::run(&setup, context)?;
    outcome.metrics = point::cpu(point::received(outcome.metrics, &measured), &measured);
    Ok(outcome)
}
