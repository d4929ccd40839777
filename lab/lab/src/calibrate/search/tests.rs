//! Tests of the search of a calibration: constants that stay, and residuals of a profile.

use super::super::tests::own_setup;
use super::super::{CalibrationExtras, CalibrationResult, calibrate};

/// Fits the knob "timer writes", whose greatest value is the best. `stored` is the constant's stored value.
fn fit(stored: Option<u64>, profiles: Vec<usize>) -> CalibrationResult {
    let mut setup = own_setup();
    setup.fit_only(&["timer writes".to_owned()]).unwrap();
    setup.stored = stored.map(|value| [("timer_writes".to_owned(), value)].into());
    let extras = CalibrationExtras { leave_one_out: false, profiles };
    calibrate(&setup, &extras, &|_| ()).unwrap()
}

#[test]
fn stored_constants_stay_unless_a_fit_is_better() {
    let (_, most) = fit(None, Vec::new()).constants[0].range;
    // The residuals of the two greatest values differ by less than a fit has to gain.
    for (stored, kept) in [(None, most), (Some(0), most), (Some(most - 1), most - 1)] {
        assert_eq!(fit(stored, Vec::new()).constants[0].value, kept, "{stored:?}");
    }
}

#[test]
fn residual_of_a_profile_is_the_root_mean_square() {
    let found = fit(None, vec![0]);
    let of_targets = found.residuals.iter().filter(|residual| !residual.what.ends_with("(not fitted)"));
    let relative: Vec<_> = of_targets.map(|residual| residual.model / residual.target - 1.0).collect();
    let squares: f64 = relative.iter().map(|relative| relative * relative).sum();
    let expected = 100.0 * (squares / relative.len() as f64).sqrt();
    // The knob's last place is the fitted one.
    let last = found.profile.last().unwrap().residual_pct;
    assert_eq!(relative.len(), 2);
    assert!((last / expected - 1.0).abs() < 0.01, "{last} {expected}");
}

#[test]
fn constant_that_no_target_depends_on_stays_at_its_table_value() {
    let mut setup = own_setup();
    setup.fit_only(&["timer writes".to_owned(), "device model".to_owned()]).unwrap();
    setup.stored = None;
    let found = calibrate(&setup, &CalibrationExtras::default(), &|_| ()).unwrap();
    for constant in found.constants.iter().filter(|constant| constant.knob == "device model") {
        assert_eq!(constant.value, constant.seed, "{}", constant.name);
    }
}
