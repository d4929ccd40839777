//! Least squares of the calibration in the unit cube: damped Gauss-Newton steps with finite differences. It may find a
//! local minimum only, so that a fit may begin at several positions.

/// Maximum number of steps of the calibration's search.
const STEPS: usize = 5;
/// Step of the calibration's finite differences: large enough to exceed rounding to integers and the phases of
/// interrupts.
const PROBE: f64 = 0.1;
/// Damping factors of the calibration's search. In each step the search tries a whole and a half move with every
/// factor, and uses the best position found, the probes included.
const DAMPING: [f64; 3] = [1e-4, 1e-2, 1e-1];
/// Stop criterion of the calibration's search: the smallest relative reduction of the sum of squared misfits.
const ENOUGH: f64 = 0.005;

/// Returns `true` if a sum of squared misfits is smaller than that of other constants by enough to prefer its constants.
pub(super) fn is_better(squares: f64, other: f64) -> bool {
    squares < other * (1.0 - ENOUGH)
}

/// Position that a search of the calibration found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FittedPosition {
    /// Place of each knob in its range, from 0 to 1.
    pub(super) places: Vec<f64>,
    /// Sum of the squared misfits there.
    pub(super) squares: f64,
}

/// Minimises from each of the positions `starts`, and returns the lowest minimum; of equal ones the first.
pub(super) fn minimise_from<E>(
    starts: [Vec<f64>; 2],
    misfits: impl Fn(&[Vec<f64>]) -> Result<Vec<Vec<f64>>, E>,
    tell: &dyn Fn(&str),
) -> Result<FittedPosition, E> {
    let [first, second] = starts.map(|start| minimise(start, &misfits, tell));
    let (first, second) = (first?, second?);
    Ok(if second.squares < first.squares { second } else { first })
}

/// Minimises the sum of squares of the calibration's misfits by a search from position `at`. `misfits` evaluates
/// several positions at once, so that it can run them in parallel.
pub(super) fn minimise<E>(
    mut at: Vec<f64>,
    misfits: impl Fn(&[Vec<f64>]) -> Result<Vec<Vec<f64>>, E>,
    tell: &dyn Fn(&str),
) -> Result<FittedPosition, E> {
    let mut here = misfits(std::slice::from_ref(&at))?.swap_remove(0);
    for step in 1..=STEPS {
        tell(&format!("fit step {step} of at most {STEPS}: sum of squared residuals {:.4}", squares(&here)));
        let probes: Vec<_> = (0..at.len()).map(|side| probe(&at, side)).collect();
        let probed = misfits(&probes)?;
        let slopes: Vec<_> =
            (0..at.len()).map(|side| slope(&here, &probed[side], probes[side][side] - at[side])).collect();
        let whole = DAMPING.iter().map(|&damping| advance(&at, &here, &slopes, damping));
        let tries: Vec<_> = whole.flat_map(|to| [middle(&at, &to), to]).collect();
        let tried = misfits(&tries)?;
        let found = tried.into_iter().zip(tries).chain(probed.into_iter().zip(probes));
        let Some((best, place)) = found.min_by(|a, b| squares(&a.0).total_cmp(&squares(&b.0))) else { break };
        let gain = 1.0 - squares(&best) / squares(&here);
        if gain > 0.0 {
            (here, at) = (best, place);
        }
        if gain.is_nan() || gain < ENOUGH {
            break;
        }
    }
    tell(&format!("fit finished: sum of squared residuals {:.4}", squares(&here)));
    Ok(FittedPosition { places: at, squares: squares(&here) })
}

fn squares(misfits: &[f64]) -> f64 {
    misfits.iter().map(|misfit| misfit * misfit).sum()
}

/// Moves a position of the calibration's search by `PROBE` along dimension `side`: forwards, or backwards at the edge
/// of the unit cube.
fn probe(at: &[f64], side: usize) -> Vec<f64> {
    let mut place = at.to_vec();
    place[side] += if at[side] + PROBE <= 1.0 { PROBE } else { -PROBE };
    place
}

/// Returns the derivative of each calibration target's misfit along one dimension: the change from `here` to `probed`,
/// divided by `moved`.
fn slope(here: &[f64], probed: &[f64], moved: f64) -> Vec<f64> {
    probed.iter().zip(here).map(|(there, here)| (there - here) / moved).collect()
}

/// Returns the midpoint between two positions of the calibration's search.
fn middle(from: &[f64], to: &[f64]) -> Vec<f64> {
    from.iter().zip(to).map(|(from, to)| f64::midpoint(*from, *to)).collect()
}

/// Minimises the calibration's linearised sum of squares in the unit cube by coordinate descent; `damping` weighs the
/// distance from `at`.
fn advance(at: &[f64], here: &[f64], slopes: &[Vec<f64>], damping: f64) -> Vec<f64> {
    const ROUNDS: usize = 2_000;
    let (mut place, mut misfits) = (at.to_vec(), here.to_vec());
    for _ in 0..ROUNDS {
        for (side, slope) in slopes.iter().enumerate() {
            let gradient = dot(slope, &misfits) + damping * (place[side] - at[side]);
            let to = (place[side] - gradient / (squares(slope) + damping)).clamp(0.0, 1.0);
            let moved = to - place[side];
            place[side] = to;
            misfits.iter_mut().zip(slope).for_each(|(misfit, slope)| *misfit += slope * moved);
        }
    }
    place
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
