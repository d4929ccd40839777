//! Checks the node agent for Kubernetes and everything beside it that is written in Go: formatting, `go vet`, staticcheck,
//! and tests, those of the agent with a host of this checkout. Installs nothing.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;

use super::process::{self, OutputVisibility};
use super::setup;
use super::tally::TestTally;

/// Variable by which the tests find the softiov command.
const HOST_PROGRAM: &str = "SOFTIOV_HOST_PROGRAM";
/// Softiov command that the stage `build` has built.
const BUILT: &str = "target/debug/softiov";
/// Folder of the node agent's Go module.
const AGENT: &str = "kubernetes";
/// Folders of the other Go modules with tests: chart and image, manifests of other projects in the guide, and KubeVirt. The
/// module of the cluster has a stage of its own.
const BESIDE: [&str; 3] = ["kubernetes/tools", "kubernetes/tools/guide", "kubernetes/tools/kubevirt"];
/// Oldest release of Go that builds the agent, as in its `go.mod`. An older one would fetch it.
const OLDEST_GO: u32 = 26;

/// Flags of every Go command: the build must not change go.mod or go.sum.
const GO_FLAGS: &str = "-mod=readonly -buildvcs=false";
/// Folder of the module with staticcheck.
const LINT_MODULE: &str = "kubernetes/tools/lint";
/// Program that staticcheck is built as.
const LINTER: &str = "target/kubernetes/staticcheck";
/// Package of staticcheck.
const LINTER_PACKAGE: &str = "honnef.co/go/tools/cmd/staticcheck";
/// All checks but the one that demands a comment for each package, also for a package of tests.
const LINTS: &str = "all,-ST1000";

/// Runs the checks of all modules, and counts each command as one test.
pub(super) fn run(root: &Path) -> Result<TestTally> {
    if let Some(obstacle) = obstacle() {
        return Ok(TestTally::skip(format!("the node agent for Kubernetes: {obstacle}")));
    }
    let mut tally = formatting(root)?;
    let mut test = module_tests(root, AGENT);
    let host = root.join(BUILT);
    if host.is_file() {
        test.env(HOST_PROGRAM, host);
    } else {
        tally = tally.and(TestTally::skip(format!(
            "tests of the node agent with a real host: {BUILT} is missing; run the stage `build` before"
        )));
    }
    tally = tally.and(module(root, AGENT, &mut test)?);
    for folder in BESIDE {
        tally = tally.and(module(root, folder, &mut module_tests(root, folder))?);
    }
    Ok(tally)
}

/// Runs vet, lint and the tests of a module, if Go has or gets the modules that it needs.
fn module(root: &Path, folder: &str, tests: &mut Command) -> Result<TestTally> {
    if let Some(skipped) = download(root, folder)? {
        return Ok(skipped);
    }
    Ok(vetted(root, folder)?.and(check(tests)?))
}

/// Runs `go vet` and staticcheck on a module.
fn vetted(root: &Path, folder: &str) -> Result<TestTally> {
    Ok(check(&mut go(root, folder, &["vet", "./..."]))?.and(lint(root, folder)?))
}

/// Returns the command that runs a module's tests. Go's cache of results knows neither that the host has changed nor files
/// of other folders, such as the chart and the guide.
fn module_tests(root: &Path, folder: &str) -> Command {
    go(root, folder, &["test", "-count=1", "./..."])
}

/// Returns the reason why Go programs cannot be built here, or `None` if they can.
pub(crate) fn obstacle() -> Option<String> {
    if !setup::in_path("go") || !setup::in_path("gofmt") {
        return Some(format!("`go` or `gofmt` is missing; install Go 1.{OLDEST_GO} or later"));
    }
    let mut command = Command::new("go");
    let output = command.args(["env", "GOVERSION"]).env("GOTOOLCHAIN", "local").stdin(Stdio::null()).output();
    let version = output.ok().and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    is_old(version.trim())
        .then(|| format!("`go` has the version \"{}\"; install Go 1.{OLDEST_GO} or later", version.trim()))
}

/// Returns true for a version of Go, such as go1.26.8, that cannot build the agent, and for an unreadable one.
fn is_old(version: &str) -> bool {
    let minor = version.strip_prefix("go1.").and_then(|rest| rest.split(['.', 'r', 'b', '-']).next());
    minor.and_then(|minor| minor.parse().ok()).is_none_or(|minor: u32| minor < OLDEST_GO)
}

/// Returns a command of Go in a folder of the checkout.
pub(crate) fn go(root: &Path, folder: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("go");
    command.args(arguments).current_dir(root.join(folder)).env("GOTOOLCHAIN", "local").stdin(Stdio::null());
    // The agent is a static program, which needs no C compiler.
    command.env("GOFLAGS", GO_FLAGS).env("CGO_ENABLED", "0");
    command
}

/// Checks that gofmt would change no file.
fn formatting(root: &Path) -> Result<TestTally> {
    let mut command = Command::new("gofmt");
    command.args(["-l", "."]).current_dir(root.join("kubernetes")).stdin(Stdio::null());
    let output = process::run(&mut command, OutputVisibility::OnFailure)?;
    let files = output.stdout();
    if output.success && files.is_empty() {
        return Ok(TestTally::PASSED);
    }
    println!("run gofmt -w on these files of kubernetes/:\n{files}");
    Ok(TestTally::FAILED)
}

/// Downloads the modules that a module needs. Returns the tally of a skipped test if Go neither has them in its cache nor
/// reaches a proxy.
pub(super) fn download(root: &Path, folder: &str) -> Result<Option<TestTally>> {
    let success =
        process::run(&mut go(root, folder, &["mod", "download"]), OutputVisibility::OnFailure)?.success;
    let skip = || {
        let remedy = "connect to a module proxy, or set GOPROXY";
        TestTally::skip(format!("checks of {folder}: Go cannot download its modules; {remedy}"))
    };
    Ok((!success).then(skip))
}

/// Builds staticcheck and runs it on a module.
pub(super) fn lint(root: &Path, folder: &str) -> Result<TestTally> {
    if let Some(skipped) = download(root, LINT_MODULE)? {
        return Ok(skipped);
    }
    let linter = root.join(LINTER);
    let mut build = go(root, LINT_MODULE, &["build", "-o"]);
    build.arg(&linter).arg(LINTER_PACKAGE);
    if !process::run(&mut build, OutputVisibility::OnFailure)?.success {
        return Ok(TestTally::FAILED);
    }
    let mut command = Command::new(linter);
    command.args(["-checks", LINTS, "./..."]).current_dir(root.join(folder)).stdin(Stdio::null());
    command.env("GOTOOLCHAIN", "local").env("GOFLAGS", GO_FLAGS).env("CGO_ENABLED", "0");
    check(&mut command)
}

pub(super) fn check(command: &mut Command) -> Result<TestTally> {
    let success = process::run(command, OutputVisibility::OnFailure)?.success;
    Ok(if success { TestTally::PASSED } else { TestTally::FAILED })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::metadata;

    #[test]
    fn each_go_module_is_checked_by_a_stage() {
        let root = metadata::workspace_root().unwrap();
        let (mut folders, mut modules) = (vec![root.join(AGENT)], Vec::new());
        while let Some(folder) = folders.pop() {
            if folder.join("go.mod").is_file() {
                modules.push(metadata::relative(&root, &folder).to_str().unwrap().to_owned());
            }
            let inner = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
            folders.extend(inner.filter(|path| path.is_dir()));
        }
        // The cluster has a stage of its own, and the module of staticcheck has no package.
        let mut checked = BESIDE.to_vec();
        checked.extend([AGENT, LINT_MODULE, "kubernetes/cluster"]);
        modules.sort();
        checked.sort_unstable();
        assert_eq!(modules, checked);
    }

    #[test]
    fn go_without_a_sufficient_version_is_old() {
        for version in ["go1.26", "go1.26.8", "go1.27rc1", "go1.100.2"] {
            assert!(!is_old(version), "{version}");
        }
        for version in ["", "go1.25.9", "go1.4", "go2", "devel"] {
            assert!(is_old(version), "{version}");
        }
    }
}
