//! Slices in turn: in each round every contender has one, with a raw reference measured just before it.

use crate::contender::{Contender, Slice};
use crate::machine::processors::Processors;
use crate::options::Options;
use crate::raw::Reference;
use crate::statistics;
use anyhow::Result;

/// Rounds that are measured at most, for each that is wanted.
const PATIENCE: usize = 3;

/// A slice and the machine's state before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turn {
    /// The state.
    pub reference: Reference,
    /// What was found.
    pub slice: Slice,
}

/// A turn of each contender, in their order.
pub type Round = Vec<Turn>;

/// Measures until the first contender has as many comparable pairs with every other as are wanted, or too many rounds
/// have passed.
///
/// # Errors
/// A contender is gone.
pub fn run(
    contenders: &mut [Box<dyn Contender>],
    options: &Options,
    processors: Processors,
) -> Result<Vec<Round>> {
    let mut rounds: Vec<Round> = Vec::new();
    while rounds.len() < options.rounds * PATIENCE {
        let round: Result<Round> = contenders
            .iter_mut()
            .map(|contender| {
                let reference = Reference::measure(processors)?;
                Ok(Turn { reference, slice: contender.slice(options.slice())? })
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
