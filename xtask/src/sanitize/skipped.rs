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

/// Reason: the host's list of system calls is for rustix without libc (`host::confine::SeccompMode`).
const NO_LIST: &str =
    "expects a refusal by the host's list of system calls, which only logs under ThreadSanitizer";

/// Reason: AddressSanitizer keeps freed memory for a time, so that it finds accesses to it. ThreadSanitizer notes accesses beside
/// the memory.
const MEMORY: &str = "measures the process's memory, of which the sanitizer keeps or needs a part";

/// Tests of `daemon` that measure the process's memory.
const MEMORY_OF_DAEMON: &[&str] = &[
    "resets::thousand_function_level_resets_leak_no_memory",
    "resources::thousand_clients_leak_no_memory_or_descriptor",
];

/// Tests that do not run under a checker: checker, package, reason, and paths in the test program.
const SKIPPED: &[(Checker, &str, &str, &[&str])] = &[
    (
        Checker::Miri,
        "units",
        MANY_STEPS,
        &[
            "vlans::tests::vlan_ids_behave_as_an_ordered_set",
            "work::tests::shares_are_equal_whatever_a_piece_of_work_costs",
        ],
    ),
    (Checker::Miri, "sim", MANY_STEPS, &["queue::tests::rescheduling_a_timer_does_not_grow_the_event_queue"]),
    (
        Checker::Miri,
        "plane",
        MANY_STEPS,
        &[
            "switch::flows::tests::evicted_station_is_noted_again_with_its_next_frame",
            "switch::flows::tests::flows_of_a_flooding_sender_evict_none_of_another",
            "switch::stations::saved::tests::full_table_is_restored_whole",
            "switch::stations::tests::flood_of_stations_keeps_the_table_at_its_size",
        ],
    ),
    (Checker::Address, "daemon", MEMORY, MEMORY_OF_DAEMON),
    (Checker::Thread, "daemon", MEMORY, MEMORY_OF_DAEMON),
    (Checker::Thread, "daemon", NO_LIST, &["xdp::running_host_loads_no_xdp_program_and_names_a_remedy"]),
    (
        Checker::Thread,
        "host",
        SECCOMP,
        &["confine::tests::call_outside_the_seccomp_list_is_logged_and_ends_the_host"],
    ),
];

/// Returns the tests of a package that do not run under a checker. Tests of all cases of a domain are too slow for Miri.
pub(super) fn skipped(checker: Checker, package: &str) -> Vec<SkippedTest> {
    let of_package = SKIPPED.iter().filter(|(with, of, ..)| (*with, *of) == (checker, package));
    let named =
        of_package.flat_map(|(_, _, reason, paths)| paths.iter().map(|path| SkippedTest { path, reason }));
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
        for (_, package, _, paths) in SKIPPED {
            let folders = ["crates", "lab"].map(|parent| format!("{parent}/{package}/"));
            let files: Vec<_> = sources
                .iter()
                .filter(|file| folders.iter().any(|folder| file.path.starts_with(folder)))
                .collect();
            for path in *paths {
                let opening = format!("fn {}(", path.rsplit("::").next().unwrap_or(path));
                let exists = files.iter().any(|file| file.text.contains(&opening));
                assert!(exists, "{package} has no test {path}: correct the list of skipped tests");
            }
        }
    }

    #[test]
    fn miri_skips_tests_of_all_cases_and_the_sanitizer_does_not() {
        let of = |checker| skipped(checker, "rings").len();
        assert_eq!((of(Checker::Miri), of(Checker::Address)), (1, 0));
    }
}
