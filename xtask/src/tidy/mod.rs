//! Rules of the project that the compiler and clippy do not check. Each rule is a function from sources to findings.

mod architecture;
mod conformance;
mod counted;
pub(crate) mod doors;
mod filters;
mod finding;
mod layering;
mod lengths;
mod licences;
mod modules;
mod opening;
mod printed;
mod promises;
pub(crate) mod proofs;
pub(crate) mod pure;
pub(crate) mod source;
mod unrun;
mod unsafety;
mod words;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;

use crate::metadata::{self, CargoPackage};
use counted::BudgetedFindings;
use finding::TidyFinding;
use source::{RustSource, TrackedFile};

/// Report of `cargo xtask tidy`: breaches of all rules, and the number of checked files.
#[derive(Debug)]
pub(crate) struct TidyReport {
    pub(crate) findings: Vec<TidyFinding>,
    files: usize,
}

impl fmt::Display for TidyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        write!(f, "tidy: {} files, {} findings", self.files, self.findings.len())
    }
}

/// Arguments of `cargo xtask tidy`, which show or lower the budget instead of checking.
#[derive(Debug, clap::Args)]
pub(crate) struct TidyArgs {
    /// Print a table of the faults that are left, and how many each crate may have.
    #[arg(long, conflicts_with_all = ["list", "lower"])]
    budget: bool,
    /// List the faults of a crate that have a budget (`pages`: pages outside the crates).
    #[arg(long, value_name = "CRATE", conflicts_with = "lower")]
    list: Option<String>,
    /// Lower the budget to the present counts. A count that rose is not raised in the budget, and stays a finding.
    #[arg(long)]
    lower: bool,
}

/// Checks the tidy rules, or prints or lowers the budget, as the arguments demand.
///
/// # Errors
/// If the checkout or the budget cannot be read, or the budget cannot be written.
pub(crate) fn run(options: &TidyArgs) -> Result<ExitCode> {
    if let TidyArgs { budget: false, list: None, lower: false } = options {
        let report = check()?;
        println!("{report}");
        return Ok(if report.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let root = metadata::workspace_root()?;
    let tracked = source::tracked(&root)?;
    let places = BudgetedFindings::find(&tracked, &rust_sources(&tracked, &mut Vec::new()));
    match &options.list {
        Some(owner) => print!("{}", places.list(owner)),
        None if options.lower => places.lower_budget(&root)?,
        None => print!("{}", places.table(&root)?),
    }
    Ok(ExitCode::SUCCESS)
}

/// Applies every tidy rule to the checkout.
pub(crate) fn check() -> Result<TidyReport> {
    let root = metadata::workspace_root()?;
    let tracked = source::tracked(&root)?;
    let members = metadata::members(&root.join("Cargo.toml"))?;
    let closure = metadata::closure(&root.join("Cargo.toml"))?;
    let manifest_of = |package: &CargoPackage| metadata::relative(&root, &package.manifest);

    let mut findings = layering::check(&members, manifest_of);
    findings.extend(licences::check(&closure));
    findings.extend(unrun::check(&members, manifest_of));
    findings.extend(architecture::check(&members, &tracked));
    findings.extend(doors::check(&members, &tracked));
    findings.extend(printed::check(&tracked));
    findings.extend(conformance::check(&tracked));
    findings.extend(promises::check(&tracked));
    findings.extend(tracked.iter().flat_map(words::machine_paths));
    let sources = rust_sources(&tracked, &mut findings);
    findings.extend(proofs::check(&tracked, &sources));
    findings.extend(pure::check(&members, &root, &sources));
    findings.extend(filters::check(&members, &root, &tracked, &sources));
    findings.extend(modules::check(&target_roots(&root, &members, &tracked)?, &sources));
    findings.extend(sources.iter().flat_map(each_source));
    findings.extend(BudgetedFindings::find(&tracked, &sources).findings(&root)?);
    findings.sort();
    Ok(TidyReport { findings, files: tracked.len() })
}

/// Applies the tidy rules that look at a single Rust file.
fn each_source(rust: &RustSource) -> Vec<TidyFinding> {
    [opening::check, lengths::file, lengths::functions, unsafety::check, words::unfinished, words::silenced]
        .iter()
        .flat_map(|rule| rule(rust))
        .collect()
}

/// Parses the Rust files of the checkout, and adds a finding for each file that is not valid Rust.
fn rust_sources(tracked: &[TrackedFile], findings: &mut Vec<TidyFinding>) -> Vec<RustSource> {
    let parsed = tracked.iter().filter(|file| file.is_rust()).map(RustSource::parse);
    let (sources, broken): (Vec<_>, Vec<_>) = parsed.partition(std::result::Result::is_ok);
    findings.extend(broken.into_iter().filter_map(std::result::Result::err));
    sources.into_iter().filter_map(std::result::Result::ok).collect()
}

/// Returns the first source file of each cargo target, including those of packages outside the workspace (fuzz
/// targets and proofs).
fn target_roots(root: &Path, members: &[CargoPackage], tracked: &[TrackedFile]) -> Result<BTreeSet<PathBuf>> {
    let mut packages = members.to_vec();
    let known: BTreeSet<_> =
        members.iter().map(|member| metadata::relative(root, &member.manifest)).collect();
    for file in tracked.iter().filter(|file| file.path.ends_with("Cargo.toml")) {
        if file.path != Path::new("Cargo.toml") && !known.contains(&file.path) {
            packages.extend(metadata::members(&root.join(&file.path))?);
        }
    }
    let targets = packages.iter().flat_map(|package| &package.targets);
    Ok(targets.map(|target| metadata::relative(root, &target.root)).collect())
}
