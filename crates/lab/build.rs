//! Hashes all sources and data that determine experiments' results, so that rows stored by one build are not
//! reused by another. Figures, reports, comments and tests are excluded, as they do not affect results; so
//! are the compiler and external crates, which cannot change integer results.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Names of the hashed crates, one a line: those that the lab depends on, and the lab itself. A test compares the list
/// with the manifests.
const CRATES: &str = "hashed-crates.txt";

/// Paths that the hash excludes, as they only draw rows or are shown beside them, relative to the folders of
/// `main`. The sensitivity file names the version it was computed with, so it cannot be part of the version.
const SHOWN: [&str; 9] = [
    "../lab/src/report",
    "../lab/src/explain",
    "../lab/src/compare",
    "../lab/src/dataset",
    "../lab/src/machine_file",
    "../lab/src/csv.rs",
    "../lab/src/similar.rs",
    "../lab/src/experiments/stated.rs",
    "data/sensitivity.toml",
];

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut files = Vec::new();
    println!("cargo::rerun-if-changed={}", here.join(CRATES).display());
    for name in fs::read_to_string(here.join(CRATES))?.lines() {
        let sources = here.join("..").join(name).join("src");
        println!("cargo::rerun-if-changed={}", sources.display());
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", sources.display()));
        collect(&sources, &mut files).map_err(named)?;
    }
    println!("cargo::rerun-if-changed={}", here.join("data").display());
    collect(&here.join("data"), &mut files)?;
    let is_shown = |file: &PathBuf| SHOWN.iter().any(|shown| file.starts_with(here.join(shown)));
    files.retain(|file| !is_shown(file) && !is_test(file));
    files.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for file in &files {
        let name = file.strip_prefix(&here).unwrap_or(file).to_string_lossy();
        hash = fold(fold(hash, name.as_bytes()), code(&fs::read_to_string(file)?).as_bytes());
    }
    println!("cargo::rustc-env=LAB_SOURCES={hash:016x}");
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns `true` if a source file contains only tests.
fn is_test(file: &Path) -> bool {
    let of_tests = |name: &str| name == "tests" || name.ends_with("tests.rs") || name == "synthetic.rs";
    file.iter().filter_map(|part| part.to_str()).any(of_tests)
}

/// Returns a source file's text without comment lines and the tests at its end.
fn code(text: &str) -> String {
    let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Folds bytes into an FNV-1a hash; including the length separates neighbouring inputs.
fn fold(hash: u64, bytes: &[u8]) -> u64 {
    let length = (bytes.len() as u64).to_le_bytes();
    let all = length.iter().chain(bytes);
    all.fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
