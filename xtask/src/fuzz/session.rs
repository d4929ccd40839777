//! Runs one fuzz target: its corpora, its process, and its progress.

#[path = "../../../fuzz/src/corpus.rs"]
pub(super) mod kept;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::report::{TargetReport, read_line};

/// Longest input that the fuzzer makes, in bytes.
pub(super) const LONGEST: &str = "4096";
/// Settings of glibc's allocator: it keeps freed memory. To return the memory of a card to the kernel, and to get it again for each
/// input, takes a third of the time of some targets.
const ALLOCATOR: &str = "glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=2147483648";
/// Time between two lines of progress of a target.
const PROGRESS: Duration = Duration::from_secs(15);

/// Folders that all targets share.
#[derive(Debug, Clone, Copy)]
pub(super) struct FuzzFolders<'a> {
    pub(super) root: &'a Path,
    /// Folder of the targets' programs.
    pub(super) programs: &'a Path,
}

impl FuzzFolders<'_> {
    /// Returns a command that runs the program of a target.
    pub(super) fn program(&self, target: &str) -> Command {
        let mut command = Command::new(self.programs.join(target));
        command.stdin(Stdio::null()).stdout(Stdio::null()).current_dir(self.root);
        command.env("GLIBC_TUNABLES", ALLOCATOR);
        command
    }

    /// Returns the folder of the inputs that earlier runs of a target have found. It holds the kept ones too.
    pub(super) fn corpus(&self, target: &str) -> Result<PathBuf> {
        let folder = self.root.join("target/fuzz/corpus").join(target);
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        for (number, input) in kept_inputs(self, target)?.iter().enumerate() {
            fs::write(folder.join(format!("kept-{number}")), input)?;
        }
        Ok(folder)
    }

    /// Returns the file of the inputs of a target that are kept in the tree.
    pub(super) fn kept_file(&self, target: &str) -> PathBuf {
        self.root.join("fuzz/corpus").join(format!("{target}.txt"))
    }

    /// Returns the file of the inputs of a target that come from recordings of stock drivers.
    pub(super) fn drivers_file(&self, target: &str) -> PathBuf {
        self.root.join("fuzz/corpus/drivers").join(format!("{target}.txt"))
    }
}

/// Returns the kept inputs of a target, none if it has no files yet.
fn kept_inputs(folders: &FuzzFolders<'_>, target: &str) -> Result<Vec<Vec<u8>>> {
    let files = [folders.kept_file(target), folders.drivers_file(target)];
    Ok(files.iter().map(|file| file_inputs(file)).collect::<Result<Vec<_>>>()?.concat())
}

/// Returns the inputs in a file, none if it does not exist.
pub(super) fn file_inputs(path: &Path) -> Result<Vec<Vec<u8>>> {
    let Ok(text) = fs::read_to_string(path) else { return Ok(Vec::new()) };
    kept::parse(&text)
        .map_err(|line| anyhow::anyhow!("{}: line {line} is no input of a kept corpus", path.display()))
}

/// Runs a target for some seconds. Prints its progress, unless `is_quiet`.
pub(super) fn run(
    folders: &FuzzFolders<'_>,
    target: &str,
    seconds: u64,
    is_quiet: bool,
) -> Result<TargetReport> {
    let corpus = folders.corpus(target)?;
    let crashes = folders.root.join("target/fuzz/crashes");
    fs::create_dir_all(&crashes)?;
    let mut command = folders.program(target);
    // Without `-len_control=0` slow targets never see an input of more than some bytes.
    command.args(["-len_control=0", "-print_final_stats=1", "-timeout=20", "-rss_limit_mb=2048"]);
    command.arg(format!("-max_len={LONGEST}")).arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-artifact_prefix={}/{target}-", crashes.display())).arg(corpus);
    let mut child = command
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run the program of the fuzz target {target}"))?;
    let mut report = TargetReport::new(target);
    follow(&mut child, &mut report, is_quiet)?;
    let status = child.wait()?;
    if !status.success() {
        let program = folders.programs.join(target);
        report.set_crash(status, &program);
        println!("{}", report.crash_text());
    }
    Ok(report)
}

/// Reads what the fuzzer prints until it ends.
fn follow(child: &mut Child, report: &mut TargetReport, is_quiet: bool) -> Result<()> {
    let output = child.stderr.take().context("the fuzzer has no output")?;
    let mut printed = Instant::now();
    for line in BufReader::new(output).split(b'\n') {
        let line = line?;
        read_line(&String::from_utf8_lossy(&line), report);
        if !is_quiet && printed.elapsed() >= PROGRESS {
            printed = Instant::now();
            println!("{}", report.progress());
        }
    }
    Ok(())
}
