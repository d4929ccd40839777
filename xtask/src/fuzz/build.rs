//! Builds the fuzz targets with the compiler's coverage for libFuzzer.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::nightly::{self, PLATFORM, nightly};

/// Flags of the compiler: the coverage that libFuzzer reads, as cargo-fuzz sets them without a sanitizer.
const FLAGS: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "--cfg=fuzzing",
];
/// Flag with which the fuzzer also learns the values of comparisons. A call for each of them makes most targets two to five
/// times slower.
const TRACE_COMPARISONS: &str = "-Cllvm-args=-sanitizer-coverage-trace-compares";

/// Builds the targets for the fuzzer, and returns the folder of their programs.
pub(super) fn build(root: &Path, targets: &[String], with_comparisons: bool) -> Result<PathBuf> {
    let (mut flags, mut folder) = (FLAGS.join(" "), root.join("target/fuzz"));
    if with_comparisons {
        flags = format!("{flags} {TRACE_COMPARISONS}");
        folder.push("comparisons");
    }
    build_with(root, targets, &flags, &folder)
}

/// Builds the targets with the compiler's `flags` in `folder`, and returns the folder of their programs.
pub(super) fn build_with(root: &Path, targets: &[String], flags: &str, folder: &Path) -> Result<PathBuf> {
    // A stable compiler may refuse the coverage flags.
    let remedy = "rustup toolchain install nightly --profile minimal";
    nightly::require("rustc", &[], "the fuzzer's coverage needs a nightly compiler", remedy)?;
    let mut command = nightly("cargo");
    command.args([
        "build",
        "--release",
        "--locked",
        "--manifest-path",
        "fuzz/Cargo.toml",
        "--target",
        PLATFORM,
    ]);
    command.args(targets.iter().flat_map(|target| ["--bin", target]));
    command.arg("--target-dir").arg(folder).current_dir(root).env("RUSTFLAGS", flags);
    let status = command.status().context("cannot run cargo")?;
    ensure!(status.success(), "the fuzz targets do not build; libFuzzer needs a C++ compiler (Debian: g++)");
    Ok(folder.join(PLATFORM).join("release"))
}
