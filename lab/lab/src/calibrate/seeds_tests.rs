//! Tests of calibrations over several seeds.

use std::num::{NonZeroU8, NonZeroUsize};

use super::setup::CalibrationSetup;
use super::targets_file::read_targets;
use super::{CalibrationExtras, CalibrationResult, calibrate};
use crate::experiments;
use crate::runner::plan::SettingAssignment;

/// A target of ports that share cores, whose phases a seed draws, and one of a single port.
const TARGETS: &str = r#"
[[target]]
name = "ten bare ports"
points = ["fig11 guest=native opts=none"]
metrics = ["cpu_total_pct"]
value = 150.0

[[target]]
name = "throughput of one port"
points = ["fig08 policy=20k"]
metrics = ["throughput_mbps"]
value = 957.0
"#;

fn calibrated(seeds: u8) -> CalibrationResult {
    let mut setup = CalibrationSetup::of_paper(NonZeroUsize::MIN);
    setup.targets = read_targets(TARGETS, &experiments::catalogue()).unwrap();
    setup.seeds = NonZeroU8::new(seeds).unwrap();
    setup.set(&[("measure_ms", 20u64), ("warm_up_ms", 5)].map(SettingAssignment::from));
    setup.fit_only(&["thread contention".to_owned()]).unwrap();
    calibrate(&setup, &CalibrationExtras::default(), &|_| ()).unwrap()
}

/// Checks that residuals over several seeds have intervals, wider ones where seeds move the row more.
#[test]
fn calibration_over_seeds_has_means_with_intervals() {
    let found = calibrated(3);
    let [ports, one] = &found.residuals[..] else { panic!("{found:?}") };
    let half = ports.half.unwrap();
    assert!(half > 0.0 && half < 0.2 * ports.model, "{ports:?}");
    assert!(one.half.unwrap() / one.model < 0.3 * half / ports.model, "{one:?} {ports:?}");
    let text = found.stored().to_toml("a command").unwrap();
    assert_eq!(text.matches("\nhalf = ").count(), 2, "{text}");
}

/// Checks that a calibration with one seed has no interval, and that its file is that of versions without seeds.
#[test]
fn calibration_with_one_seed_has_no_interval() {
    let found = calibrated(1);
    assert!(found.residuals.iter().all(|residual| residual.half.is_none()), "{found:?}");
    assert!(!found.stored().to_toml("a command").unwrap().contains("half"));
}
