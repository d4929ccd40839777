//! `cargo xtask instructions`: counts the instructions that the card and the VF drivers spend on a frame, and compares
//! them with the kept counts. Counts are kept by part of the frame's path. valgrind counts, so clock and load have no
//! effect. `--keep` keeps the new counts.
//!
//! The count includes the look-up of guest memory and copies, with the vector registers of valgrind's processor. A test
//! of the card counts allocations (`crates/nic/tests/card/allocations.rs`).

mod callgrind;
mod kept;

use std::path::PathBuf;
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::metadata;
use crate::tidy::doors::package_name;
pub(crate) use callgrind::InstructionCounts;

/// Paths of a frame whose instructions are counted: the package with the benchmark `frame_path`, the benchmark's name
/// for the path, and frames per call.
const CASES: [(&str, &str, u64); 28] = [
    ("nic", "VF to VF, with policy, 64 bytes", 32),
    ("nic", "VF to VF in three regions, with policy, 64 bytes", 32),
    ("nic", "VF to VF, with policy, 1514 bytes", 32),
    ("nic", "VF to VF, checksum inserted, 64 bytes", 32),
    ("nic", "VF to wire, 64 bytes", 32),
    ("nic", "wire to VF, 64 bytes", 32),
    ("nic", "VF to VF, cut into 1502 bytes", 40),
    ("nic", "VF to VF, a context each, 64 bytes", 30),
    ("avf-nic", "AVF to AVF, with policy, 64 bytes, legacy", 32),
    ("avf-nic", "AVF to AVF, with policy, 64 bytes, flexible", 32),
    ("avf-nic", "AVF to AVF, checksum inserted, with policy, 64 bytes, legacy", 32),
    ("virtio-nic", "virtio to virtio, with policy, 64 bytes, split", 32),
    ("virtio-nic", "virtio to virtio, with policy, 64 bytes, packed in any order", 32),
    ("virtio-nic", "virtio to virtio, with policy, 64 bytes, packed in order", 32),
    ("virtio-nic", "virtio to virtio, with policy, 1514 bytes, packed in order", 32),
    ("virtio-nic", "virtio to virtio, checksum inserted, with policy, 64 bytes, packed in order", 32),
    ("virtio-nic", "virtio to virtio, checksum inserted, with policy, 1514 bytes, packed in order", 32),
    ("virtio-nic", "virtio to virtio of another worker, 64 bytes, split", 32),
    ("virtio-nic", "virtio to virtio of another worker, 64 bytes, packed in order", 32),
    ("virtio-nic", "virtio to virtio of another worker, 1514 bytes, packed in order", 32),
    ("driver", "VF driver sends, 82576, 64 bytes", 32),
    ("driver", "VF driver sends, AVF legacy, 64 bytes", 32),
    ("driver", "VF driver sends, 82576, 1514 bytes", 32),
    ("driver", "VF driver sends, AVF legacy, 1514 bytes", 32),
    ("driver", "VF driver receives, 82576, 64 bytes", 32),
    ("driver", "VF driver receives, AVF legacy, 64 bytes", 32),
    ("driver", "VF driver receives, 82576, 1514 bytes", 32),
    ("driver", "VF driver receives, AVF legacy, 1514 bytes", 32),
];
/// Numbers of calls in a short and in a long run. The difference of their instruction counts is the cost of the frames,
/// without the program's start.
const CALLS: [u64; 2] = [50, 150];

/// Arguments of `cargo xtask instructions`.
#[derive(Debug, clap::Args)]
pub(crate) struct InstructionsArgs {
    /// Keep today's counts in place of the kept ones.
    #[arg(long)]
    keep: bool,
}

/// Counts the instructions of every case, and compares the counts with the kept ones or keeps them.
pub(crate) fn run(options: &InstructionsArgs) -> Result<ExitCode> {
    let counted = count()?;
    for (case, counts) in &counted {
        println!("{case}: {counts}");
    }
    if options.keep {
        kept::keep(&counted)?;
        return Ok(ExitCode::SUCCESS);
    }
    let complaints = complaints(&counted)?;
    complaints.iter().for_each(|complaint| println!("{complaint}"));
    Ok(if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the instructions per frame of each counted path of a frame.
pub(crate) fn count() -> Result<Vec<(String, InstructionCounts)>> {
    let built = ["nic", "avf-nic", "virtio-nic", "driver"].map(|package| Ok((package, build(package)?)));
    let programs = built.into_iter().collect::<Result<Vec<_>>>()?;
    let case = |&(package, case, frames): &(&str, &str, u64)| {
        let program = programs.iter().find(|(of, _)| *of == package).map(|(_, program)| program);
        let program = program.context("a package of the counted cases has no benchmark frame_path")?;
        let [short, long] = CALLS.map(|calls| callgrind::count(program, case, calls));
        let counts = long?.since(&short?).per((CALLS[1] - CALLS[0]) * frames);
        ensure!(
            !counts.is_empty(),
            "no instruction was counted for {case:?}: check the name of the case in the benchmark"
        );
        Ok((case.to_owned(), counts))
    };
    CASES.iter().map(case).collect()
}

/// Returns a complaint for each instruction count that is higher, or much lower, than the kept one.
pub(crate) fn complaints(counted: &[(String, InstructionCounts)]) -> Result<Vec<String>> {
    Ok(kept::compare(&kept::load()?, counted))
}

/// Returns the compiler that the kept counts belong to, unless it is the one in use. Another one generates other code.
pub(crate) fn other_compiler() -> Result<Option<String>> {
    let kept = kept::load()?.compiler;
    Ok((kept != metadata::compiler()?).then_some(kept))
}

/// Builds a package's benchmark `frame_path` for release, and returns the program's path.
fn build(package: &str) -> Result<PathBuf> {
    let mut command = metadata::cargo();
    command.args([
        "bench",
        "--package",
        &package_name(package),
        "--bench",
        "frame_path",
        "--no-run",
        "--message-format=json",
    ]);
    command.args(["--quiet", "--profile", "release"]);
    command.current_dir(metadata::workspace_root()?).stderr(Stdio::inherit());
    let output = command.output()?;
    ensure!(output.status.success(), "the benchmark frame_path does not build");
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program =
        messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).next_back();
    program.context("the output of cargo does not name the program of the benchmark frame_path")
}
