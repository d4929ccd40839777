//! `cargo xtask sanitize`: runs tests under Miri, AddressSanitizer or ThreadSanitizer, and prints a row for each package. The
//! page `docs/sanitizers.md` has the results, and the tests that are skipped.

mod checker;
mod run;
mod skipped;

use std::process::ExitCode;

use anyhow::{Result, ensure};

use crate::metadata;
use checker::Checker;

/// Arguments of `cargo xtask sanitize`.
#[derive(Debug, clap::Args)]
pub(crate) struct SanitizeArgs {
    /// Checker under which the tests run.
    #[arg(value_enum)]
    checker: Checker,
    /// Packages whose tests run, without the prefix of published crates. Default: all of the checker.
    #[arg(value_name = "PACKAGE")]
    packages: Vec<String>,
    /// Print the packages and the skipped tests, and run none.
    #[arg(long)]
    list: bool,
}

/// Runs tests under a checker, and prints a row for each package.
///
/// # Errors
/// A package is unknown, or the checker is not installed.
pub(crate) fn run(options: &SanitizeArgs) -> Result<ExitCode> {
    let checker = options.checker;
    let packages = chosen(checker, &options.packages)?;
    if options.list {
        for package in packages {
            println!("{package}");
            for test in skipped::skipped(checker, package) {
                println!("    skips {}: {}", test.path, test.reason);
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    checker.require()?;
    let root = metadata::workspace_root()?;
    let mut has_failed = false;
    for package in packages {
        let result = run::run(&root, checker, package)?;
        print!("{}", result.failure.as_deref().unwrap_or_default());
        println!("{result}");
        has_failed |= result.failure.is_some();
    }
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns the wanted packages of a checker: all of them if none is named.
fn chosen(checker: Checker, wanted: &[String]) -> Result<Vec<&'static str>> {
    let all = checker.packages();
    let unknown = wanted.iter().find(|wanted| !all.contains(&wanted.as_str()));
    ensure!(
        unknown.is_none(),
        "{checker} runs no tests of package {}: one of {}",
        unknown.map_or("", String::as_str),
        all.join(", ")
    );
    Ok(all
        .iter()
        .copied()
        .filter(|package| wanted.is_empty() || wanted.iter().any(|name| name == package))
        .collect())
}
