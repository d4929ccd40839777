//! Checkers: their packages, flags and programs.

use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::nightly::{self, PLATFORM, nightly};

/// File of the races that ThreadSanitizer does not report, each with its reason.
const RACES: &str = "xtask/src/sanitize/thread_suppressions.txt";
/// File of the memory that LeakSanitizer does not report, each with its reason.
const LEAKS: &str = "xtask/src/sanitize/leak_suppressions.txt";

/// Program that checks tests while they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Checker {
    /// Interpreter that finds undefined behaviour, in pure crates.
    Miri,
    /// AddressSanitizer, with LeakSanitizer, in crates with unsafe code.
    Address,
    /// ThreadSanitizer, in the crates whose threads share memory.
    Thread,
}

impl fmt::Display for Checker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Checker {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Miri => "miri",
            Self::Address => "address",
            Self::Thread => "thread",
        }
    }

    /// Returns the packages whose tests run.
    pub(super) fn packages(self) -> &'static [&'static str] {
        match self {
            Self::Miri => &[
                "units",
                "rings",
                "virtio",
                "policy",
                "vhost-user",
                "capture-filter",
                "plane",
                "avf",
                "i82576",
                "avf-nic",
                "sim",
                "guest",
            ],
            Self::Address => &["host", "keeper", "daemon"],
            Self::Thread => &["host", "daemon"],
        }
    }

    /// Checks that the nightly compiler has the checker.
    pub(super) fn require(self) -> Result<()> {
        let (arguments, component): (&[&str], _) =
            if self == Self::Miri { (&["miri"], "miri") } else { (&[], "rust-src") };
        let remedy = format!(
            "rustup toolchain install nightly --profile minimal --component {component} --component rust-src"
        );
        nightly::require("cargo", arguments, &format!("{self} needs a nightly compiler"), &remedy)
    }

    /// Returns cargo's arguments for the test programs of a package: the unit tests of its library, and the live tests of `daemon`. The
    /// simulated hosts of its library run on one thread, and take ThreadSanitizer tens of minutes.
    fn programs(self, package: &str) -> &'static [&'static str] {
        match (self, package) {
            (Self::Thread, "daemon") => &["--test", "live", "--no-fail-fast"],
            (_, "daemon") => &["--lib", "--test", "live", "--no-fail-fast"],
            _ => &["--lib"],
        }
    }

    /// Returns the cargo command that runs a package's tests under the checker.
    pub(super) fn test(self, root: &Path, package: &str) -> Command {
        let mut command = nightly("cargo");
        let folder = format!("target/sanitize/{self}");
        if self == Self::Miri {
            command.arg("miri");
        }
        command.args(["test", "--quiet", "--locked", "--package", package, "--target-dir", &folder]);
        command.args(self.programs(package));
        match self {
            // Two cases of each property test: Miri is up to some thousand times slower than the processor. The isolation
            // would hide the number of cases.
            Self::Miri => command.env("PROPTEST_CASES", "2").env("MIRIFLAGS", "-Zmiri-disable-isolation"),
            // The standard library is built with the sanitizer too: its code would hide accesses. Frame pointers give the stacks of
            // what has leaked.
            Self::Address => with_sanitizer(&mut command, "-Zsanitizer=address -Cforce-frame-pointers=yes")
                .env("LSAN_OPTIONS", format!("suppressions={}", root.join(LEAKS).display())),
            // ThreadSanitizer sees memory that is mapped and unmapped, and descriptors that are closed, by calls of libc only.
            Self::Thread => with_sanitizer(&mut command, "-Zsanitizer=thread --cfg=rustix_use_libc")
                .env("TSAN_OPTIONS", format!("suppressions={}", root.join(RACES).display())),
        };
        command
    }
}

/// Has cargo build the tests and the standard library with a sanitizer.
fn with_sanitizer<'a>(command: &'a mut Command, flags: &str) -> &'a mut Command {
    command.args(["-Zbuild-std", "--target", PLATFORM]).env("RUSTFLAGS", flags)
}
