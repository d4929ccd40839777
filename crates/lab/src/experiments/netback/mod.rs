//! Zhang et al., multi-core netback: netback-multicore, netback-latency, netback-thresholds, netfront-lro. The machine,
//! its split driver and its kernels are those of Dong et al.; what differs is the cost table (two Xeon 5405) and where
//! things run. Calibrated on one stated value: 2.3 Gb/s of the stock driver (the price of a packet in the back end). The
//! price that was fitted to Dong et al.'s 3.6 Gb/s leaves 2.58 Gb/s here. Everything else is predicted.
//!
//! The paper leaves open, and is decided here: guests are paravirtualized; clients send datagrams, as where the price is
//! from, but for the merging of segments, which only a stream has; thresholds of the dispatcher, whose effect
//! netback-thresholds shows.

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

/// Ports of the server.
const PORTS: u8 = 4;
/// The dispatcher looks at the load so often a second.
const SAMPLES: u64 = 100;
/// Frames a second that are much, and that are little: what one virtual CPU carries with ease, and half of it.
const HIGH: u64 = 120_000;
const LOW: u64 = HIGH / 2;

const DISPATCHER: Axis = Axis {
    name: "dispatcher",
    what: "which of dom0's virtual CPUs hear events",
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

/// Thresholds of so many frames a second.
fn thresholds(low: u64, high: u64) -> Result<Thresholds, RunError> {
    let found = Thresholds::new(low / SAMPLES, high / SAMPLES);
    found.ok_or_else(|| RunError::Refused(format!("thresholds {low} and {high}: the first is the greater")))
}

/// The paper's machine: `workers` tasklets, and a guest on each port.
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
