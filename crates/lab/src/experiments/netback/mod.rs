//! Zhang et al., multi-core netback: netback-multicore, netback-latency, netback-thresholds, netfront-lro.
//! Machine, split driver and kernels are those of Dong et al.; the cost table (two Xeon 5405) and the
//! placement differ. Calibrated on one stated value: 2.3 Gb/s of the stock driver (cost of a packet in the
//! back end). The cost fitted to Dong et al.'s 3.6 Gb/s would give 2.58 Gb/s here. All other values are
//! predictions.
//!
//! Choices the paper leaves open: guests are paravirtualized; clients send datagrams, as in the source of the
//! cost, except for merging, which needs a stream. The dispatcher's thresholds are unknown, so
//! netback-thresholds shows their effect.

mod latency;
mod merge;
mod multicore;

use crate::experiment::{Axis, Context, Experiment, RunError, Values};
use crate::experiments::{point, settings};
use crate::machine::{Netback, Network, Setup, Topology};
use crate::value::Value;
use guest::{Load, Spec};
use hypervisor::cost::CostTable;
use hypervisor::domain::DomainKind;
use split::dispatch::{Policy, Thresholds};

pub(super) const ALL: &[Experiment] =
    &[multicore::MULTICORE, latency::LATENCY, latency::THRESHOLDS, merge::MERGE];

/// Number of ports of the server.
const PORTS: u8 = 4;
/// Load samples of the dispatcher per second.
const SAMPLES: u64 = 100;
/// Thresholds in frames per second: the load one virtual CPU carries easily, and half of it.
const HIGH: u64 = 120_000;
const LOW: u64 = HIGH / 2;

const DISPATCHER: Axis = Axis {
    name: "dispatcher",
    what: "virtual CPUs of dom0 that receive events",
    values: Values::List(&[Value::name("vcpu0"), Value::name("spread"), Value::name("balanced")]),
    labels: &["the first", "spread", "balanced"],
};

fn policy(name: &str) -> Result<Policy, RunError> {
    Ok(match name {
        "vcpu0" => Policy::First,
        "spread" => Policy::Spread,
        _ => Policy::Balanced(thresholds(LOW, HIGH)?),
    })
}

/// Creates thresholds in frames per second.
fn thresholds(low: u64, high: u64) -> Result<Thresholds, RunError> {
    let found = Thresholds::new(low / SAMPLES, high / SAMPLES);
    found.ok_or_else(|| RunError::Refused(format!("invalid thresholds: low {low} exceeds high {high}")))
}

/// Creates the paper's machine with `workers` tasklets and a guest on each port.
fn setup(context: &Context, workers: u8, dispatch: Policy) -> Result<Setup, RunError> {
    Ok(Setup {
        table: settings::table_or(context, CostTable::harpertown)?,
        topology: Topology::NETBACK,
        ports: PORTS,
        guests: PORTS,
        network: Network::Split { workers },
        netback: Netback { dispatch, ..Netback::SPREAD },
        kind: DomainKind::Pvm,
        spec: Spec::xenlinux_2_6_18(Load::Udp),
        ..point::setup(context, settings::fixed(context)?)?
    })
}
