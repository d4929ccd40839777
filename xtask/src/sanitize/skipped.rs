//! Tests that do not run under a checker.

use super::checker::Checker;
use crate::tidy::proofs::ENUMERATIONS;

/// Test that does not run under a checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SkippedTest {
    /// Path of the test in its test program.
    pub(super) path: &'static str,
    pub(super) reason: &'static str,
}

/// Reason: a test of many steps is too slow in an interpreter.
const MANY_STEPS: &str = "makes many thousand steps";

/// Reason: the test expects a signal of the kernel, which the sanitizer's own calls and handlers come before.
const SECCOMP: &str =
    "ThreadSanitizer defers the handler of SIGSYS, and makes calls that the host's list does not have";

/// Reason: AddressSanitizer keeps freed memory for a time, so that it finds accesses to it.
const MEMORY: &str = "measures the process's memory, of which AddressSanitizer keeps what is free";

/// Tests that do not run under a checker: checker, package, path in the test program, and reason.
const SKIPPED: &[(Checker, &str, &str, &str)] = &[
    (Checker::Miri, "units", "vlans::tests::vlan_ids_behave_as_an_ordered_set", MANY_STEPS),
    (Checker::Miri, "units", "work::tests::shares_are_equal_whatever_a_piece_of_work_costs", MANY_STEPS),
    (Checker::Address, "daemon", "resets::thousand_function_level_resets_leak_no_memory", MEMORY),
    (Checker::Address, "daemon", "resources::thousand_clients_leak_no_memory_or_descriptor", MEMORY),
    (
        Checker::Thread,
        "host",
        "confine::tests::call_outside_the_seccomp_list_is_logged_and_ends_the_host",
        SECCOMP,
    ),
];

/// Returns the tests of a package that do not run under a checker. Tests of all cases of a domain are too slow for Miri.
pub(super) fn skipped(checker: Checker, package: &str) -> Vec<SkippedTest> {
    let of_package = SKIPPED.iter().filter(|(with, of, ..)| (*with, *of) == (checker, package));
    let named = of_package.map(|(_, _, path, reason)| SkippedTest { path, reason });
    let enumerated = ENUMERATIONS.iter().filter(|(of, ..)| checker == Checker::Miri && *of == package);
    named
        .chain(enumerated.map(|(_, path, _)| SkippedTest { path, reason: "tests all cases of a domain" }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata;
    use crate::tidy::source;

    #[test]
    fn skipped_tests_exist_in_their_packages() {
        let sources = source::tracked(&metadata::workspace_root().unwrap()).unwrap();
        for (_, package, path, _) in SKIPPED {
            let opening = format!("fn {}(", path.rsplit("::").next().unwrap_or(path));
            let folder = format!("crates/{package}/");
            let exists =
                sources.iter().any(|file| file.path.starts_with(&folder) && file.text.contains(&opening));
            assert!(exists, "{package} has no test {path}: correct the list of skipped tests");
        }
    }

    #[test]
    fn miri_skips_tests_of_all_cases_and_the_sanitizer_does_not() {
        let of = |checker| skipped(checker, "rings").len();
        assert_eq!((of(Checker::Miri), of(Checker::Address)), (1, 0));
    }
}
