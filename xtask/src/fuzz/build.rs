//! Builds the fuzz targets with the compiler's coverage for libFuzzer.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Toolchain that builds the targets. A stable compiler may refuse the coverage flags.
const TOOLCHAIN: &str = "nightly";

/// Flags of the compiler: the coverage that libFuzzer reads, as cargo-fuzz sets them without a sanitizer.
const FLAGS: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
];

/// Platform of the programs. Named, so that the flags are not those of build scripts too.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Builds the targets, and returns the folder of their programs.
pub(super) fn build(root: &Path, targets: &[String]) -> Result<PathBuf> {
    let version = nightly("rustc").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    ensure!(
        version.is_ok_and(|status| status.success()),
        "the fuzzer's coverage needs a nightly compiler, and `rustup run {TOOLCHAIN} rustc` fails; install one with \
         `rustup toolchain install {TOOLCHAIN} --profile minimal`"
    );
    let folder = root.join("target/fuzz");
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
    command.arg("--target-dir").arg(&folder).current_dir(root).env("RUSTFLAGS", FLAGS.join(" "));
    let status = command.status().context("cannot run cargo")?;
    ensure!(status.success(), "the fuzz targets do not build; libFuzzer needs a C++ compiler (Debian: g++)");
    Ok(folder.join(PLATFORM).join("release"))
}

/// Returns a command of the nightly toolchain, without the variables by which the present toolchain names itself.
fn nightly(program: &str) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", TOOLCHAIN, program]).stdin(Stdio::null());
    for variable in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN", "CARGO_ENCODED_RUSTFLAGS"] {
        command.env_remove(variable);
    }
    command
}
