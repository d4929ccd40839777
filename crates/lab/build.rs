//! Hashes the sources, and the data, of everything that decides what an experiment finds, so that rows stored by one build are
//! not taken for those of another. Left out: the compiler and the dependencies from crates.io, neither of which
//! may change a result in integers.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The crates under the lab, and the lab itself. Those that do not exist yet count from the day they do.
const CRATES: [&str; 10] =
    ["pcie", "i82576", "nic", "driver", "iovm", "sim", "hypervisor", "guest", "split", "lab"];

/// Data that reports show beside rows. It names the version that it was found with, and cannot have a part in it.
const SHOWN: &str = "sensitivity.toml";

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut files = Vec::new();
    for name in CRATES {
        let sources = here.join("..").join(name).join("src");
        if sources.is_dir() {
            println!("cargo::rerun-if-changed={}", sources.display());
            collect(&sources, &mut files)?;
        }
    }
    println!("cargo::rerun-if-changed={}", here.join("data").display());
    collect(&here.join("data"), &mut files)?;
    files.retain(|file| !file.ends_with(SHOWN));
    files.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for file in &files {
        let name = file.strip_prefix(&here).unwrap_or(file).to_string_lossy();
        hash = fold(fold(hash, name.as_bytes()), &fs::read(file)?);
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

/// FNV-1a; the length keeps neighbours apart.
fn fold(hash: u64, bytes: &[u8]) -> u64 {
    let length = (bytes.len() as u64).to_le_bytes();
    let all = length.iter().chain(bytes);
    all.fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
