//! `cargo xtask prove`: proves the bounds of docs/proofs.md. A checker executes compiled functions of the product symbolically
//! (`proofs`), tests run all cases of small domains, and models run shared words in every order.

mod checker;
mod enumerated;
mod python;
mod result;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, ensure};

use crate::metadata;
use crate::tidy::proofs::{self, ENUMERATIONS, INTERLEAVINGS};
use crate::tidy::source::{self, RustSource};
use result::BoundResult;

/// Arguments of `cargo xtask prove`.
#[derive(Debug, clap::Args)]
pub(crate) struct ProveArgs {
    /// Bounds to prove; without one, all.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print the list of bounds as rows of docs/proofs.md, and prove none.
    #[arg(long)]
    list: bool,
    /// Print results as JSON, a line for each bound.
    #[arg(long)]
    json: bool,
    /// Number of bounds to check at the same time.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: u16,
    /// Most seconds for a bound. A bound that takes longer is not proved.
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u16).range(1..=280))]
    seconds: u16,
}

/// Prints results as they arrive, and counts them.
struct ResultPrinter {
    json: bool,
    all: usize,
    finished: usize,
    failed: usize,
    proved: usize,
}

/// Proves the bounds, and prints a row for each.
///
/// # Errors
/// If a name is unknown, the bounds do not build, or the checker cannot be installed or run.
pub(crate) fn run(options: &ProveArgs) -> Result<ExitCode> {
    let root = metadata::workspace_root()?;
    let sources = rust_sources(&root)?;
    if options.list {
        proofs::rows(&sources).iter().for_each(|row| println!("{row}"));
        return Ok(ExitCode::SUCCESS);
    }
    let mut compiled = proofs::compiled(&sources);
    let mut enumerated = ENUMERATIONS.to_vec();
    let mut interleaved = INTERLEAVINGS.to_vec();
    let test_name = |path: &str| path.rsplit("::").next().unwrap_or_default().to_owned();
    for name in &options.names {
        let known = compiled.iter().any(|bound| bound.name == *name)
            || enumerated.iter().any(|(_, test, _)| test_name(test) == *name)
            || interleaved.iter().any(|(test, ..)| test_name(test) == *name);
        ensure!(known, "there is no bound {name}: see `cargo xtask prove --list`");
    }
    if !options.names.is_empty() {
        compiled.retain(|bound| options.names.contains(&bound.name));
        enumerated.retain(|(_, test, _)| options.names.contains(&test_name(test)));
        interleaved.retain(|(test, ..)| options.names.contains(&test_name(test)));
    }
    let all = compiled.len() + enumerated.len() + interleaved.len();
    let mut printer = ResultPrinter { json: options.json, all, finished: 0, failed: 0, proved: 0 };
    if !compiled.is_empty() {
        let python = python::install(&root)?;
        checker::check(&root, (&python, [options.jobs, options.seconds]), &compiled, |result| {
            printer.print(result);
        })?;
    }
    enumerated::check(&root, &enumerated, |result| printer.print(result))?;
    enumerated::check_interleavings(&root, &interleaved, |result| printer.print(result))?;
    printer.sum_up();
    Ok(if printer.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Parses the Rust files of the checkout. Files that are not Rust are findings of `tidy`.
fn rust_sources(root: &Path) -> Result<Vec<RustSource>> {
    let tracked = source::tracked(root)?;
    Ok(tracked.iter().filter(|file| file.is_rust()).filter_map(|file| RustSource::parse(file).ok()).collect())
}

impl ResultPrinter {
    fn print(&mut self, result: &BoundResult) {
        let BoundResult { name, is_good, words, paths, seconds } = result;
        self.finished += 1;
        self.failed += usize::from(!is_good);
        self.proved += usize::from(*is_good && !name.starts_with("control_"));
        if self.json {
            let row = serde_json::json!({
                "name": name, "good": is_good, "result": words, "paths": paths, "seconds": seconds
            });
            println!("{row}");
            return;
        }
        let paths = paths.map_or("-".to_owned(), |paths| paths.to_string());
        println!("{:>3}/{}  {name:<46} {paths:>5} paths {seconds:>6.1} s  {words}", self.finished, self.all);
    }

    fn sum_up(&self) {
        if !self.json {
            println!("{} bounds proved, {} of {} rows failed", self.proved, self.failed, self.all);
        }
    }
}
