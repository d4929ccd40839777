//! Experiment on the emulation of a guest's interrupt line from a device's messages (intx-emulation).

use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::point::metric;
use crate::machine::quality::intx::{IntxSetup, run};
use crate::named::Metrics;
use crate::value::ParameterValue;
use sim::VirtualDuration;

pub(super) const INTX: Experiment = Experiment {
    name: "intx-emulation",
    title: "An interrupt line from messages",
    shows: "Claimed: a guest that supports only interrupt lines works on a host that uses only messages with \
            unshared vectors, and no interrupt is lost. Each device sends at about the given rate for half a \
            second; the guest's handlers check every device of the line and end the interrupt after the delay. \
            Predicted: all. Not modelled: costs.",
    axes: &[
        ExperimentAxis {
            name: "rate_hz",
            what: "messages of each device per second",
            values: ExperimentAxisValues::List(&[
                ParameterValue::Int(1_000),
                ParameterValue::Int(20_000),
                ParameterValue::Int(100_000),
            ]),
            labels: &[],
        },
        ExperimentAxis {
            name: "eoi_delay_us",
            what: "time from an interrupt to the guest's end of interrupt",
            values: ExperimentAxisValues::List(&[
                ParameterValue::Int(2),
                ParameterValue::Int(20),
                ParameterValue::Int(200),
            ]),
            labels: &[],
        },
        ExperimentAxis {
            name: "sharers",
            what: "devices that share the line",
            values: ExperimentAxisValues::List(&[
                ParameterValue::Int(1),
                ParameterValue::Int(2),
                ParameterValue::Int(4),
            ]),
            labels: &[],
        },
    ],
    points: AxisCombinations::All,
    metrics: &[
        metric("lost_edges", "", "messages whose work no handler found"),
        metric("injected", "", "interrupts taken by the guest"),
        metric("spurious", "", "interrupts whose handlers found no work"),
    ],
    figures: &[FigureDefinition {
        title: "Interrupts that found no work",
        kind: FigureKind::GroupedBars,
        x: &["rate_hz", "eoi_delay_us"],
        x_title: "Messages a second, and delay of the end in microseconds",
        split: Some("sharers"),
        left: FigureScale { title: "Spurious", unit: "", series: &[("spurious", "spurious")] },
        right: None,
    }],
    run: intx,
};

/// Simulated time during which devices send interrupt messages.
const SPAN: VirtualDuration = VirtualDuration::from_millis(500);

fn intx(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let amount = |name: &str, range: std::ops::RangeInclusive<u32>| {
        let value = at.axes.int(name)?;
        u32::try_from(value).ok().filter(|value| range.contains(value)).ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            PointRunError::Refused(format!("{name} is {value}; it must be from {least} to {most}"))
        })
    };
    let found = run(&IntxSetup {
        rate_hz: amount("rate_hz", 1..=1_000_000)?,
        eoi_delay: VirtualDuration::from_micros(amount("eoi_delay_us", 0..=1_000_000)?.into()),
        sharers: amount("sharers", 1..=32)? as usize,
        seed: context.seed,
        span: SPAN,
    });
    let metrics = Metrics::default()
        .with("lost_edges", found.lost as f64)
        .with("injected", found.injected as f64)
        .with("spurious", found.spurious as f64);
    Ok(PointOutcome {
        metrics,
        trace: found.messages,
        simulated_ps: SPAN.picos(),
        events: found.messages,
        cycles: None,
    })
}
