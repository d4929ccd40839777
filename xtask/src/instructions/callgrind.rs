//! Runs a benchmark under callgrind, and adds up its output: a cost for each source line, inlined functions included.
//! The folder of a line says in which part of the frame's path the instructions were spent.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Instruction counts by part (stop) of the frame's path: a module of a card, a crate, or the standard library.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct InstructionCounts(pub(super) BTreeMap<String, f64>);

impl InstructionCounts {
    pub(super) fn is_empty(&self) -> bool {
        self.total() <= 0.0
    }

    pub(super) fn total(&self) -> f64 {
        self.0.values().sum()
    }

    /// Subtracts the earlier instruction counts `before` from these.
    pub(super) fn since(mut self, before: &Self) -> Self {
        for (stop, count) in &mut self.0 {
            *count -= before.0.get(stop).unwrap_or(&0.0);
        }
        self
    }

    /// Divides the instruction counts by a number of frames, to a tenth. Parts without an instruction are left out.
    pub(super) fn per(self, frames: u64) -> Self {
        let each = |count: f64| (count / frames as f64 * 10.0).round() / 10.0;
        let counts = self.0.into_iter().map(|(stop, count)| (stop, each(count)));
        Self(counts.filter(|&(_, count)| count > 0.0).collect())
    }
}

impl fmt::Display for InstructionCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} instructions per frame:", self.total())?;
        self.0.iter().try_for_each(|(stop, count)| write!(f, " {stop} {count}"))
    }
}

/// Runs a case of the benchmark under callgrind with `calls` calls, and returns the instructions of the whole run.
pub(super) fn count(program: &Path, case: &str, calls: u64) -> Result<InstructionCounts> {
    let out = program.with_extension(format!("callgrind.{calls}"));
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--compress-strings=no", "--compress-pos=no"]);
    command.arg(format!("--callgrind-out-file={}", out.display())).arg(program).arg(case);
    command.env("FRAME_PATH_CALLS", calls.to_string()).stdin(Stdio::null());
    let output = command.output().context("cannot start valgrind: install Debian's package valgrind")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the benchmark fails under valgrind:\n{said}");
    let text = fs::read_to_string(&out)
        .with_context(|| format!("cannot read callgrind's output {}", out.display()))?;
    fs::remove_file(&out)?;
    Ok(parse(&text))
}

/// Adds up the costs of all lines in callgrind's output, by the part of the frame's path that each line's file belongs
/// to. The cost of a call counts in the called function.
pub(super) fn parse(text: &str) -> InstructionCounts {
    let mut counts = InstructionCounts::default();
    let (mut stop, mut nameless) = (None, false);
    let mut inclusive = false;
    for line in text.lines() {
        if let Some(file) = ["fl=", "fi=", "fe="].iter().find_map(|key| line.strip_prefix(key)) {
            (stop, nameless) = (stop_of(file), file == NAMELESS);
        } else if let Some(function) = line.strip_prefix("fn=").filter(|_| nameless) {
            stop = function.contains("mem").then_some(COPIES);
        } else if line.starts_with("calls=") {
            inclusive = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit()) {
            let cost = line.split_whitespace().nth(1).and_then(|cost| cost.parse::<f64>().ok());
            if let (false, Some(stop), Some(cost)) = (inclusive, stop, cost) {
                *counts.0.entry(stop.to_owned()).or_default() += cost;
            }
            inclusive = false;
        }
    }
    counts
}

/// File name that callgrind writes for functions without debug information, such as libc's.
const NAMELESS: &str = "???";
/// Name of the part of the frame's path that is made of functions that move bytes.
const COPIES: &str = "copies";

/// Returns the part of the frame's path that a source file belongs to: a module of a card, the plane or the drivers; a
/// crate below them; or the standard library. Returns `None` for the benchmark itself and the rest of libc.
fn stop_of(file: &str) -> Option<&str> {
    let of = ["nic", "avf-nic", "virtio-nic", "plane", "driver"].map(|name| format!("crates/{name}/src/"));
    let inside = of.iter().find_map(|of| file.split_once(of.as_str()));
    if let Some((_, inside)) = inside {
        let first = inside.split('/').next().unwrap_or(inside);
        return Some(first.strip_suffix(".rs").unwrap_or(first));
    }
    ["rings", "host", "vfio-client", "offload", "i82576", "avf", "virtio", "pcie", "units"]
        .into_iter()
        .find(|name| file.contains(&format!("crates/{name}/src/")))
        .or_else(|| file.contains("/library/").then_some("std"))
        // libc with the names of its files.
        .or_else(|| file.contains("/multiarch/mem").then_some(COPIES))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
events: Ir
fl=/checkout/crates/nic/src/forward.rs
fn=nic::forward
12 100
fi=/checkout/crates/plane/src/switch/decide.rs
40 30
fi=/rustc/0123/library/core/src/num/mod.rs
7 5
fe=/checkout/crates/nic/src/forward.rs
13 1
cfn=memcpy
calls=3 0
14 9000

fl=???
fn=memcpy
0 9000
fl=/checkout/crates/nic/benches/frame_path.rs
fn=main
3 70
";

    #[test]
    fn inlined_instructions_are_attributed_to_their_source_file() {
        let counts = parse(OUTPUT);
        let expected = [("copies", 9000.0), ("forward", 101.0), ("std", 5.0), ("switch", 30.0)];
        assert_eq!(counts.0, expected.map(|(stop, count)| (stop.to_owned(), count)).into());
    }

    #[test]
    fn instructions_per_frame_are_the_difference_of_two_runs() {
        let long = parse(OUTPUT);
        let short = InstructionCounts([("forward".to_owned(), 1.0), ("std".to_owned(), 5.0)].into());
        let counts = long.since(&short).per(10);
        let expected = [("copies", 900.0), ("forward", 10.0), ("switch", 3.0)];
        assert_eq!(counts.0, expected.map(|(stop, count)| (stop.to_owned(), count)).into());
    }
}
