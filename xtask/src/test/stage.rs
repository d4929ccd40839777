//! Runs the stages of `cargo xtask test`: the name, the commands and the counted outcome of each.
//!
//! Tests and guests use the development profile, which is optimised enough and built once; the demo is built
//! for release because that is how people run it. All test stages build the same selection of packages, since
//! another selection has other features and would build everything again.

use std::env;
use std::process::Command;

use anyhow::Result;

use super::context::TestWorkspace;
use super::process::{self, OutputVisibility};
use super::tally::TestTally;
use super::{cluster, demo, kubernetes, lints, results, setup};
use crate::explore::seed::SEED;
use crate::tidy::doors::{DOORS, package_name};
use crate::tidy::pure::PURE;
use crate::{explore, instructions, metadata, tidy};

/// Cargo argument that selects all targets of `tests/`; `--all-targets` leaves out those with `test = false`.
const UNRUN_TOO: &str = "--test *";
/// Arguments of cargo for the fuzz targets, a workspace of their own. Here they are built without the fuzzer, which needs a C++
/// compiler and a nightly one. Their tests replay kept inputs.
const FUZZ_TARGETS: &str = "--quiet --locked --manifest-path fuzz/Cargo.toml --no-default-features --lib --bins --target-dir target/fuzz";

/// Arguments of cargo that check the bounds of `cargo xtask prove`, a workspace of their own.
const PROOFS: &str = "check --quiet --locked --manifest-path proofs/Cargo.toml --target-dir target/proofs";

/// Arguments of cargo for the models of shared atomics, which loom runs in every order of their threads.
const MODELS: &str = "test --quiet --release --locked --manifest-path proofs/Cargo.toml --package softiov-interleavings --lib --target-dir target/proofs";

/// Settings of glibc's allocator, in bytes: blocks below 32 MiB, the most that it allows, come from its heaps, which it
/// keeps. Most tests create a card or a guest's memory for each case; by default each free returns the pages, and the
/// kernel has to clear them again for the next case.
const MALLOC: [(&str, &str); 2] =
    [("MALLOC_MMAP_THRESHOLD_", "33554432"), ("MALLOC_TRIM_THRESHOLD_", "268435456")];

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum TestStage {
    Setup,
    Fmt,
    Tidy,
    Clippy,
    Unit,
    Doc,
    NoStd,
    Build,
    Test,
    KubernetesUnit,
    Kubernetes,
    Boot,
    Linux,
    Package,
    Instructions,
    Demo,
    DemoLinux,
    Tree,
}

impl TestStage {
    pub(super) const ALL: [Self; 18] = [
        Self::Setup,
        Self::Fmt,
        Self::Tidy,
        Self::Clippy,
        Self::Unit,
        Self::Doc,
        Self::NoStd,
        Self::Build,
        Self::Test,
        Self::KubernetesUnit,
        Self::Kubernetes,
        Self::Boot,
        Self::Linux,
        Self::Package,
        Self::Instructions,
        Self::Demo,
        Self::DemoLinux,
        Self::Tree,
    ];

    /// Returns the name of the stage on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Fmt => "fmt",
            Self::Tidy => "tidy",
            Self::Clippy => "clippy",
            Self::Unit => "unit",
            Self::Doc => "doc",
            Self::NoStd => "no-std",
            Self::Build => "build",
            Self::Test => "test",
            Self::KubernetesUnit => "kubernetes-unit",
            Self::Kubernetes => "kubernetes",
            Self::Instructions => "instructions",
            Self::Boot => "boot",
            Self::Linux => "linux",
            Self::Package => "package",
            Self::Demo => "demo",
            Self::DemoLinux => "demo-linux",
            Self::Tree => "tree",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Setup => "installed host programs that tests use",
            Self::Fmt => "formatting",
            Self::Tidy => "checks of layering, lengths, unsafe code, licences and words",
            Self::Clippy => "lints",
            Self::Unit => "unit tests of the pure crates",
            Self::Doc => "documentation builds without warnings, packages can be made",
            Self::NoStd => "the pure crates and their dependencies build without the standard library",
            Self::Build => "the workspace, its tests, the fuzz targets and the proofs build",
            Self::Test => "unit, protocol, property, driver-against-card and vfio-user tests",
            Self::KubernetesUnit => {
                "the node agent for Kubernetes against kubelet's sockets; its chart, image and bindings"
            }
            Self::Kubernetes => "host and node agent in a real Kubernetes cluster of two nodes",
            Self::Instructions => "instructions that the card spends on a frame, by stop of the frame's path",
            Self::Boot => "a stock Linux guest boots without a card",
            Self::Linux => "stock Linux guests on the card",
            Self::Package => "the Debian package on a new Debian system, with guests and libvirt",
            Self::Demo => "the demo with embedded guests, by the program that cargo install makes",
            Self::DemoLinux => "the demo with stock Linux guests, by the program that cargo install makes",
            Self::Tree => "the build leaves the checkout as it was",
        }
    }

    fn is_long(self) -> bool {
        matches!(
            self,
            Self::Instructions | Self::Boot | Self::Linux | Self::Package | Self::Demo | Self::DemoLinux
        )
    }

    pub(super) fn needs_build(self) -> bool {
        matches!(self, Self::Test | Self::KubernetesUnit) || self.is_long()
    }

    /// Returns true if `cargo xtask test --quick` runs this stage.
    pub(super) fn is_quick(self) -> bool {
        matches!(self, Self::Fmt | Self::Tidy | Self::Clippy | Self::Unit)
    }

    /// Returns true if another test stage of a whole run contains this one.
    pub(super) fn is_part_of_another(self) -> bool {
        self == Self::Unit
    }

    /// Returns true if the stage runs only by its name: the first build of its programs takes many minutes.
    pub(super) fn is_by_name(self) -> bool {
        self == Self::Kubernetes
    }

    /// Runs the commands of the stage, and returns its counts of passed, failed and skipped tests.
    ///
    /// # Errors
    /// If a command of the stage cannot be started. A command that fails is counted, and its output has been shown.
    pub(super) fn run(self, context: &TestWorkspace) -> Result<TestTally> {
        match self {
            Self::Setup => setup::run(),
            Self::Fmt => check(&mut [
                cargo(context, "fmt --all --check"),
                cargo(context, "fmt --manifest-path fuzz/Cargo.toml --check"),
            ]),
            Self::Tidy => tidy(),
            Self::Clippy => {
                let denied: &[_] = if lints::are_denied()? { &["--", "--deny", "warnings"] } else { &[] };
                let clippy = |selection: String| {
                    let mut command = cargo(context, &format!("clippy {selection}"));
                    command.args(denied);
                    command
                };
                check(&mut [
                    clippy("--workspace --all-targets".to_owned()),
                    clippy(format!("--workspace {UNRUN_TOO}")),
                    clippy(format!("{FUZZ_TARGETS} --tests")),
                ])
            }
            Self::Unit => unit_tests(context),
            Self::Doc => {
                let mut doc = cargo(context, "doc --workspace --no-deps");
                if lints::are_denied()? {
                    doc.env("RUSTDOCFLAGS", "--deny warnings");
                }
                let mut package = cargo(context, "package --no-verify --allow-dirty --offline");
                package.args(packages(&DOORS));
                check(&mut [doc, package])
            }
            Self::NoStd => no_std(context),
            Self::Build => check(&mut [
                cargo(context, "test --workspace --no-run"),
                cargo(context, &format!("test --workspace --no-run {UNRUN_TOO}")),
                cargo(context, &format!("test {FUZZ_TARGETS} --no-run")),
                cargo(context, PROOFS),
                cargo(context, &format!("{MODELS} --no-run")),
            ]),
            Self::Test => test_all(context),
            Self::KubernetesUnit => kubernetes::run(&context.root),
            Self::Kubernetes => cluster::run(&context.root),
            Self::Instructions => count_instructions(),
            Self::Boot | Self::Linux | Self::Package => self.boot_guests(context),
            Self::Demo => demo(context, "demo --json", demo::EMBEDDED_GUESTS),
            Self::DemoLinux => match setup::guest_obstacle() {
                Some(obstacle) => Ok(TestTally::skip(format!("{}: {obstacle}", self.title()))),
                None => demo(context, "demo --linux --seconds 2 --json", demo::LINUX_GUESTS),
            },
            Self::Tree => Ok(tree(context)),
        }
    }

    /// Runs the test target that boots guests and has the name of this stage, if guests can be booted here.
    fn boot_guests(self, context: &TestWorkspace) -> Result<TestTally> {
        if let Some(obstacle) = setup::guest_obstacle() {
            return Ok(TestTally::skip(format!("{}: {obstacle}", self.title())));
        }
        let arguments = format!("test --workspace --test {} -- --nocapture", self.name());
        test(&mut cargo(context, &arguments), OutputVisibility::Live)
    }
}

fn cargo(context: &TestWorkspace, arguments: &str) -> Command {
    let mut command = metadata::cargo();
    command.args(arguments.split(' ')).current_dir(&context.root).env("CARGO_TERM_COLOR", "never");
    command
}

/// Runs all commands of a stage as one test, which fails at the first command that fails. A command whose compiler a signal
/// has ended runs once more, with one compiler at a time.
fn check(commands: &mut [Command]) -> Result<TestTally> {
    for command in commands {
        let mut output = process::run(command, OutputVisibility::OnFailure)?;
        if output.lost_a_compiler() {
            println!(
                "   a signal has ended a compiler, perhaps for lack of memory: building again, one at a time"
            );
            output = process::run(command.env("CARGO_BUILD_JOBS", "1"), OutputVisibility::OnFailure)?;
        }
        if !output.success {
            return Ok(TestTally::FAILED);
        }
    }
    Ok(TestTally::PASSED)
}

/// Runs a command of `cargo test`, and returns the counts of its tests.
fn test(command: &mut Command, show: OutputVisibility) -> Result<TestTally> {
    let output = process::run(command, show)?;
    let (success, tally) = (output.success, results::read(output.texts()));
    if success && tally.is_empty() {
        println!("no test of this stage ran");
        return Ok(TestTally::FAILED);
    }
    // A failed build, and a test that ended its whole process, appear in no count.
    Ok(if !success && tally.failed == 0 { TestTally { failed: 1, ..tally } } else { tally })
}

/// Runs the unit tests of the pure crates. They are built apart from the workspace, with fewer features and
/// dependencies.
fn unit_tests(context: &TestWorkspace) -> Result<TestTally> {
    let mut command = cargo(context, "test --lib --no-fail-fast");
    command.args(packages(&PURE)).envs(MALLOC);
    test(command.args(["--", "--show-output"]), OutputVisibility::FailedTests)
}

/// Builds the pure crates for a machine without an operating system. The attribute `no_std` alone would let a dependency use
/// the standard library.
fn no_std(context: &TestWorkspace) -> Result<TestTally> {
    if let Some(obstacle) = setup::target_obstacle(setup::BARE) {
        return Ok(TestTally::skip(format!("{}: {obstacle}", TestStage::NoStd.title())));
    }
    let mut command = cargo(context, &format!("check --target {}", setup::BARE));
    command.args(packages(&PURE));
    check(&mut [command])
}

/// Returns cargo's arguments that select these crates.
fn packages<'a>(names: &'a [&str]) -> impl Iterator<Item = String> + 'a {
    names.iter().flat_map(|name| ["--package".to_owned(), package_name(name)])
}

/// Runs the tests of the workspace, and the failing cases that `cargo xtask explore` stored.
fn test_all(context: &TestWorkspace) -> Result<TestTally> {
    match env::var(SEED) {
        Ok(seed) => println!("   property tests: seed {seed} ({})", SEED),
        Err(_) => println!("   property tests: random seeds, because {} is not set", SEED),
    }
    // The output of tests that pass is wanted for what they say they skipped.
    let mut all = cargo(context, "test --workspace --no-fail-fast -- --show-output");
    let tests = test(all.envs(MALLOC), OutputVisibility::FailedTests)?;
    let mut replays = cargo(context, &format!("test {FUZZ_TARGETS} --no-fail-fast -- --show-output"));
    let replays = test(replays.envs(MALLOC), OutputVisibility::FailedTests)?;
    let mut models = cargo(context, &format!("{MODELS} -- --show-output"));
    let models = test(&mut models, OutputVisibility::FailedTests)?;
    Ok(tests.and(replays).and(models).and(explore::worker::repeat(&context.root)?))
}

fn tidy() -> Result<TestTally> {
    let report = tidy::check()?;
    println!("{report}");
    Ok(if report.findings.is_empty() { TestTally::PASSED } else { TestTally::FAILED })
}

fn count_instructions() -> Result<TestTally> {
    if let Some(obstacle) = setup::valgrind_obstacle() {
        return Ok(TestTally::skip(format!("{}: {obstacle}", TestStage::Instructions.title())));
    }
    let complaints = instructions::complaints(&instructions::count()?)?;
    complaints.iter().for_each(|complaint| println!("   {complaint}"));
    if complaints.is_empty() {
        return Ok(TestTally::PASSED);
    }
    Ok(match instructions::other_compiler()? {
        Some(kept) => {
            TestTally::skip(format!("{}: the counts are those of {kept}", TestStage::Instructions.title()))
        }
        None => TestTally::FAILED,
    })
}

/// Installs the program with `cargo install`, as users do, runs the demo with these arguments, and checks its output.
fn demo(context: &TestWorkspace, arguments: &str, guests: usize) -> Result<TestTally> {
    let root = context.root.join("target/installed");
    let mut install = cargo(context, "install --quiet --locked --path crates/softiov --root");
    if !process::run(install.arg(&root), OutputVisibility::OnFailure)?.success {
        return Ok(TestTally::FAILED);
    }
    let mut command = Command::new(root.join("bin/softiov"));
    command.args(arguments.split(' ')).current_dir(&context.root);
    let output = process::run(&mut command, OutputVisibility::OnFailure)?;
    if !output.success {
        return Ok(TestTally::FAILED);
    }
    Ok(match demo::check(&output.stdout(), guests) {
        Ok(said) => {
            println!("   {said}");
            TestTally::PASSED
        }
        Err(wrong) => {
            println!("{}\n{wrong}", output.all());
            TestTally::FAILED
        }
    })
}

fn tree(context: &TestWorkspace) -> TestTally {
    match (&context.status, TestWorkspace::git_status(&context.root)) {
        (Some(before), Some(after)) if *before == after => TestTally::PASSED,
        (Some(before), Some(after)) => {
            println!("git status before:\n{before}and after:\n{after}");
            TestTally::FAILED
        }
        _ => TestTally::skip(
            "cannot check that the build leaves the checkout as it was: git is missing, or this is not a \
             checkout"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::context::GUEST_TESTS;
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn test_stage_names_are_accepted_by_the_command_line() {
        for stage in TestStage::ALL {
            assert_eq!(TestStage::from_str(stage.name(), false), Ok(stage));
        }
        assert_eq!(
            [TestStage::Boot, TestStage::Linux, TestStage::Package].map(TestStage::name),
            GUEST_TESTS,
            "these name their test too"
        );
        assert_eq!(TestStage::ALL, TestStage::value_variants());
    }
}
