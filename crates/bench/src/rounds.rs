//! Runs the rounds of the benchmark: in each round every contender is measured for a slice of time, after a measurement
//! of the machine's speed.

use crate::contender::{Contender, ContenderMeasurement};
use crate::machine::processors::ProcessorAssignment;
use crate::options::BenchmarkOptions;
use crate::raw::MachineSpeed;
use crate::statistics;
use anyhow::Result;

/// Maximum number of measured rounds for each wanted round, in case few slices are comparable.
const PATIENCE: usize = 3;

/// Measurement of a contender in one slice of time, with the speed of the machine just before the slice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredTimeSlice {
    /// Speed of the machine, measured before the slice.
    pub reference: MachineSpeed,
    /// Measurement of the contender in its slice.
    pub slice: ContenderMeasurement,
}

/// Measured slices of one round: one for each contender, in the contenders' order.
pub type RoundMeasurements = Vec<MeasuredTimeSlice>;

/// Measures rounds until the first contender has the wanted number of comparable slices with every other contender, or
/// the maximum number of rounds has passed.
///
/// # Errors
/// A contender is gone.
pub fn run(
    contenders: &mut [Box<dyn Contender>],
    options: &BenchmarkOptions,
    processors: ProcessorAssignment,
) -> Result<Vec<RoundMeasurements>> {
    let mut rounds: Vec<RoundMeasurements> = Vec::new();
    while rounds.len() < options.rounds * PATIENCE {
        let round: Result<RoundMeasurements> = contenders
            .iter_mut()
            .map(|contender| {
                let reference = MachineSpeed::measure(processors)?;
                Ok(MeasuredTimeSlice { reference, slice: contender.slice(options.slice())? })
            })
            .collect();
        rounds.push(round?);
        let enough = |other| statistics::comparable(&rounds, 0, other).count() >= options.rounds;
        if (0..contenders.len()).all(enough) {
            break;
        }
    }
    Ok(rounds)
}
