//! Which constants each target hangs on: every constant a fifth less and a fifth more, one at a time, in or out of
//! its range. Left out: constants together.

use std::num::NonZeroUsize;

use hypervisor::cost::{Cost, CostTable};
use serde::Serialize;

use super::bench::Bench;
use super::stored;
use super::target::TARGETS;
use crate::row::rounded;
use crate::runner::LabError;

/// Smaller effects, in percent, are not worth telling.
const WORTH: f64 = 0.5;

/// What a constant does to a target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// The target's name.
    pub target: &'static str,
    /// The constant's name.
    pub constant: &'static str,
    /// By how many percent the target changes with a fifth less.
    pub less_pct: f64,
    /// By how many percent the target changes with a fifth more.
    pub more_pct: f64,
}

impl Effect {
    fn size(&self) -> f64 {
        self.less_pct.abs().max(self.more_pct.abs())
    }
}

/// All effects that are worth telling, by target, the greatest first. The clock is left alone: it is known.
///
/// # Errors
/// A point cannot be run.
pub fn sensitivity(jobs: NonZeroUsize, tell: &dyn Fn(&str)) -> Result<Vec<Effect>, LabError> {
    let seeds = CostTable::nehalem();
    let table = stored::fitted(seeds.clone()).unwrap_or(seeds);
    let bench = Bench::new(TARGETS.iter().collect(), jobs);
    let base = bench.run(&[Vec::new()])?.swap_remove(0);
    let mut effects = Vec::new();
    for row in table.iter().filter(|row| row.cost != Cost::ClockHertz) {
        tell(row.name);
        let moved = [row.value * 4 / 5, row.value * 6 / 5].map(|value| vec![(row.name, value)]);
        let found = bench.run(&moved)?;
        for (at, (target, base)) in TARGETS.iter().zip(&base).enumerate() {
            let change = |found: &Vec<f64>| rounded((found[at] / base - 1.0) * 100.0);
            let (less_pct, more_pct) = (change(&found[0]), change(&found[1]));
            effects.push(Effect { target: target.name, constant: row.name, less_pct, more_pct });
        }
    }
    effects.retain(|effect| effect.size() >= WORTH);
    let place = |name| TARGETS.iter().position(|target| target.name == name);
    effects.sort_by(|a, b| place(a.target).cmp(&place(b.target)).then_with(|| b.size().total_cmp(&a.size())));
    Ok(effects)
}
