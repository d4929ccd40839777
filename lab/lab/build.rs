//! Hashes all sources and data that determine experiments' results, so that rows stored by one build are not
//! reused by another. Figures, reports, comments and tests are excluded, as they do not affect results; so
//! are the compiler and external crates, which cannot change integer results.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Folders of the hashed crates in the workspace, one a line: those that the lab depends on, and the lab itself. A test
/// compares the list with the manifests.
const CRATES: &str = "hashed-crates.txt";

/// Names of files that the hash excludes, as they only draw rows or are shown beside them. The sensitivity file names
/// the version it was computed with, so it cannot be part of the version.
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

/// File that determines results.
#[derive(Debug)]
struct HashedFile {
    /// Path of the file in its crate, after `../` and the crate's name for sources. It names no group of crates, so a crate
    /// that moves to another group keeps the version.
    name: PathBuf,
    path: PathBuf,
}

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut files = Vec::new();
    println!("cargo::rerun-if-changed={}", here.join(CRATES).display());
    for folder in fs::read_to_string(here.join(CRATES))?.lines().map(Path::new) {
        let name = Path::new("..").join(folder.file_name().unwrap_or_default()).join("src");
        collect(&name, &here.join("../..").join(folder).join("src"), &mut files)?;
    }
    collect(Path::new("data"), &here.join("data"), &mut files)?;
    files.retain(|HashedFile { name, .. }| {
        !SHOWN.iter().any(|shown| name.starts_with(shown)) && !is_test(name)
    });
    files.sort_by(|one, other| one.name.cmp(&other.name));
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for HashedFile { name, path } in &files {
        hash =
            fold(fold(hash, name.to_string_lossy().as_bytes()), code(&fs::read_to_string(path)?).as_bytes());
    }
    println!("cargo::rustc-env=LAB_SOURCES={hash:016x}");
    Ok(())
}

/// Adds the files of a folder, and has cargo run this program again when the folder changes.
fn collect(name: &Path, folder: &Path, files: &mut Vec<HashedFile>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", folder.display()));
    for entry in fs::read_dir(folder).map_err(named)? {
        let entry = entry?;
        let (name, path) = (name.join(entry.file_name()), entry.path());
        if path.is_dir() {
            collect(&name, &path, files)?;
        } else {
            files.push(HashedFile { name, path });
        }
    }
    Ok(())
}

/// Returns `true` if a source file contains only tests.
fn is_test(name: &Path) -> bool {
    let of_tests = |part: &str| part == "tests" || part.ends_with("tests.rs") || part == "synthetic.rs";
    name.iter().filter_map(|part| part.to_str()).any(of_tests)
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
