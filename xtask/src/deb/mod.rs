//! `cargo xtask deb`: builds the Debian package of the program and the files under `packaging`, with dpkg-deb.
//!
//! | module | adds |
//! |---|---|
//! | `tree` | the files, at their paths on the user's disk |
//! | `made` | generated files: manual, completions, changelog, licences of dependencies |
//! | `paths` | no file: it keeps paths of the building machine out of static programs |
//!
//! It builds no source package and does not follow the Debian archive's policy (docs/decisions/22-packages.md).

mod made;
mod paths;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use crate::metadata;
pub(crate) use made::licences;
pub(crate) use paths::MachineFolders;
use tree::PackageTree;

/// Arguments of `cargo xtask deb`.
#[derive(Debug, clap::Args)]
pub(crate) struct DebArgs {
    /// Rust target to build for release; x86_64-unknown-linux-musl makes a static program.
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Program to put into the package instead of building one.
    #[arg(long, value_name = "FILE", conflicts_with = "target")]
    program: Option<PathBuf>,
    /// Version of the package. Default: the workspace's version, and the revision 1.
    #[arg(long)]
    version: Option<String>,
    /// Folder to write the package to. Default: target/debian.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Builds the Debian package, and prints its path.
pub(crate) fn run(options: &DebArgs) -> Result<ExitCode> {
    let root = metadata::workspace_root()?;
    let target = metadata::target_folder()?;
    let program = match &options.program {
        Some(program) => program.clone(),
        None => build(&root, &target, options.target.as_deref())?,
    };
    let version = match &options.version {
        Some(version) => version.clone(),
        None => format!("{}-1", version_of(&root)?),
    };
    let out = options.out.clone().unwrap_or_else(|| target.join("debian"));
    let tree = PackageTree::lay_out(&root, &program, &version, &out.join(format!("softiov_{version}")))?;
    let package = out.join(format!("softiov_{version}_amd64.deb"));
    run_tool(
        Command::new("dpkg-deb").args(["--root-owner-group", "--build"]).arg(tree.folder()).arg(&package),
    )?;
    fs::remove_dir_all(tree.folder())?;
    println!("{}", package.display());
    Ok(ExitCode::SUCCESS)
}

/// Builds the program for release, and returns its path. A program for a named target has no paths of this machine.
pub(crate) fn build(root: &Path, target: &Path, triple: Option<&str>) -> Result<PathBuf> {
    let mut command = metadata::cargo();
    command.args(["build", "--release", "--locked", "--package", "softiov"]).current_dir(root);
    if let Some(triple) = triple {
        command.args(["--target", triple]);
        MachineFolders::of(root, target)?.replace(&mut command);
    }
    ensure!(command.status()?.success(), "cannot build the program");
    Ok(target.join(triple.unwrap_or_default()).join("release/softiov"))
}

/// Returns the version of the package `softiov`.
pub(crate) fn version_of(root: &Path) -> Result<String> {
    let packages = metadata::members(&root.join("Cargo.toml"))?;
    let package = packages.into_iter().find(|package| package.name == "softiov");
    Ok(package.context("the workspace has no package softiov")?.version)
}

/// Runs a program to its end, and returns its standard output.
fn run_tool(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {:?}", command.get_program()))?;
    ensure!(output.status.success(), "{:?} failed: {}", command.get_program(), output.status);
    Ok(output.stdout)
}
