//! The search of a calibration: the best fit, fits without a target, and fits with a knob held at several places.

use super::bench::{CalibrationRunner, ConstantValues};
use super::fit;
use super::setup::CalibrationSetup;
use crate::runner::LabError;

#[cfg(test)]
mod tests;

/// Weight of the uncalibrated values: a constant at the end of its range counts like a target missed by 2 %.
/// Constants that no target depends on stay at those values.
const PULL: f64 = 0.02;

/// Search for the best places of a calibration's knobs. A knob's place is its position in its range, from 0 to 1.
pub(super) struct CalibrationSearch<'a> {
    setup: &'a CalibrationSetup,
    bench: CalibrationRunner,
    start: Vec<f64>,
    tell: &'a dyn Fn(&str),
}

impl<'a> CalibrationSearch<'a> {
    pub(super) fn new(setup: &'a CalibrationSetup, tell: &'a dyn Fn(&str)) -> Self {
        let fitted = setup.targets.iter().copied().filter(|target| target.is_fitted()).collect();
        let bench = CalibrationRunner::new(fitted, setup.jobs).with(&setup.set);
        let bench = bench.on(&setup.machine).over(setup.seeds);
        let start = setup.knobs.iter().map(|knob| knob.start(&setup.table)).collect();
        Self { setup, bench, start, tell }
    }

    /// Returns the best places, searched from the table's own values.
    pub(super) fn best(&self) -> Result<Vec<f64>, LabError> {
        let found = fit::minimise(self.start.clone(), |places| self.misfits(places, None), self.tell)?;
        Ok(found.places)
    }

    /// Returns the stored constants unless the fit `constants` meets the targets better. Targets do not tell apart
    /// constants with about equal residuals, so neither a change of the model that moves no target nor the local search
    /// moves the stored ones.
    pub(super) fn kept(&self, constants: ConstantValues) -> Result<ConstantValues, LabError> {
        let Some(stored) = self.stored() else { return Ok(constants) };
        let found = self.bench.run(&[constants.clone(), stored.clone()])?;
        let squares = |found: &[f64]| self.bench.misfits(found).map(|misfit| misfit * misfit).sum::<f64>();
        let (fit, before) = (squares(&found[0]), squares(&found[1]));
        let is_better = fit::is_better(fit, before);
        let result = if is_better { "the fit replaces them" } else { "they stay" };
        (self.tell)(&format!(
            "squared residuals of targets {fit:.5}, with the stored constants {before:.5}: {result}"
        ));
        Ok(if is_better { constants } else { stored })
    }

    /// Returns the stored value of each constant that the calibration moves; `None` without a stored calibration of its
    /// inputs.
    fn stored(&self) -> Option<ConstantValues> {
        let stored = self.setup.stored.as_ref()?;
        let members = self.setup.knobs.iter().flat_map(|knob| knob.members.iter());
        let names = members.map(|cost| self.setup.table.row(*cost).name);
        names.map(|name| Some((name, *stored.get(name)?))).collect()
    }

    /// Returns the value that the model has for each fitted target if nothing is fitted to that target. Each search
    /// starts at the table's own values and at the best places `best` of all targets, and keeps the better fit: near
    /// `best` the other targets are met already, so that a search from there alone hardly moves.
    pub(super) fn left_out(&self, best: &[f64]) -> Result<Vec<f64>, LabError> {
        let count = self.bench.targets().len();
        let value = |target: usize| {
            (self.tell)(&format!("fit without target {} of {count}", target + 1));
            let misfits = |places: &[Vec<f64>]| self.misfits(places, Some(target));
            let found = fit::minimise_from([self.start.clone(), best.to_vec()], misfits, &|_| ())?;
            Ok(self.bench.run(&[self.constants(&found.places)])?[0][target])
        };
        (0..count).map(value).collect()
    }

    /// Fits all other knobs with knob `held` at a place, from the best places `best`. Returns the places, and the root
    /// mean square of the relative residuals.
    pub(super) fn held_at(&self, best: &[f64], held: usize, place: f64) -> Result<(Vec<f64>, f64), LabError> {
        let with = |others: &[f64]| {
            let mut places = others.to_vec();
            places.insert(held, place);
            places
        };
        let misfits = |others: &[Vec<f64>]| {
            let places: Vec<_> = others.iter().map(|others| with(others)).collect();
            self.misfits(&places, None)
        };
        let mut others = best.to_vec();
        others.remove(held);
        let places = with(&fit::minimise(others, misfits, &|_| ())?.places);
        let found = self.bench.run(&[self.constants(&places)])?;
        let squares: f64 = self.bench.misfits(&found[0]).map(|misfit| misfit * misfit).sum();
        Ok((places, (squares / self.bench.targets().len() as f64).sqrt()))
    }

    /// Returns the values of all constants that the calibration moves, given the place of each knob.
    pub(super) fn constants(&self, places: &[f64]) -> ConstantValues {
        let knobs = self.setup.knobs.iter().zip(places);
        knobs.flat_map(|(knob, &place)| knob.constants(&self.setup.table, place)).collect()
    }

    /// Returns the misfits of the targets and the pulls of the knobs, for each set of places. A target that is `left`
    /// out has none.
    fn misfits(&self, places: &[Vec<f64>], left: Option<usize>) -> Result<Vec<Vec<f64>>, LabError> {
        let sets: Vec<_> = places.iter().map(|places| self.constants(places)).collect();
        let found = self.bench.run(&sets)?;
        let all = found.iter().zip(places).map(|(found, places)| {
            let misfits = self.bench.misfits(found).enumerate();
            let kept = misfits.filter(|(at, _)| Some(*at) != left).map(|(_, misfit)| misfit);
            kept.chain(places.iter().zip(&self.start).map(|(at, seed)| PULL * (at - seed))).collect()
        });
        Ok(all.collect())
    }
}
