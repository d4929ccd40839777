//! Tests host and node agent in a real Kubernetes cluster, whose programs are built from Go modules. Builds the image that
//! users get, a second one with another program, and a guest for its pods. Installs nothing.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::kubernetes::{self, check, go};
use super::process::{self, OutputVisibility};
use super::setup::{self, STATIC};
use super::tally::{TestFailure, TestTally};
use crate::image::{self, ImageArgs};
use crate::metadata;

/// Variable with the archive of the image for the Go tests.
const IMAGE: &str = "SOFTIOV_IMAGE";
/// Variable with the program that is a guest in a pod.
const GUEST: &str = "SOFTIOV_GUEST_PROGRAM";
/// Variable with the program that boots a virtual machine in a pod.
const MACHINE: &str = "SOFTIOV_MACHINE_PROGRAM";
/// Variable with the folder of the virtual machine's QEMU and kernel.
const MACHINE_FILES: &str = "SOFTIOV_MACHINE_FILES";
/// Variable with the folder for the cluster's programs and logs.
const OUTPUT: &str = "SOFTIOV_CLUSTER_OUTPUT";
/// Variable with the archive of the image to which the Go tests update.
const NEXT_IMAGE: &str = "SOFTIOV_NEXT_IMAGE";
/// Names of both images in the cluster, as the Go tests have them.
const TAG: &str = "localhost/softiov:test";
const NEXT_TAG: &str = "localhost/softiov:next";
/// Folders of the Go modules of the cluster and of the image.
const CLUSTER: &str = "kubernetes/cluster";
const TOOLS: &str = "kubernetes/tools";

/// Builds image and guest, checks the image, and runs the tests in a cluster.
pub(super) fn run(root: &Path) -> Result<TestTally> {
    let obstacle = kubernetes::obstacle().or_else(|| setup::target_obstacle(STATIC));
    if let Some(obstacle) = obstacle {
        return Ok(TestTally::skip(format!("a Kubernetes cluster: {obstacle}")));
    }
    if let Some(skipped) = kubernetes::download(root, CLUSTER)? {
        return Ok(skipped);
    }
    let folder = metadata::target_folder()?;
    let programs = folder.join(STATIC).join("quick");
    // One command, so that both have the same features.
    let packages = "--package softiov --bin softiov --package embedded-guest --example guest \
        --package linux-guest --example boot";
    let mut build = metadata::cargo();
    build
        .args(["build", "--quiet", "--locked", "--profile", "quick", "--target", STATIC])
        .args(packages.split_whitespace());
    let built = check(build.current_dir(root))?;
    if built.failed > 0 {
        return Ok(built);
    }
    let program = programs.join("softiov");
    let image = build_image(&folder, "softiov.tar", TAG, program.clone())?;
    let next = build_image(&folder, "softiov-next.tar", NEXT_TAG, next_program(&folder, &program)?)?;
    // The other tests of the package are part of the stage `kubernetes-unit`.
    let scan = ["test", "-count=1", "-run=^TestBuiltImage", "./image"];
    let scanned = check(go(root, TOOLS, &scan).env(IMAGE, &image))?;
    let vetted = check(&mut go(root, CLUSTER, &["vet", "./..."]))?.and(kubernetes::lint(root, CLUSTER)?);
    let (guest, machine) = (programs.join("examples/guest"), programs.join("examples/boot"));
    let files = machine_files(&machine)?;
    let mut command = go(root, CLUSTER, &["test", "-count=1", "-v", "-timeout=0", "."]);
    command.env(IMAGE, &image).env(NEXT_IMAGE, next).env(GUEST, guest).env(OUTPUT, folder.join("kubernetes"));
    let tests = in_cluster(command.env(MACHINE, machine).env(MACHINE_FILES, files))?;
    Ok(built.and(scanned).and(vetted).and(tests))
}

/// Builds an image, and returns its archive.
fn build_image(folder: &Path, archive: &str, tag: &str, program: PathBuf) -> Result<PathBuf> {
    let out = folder.join("kubernetes").join(archive);
    image::build(&ImageArgs { tag: Some(tag.to_owned()), program: Some(program), out: Some(out.clone()) })?;
    Ok(out)
}

/// Writes a program with other bytes that does the same: an executable may have bytes after its last section. So the next
/// image has another digest and other files, as that of a next version.
fn next_program(folder: &Path, program: &Path) -> Result<PathBuf> {
    let next = folder.join("kubernetes/softiov-next");
    fs::copy(program, &next).with_context(|| format!("cannot copy {}", program.display()))?;
    OpenOptions::new().append(true).open(&next)?.write_all(b"next")?;
    Ok(next)
}

/// Returns the folder with QEMU and kernel of a virtual machine, or an empty name if guests cannot be booted here.
fn machine_files(machine: &Path) -> Result<String> {
    if setup::guest_obstacle().is_some() {
        return Ok(String::new());
    }
    let output = process::run(Command::new(machine).arg("--prepare"), OutputVisibility::OnFailure)?;
    ensure!(output.success, "the files of a virtual machine cannot be prepared");
    Ok(output.stdout().trim().to_owned())
}

/// Runs the Go tests that start the cluster, and counts them by their verdicts.
fn in_cluster(tests: &mut Command) -> Result<TestTally> {
    let output = process::run(tests, OutputVisibility::OnFailure)?;
    Ok(judged(read(output.texts()), output.success))
}

/// Adds a failure to a tally without one, if the tests have not succeeded, or if none has run and none says why.
fn judged(tally: TestTally, has_succeeded: bool) -> TestTally {
    let is_empty = tally.passed == 0 && tally.skipped.is_empty();
    if tally.failed == 0 && (!has_succeeded || is_empty) { tally.and(TestTally::FAILED) } else { tally }
}

/// Returns the counts in the output of `go test -v`.
fn read<'a>(lines: impl Iterator<Item = &'a str>) -> TestTally {
    let mut tally = TestTally::default();
    for line in lines {
        let name = |verdict: &str| line.strip_prefix(verdict).and_then(|rest| rest.split(' ').next());
        if name("--- PASS: ").is_some() {
            tally.passed += 1;
        } else if let Some(test) = name("--- FAIL: ") {
            tally.failed += 1;
            tally.failures.push(TestFailure { name: test.to_owned(), reason: None });
        } else if let Some(reason) = line.strip_prefix("SKIPPED: ") {
            tally.skipped.push(reason.to_owned());
        }
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_tests_of_which_none_ran_have_failed() {
        assert_eq!(judged(read("ok  \tcluster\t0.1s\n".lines()), true).failed, 1);
        assert_eq!(judged(read("SKIPPED: tests in a cluster: nodes need root\n".lines()), true).failed, 0);
        assert_eq!(judged(read("--- PASS: TestA (0.00s)\n".lines()), true).failed, 0);
        assert_eq!(judged(read("--- PASS: TestA (0.00s)\n".lines()), false).failed, 1);
    }

    #[test]
    fn verdicts_of_go_tests_are_counted() {
        let output = "=== RUN   TestA\n--- PASS: TestA (0.00s)\n--- FAIL: TestB (1.20s)\n    b.go:7: lost\n\
            SKIPPED: tests in a cluster: nodes need root\nFAIL\n";
        let tally = read(output.lines());
        assert_eq!((tally.passed, tally.failed), (1, 1));
        assert_eq!(tally.failures[0].name, "TestB");
        assert_eq!(tally.skipped, ["tests in a cluster: nodes need root"]);
    }
}
