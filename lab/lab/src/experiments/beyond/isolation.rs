//! Experiment beyond the paper: cost of hostile traffic to uninvolved guests, with and without a policy that
//! the real PF driver sets in the real card. Hostile register and mailbox accesses are not modelled.

use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::point::{self, CPU, DOM0, DOM0_ATTRIBUTED, GUEST, XEN, XEN_ATTRIBUTED, metric};
use crate::experiments::settings;
use crate::machine::{ClientTraffic, InterDomainSender, InterDomainTraffic, TrafficLimits};
use crate::value::ParameterValue;
use guest::ProgramWorkload;
use guest::packet::UDP_PAYLOAD;

/// Number of guests on the attacked port.
const GUESTS: u8 = 4;
/// Limit of broadcasts to a port's VFs, Kb/s: a hundredth of the wire.
const BROADCAST_KBPS: u32 = 10_000;
/// Transmit rate limit of a VF, Mb/s: a tenth of the wire.
const MAX_TX_RATE: u32 = 100;
/// MTU in bytes of the hostile guest's network interface.
const MTU: u16 = 1_500;
/// Interval between transmit interrupts of the hostile guest, us.
const TRANSMIT_INTERVAL_US: u32 = 100;

pub(crate) const ISOLATION: Experiment = Experiment {
    name: "isolation",
    title: "Hostile traffic, with and without policy",
    shows: "A storm on the wire costs every guest of the port, and a guest that floods its neighbour costs it \
            processor time and packets. With storm control and a transmit rate limit the card drops the excess \
            before it interrupts a guest.",
    axes: &[
        ExperimentAxis {
            name: "attack",
            what: "broadcasts at line rate; or a guest that sends to its neighbour as fast as it can",
            values: ExperimentAxisValues::List(&[
                ParameterValue::name("storm"),
                ParameterValue::name("neighbour"),
            ]),
            labels: &["broadcast storm", "flood from a neighbour"],
        },
        ExperimentAxis {
            name: "policy",
            what: "storm control of 10 Mb/s, and a transmit rate of 100 Mb/s for each VF",
            values: ExperimentAxisValues::List(&[ParameterValue::Bool(false), ParameterValue::Bool(true)]),
            labels: &["no policy", "limits"],
        },
    ],
    points: AxisCombinations::All,
    metrics: &[
        metric("interrupts_per_s", "1/s", "receive interrupts of all guests"),
        metric("unasked_mbps", "Mb/s", "attack payload read by programs"),
        DOM0,
        XEN,
        GUEST,
        DOM0_ATTRIBUTED,
        XEN_ATTRIBUTED,
    ],
    figures: &[FigureDefinition {
        title: "CPU by domain, and attack traffic received",
        kind: FigureKind::StackedBars,
        x: &["policy"],
        x_title: "Policy",
        split: Some("attack"),
        left: CPU,
        right: Some(FigureScale {
            title: "Read",
            unit: "Mb/s",
            series: &[("unasked_mbps", "attack payload")],
        }),
    }],
    run: attack,
};

fn attack(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let mut setup = point::setup(context, settings::fixed(context)?)?;
    (setup.guests, setup.eoi) = (GUESTS, settings::fast_eoi(context, &setup.table)?);
    if at.axes.text("attack")? == "storm" {
        setup.traffic = ClientTraffic::Broadcast;
    } else {
        setup.traffic = ClientTraffic::Silent;
        setup.loopback = settings::loopback(context)?;
        setup.inside = Some(InterDomainTraffic {
            from: InterDomainSender::Guest,
            load: ProgramWorkload::Udp,
            message_bytes: UDP_PAYLOAD as u32,
            mtu: MTU,
            transmit_interval_us: TRANSMIT_INTERVAL_US,
        });
    }
    if at.axes.bool("policy")? {
        setup.limits = TrafficLimits { max_tx_rate: MAX_TX_RATE, broadcast_kbps: BROADCAST_KBPS };
    }
    let (measured, mut outcome) = point::run(&setup, context)?;
    let metrics = outcome
        .metrics
        .with("interrupts_per_s", measured.interrupts_per_s())
        .with("unasked_mbps", measured.throughput_mbps());
    outcome.metrics = point::cpu(metrics, &measured);
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use crate::experiments::tests::run_point;

    #[test]
    fn vf_policy_protects_guests_from_storms_and_busy_neighbours() {
        let read = |attack, policy| {
            let row = run_point("isolation", &[attack, policy, "measure_ms=100"]).unwrap();
            *row.metrics.get("unasked_mbps").unwrap()
        };
        assert!(read("attack=storm", "policy=false") > 3_000.0);
        assert!(read("attack=storm", "policy=true") < 4.0 * 11.0);
        assert!(read("attack=neighbour", "policy=false") > 200.0);
        assert!(read("attack=neighbour", "policy=true") < 101.0);
    }
}
