//! Finds the property tests: their names in the sources, and the programs that cargo builds of them. Runs none.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use proc_macro2::{Delimiter, TokenTree};
use serde_json::Value;

use crate::metadata;
use crate::tidy::source::{self, RustSource, group, ident, inside, is_punct};

/// Program that cargo has built of some tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestProgram {
    pub(crate) package: String,
    /// Name of the cargo target: the library's, or that of a file in `tests`.
    pub(super) target: String,
    pub(crate) path: PathBuf,
    /// Folder of the package, in which cargo runs the package's tests.
    pub(crate) folder: PathBuf,
}

/// Property test, with its test program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PropertyTest {
    pub(super) program: TestProgram,
    /// Full name of the test, as the program lists it.
    pub(super) test: String,
}

/// Builds all tests of the workspace and returns the property tests among them.
pub(super) fn all(root: &Path) -> Result<Vec<PropertyTest>> {
    let names = names(root)?;
    let mut properties = Vec::new();
    for program in programs(root)? {
        for test in list(&program)? {
            let last = test.rsplit("::").next().unwrap_or_default().to_owned();
            if names.contains(&(program.package.clone(), last)) {
                properties.push(PropertyTest { program: program.clone(), test });
            }
        }
    }
    Ok(properties)
}

/// Builds all tests of the workspace and returns their programs.
pub(super) fn programs(root: &Path) -> Result<Vec<TestProgram>> {
    built(root, &["--workspace"])
}

/// Builds the tests that `selection`, arguments of cargo, selects, and returns their programs.
pub(crate) fn built(root: &Path, selection: &[&str]) -> Result<Vec<TestProgram>> {
    let mut command = metadata::cargo();
    command.args(["test", "--quiet", "--no-run", "--message-format=json"]).args(selection);
    let output = command
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run `cargo test --no-run`")?;
    ensure!(output.status.success(), "the tests do not build");
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(program).collect())
}

/// Returns the test program that a JSON message of cargo names, or `None` if the message names no test program.
fn program(message: &str) -> Option<TestProgram> {
    let message: Value = serde_json::from_str(message).ok()?;
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    Some(TestProgram {
        package: folder.file_name()?.to_str()?.to_owned(),
        target: message["target"]["name"].as_str()?.to_owned(),
        path: message["executable"].as_str()?.into(),
        folder,
    })
}

/// Returns the names of the tests in a test program.
fn list(program: &TestProgram) -> Result<Vec<String>> {
    let mut command = Command::new(&program.path);
    command.args(["--list", "--format", "terse"]).current_dir(&program.folder).stdin(Stdio::null());
    let output =
        command.output().with_context(|| format!("cannot run `{} --list`", program.path.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// Returns package and name of each property test in the sources.
fn names(root: &Path) -> Result<BTreeSet<(String, String)>> {
    let mut names = BTreeSet::new();
    for file in source::tracked(root)?.iter().filter(|file| file.is_rust()) {
        // A file that is not Rust is a finding of `tidy`.
        let Ok(rust) = RustSource::parse(file) else { continue };
        if let Some(package) = metadata::crate_of(&file.path) {
            names.extend(in_file(&rust).into_iter().map(|name| (package.to_owned(), name)));
        }
    }
    Ok(names)
}

/// Returns the names of a file's property tests: functions in `proptest! { ... }`, and those that make a `TestRunner`.
fn in_file(rust: &RustSource) -> Vec<String> {
    let mut names = Vec::new();
    rust.each(|tokens| {
        let is_macro =
            ident(tokens.first()).is_some_and(|name| name == "proptest") && is_punct(tokens.get(1), '!');
        if let Some(TokenTree::Group(block)) = tokens.get(2).filter(|_| is_macro) {
            let block = inside(block);
            names.extend((0..block.len()).filter_map(|at| function(&block[at..])).map(|(name, _)| name));
        } else if let Some((name, _)) = function(tokens).filter(|(_, body)| mentions(body, "TestRunner")) {
            names.push(name);
        }
    });
    names
}

/// Returns name and body of the function that the tokens begin with.
fn function(tokens: &[TokenTree]) -> Option<(String, Vec<TokenTree>)> {
    ident(tokens.first()).filter(|word| *word == "fn")?;
    let name = ident(tokens.get(1))?.to_string();
    let body = tokens.iter().find_map(|token| group(Some(token), Delimiter::Brace))?;
    Some((name, inside(body)))
}

fn mentions(tokens: &[TokenTree], name: &str) -> bool {
    tokens.iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == name,
        TokenTree::Group(group) => mentions(&inside(group), name),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn property_tests_are_found_by_their_macro_or_test_runner() {
        let source = "proptest! { #[test] fn a(x in 0..3) { f(); } #[test] fn b(y in g()) {} }\n\
            #[test] fn c() { let mut runner = TestRunner::new(); }\n#[test] fn d() { proptest(); }\n";
        assert_eq!(in_file(&RustSource::sample(source)), ["a", "b", "c"]);
    }

    #[test]
    fn test_programs_are_read_from_cargo_messages() {
        let message = r#"{"manifest_path": "/p/crates/nic/Cargo.toml", "target": {"name": "card"}, "executable": "/p/x"}"#;
        let read = program(message).unwrap();
        assert_eq!((read.package.as_str(), read.target.as_str()), ("nic", "card"));
        assert_eq!(program(&message.replace("\"/p/x\"", "null")), None);
    }
}
