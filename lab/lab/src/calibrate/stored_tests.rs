//! Tests of a calibration beside stored constants.

use std::num::NonZeroUsize;

use super::setup::CalibrationSetup;
use super::targets_file::read_targets;
use super::{CalibrationExtras, calibrate};
use crate::experiments;
use crate::runner::plan::SettingAssignment;

/// A target that the greatest value of `timer_writes` meets best.
const TARGET: &str = r#"
[[target]]
name = "accesses to the APIC"
points = ["fig07 vms=1 eoi_accel=false"]
metrics = ["apic_access_mcycles"]
value = 200.0
source = "a test"
"#;

/// Returns the value that a calibration gives `timer_writes` beside a stored value.
fn timer_writes(stored: Option<u64>) -> u64 {
    let mut setup = CalibrationSetup::of_paper(NonZeroUsize::MIN);
    setup.use_targets(read_targets(TARGET, &experiments::catalogue()).unwrap());
    setup.set(&[("measure_ms", 20u64), ("warm_up_ms", 5)].map(SettingAssignment::from));
    setup.fit_only(&["timer writes".to_owned()]).unwrap();
    setup.stored = stored.map(|value| [("timer_writes".to_owned(), value)].into());
    calibrate(&setup, &CalibrationExtras::default(), &|_| ()).unwrap().constants[0].value
}

#[test]
fn fit_replaces_stored_constants_only_if_it_is_better() {
    let best = timer_writes(None);
    assert_eq!(best, 1_000);
    assert_eq!(timer_writes(Some(best - 1)), best - 1, "the target does not tell them apart");
    assert_eq!(timer_writes(Some(best / 2)), best);
}

/// Checks that constants are kept only for the inputs of the stored calibration, with any number of seeds.
#[test]
fn calibration_with_other_inputs_keeps_no_stored_constants() {
    let of_paper = || CalibrationSetup::of_paper(NonZeroUsize::MIN);
    let mut setup = of_paper();
    setup.set(&[]);
    assert!(setup.stored.is_some());
    setup.set(&[SettingAssignment::from(("measure_ms", 20u64))]);
    assert_eq!(setup.stored, None);
    let mut setup = of_paper();
    setup.use_targets(of_paper().targets);
    assert_eq!(setup.stored, None);
    let mut setup = of_paper();
    setup.hold("back end").unwrap();
    assert_eq!(setup.stored, None);
    let mut setup = of_paper();
    setup.fit_only(&["back end".to_owned()]).unwrap();
    assert_eq!(setup.stored, None);
    let mut setup = of_paper();
    setup.use_machine(Vec::new()).unwrap();
    assert_eq!(setup.stored, None);
}
