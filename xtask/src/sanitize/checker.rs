//! Checkers: their packages, flags and programs.

use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::nightly::{self, PLATFORM, nightly};

/// File of the races that ThreadSanitizer does not report, each with its reason.
const SUPPRESSIONS: &str = "xtask/src/sanitize/thread_suppressions.txt";

/// Program that checks tests while they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Checker {
    /// Interpreter that finds undefined behaviour, in pure crates.
    Miri,
    /// AddressSanitizer, with LeakSanitizer, in crates with unsafe code.
    Address,
    /// ThreadSanitizer, in the crate whose threads share memory.
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

    /// Returns the packages whose unit tests run.
    pub(super) fn packages(self) -> &'static [&'static str] {
        match self {
            Self::Miri => &["units", "rings", "virtio", "policy", "vhost-user", "capture-filter"],
            Self::Address => &["host", "keeper"],
            Self::Thread => &["host"],
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

    /// Returns the cargo command that tests a package's library under the checker.
    pub(super) fn test(self, root: &Path, package: &str) -> Command {
        let mut command = nightly("cargo");
        let folder = format!("target/sanitize/{self}");
        if self == Self::Miri {
            command.arg("miri");
        }
        command.args(["test", "--quiet", "--locked", "--lib", "--package", package, "--target-dir", &folder]);
        match self {
            // Two cases of each property test: Miri is up to some thousand times slower than the processor. The isolation
            // would hide the number of cases.
            Self::Miri => command.env("PROPTEST_CASES", "2").env("MIRIFLAGS", "-Zmiri-disable-isolation"),
            // The standard library is built with the sanitizer too: its code would hide accesses.
            Self::Address => with_sanitizer(&mut command, "-Zsanitizer=address"),
            // ThreadSanitizer sees memory that is mapped and unmapped, and descriptors that are closed, by calls of libc only.
            Self::Thread => with_sanitizer(&mut command, "-Zsanitizer=thread --cfg=rustix_use_libc")
                .env("TSAN_OPTIONS", format!("suppressions={}", root.join(SUPPRESSIONS).display())),
        };
        command
    }
}

/// Has cargo build the tests and the standard library with a sanitizer.
fn with_sanitizer<'a>(command: &'a mut Command, flags: &str) -> &'a mut Command {
    command.args(["-Zbuild-std", "--target", PLATFORM]).env("RUSTFLAGS", flags)
}
