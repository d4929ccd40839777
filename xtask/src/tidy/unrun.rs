//! Checks that no test is forgotten: a target that a plain `cargo test` does not run has a stage of its own
//! in `cargo xtask test`, or is a task of its own.

use std::path::PathBuf;

use super::finding::TidyFinding;
use crate::metadata::CargoPackage;
use crate::soak::CAMPAIGN;
use crate::test::GUEST_TESTS;

pub(super) fn check(
    members: &[CargoPackage],
    manifest_of: impl Fn(&CargoPackage) -> PathBuf,
) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for member in members {
        let unrun = member.targets.iter().filter(|target| target.kind == "test" && !target.tested);
        let known = |name: &str| GUEST_TESTS.contains(&name) || name == CAMPAIGN;
        for target in unrun.filter(|target| !known(&target.name)) {
            findings.push(TidyFinding {
                file: manifest_of(member),
                line: 1,
                rule: "unrun",
                what: format!("no stage runs the test target `{}`", target.name),
                remedy: "remove `test = false`, or add a stage that runs the target in xtask/src/test",
            });
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::CargoTarget;

    #[test]
    fn ignored_tests_must_have_a_test_stage_of_their_own() {
        let target = |name: &str, tested| CargoTarget {
            name: name.to_owned(),
            kind: "test".to_owned(),
            root: PathBuf::new(),
            tested,
        };
        let package = CargoPackage {
            name: "a".to_owned(),
            targets: vec![target("seen", true), target(GUEST_TESTS[0], false), target("forgotten", false)],
            ..CargoPackage::default()
        };
        let found = check(&[package], |_| PathBuf::new());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].what, "no stage runs the test target `forgotten`");
    }
}
