//! Experiment beyond the paper, which measures bulk traffic only: the effect of interrupt coalescing on a
//! responder's latency. There is one outstanding request, and the client takes no time.

use crate::experiment::{
    AxisCombinations, Experiment, ExperimentPoint, FigureDefinition, FigureKind, FigureScale, PointOutcome,
    PointRunError, PointRunInputs,
};
use crate::experiments::hpca2010::coalescing::{POLICY, policy};
use crate::experiments::point::{self, CPU, DOM0, DOM0_ATTRIBUTED, GUEST, XEN, XEN_ATTRIBUTED, metric};
use crate::experiments::settings;
use crate::machine::ClientTraffic;
use guest::{KernelConfig, ProgramWorkload};

pub(crate) const LATENCY: Experiment = Experiment {
    name: "latency",
    title: "Coalescing of a responder's interrupts",
    shows: "A single outstanding request waits for the next interrupt, so requests are answered at the \
            policy's interrupt rate. The adaptive policy sees few packets and interrupts at its lowest rate. \
            The paper has bulk traffic only.",
    axes: &[POLICY],
    points: AxisCombinations::All,
    metrics: &[
        metric("transactions_per_s", "1/s", "requests answered"),
        metric("round_trip_us", "us", "from a request's first bit on the wire to its response's last, mean"),
        metric("interrupts_per_s", "1/s", "receive interrupts"),
        DOM0,
        XEN,
        GUEST,
        DOM0_ATTRIBUTED,
        XEN_ATTRIBUTED,
    ],
    figures: &[FigureDefinition {
        title: "CPU by domain, and round trip",
        kind: FigureKind::StackedBars,
        x: &["policy"],
        x_title: "Interrupt policy",
        split: None,
        left: CPU,
        right: Some(FigureScale {
            title: "Round trip",
            unit: "us",
            series: &[("round_trip_us", "round trip")],
        }),
    }],
    run: respond,
};

fn respond(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let mut setup = point::setup(context, policy(at.axes.text("policy")?, context)?)?;
    setup.spec = KernelConfig::linux_2_6_28(ProgramWorkload::RequestResponse);
    setup.traffic = ClientTraffic::RequestResponse;
    setup.eoi = settings::fast_eoi(context, &setup.table)?;
    let (measured, mut outcome) = point::run(&setup, context)?;
    let metrics = outcome
        .metrics
        .with("transactions_per_s", measured.transactions_per_s())
        .with("round_trip_us", measured.round_trip_us())
        .with("interrupts_per_s", measured.interrupts_per_s());
    outcome.metrics = point::cpu(metrics, &measured);
    Ok(outcome)
}
