//! Zhang et al., multi-core netback: netback-multicore, netback-latency, netback-thresholds, netfront-lro.
//! Machine, split driver and kernels are those of Dong et al.; the cost table (two Xeon 5405) and the
//! placement differ. Calibrated on one stated value: 2.3 Gb/s of the stock driver (cost of a packet in the
//! back end). The cost fitted to Dong et al.'s 3.6 Gb/s would give 2.95 Gb/s here. All other values are
//! predictions.
//!
//! Choices the paper leaves open: guests are paravirtualized; clients send datagrams, as in the source of the
//! cost, except for merging, which needs a stream. The dispatcher's thresholds are unknown, so
//! netback-thresholds shows their effect.

mod latency;
mod merge;
mod multicore;

use crate::experiment::{Experiment, ExperimentAxis, ExperimentAxisValues, PointRunError, PointRunInputs};
use crate::experiments::{point, settings};
use crate::machine::{NetbackOptions, NetworkAccessMode, ServerSetup};
use crate::value::ParameterValue;
use guest::{KernelConfig, ProgramWorkload};
use hypervisor::cost::MachineModel;
use hypervisor::domain::DomainKind;
use split::dispatch::{DispatchPolicy, LoadThresholds};

pub(super) const ALL: &[Experiment] =
    &[multicore::MULTICORE, latency::LATENCY, latency::THRESHOLDS, merge::MERGE];

/// Number of ports of the modelled server.
const PORTS: u8 = 4;
/// Number of times per second that the back end's dispatcher samples the load.
const SAMPLES: u64 = 100;
/// Upper load threshold in frames per second: the load that one virtual CPU carries easily.
const HIGH: u64 = 120_000;
/// Lower load threshold in frames per second: half of the upper one.
const LOW: u64 = HIGH / 2;

const DISPATCHER: ExperimentAxis = ExperimentAxis {
    name: "dispatcher",
    what: "virtual CPUs of dom0 that receive events",
    values: ExperimentAxisValues::List(&[
        ParameterValue::name("vcpu0"),
        ParameterValue::name("spread"),
        ParameterValue::name("balanced"),
    ]),
    labels: &["the first", "spread", "balanced"],
};

fn policy(name: &str) -> Result<DispatchPolicy, PointRunError> {
    Ok(match name {
        "vcpu0" => DispatchPolicy::First,
        "spread" => DispatchPolicy::Spread,
        _ => DispatchPolicy::Balanced(thresholds(LOW, HIGH)?),
    })
}

/// Creates load thresholds in frames per second.
fn thresholds(low: u64, high: u64) -> Result<LoadThresholds, PointRunError> {
    let found = LoadThresholds::new(low / SAMPLES, high / SAMPLES);
    found.ok_or_else(|| PointRunError::Refused(format!("invalid thresholds: low {low} exceeds high {high}")))
}

/// Creates the paper's server with `workers` tasklets and a guest on each port.
fn setup(
    context: &PointRunInputs,
    workers: u8,
    dispatch: DispatchPolicy,
) -> Result<ServerSetup, PointRunError> {
    Ok(ServerSetup {
        ports: PORTS,
        guests: PORTS,
        network: NetworkAccessMode::Split { workers },
        netback: NetbackOptions { dispatch, ..NetbackOptions::SPREAD },
        kind: DomainKind::Pvm,
        spec: KernelConfig::xenlinux_2_6_18(ProgramWorkload::Udp),
        ..point::setup_on(context, MachineModel::Harpertown, settings::fixed(context)?)?
    })
}
